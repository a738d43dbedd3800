//! Numbers for grants: the masters' counters in one attempt, and the number that they agree on.
//!
//! A fencing token is V if a majority of the masters have had the event "the counter is V while the
//! lock is ours". Any two majorities share a master, and there the later of two grants was counted
//! after the earlier one's event, so its number is larger. That needs no assumption about time. Two
//! weaker rules would not do: to take the largest number of a round without that majority, or to
//! accept a counter that is larger than V.

use crate::protocol::{FencingToken, MasterId, MasterSet, Vote};

/// The masters' counters in one attempt of a fenced lock.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Numbers {
    /// Each master's counter, read while the lock was ours there.
    counted: Vec<Option<FencingToken>>,
    /// The number of the grant, once enough masters agree on it.
    pub(super) highest: Option<FencingToken>,
    /// The number that each master was asked to raise its counter to, while its answer is
    /// outstanding.
    asked: Vec<Option<FencingToken>>,
    /// How often the highest has grown. Each master numbers a grant once, so this is bounded.
    grown: usize,
}

impl Numbers {
    pub(super) fn new(masters: usize) -> Self {
        Self { counted: vec![None; masters], highest: None, asked: vec![None; masters], grown: 0 }
    }

    /// Whether this master has already counted the grant, so that its next answer is about raising
    /// its counter.
    pub(super) fn has_counted(&self, master: MasterId) -> bool {
        matches!(self.counted.get(master.index()), Some(Some(_)))
    }

    /// A master has counted. Returns `false` if its counter cannot have this number.
    pub(super) fn note(&mut self, master: MasterId, number: FencingToken) -> bool {
        let masters = self.counted.len();
        let asked = self.asked.get_mut(master.index()).map(Option::take);
        if asked.is_none_or(|asked| Some(number) < asked) {
            return false;
        }
        let Some(counted) = self.counted.get_mut(master.index()) else { return false };
        if Some(number) > self.highest {
            if self.grown >= masters {
                return false;
            }
            self.grown += 1;
            self.highest = Some(number);
        }
        *counted = Some(number);
        true
    }

    /// How many of the masters that granted the lock have the highest number.
    ///
    /// Without a number there is no agreement: then masters that have not counted are left out
    /// because they have not granted the lock. Once there is one, every master that has it has
    /// granted the lock. A raise can fail, but only masters with a smaller number are asked for
    /// one, and after a failure their number stays below the highest, which never falls.
    pub(super) fn agreed(&self, votes: &[Vote]) -> usize {
        let both = self.counted.iter().zip(votes);
        both.filter(|(counted, vote)| **vote == Vote::Granted && **counted == self.highest).count()
    }

    /// The masters that granted the lock with a smaller number and have not been asked to raise it;
    /// from here on they count as asked.
    pub(super) fn ask_those_behind(&mut self, votes: &[Vote]) -> MasterSet {
        let mut behind = MasterSet::EMPTY;
        let both = self.counted.iter().zip(&mut self.asked);
        for ((master, (counted, asked)), vote) in MasterId::all(votes.len()).zip(both).zip(votes) {
            if *vote == Vote::Granted && *counted < self.highest && asked.is_none() {
                *asked = self.highest;
                behind.insert(master);
            }
        }
        behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_largest_number_that_grows_more_often_than_there_are_masters_is_refused() {
        for masters in 1..=5 {
            let mut numbers = Numbers::new(masters);
            for (number, master) in (1..).zip(MasterId::all(masters)) {
                assert!(numbers.note(master, FencingToken::new(number).unwrap()));
            }
            let (last, more) = (numbers.highest, FencingToken::new(100).unwrap());
            assert!(MasterId::all(masters).all(|master| !numbers.note(master, more)));
            assert_eq!(numbers.highest, last);
        }
    }
}
