//! When to ask again, and which master first.
//!
//! The next attempt comes with news from enough masters to make a quorum possible; where only the
//! first master was asked, with news from that one. Without any it comes no later than the
//! quorum-th of them is free by what is known: a key that another holds ends by itself, and of a
//! master that says nothing nothing is known for longer than the pause between attempts.
//!
//! Many waiters are told at the same time. So a further attempt asks one master first, the same one
//! for all clients of the resource: the one that is granted there goes on to the others, and none
//! that is refused has taken a vote away. It is a head start and not a condition: a master that
//! does not answer soon, or is known to be held by another, is not waited for.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::bid::{Bid, Plan};
use super::masters::Key;
use super::pace::Start;
use crate::lock::{Effects, Lock};
use crate::protocol::{EntropyFailed, MasterId, Sentinel};
use crate::time::Instant;

/// How long after the end of a life that a master told an attempt is made. Masters tell whole
/// milliseconds, and many may wait for the same end: a shorter span would have them split the
/// votes, a longer one leave the lock idle.
pub(super) const BEHIND_THE_END: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_millis(5);

/// A mark that keeps new readers out ends after a second, so that a waiting writer that died keeps
/// nobody out for longer. Later than half of that would be too late on a slow link, sooner costs
/// more requests.
const WISHES_AGAIN: Duration = Duration::from_millis(500);

/// Each reader's renewal is news to each waiting writer. Those of this span cost it one request; a
/// longer one leaves what was shared idle, a shorter one costs the masters more.
const GATHERS: Duration = Duration::from_millis(2);

impl Bid {
    /// The lock has come to the front: it asks, at once or after others have had their turn.
    pub(crate) fn begin(
        &mut self,
        start: Start,
        lock: &mut Lock,
        effects: &mut Effects<'_>,
    ) -> Result<(), EntropyFailed> {
        let now = effects.now;
        if lock.targets().is_permit() {
            // Who holds a permit is not asked without asking for one.
            (self.listens, self.yields) = (false, false);
        }
        let limit = lock.give_up_at().map(|limit| limit - effects.config.request_timeout);
        let until = start.pause.map(|pause| now + pause);
        match until.filter(|until| limit.is_none_or(|limit| *until < limit)) {
            None => self.attempt(false, lock, effects),
            Some(until) if self.listens => self.listen(until, lock, effects),
            Some(until) => {
                self.plan = Plan::Pause { until };
                Ok(())
            }
        }
    }

    /// The master that is asked before all others, if one is.
    pub(super) fn first_to_ask(&self, lock: &Lock, effects: &Effects<'_>) -> Option<MasterId> {
        let now = effects.now;
        let config = effects.config;
        let is_last = lock.give_up_at().is_some_and(|limit| now + config.request_timeout >= limit);
        let is_alone = !config.first_alone || config.masters.len() == 1;
        // Those that share take no vote from one another, and a mark keeps new ones out only where
        // it stands on a majority.
        let asks_all = lock.targets().is_shared() || self.meets_sharers(lock) || lock.is_fair();
        if !self.is_wary || self.insists() || is_last || is_alone || asks_all {
            return None;
        }
        let first = effects.first_master(lock.targets())?;
        // A client that settles a split wants to know which came first there, and takes nothing
        // from it.
        (!self.masters.is_held(first, now) || self.is_settling()).then_some(first)
    }

    /// Those that wait are told at the same time, one after the other, always in the same order. A
    /// client that comes late each time would be passed over forever; so after a while it asks all
    /// masters at once, and has a quorum of them while the one that came first still asks alone.
    pub(super) fn insists(&self) -> bool {
        self.passed_over >= self.lets_pass.holders
    }

    /// Whether what it waits to write was shared when it was last refused.
    pub(super) fn meets_sharers(&self, lock: &Lock) -> bool {
        self.holder == Some(Sentinel::HOLDER) && !lock.targets().is_shared()
    }

    /// For how long it has waited, if that is to be marked now.
    pub(super) fn wishes(&mut self, lock: &Lock, now: Instant) -> Option<Duration> {
        if lock.targets().is_permit() {
            let waited = now.since(self.came_at?);
            return (waited >= self.lets_pass.time).then_some(waited);
        }
        let is_due = self.meets_sharers(lock) && self.wishes_again_at().is_none_or(|at| at <= now);
        is_due.then(|| now.since(self.wished_at.replace(now).unwrap_or(now)))
    }

    /// When the mark of what it waits to write is to be set again. Each time is news to those that
    /// it keeps out, so news of the key alone do not renew it.
    pub(super) fn wishes_again_at(&self) -> Option<Instant> {
        Some(self.wished_at? + WISHES_AGAIN)
    }

    /// A key of this name has changed on a master, or may have; `by_us` if this process itself has
    /// changed it.
    pub(crate) fn changed(
        &mut self,
        master: MasterId,
        by_us: bool,
        lock: &mut Lock,
        effects: &mut Effects<'_>,
    ) {
        let is_our_past = by_us && self.is_past_own_changes();
        if is_our_past || self.is_to_hear_from(master) || self.waits_for_its_turn(master, lock) {
            return;
        }
        self.become_free(master, lock, effects);
    }

    /// What kept it waiting on a master may be gone.
    pub(super) fn become_free(&mut self, master: MasterId, lock: &mut Lock, effects: &mut Effects<'_>) {
        let now = effects.now;
        self.masters.changed(master);
        if matches!(self.plan, Plan::Asking { .. }) {
            return self.freed_while_asking(lock, effects);
        }
        let free = self.masters.count(Key::Free);
        let unknown = self.masters.count(Key::Unknown);
        let (patient_until, listens) = (self.patient_until, self.listens);
        let needed = effects.config.quorum.needed();
        let Some(waiting) = self.waiting().filter(|waiting| waiting.retry_at.is_some()) else { return };
        let asks_first = waiting.refused_first.is_some();
        if free < needed && waiting.refused_first != Some(master) {
            // With masters of which nothing will be heard it may be enough, and so it is asked for
            // as often as without news.
            if free + unknown >= needed {
                self.put_off(effects);
                self.plan_next_attempt(lock, effects);
            }
        } else if now < patient_until {
            // Enough for those that have waited for longer to come first; if there are none, the
            // lock is not idle for long.
            let a_while = patient_until.since(now) / 4;
            waiting.poll_at = waiting.poll_at.min(now + a_while);
            self.left_free_at.get_or_insert(now);
            if listens {
                self.listen_again(lock, effects);
            }
            self.plan_next_attempt(lock, effects);
        } else if std::mem::take(&mut self.yields) && asks_first {
            // The question takes as long as one that waits beside the two needs to get the first
            // master.
            self.listens = false;
            self.listen_again(lock, effects);
        } else if self.meets_sharers(lock) && now < self.asked_at + GATHERS {
            if let Some(waiting) = self.waiting() {
                waiting.poll_at = waiting.poll_at.min(now + GATHERS);
                waiting.retry_at = waiting.retry_at.map(|at| at.min(now + GATHERS));
            }
        } else {
            self.ask(lock, effects);
        }
    }

    /// Nothing will be told any more of what was watched on a master.
    pub(crate) fn deaf(&mut self, master: MasterId, lock: &Lock, effects: &mut Effects<'_>) {
        if self.masters.unwatched(master) {
            self.put_off(effects);
            self.plan_next_attempt(lock, effects);
        }
    }

    /// Has the next attempt come a pause later if it is due: but not again and again.
    fn put_off(&mut self, effects: &mut Effects<'_>) {
        let now = effects.now;
        if let Some(waiting) = self.waiting().filter(|waiting| waiting.poll_at <= now) {
            waiting.poll_at = now + effects.jitter.within(&effects.config.retry_delay);
        }
    }

    /// When to ask again if no news comes: with the quorum-th of the masters that may be free, but
    /// in time for the last answers.
    pub(crate) fn plan_next_attempt(&mut self, lock: &Lock, effects: &mut Effects<'_>) {
        let now = effects.now;
        // At once where no mark stands yet.
        let renews_wish_at = self.meets_sharers(lock).then(|| self.wishes_again_at().unwrap_or(now));
        let Self { plan: Plan::Waiting(waiting), masters, patient_until, .. } = self else { return };
        if waiting.retry_at.is_none() {
            return;
        }
        let poll_at = waiting.poll_at;
        let free_at = masters.quorum_free_at(effects.config.quorum, poll_at, now);
        // A master that refused may have let go before it was asked by whom, or while others were
        // still awaited. That is news too, but one that says so every time must not make it spin.
        let at = if free_at <= now && masters.has_freed_a_refusal(&waiting.votes) {
            poll_at.min((*patient_until).max(now + effects.jitter.within(&BEHIND_THE_END)))
        } else if free_at <= now || free_at == poll_at {
            // Where a quorum is free already, the round was lost for another reason, and a pause is
            // in place.
            poll_at
        } else {
            free_at + effects.jitter.within(&BEHIND_THE_END)
        };
        let at = renews_wish_at.map_or(at, |again| at.min(again.max(now)));
        // What the assigning master knows of one permit says little of the others.
        let at = if lock.targets().is_permit() { at.min(poll_at.max(now)) } else { at };
        waiting.retry_at = Some(match lock.give_up_at() {
            // A client that has asked one master only does not know enough to tell the caller.
            Some(give_up_at) if waiting.refused_first.is_some() => {
                last_in_time(at, give_up_at, effects).min(last_of_all(give_up_at, effects))
            }
            Some(give_up_at) => last_in_time(at, give_up_at, effects),
            None => at,
        });
    }
}

/// The last attempt comes while there is still time for its answers.
fn last_in_time(at: Instant, give_up_at: Instant, effects: &Effects<'_>) -> Instant {
    let now = effects.now;
    // A long timeout must not use up a short wait: masters that answer take far less.
    let pause = at.since(now).min(*effects.config.retry_delay.end());
    let last = give_up_at - effects.config.request_timeout.min(pause);
    if at <= last {
        at
    } else if now + *effects.config.retry_delay.start() <= last {
        last
    } else {
        give_up_at
    }
}

/// When there is time for one more attempt.
fn last_of_all(give_up_at: Instant, effects: &Effects<'_>) -> Instant {
    let now = effects.now;
    now.max(give_up_at - effects.config.request_timeout.min(*effects.config.retry_delay.end()))
}
