//! Waiting with a place in the queue that the masters keep for a resource (`lock/queueing.rs`).
//!
//! All masters are asked at once: each of them knows the next waiter, so waiters do not take each
//! other's votes. A waiter asks again when enough masters have notified it that its turn has come,
//! or when what is ahead of it must have ended. In between it renews its place, which lives for a
//! second. After a turn that was not granted it does so at once, because the turn was all that its
//! place had left.
//!
//! A waiter that does not reach a quorum must not keep its place: it would block those that do. It
//! leaves the queue where it can, waits like an ordinary waiter, and enters again when a quorum
//! that keeps places answers.

use std::sync::Arc;

use super::bid::Bid;
use super::masters::{Key, Masters};
use crate::lock::{Effects, Lock};
use crate::protocol::{MasterId, MasterSet, QueuePlace, Vote};
use crate::time::Instant;

impl Bid {
    /// After a lost round of a fair waiter, which began at `since`; `was_granted` if it had been
    /// won before.
    pub(super) fn lost_in_queue(
        &mut self,
        since: Instant,
        was_granted: bool,
        lock: &mut Lock,
        effects: &mut Effects<'_>,
    ) {
        let quorum = effects.config.quorum;
        self.renews_at = None;
        if was_granted {
            // That turn is over, and the place may have expired.
            lock.leave_queue(effects);
            lock.enter_anew(MasterSet::all(effects.config.masters.len()), effects);
            return;
        }
        if lock.asked_in_turn() && !self.meets_sharers(lock) {
            // The place is only kept for its turn.
            self.keep_place(lock, effects);
        } else if lock.queue_place().is_some() {
            // A round that was lost early may be answered by more masters before the place must be
            // renewed.
            let is_outstanding = |vote: &&Vote| **vote == Vote::Outstanding;
            let votes = self.waiting().map(|waiting| Arc::clone(&waiting.votes));
            let outstanding = votes.map_or(0, |votes| votes.iter().filter(is_outstanding).count());
            // A queue does not keep new sharers out. If sharers hold the lock, a mark does that.
            if lock.keeps_its_place(outstanding, quorum) && !self.meets_sharers(lock) {
                lock.agree_on_number(effects);
                // The place's life may have begun when the round did.
                let due = effects.now.max(since + QueuePlace::RENEWED_EACH);
                self.renews_at = Some(lock.renews_in_turn_at().map_or(due, |in_turn| due.min(in_turn)));
                self.ask_if_free(lock, effects);
            } else {
                self.leave_queue(lock, effects);
            }
        } else if !self.meets_sharers(lock)
            && self.waiting().is_some_and(|waiting| lock.enter_anew(answered(&waiting.votes), effects))
        {
            self.ask(lock, effects);
        }
    }

    /// An answer has come for a waiter: all masters must agree on its number, and enough of them
    /// may be free now.
    pub(super) fn heard_in_queue(&mut self, lock: &mut Lock, effects: &mut Effects<'_>) {
        if self.renews_at.is_some() && self.meets_sharers(lock) {
            // A queue does not keep new sharers out.
            self.leave_queue(lock, effects);
        } else if self.renews_at.is_some() {
            lock.agree_on_number(effects);
            self.ask_if_free(lock, effects);
        }
    }

    /// Asks at once if a quorum is free, without letting others go first: the order is agreed, so
    /// waiters do not take each other's votes.
    fn ask_if_free(&mut self, lock: &mut Lock, effects: &mut Effects<'_>) {
        let needed = effects.config.quorum.needed();
        // A turn that was not granted although masters were free is not asked for again at once.
        if lock.has_its_number() && !lock.asked_in_turn() && self.masters.count(Key::Free) >= needed {
            self.ask(lock, effects);
        }
    }

    /// Renews the place if that is due.
    pub(super) fn renew_place(&mut self, lock: &mut Lock, effects: &mut Effects<'_>) {
        let now = effects.now;
        if self.renews_at.is_none_or(|at| now < at) {
            return;
        }
        let renews_all_at = lock.queued_at().map_or(now, |at| at + QueuePlace::RENEWED_EACH);
        if now < renews_all_at {
            // It was told of its turn, but by too few masters.
            lock.stay_on(self.masters.free(), effects);
            self.renews_at = Some(renews_all_at);
        } else if lock.keeps_its_place(0, effects.config.quorum) {
            lock.end_turn();
            self.keep_place(lock, effects);
        } else {
            self.leave_queue(lock, effects);
        }
    }

    fn keep_place(&mut self, lock: &mut Lock, effects: &mut Effects<'_>) {
        lock.stay(effects);
        self.renews_at = Some(effects.now + QueuePlace::RENEWED_EACH);
    }

    fn leave_queue(&mut self, lock: &mut Lock, effects: &mut Effects<'_>) {
        self.renews_at = None;
        lock.leave_queue(effects);
        // What was ahead in the queue no longer keeps it waiting.
        self.masters = Masters::unknown(effects.config.masters.len());
        let pause = effects.jitter.within(&effects.config.retry_delay);
        let poll_at = effects.now + pause;
        if let Some(waiting) = self.waiting() {
            waiting.poll_at = poll_at;
        }
        self.plan_next_attempt(lock, effects);
    }

    /// A place in the queue of a resource has changed: if it is this lock's, its turn has come
    /// there.
    pub(crate) fn turn_has_come(
        &mut self,
        master: MasterId,
        place: &[u8],
        lock: &mut Lock,
        effects: &mut Effects<'_>,
    ) {
        if lock.queue_place().is_some_and(|own| own.to_hex() == place) {
            // If too few masters tell it, it keeps its place at its head where one did.
            lock.told_of_turn(master, effects.now);
            let in_turn = lock.renews_in_turn_at();
            self.renews_at = self.renews_at.map(|at| in_turn.map_or(at, |in_turn| at.min(in_turn)));
            self.become_free(master, lock, effects);
        }
    }

    /// This process itself has removed another place from a queue, maybe the one before this
    /// lock's.
    pub(crate) fn queue_has_moved(&mut self, master: MasterId, lock: &mut Lock, effects: &mut Effects<'_>) {
        if self.waits_for_its_turn(master, lock, effects) {
            self.become_free(master, lock, effects);
        }
    }

    /// A master is free again in the middle of a round, which may be a lost one that waits for its
    /// last answers.
    pub(super) fn freed_while_asking(&mut self, lock: &mut Lock, effects: &mut Effects<'_>) {
        let report = lock.freed(self.masters.free(), effects);
        self.hear(report, lock, effects);
    }

    /// Whether a change of the key does not matter because others are ahead of the lock in the
    /// queue.
    pub(super) fn waits_for_its_turn(&self, master: MasterId, lock: &Lock, effects: &Effects<'_>) -> bool {
        let keeps_place = !effects.without_queue.contains(master);
        lock.queue_place().is_some() && keeps_place && !lock.is_first_at(master)
    }
}

/// The masters that have answered, even if only that they do not vote yet.
fn answered(votes: &[Vote]) -> MasterSet {
    let has_answered = |vote: &Vote| match vote {
        Vote::Granted | Vote::HeldByAnother { .. } => true,
        Vote::Failed(cause) => cause.is_no_vote_yet(),
        _ => false,
    };
    let mut answered = MasterSet::EMPTY;
    let of_masters = MasterId::all(votes.len()).zip(votes);
    of_masters.filter(|(_, vote)| has_answered(vote)).for_each(|(master, _)| answered.insert(master));
    answered
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::Cause;

    #[test]
    fn a_master_has_answered_if_it_has_voted_or_cannot_vote_yet() {
        let remaining = Duration::from_secs(1);
        for (vote, has_answered) in [
            (Vote::Granted, true),
            (Vote::HeldByAnother { remaining: None, holder: None }, true),
            (Vote::Failed(Cause::Quarantined { remaining }), true),
            (Vote::Failed(Cause::Closed), false),
            (Vote::Outstanding, false),
            (Vote::NotAsked, false),
        ] {
            let expected = if has_answered { MasterSet::all(3) } else { MasterSet::EMPTY };
            assert_eq!(answered(&[vote; 3]), expected, "{vote:?}");
        }
    }
}
