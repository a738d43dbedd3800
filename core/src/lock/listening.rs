//! Coming back at once: a process that has just had the lock, and knows of others that want it, leaves them their turn.
//!
//! A pause alone is not enough. Timers are late by a millisecond or more, and a process that sleeps through another's release leaves the lock idle. So
//! the first master is asked who holds the key, without asking for a vote. If another holds it by now, this is a wait like any other: the
//! next release is told. If nobody holds it yet, the next change is the other's turn beginning; and if nothing changes, the pause ends.

use super::acquiring::{Clearing, record};
use super::wait::Stand;
use super::{Effects, Lock, Phase};
use crate::protocol::{Action, Answer, MasterId, MasterSet, Request, RequestError, Vote};
use crate::time::Instant;

impl Lock {
    /// Asks the first master who holds the key, and asks for the lock at that instant unless there is news before. `false` if there is no master to
    /// ask first.
    pub(super) fn listen(
        &mut self,
        until: Instant,
        now: Instant,
        effects: &mut Effects<'_>,
    ) -> Result<bool, RequestError> {
        let Some(first) = self.first_to_ask(now, effects) else { return Ok(false) };
        let token = effects.fresh_token()?;
        self.renew_token(token);
        let [acquire_round, undo_round] = [self.next_round(), self.next_round()];
        let masters = effects.config.masters.len();
        self.wait.stands = vec![Stand::Unknown; masters];
        let read = self.request(Some(undo_round), Action::Undo, self.ttl, 0);
        effects.order(MasterSet::only(first), Request { watch: true, ..read });
        self.phase = Phase::Clearing(Clearing {
            acquire_round,
            undo_round,
            votes: vec![Vote::Outstanding; masters],
            awaited: MasterSet::EMPTY,
            retry_at: Some(until),
            poll_at: until,
            refused_first: Some(first),
            listens: true,
        });
        Ok(true)
    }

    /// Others go first: who holds the key next, and until when, the first master tells if it is asked.
    pub(super) fn listen_again(&mut self, effects: &mut Effects<'_>) {
        let undo_round = self.next_round();
        let read = self.request(Some(undo_round), Action::Undo, self.ttl, 0);
        let Phase::Clearing(clearing) = &mut self.phase else { return };
        let Some(first) = clearing.refused_first else { return };
        (clearing.undo_round, clearing.listens) = (undo_round, true);
        effects.order(MasterSet::only(first), Request { watch: true, ..read });
    }

    /// Whether this master's answer is still to come. What changed before it says nothing more than that answer.
    pub(super) fn is_to_hear_from(&self, master: MasterId) -> bool {
        matches!(&self.phase, Phase::Clearing(clearing) if clearing.listens && clearing.refused_first == Some(master))
    }

    /// Whether it began behind its own process's release and has yet to meet another holder: the answers to that release are no news to it.
    pub(crate) fn is_past_own_changes(&self) -> bool {
        self.way.listens && self.wait.met_others.is_none()
    }

    /// The first master has said who holds the key.
    pub(super) fn listened(
        &mut self,
        first: MasterId,
        answer: Answer,
        now: Instant,
        effects: &mut Effects<'_>,
    ) {
        self.note_stand(first, answer, true, now);
        let Phase::Clearing(clearing) = &mut self.phase else { return };
        clearing.listens = false;
        let Answer::Holder { holder, remaining, .. } = answer else { return };
        let vote = Vote::HeldByAnother { remaining, holder: Some(holder) };
        record(&mut clearing.votes, first, vote);
        clearing.poll_at = now + effects.jitter.within(&effects.config.retry_delay);
        self.wait.met_others = Some(now);
        self.wait.met(vote);
        self.plan_next_attempt(now, effects);
    }
}
