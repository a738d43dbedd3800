//! Votes, counted by their kinds.

use super::{Cause, Quorum, Vote};

/// How many votes there are of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) granted: usize,
    pub(crate) held: usize,
    pub(crate) not_held: usize,
    pub(crate) outstanding: usize,
    pub(crate) misconfigured: usize,
    /// Masters that clients with another restart guard use.
    pub(crate) other_fleet: usize,
}

impl Tally {
    pub(crate) fn of(votes: &[Vote]) -> Self {
        let mut tally = Self::default();
        votes.iter().for_each(|vote| tally.count(*vote, 1));
        tally
    }

    /// A master has said something else than before.
    #[inline]
    pub(crate) fn exchange(&mut self, before: Vote, now: Vote) {
        self.count(before, -1);
        self.count(now, 1);
    }

    fn count(&mut self, vote: Vote, by: isize) {
        let add = |number: &mut usize| *number = number.wrapping_add_signed(by);
        match vote {
            Vote::Outstanding => add(&mut self.outstanding),
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

    /// Whether a quorum answered, and somebody else holds the lock on some of it.
    pub(crate) fn is_held_by_another(self, quorum: Quorum) -> bool {
        self.held > 0 && self.granted + self.held >= quorum.needed()
    }

    /// Whether a quorum is out of reach, or forbidden, until somebody changes a configuration.
    pub(crate) fn is_misconfigured(self, quorum: Quorum) -> bool {
        self.other_fleet > 0 || quorum.masters() - self.misconfigured < quorum.needed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::MasterId;

    fn votes(kinds: [(usize, Vote); 6]) -> Vec<Vote> {
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
            (5, Vote::Outstanding),
            (6, Vote::Failed(Cause::SameServer { other })),
            (7, Vote::Failed(Cause::Closed)),
        ]));
        let counted = (tally.granted, tally.held, tally.not_held, tally.outstanding, tally.misconfigured);
        assert_eq!(counted, (2, 3, 4, 5, 6));
    }

    /// Held by another: a quorum answered, and somebody refused. Misconfigured: those that are in order are no quorum.
    #[test]
    fn what_votes_amount_to_is_counted_over_all_masters() {
        for masters in 1..=7 {
            let quorum = Quorum::of(masters).unwrap();
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
}
