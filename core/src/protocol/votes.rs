//! The votes of one round, and their counts.

use std::ops::Deref;
use std::time::Duration;

use super::{Cause, MasterId, MasterSet, Quorum, Vote};

/// Each master's vote in one round, and the number of votes of each kind. The numbers are kept up
/// to date with each vote: with many masters, counting all votes at each answer would cost more
/// than everything else.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Votes {
    cast: Vec<Vote>,
    tally: Tally,
}

impl Votes {
    /// These masters are asked, and the others have no vote. `buffer` is only reused for its
    /// capacity.
    pub(crate) fn outstanding_from(asked: MasterSet, masters: usize, mut buffer: Vec<Vote>) -> Self {
        buffer.clear();
        let vote = |master| if asked.contains(master) { Vote::Outstanding } else { Vote::NotHeld };
        buffer.extend(MasterId::all(masters).map(vote));
        Self { tally: Tally::outstanding_of(asked.among(masters), masters), cast: buffer }
    }

    /// All masters are asked, at once or one of them before the others.
    pub(crate) fn outstanding(masters: usize) -> Self {
        Self { cast: vec![Vote::Outstanding; masters], tally: Tally::outstanding_of(masters, masters) }
    }

    pub(crate) fn record(&mut self, master: MasterId, vote: Vote) {
        if let Some(place) = self.cast.get_mut(master.index()) {
            self.tally.count(place, -1);
            self.tally.count(&vote, 1);
            *place = vote;
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// The votes themselves, when the round is over.
    pub(crate) fn take(&mut self) -> Vec<Vote> {
        self.tally = Tally::default();
        std::mem::take(&mut self.cast)
    }

    /// The votes themselves, of a round that has asked only these masters.
    pub(crate) fn take_of(&mut self, asked: MasterSet) -> Vec<Vote> {
        let mut votes = self.take();
        for (master, vote) in MasterId::all(votes.len()).zip(&mut votes) {
            if *vote == Vote::Outstanding && !asked.contains(master) {
                *vote = Vote::NotAsked;
            }
        }
        votes
    }
}

impl Deref for Votes {
    type Target = [Vote];

    fn deref(&self) -> &[Vote] {
        &self.cast
    }
}

/// The number of votes of each kind. The counts are small types, since each lock that asks has one
/// of these, and there are never more than [`Quorum::MAX_MASTERS`] votes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Tally {
    granted: u8,
    held: u8,
    not_held: u8,
    outstanding: u8,
    misconfigured: u8,
    other_fleet: u8,
}

/// Whether masters are quarantined for this time or longer, and the others are no quorum.
pub(crate) fn are_quarantined(votes: &[Vote], quorum: Quorum, at_least: Duration) -> bool {
    let is_out = |vote: &&Vote| matches!(**vote, Vote::Failed(Cause::Quarantined { remaining }) if remaining >= at_least);
    quorum.masters() - votes.iter().filter(is_out).count() < quorum.needed()
}

impl Tally {
    pub(crate) fn of(votes: &[Vote]) -> Self {
        let mut tally = Self::default();
        votes.iter().for_each(|vote| tally.count(vote, 1));
        tally
    }

    /// These masters have been asked, and none has answered yet.
    pub(crate) fn outstanding_of(asked: usize, masters: usize) -> Self {
        let [outstanding, not_held] =
            [asked, masters - asked].map(|number| u8::try_from(number).unwrap_or(u8::MAX));
        Self { outstanding, not_held, ..Self::default() }
    }

    #[inline]
    fn count(&mut self, vote: &Vote, by: i8) {
        let add = |number: &mut u8| *number = number.wrapping_add_signed(by);
        match vote {
            Vote::Outstanding | Vote::NotAsked => add(&mut self.outstanding),
            Vote::Granted => add(&mut self.granted),
            Vote::HeldByAnother { .. } => add(&mut self.held),
            Vote::NotHeld => add(&mut self.not_held),
            Vote::Failed(cause) => {
                if cause.is_configuration() {
                    add(&mut self.misconfigured);
                }
                if matches!(cause, Cause::OtherFleet { .. }) {
                    add(&mut self.other_fleet);
                }
            }
        }
    }

    pub(crate) fn granted(self) -> usize {
        self.granted.into()
    }

    /// The masters that refused because another holder has the lock.
    pub(crate) fn held(self) -> usize {
        self.held.into()
    }

    pub(crate) fn not_held(self) -> usize {
        self.not_held.into()
    }

    /// Votes that are not known: a master that was not asked might have granted, too.
    pub(crate) fn outstanding(self) -> usize {
        self.outstanding.into()
    }

    /// The masters that clients with another restart guard use, and that therefore have no vote.
    pub(crate) fn other_fleet(self) -> usize {
        self.other_fleet.into()
    }

    /// Whether a quorum granted or refused, and at least one master refused because another holder
    /// has the lock.
    pub(crate) fn is_held_by_another(self, quorum: Quorum) -> bool {
        self.held > 0 && self.granted() + self.held() >= quorum.needed()
    }

    /// Whether a quorum is out of reach, or forbidden, until a configuration is changed.
    pub(crate) fn is_misconfigured(self, quorum: Quorum) -> bool {
        self.other_fleet > 0 || quorum.masters() - usize::from(self.misconfigured) < quorum.needed()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::wire::ServerError;

    fn votes(kinds: [(usize, Vote); 7]) -> Vec<Vote> {
        kinds.into_iter().flat_map(|(many, vote)| std::iter::repeat_n(vote, many)).collect()
    }

    #[test]
    fn votes_are_counted_by_kind() {
        let held = Vote::HeldByAnother { remaining: None, holder: None };
        let other = MasterId::all(1).next().unwrap();
        let tally = Tally::of(&votes([
            (2, Vote::Granted),
            (3, held),
            (4, Vote::NotHeld),
            (4, Vote::Outstanding),
            (1, Vote::NotAsked),
            (6, Vote::Failed(Cause::SameServer { other })),
            (7, Vote::Failed(Cause::Closed)),
        ]));
        assert_eq!((tally.granted(), tally.held(), tally.not_held()), (2, 3, 4));
        assert_eq!((tally.outstanding(), tally.misconfigured), (5, 6));
    }

    /// Held by another: a quorum answered, and a master refused. Misconfigured: the correctly
    /// configured masters are no quorum.
    #[test]
    fn held_by_another_and_misconfigured_are_decided_over_all_masters() {
        for masters in 1..=7u8 {
            let quorum = Quorum::of(masters.into()).unwrap();
            for (granted, held) in (0..=masters).flat_map(|n| (0..=masters - n).map(move |m| (n, m))) {
                let tally = Tally { granted, held, ..Tally::default() };
                let expected = held > 0 && 2 * (granted + held) > masters;
                assert_eq!(tally.is_held_by_another(quorum), expected, "{granted} and {held} of {masters}");
            }
            for misconfigured in 0..=masters {
                let tally = Tally { misconfigured, ..Tally::default() };
                let expected = 2 * (masters - misconfigured) <= masters;
                assert_eq!(tally.is_misconfigured(quorum), expected, "{misconfigured} of {masters}");
            }
        }
    }

    #[test]
    fn a_quorum_is_quarantined_if_the_masters_that_are_not_are_none() {
        for masters in 1..=7 {
            let quorum = Quorum::of(masters).unwrap();
            for (out, longer) in (0..=masters).flat_map(|out| (0..=out).map(move |longer| (out, longer))) {
                let vote = |place: usize| match place {
                    place if place < longer => Duration::from_secs(2),
                    _ => Duration::from_millis(999),
                };
                let quarantined = |place| Vote::Failed(Cause::Quarantined { remaining: vote(place) });
                let votes: Vec<_> = (0..masters)
                    .map(|place| if place < out { quarantined(place) } else { Vote::Granted })
                    .collect();
                let is_out = are_quarantined(&votes, quorum, Duration::from_secs(1));
                assert_eq!(is_out, 2 * (masters - longer) <= masters, "{longer} of {masters}");
            }
        }
    }

    fn vote() -> impl Strategy<Value = Vote> {
        prop_oneof![
            Just(Vote::Outstanding),
            Just(Vote::NotAsked),
            Just(Vote::Granted),
            Just(Vote::NotHeld),
            Just(Vote::HeldByAnother { remaining: None, holder: None }),
            Just(Vote::Failed(Cause::Closed)),
            Just(Vote::Failed(Cause::Server(ServerError::NoAuth))),
            Just(Vote::Failed(Cause::Quarantined { remaining: Duration::ZERO })),
        ]
    }

    proptest! {
        #[test]
        fn counting_vote_by_vote_gives_the_tally_of_all(
            asked: u64,
            cast in prop::collection::vec((0..9usize, vote()), 0..40),
        ) {
            let mut votes = Votes::outstanding_from(MasterSet::from_bits(asked), 9, vec![Vote::Granted]);
            prop_assert_eq!(votes.tally(), Tally::of(&votes));
            for (master, vote) in cast {
                votes.record(MasterId::all(9).nth(master).unwrap(), vote);
                prop_assert_eq!(votes[master], vote);
                prop_assert_eq!(votes.tally(), Tally::of(&votes));
            }
        }
    }
}
