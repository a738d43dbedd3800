//! The masters' ids and sets, and when their votes decide.

use std::fmt;

/// One of the configured masters, by its place in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MasterId(u8);

impl MasterId {
    /// Returns the master's place in the configuration, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn all(masters: usize) -> impl DoubleEndedIterator<Item = Self> {
        (0..u8::try_from(masters).unwrap_or(u8::MAX)).map(Self)
    }
}

impl fmt::Debug for MasterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0)
    }
}

/// A set of masters, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MasterSet(u64);

impl MasterSet {
    pub(crate) const EMPTY: Self = Self(0);

    pub(crate) fn all(masters: usize) -> Self {
        Self(1u64.checked_shl(u32::try_from(masters).unwrap_or(u32::MAX)).map_or(u64::MAX, |bit| bit - 1))
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// One master.
    pub(crate) fn only(master: MasterId) -> Self {
        let mut set = Self::EMPTY;
        set.insert(master);
        set
    }

    pub(crate) fn insert(&mut self, master: MasterId) {
        self.0 |= 1 << (master.0 % 64);
    }

    pub(crate) fn remove(&mut self, master: MasterId) {
        self.0 &= !(1 << (master.0 % 64));
    }

    pub(crate) fn contains(self, master: MasterId) -> bool {
        self.0 & 1 << (master.0 % 64) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many of the first `masters` masters are in the set.
    pub(crate) fn among(self, masters: usize) -> usize {
        (self.0 & Self::all(masters).0).count_ones() as usize
    }

    pub(crate) fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    pub(crate) fn intersection(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    pub(crate) fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Its members, in the order of the configuration.
    pub fn iter(self) -> impl Iterator<Item = MasterId> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let lowest = u8::try_from(rest.trailing_zeros()).ok().filter(|&place| place < 64)?;
            rest &= rest - 1;
            Some(MasterId(lowest))
        })
    }
}

impl fmt::Debug for MasterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The number of configured masters, and how many of them must agree: N/2+1 of all N, however many
/// answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Quorum {
    masters: u8,
}

impl Quorum {
    /// The largest number of masters in a configuration.
    pub const MAX_MASTERS: usize = 64;

    pub(crate) fn of(masters: usize) -> Option<Self> {
        let masters = u8::try_from(masters).ok()?;
        (masters > 0 && usize::from(masters) <= Self::MAX_MASTERS).then_some(Self { masters })
    }

    /// Returns N, the number of configured masters.
    pub fn masters(self) -> usize {
        usize::from(self.masters)
    }

    /// Returns N/2+1, the number of votes that decide.
    pub fn needed(self) -> usize {
        self.masters() / 2 + 1
    }

    /// Returns the decision with this many votes for, and this many not yet cast.
    ///
    /// Votes are counted over all N masters: a master that is dead or was never asked does not
    /// vote.
    pub fn decide(self, votes_for: usize, not_yet_cast: usize) -> Decision {
        if votes_for >= self.needed() {
            Decision::Won
        } else if votes_for + not_yet_cast < self.needed() {
            Decision::Lost
        } else {
            Decision::Open
        }
    }
}

/// The decision of the votes so far.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Decision {
    /// The outstanding votes may still decide the round either way.
    Open,
    /// A quorum voted for.
    Won,
    /// A quorum can no longer be reached.
    Lost,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quorum_is_more_than_half_of_all() {
        let needed: Vec<_> = (1..=7).map(|n| Quorum::of(n).unwrap().needed()).collect();
        assert_eq!(needed, [1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(Quorum::of(0), None);
        assert_eq!(Quorum::of(65), None);
    }

    #[test]
    fn an_even_split_is_lost_at_once() {
        assert_eq!(Quorum::of(2).unwrap().decide(1, 0), Decision::Lost);
        assert_eq!(Quorum::of(4).unwrap().decide(2, 0), Decision::Lost);
        assert_eq!(Quorum::of(4).unwrap().decide(2, 1), Decision::Open);
    }

    /// Checks every table of votes for N = 1 to 5, in every order of arrival: a round is decided
    /// exactly when the outstanding votes cannot change the result, and never undecided at the end.
    #[test]
    fn every_table_of_votes_is_decided_as_early_as_possible() {
        for masters in 1..=5usize {
            let quorum = Quorum::of(masters).unwrap();
            for table in 0u32..1 << masters {
                let (mut votes_for, mut decided) = (0, None);
                for cast in 0..masters {
                    votes_for += usize::from(table >> cast & 1 == 1);
                    let rest = masters - cast - 1;
                    let decision = quorum.decide(votes_for, rest);
                    let certain = votes_for * 2 > masters || (votes_for + rest) * 2 <= masters;
                    assert_eq!(
                        decision != Decision::Open,
                        certain,
                        "N={masters} table {table:b} after {cast}"
                    );
                    if let Some(earlier) = decided {
                        assert_eq!(decision, earlier, "a decision never changes");
                    } else if decision != Decision::Open {
                        decided = Some(decision);
                    }
                }
                let won = usize::try_from(table.count_ones()).unwrap() * 2 > masters;
                assert_eq!(decided, Some(if won { Decision::Won } else { Decision::Lost }));
            }
        }
    }

    #[test]
    fn sets_hold_up_to_sixty_four_masters() {
        let all = MasterSet::all(64);
        assert_eq!(all.iter().count(), 64);
        assert_eq!(all.iter().map(MasterId::index).sum::<usize>(), 63 * 64 / 2);
        let last = MasterId::all(64).next_back().unwrap();
        let mut set = MasterSet::EMPTY;
        set.insert(last);
        assert!(set.contains(last) && set.iter().eq([last]));
        set.remove(last);
        assert!(set.is_empty());
        assert_eq!(MasterSet::all(3).without(MasterSet::all(2)).iter().count(), 1);
        assert_eq!(MasterSet::all(3).with(MasterSet::all(2)), MasterSet::all(3));
    }
}
