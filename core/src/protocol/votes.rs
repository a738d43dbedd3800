//! The votes of one round.

use std::ops::Deref;

use super::{MasterId, MasterSet, Tally, Vote};

/// What each master has said in one round, counted as it comes: with many masters, counting all of
/// them at each answer would cost more than anything else.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Votes {
    cast: Vec<Vote>,
    tally: Tally,
}

impl Votes {
    /// These masters are asked, and the others have nothing. `buffer` is only used for its room.
    pub(crate) fn outstanding_from(asked: MasterSet, masters: usize, mut buffer: Vec<Vote>) -> Self {
        buffer.clear();
        let vote = |master| if asked.contains(master) { Vote::Outstanding } else { Vote::NotHeld };
        buffer.extend(MasterId::all(masters).map(vote));
        Self { tally: Tally::outstanding_of(asked.among(masters), masters), cast: buffer }
    }

    /// All masters are asked.
    pub(crate) fn outstanding(masters: usize) -> Self {
        Self { cast: vec![Vote::Outstanding; masters], tally: Tally::outstanding_of(masters, masters) }
    }

    pub(crate) fn record(&mut self, master: MasterId, vote: Vote) {
        if let Some(place) = self.cast.get_mut(master.index()) {
            self.tally.exchange(place, &vote);
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
}

impl Deref for Votes {
    type Target = [Vote];

    fn deref(&self) -> &[Vote] {
        &self.cast
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::protocol::Cause;
    use crate::wire::ServerError;

    fn vote() -> impl Strategy<Value = Vote> {
        prop_oneof![
            Just(Vote::Outstanding),
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
        fn what_is_counted_by_and_by_is_what_there_is(
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
