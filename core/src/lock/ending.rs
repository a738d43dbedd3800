//! Ends without the lock: what the caller is told.

use std::sync::Arc;

use super::{Effects, Lock, Phase};
use crate::protocol::{AcquireError, Ballot, Event, Vote};

impl Lock {
    /// Tells the caller what the masters said last.
    pub(super) fn finish(&mut self, effects: &mut Effects<'_>) {
        self.keep_knowledge();
        let votes = self.wait.take_last_votes().unwrap_or_default();
        let error = AcquireError::from_ballot(self.ballot(votes, effects), effects.config.quorum);
        self.fail(error, effects);
    }

    /// Leaves the line without the lock; `votes` is what the masters said to the one who asked for all of it.
    pub(crate) fn give_up_in_line(
        &mut self,
        votes: Option<Vec<Vote>>,
        others: usize,
        effects: &mut Effects<'_>,
    ) {
        let error = match votes {
            Some(votes) => AcquireError::from_ballot(self.ballot(votes, effects), effects.config.quorum),
            None => {
                let ballot = Ballot { callers_ahead: others, ..self.ballot(Vec::new(), effects) };
                AcquireError::HeldByAnother(Box::new(ballot))
            }
        };
        self.fail(error, effects);
    }

    /// Ends without the lock.
    pub(super) fn fail(&mut self, error: AcquireError, effects: &mut Effects<'_>) {
        self.phase = Phase::Told;
        effects.events.push_back(Event::NotAcquired { lock: self.id, error });
    }

    pub(super) fn ballot(&self, votes: Vec<Vote>, effects: &Effects<'_>) -> Ballot {
        Ballot {
            resource: self.resource.clone(),
            masters: Arc::clone(&effects.config.masters),
            votes,
            attempts: self.attempts,
            callers_ahead: 0,
        }
    }
}
