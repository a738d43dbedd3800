//! Returning at once: a process that has just had the lock, and knows of rivals, leaves them their
//! turn.
//!
//! A pause alone is not enough. Timers are late by a millisecond or more, and a process that sleeps
//! through another's release leaves the lock idle. So the first master is asked who holds the key,
//! without asking for a vote. If a rival already holds it, this is a wait like any other: the next
//! release brings a notification. If the key is still free, the next change is the beginning of the
//! rival's turn; and if nothing changes, the pause ends.

use super::bid::{Bid, Plan, Waiting};
use super::lost::record;
use super::masters::Masters;
use crate::lock::{Effects, Lock};
use crate::protocol::{Answer, EntropyFailed, MasterId, MasterSet, Vote};
use crate::time::Instant;

impl Bid {
    /// Asks the first master who holds the key, and asks for the lock at `until` unless there is a
    /// notification before. Without a first master it only pauses.
    pub(super) fn listen(
        &mut self,
        until: Instant,
        lock: &mut Lock,
        effects: &mut Effects<'_>,
    ) -> Result<(), EntropyFailed> {
        let Some(first) = self.first_to_ask(lock, effects) else {
            self.plan = Plan::Pause { until };
            return Ok(());
        };
        lock.read(MasterSet::only(first), true, effects)?;
        let masters = effects.config.masters.len();
        self.masters = Masters::unknown(masters);
        self.plan = Plan::Waiting(Waiting {
            votes: vec![Vote::NotAsked; masters].into(),
            awaited: MasterSet::EMPTY,
            retry_at: Some(until),
            poll_at: until,
            refused_first: Some(first),
            listens: true,
        });
        Ok(())
    }

    /// Others go first: asks the first master who holds the key next, and until when.
    pub(super) fn listen_again(&mut self, lock: &mut Lock, effects: &mut Effects<'_>) {
        let Some(waiting) = self.lost_wait() else { return };
        if let Some(first) = waiting.refused_first {
            waiting.listens = true;
            // Reading fails only if the lock's first token is missing.
            let read = lock.read(MasterSet::only(first), true, effects);
            debug_assert_eq!(read, Ok(()), "a lock that waits has a token");
        }
    }

    /// Whether this master's answer is outstanding. Earlier changes say no more than that answer.
    pub(super) fn is_to_hear_from(&self, master: MasterId) -> bool {
        matches!(&self.plan, Plan::Waiting(waiting) if waiting.listens && waiting.refused_first == Some(master))
    }

    /// Whether it began after its own process's release and has yet to meet another holder: then
    /// the answers to that release do not matter.
    pub(super) fn is_past_own_changes(&self) -> bool {
        self.listens && self.met_others.is_none()
    }

    /// The first master has named the holder.
    pub(super) fn listened(
        &mut self,
        first: MasterId,
        answer: Answer,
        lock: &mut Lock,
        effects: &mut Effects<'_>,
    ) {
        let now = effects.now;
        self.note(first, answer, true, effects);
        let has_met_rival = self.met_others.is_some();
        let is_its_turn = has_met_rival && now >= self.patient_until;
        let Some(waiting) = self.lost_wait() else { return };
        waiting.listens = false;
        let Answer::Holder { holder, remaining, .. } = answer else {
            if is_its_turn {
                self.ask(lock, effects);
            }
            return;
        };
        let vote = Vote::HeldByAnother { remaining, holder: Some(holder) };
        record(&mut waiting.votes, first, vote);
        waiting.poll_at = now + effects.jitter.within(&effects.config.retry_delay);
        self.met_others = Some(now);
        self.met(vote, now);
        self.plan_next_attempt(lock, effects);
    }
}
