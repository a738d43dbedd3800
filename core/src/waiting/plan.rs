//! When to ask again, and which master first.
//!
//! The next attempt comes when enough masters have notified to make a quorum possible; if only the
//! first master was asked, or none has a permit, when that one has. Without notifications it comes
//! when a quorum of them is free as far as is known: another holder's key expires, and knowledge
//! about a silent master lasts no longer than the pause between attempts.
//!
//! Many waiters are notified at the same time. So a further attempt asks one master first, the same
//! one for all clients of the resource: the client that is granted there goes on to the others, and
//! a refused one has taken no vote away. It is a head start and not a condition: the attempt does
//! not wait for a master that does not answer soon, or whose key another is known to hold.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::bid::{Bid, Plan};
use super::masters::Key;
use super::pace::Start;
use crate::lock::{Assigner, Effects, Lock};
use crate::protocol::{EntropyFailed, MasterId, Sentinel};
use crate::time::Instant;

/// How long after the reported end of a key's life an attempt is made. Masters report whole
/// milliseconds, and many clients may wait for the same end. Smaller: they split the votes. Larger:
/// the lock is idle.
pub(super) const BEHIND_THE_END: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_millis(5);

/// How often a waiting writer renews its mark, which expires after a second so that a dead writer
/// keeps readers out no longer. Larger than half of that: too late on a slow link. Smaller: more
/// requests.
const WISHES_AGAIN: Duration = Duration::from_millis(500);

/// Each reader's renewal notifies each waiting writer, as its release does. So a writer that
/// readers have just refused gathers notifications for a part (1/n) of the time that it has waited,
/// and then asks once. Larger n: more load on the masters. Smaller: a released resource is idle for
/// longer.
const GATHERS_FOR_PART: u32 = 16;
/// The limits of that span. A longer shortest one slows down short waits, and a shorter one costs
/// more requests than it saves time. A longer longest one leaves a released resource idle for
/// longer. With a shorter one, many readers that renew cost a master more than 60 requests a
/// second: the last one to answer takes back what a lost round may have got there.
const GATHERS: RangeInclusive<Duration> = Duration::from_millis(2)..=Duration::from_millis(40);

impl Bid {
    /// The lock has come to the front: it asks at once, or after others have had their turn.
    pub(crate) fn begin(
        &mut self,
        start: Start,
        lock: &mut Lock,
        effects: &mut Effects<'_>,
    ) -> Result<(), EntropyFailed> {
        let now = effects.now;
        self.only_listen_if_there_is_a_read(lock);
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

    /// The lock has come to the front, and continues the wait of the one before it.
    pub(crate) fn go_on(&mut self, lock: &mut Lock, effects: &mut Effects<'_>) {
        self.only_listen_if_there_is_a_read(lock);
        self.plan_next_attempt(lock, effects);
    }

    /// A reader has left beside which it waits. If it was the last one, the lock asks in the write
    /// that releases the reader, or when others have had their turn.
    pub(crate) fn reader_has_left(&mut self, start: Start, lock: &mut Lock, effects: &mut Effects<'_>) {
        let now = effects.now;
        self.readers_beside = start.readers_beside;
        if self.is_beside() {
            return;
        }
        self.came_at = Some(now);
        self.patient_until = now + start.pause.unwrap_or_default().max(start.patience);
        let Some(waiting) = self.waiting().filter(|waiting| waiting.retry_at.is_some()) else { return };
        if let Some(pause) = start.pause {
            waiting.poll_at = now + pause;
            self.plan_next_attempt(lock, effects);
        } else {
            self.ask(lock, effects);
        }
    }

    /// There is no read for permits: a request for one also asks who holds them.
    fn only_listen_if_there_is_a_read(&mut self, lock: &Lock) {
        if lock.targets().is_permit() {
            (self.listens, self.yields) = (false, false);
        }
    }

    /// The master that is asked before all others, if one is.
    pub(super) fn first_to_ask(&self, lock: &Lock, effects: &Effects<'_>) -> Option<MasterId> {
        let now = effects.now;
        let config = effects.config;
        let is_last = lock.is_last_in_time(effects);
        let is_alone = !config.first_alone || config.masters.len() == 1;
        // Sharers do not take votes from one another, and a mark keeps new ones out only if it is
        // on a majority.
        let asks_all = lock.targets().is_shared() || self.meets_sharers(lock) || lock.queues_up(effects);
        if !self.is_wary || self.insists() || is_last || is_alone || asks_all {
            return None;
        }
        let first = effects.first_master(lock.targets())?;
        // A client that settles a split only wants to know who came first there, and takes nothing
        // from them.
        let is_free = !self.masters.is_held(first, now) || self.is_settling();
        (is_free && self.assigner == Assigner::Common).then_some(first)
    }

    /// Waiters are notified one after the other, always in the same order. A client that is always
    /// late would be overtaken forever; so after a while it asks all masters at once, and gets a
    /// quorum of them while the first client still asks the first master alone.
    pub(super) fn insists(&self) -> bool {
        self.passed_over >= self.lets_pass.holders
    }

    /// Whether it waits for readers of its own process to leave, and only sets its mark.
    pub(crate) fn is_beside(&self) -> bool {
        self.readers_beside > 0
    }

    /// Whether what it waits to write is shared, or was when it was last refused.
    pub(super) fn meets_sharers(&self, lock: &Lock) -> bool {
        self.is_beside() || self.holder == Some(Sentinel::HOLDER) && !lock.targets().is_shared()
    }

    /// How long it has waited, if a mark must be set now.
    pub(super) fn wishes(&mut self, lock: &Lock, now: Instant) -> Option<Duration> {
        if lock.targets().is_permit() {
            let waited = now.since(self.came_at?);
            return (waited >= self.lets_pass.time).then_some(waited);
        }
        let is_due = self.meets_sharers(lock) && self.wishes_again_at().is_none_or(|at| at <= now);
        is_due.then(|| now.since(self.wished_at.replace(now).unwrap_or(now)))
    }

    /// When to renew the mark of what it waits to write. Each renewal notifies the clients that it
    /// keeps out, so notifications about the key alone do not renew it.
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
        if is_our_past || self.is_to_hear_from(master) || self.waits_for_its_turn(master, lock, effects) {
            return;
        }
        if !self.is_beside() {
            self.become_free(master, lock, effects);
        }
    }

    /// What kept it waiting on a master may be gone.
    pub(super) fn become_free(&mut self, master: MasterId, lock: &mut Lock, effects: &mut Effects<'_>) {
        let now = effects.now;
        let is_news = self.masters.changed(master);
        if matches!(self.plan, Plan::Asking { .. }) {
            return self.freed_while_asking(lock, effects);
        }
        let free = self.masters.count(Key::Free);
        let silent = self.masters.silent();
        let (patient_until, listens) = (self.patient_until, self.listens);
        let needed = effects.config.quorum.needed();
        let may_assign = is_news
            && self.assigner == Assigner::Another
            && effects.first_master(lock.targets()) == Some(master);
        if may_assign {
            self.assigner = Assigner::Common;
        }
        let Some(waiting) = self.waiting().filter(|waiting| waiting.retry_at.is_some()) else { return };
        let asks_first = waiting.refused_first.is_some();
        let is_first = waiting.refused_first == Some(master) || may_assign;
        if free < needed && !is_first {
            // Together with the masters that do not notify there may be a quorum, so the lock asks
            // as often as it would without notifications.
            if free + silent >= needed {
                self.put_off(effects);
                self.plan_next_attempt(lock, effects);
            }
        } else if now < patient_until {
            // Enough for longer-waiting clients to come first; if there are none, the lock is not
            // idle for long.
            let a_while = patient_until.since(now) / 4;
            waiting.poll_at = waiting.poll_at.min(now + a_while);
            self.left_free_at.get_or_insert(now);
            if listens {
                self.listen_again(lock, effects);
            }
            self.plan_next_attempt(lock, effects);
        } else if std::mem::take(&mut self.yields) && asks_first {
            // It lets a third waiting process go first: instead of asking at once, it reads who
            // holds the key on its first master. Meanwhile the third one can get that master.
            self.listens = false;
            self.listen_again(lock, effects);
        } else if let Some(until) = self.gathers_until(lock).filter(|until| now < *until) {
            if let Some(waiting) = self.waiting() {
                waiting.poll_at = waiting.poll_at.min(until);
                waiting.retry_at = waiting.retry_at.map(|at| at.min(until));
            }
        } else {
            self.ask(lock, effects);
        }
    }

    /// Until when a writer that readers have refused gathers notifications.
    pub(super) fn gathers_until(&self, lock: &Lock) -> Option<Instant> {
        let waited = self.came_at.map_or(Duration::ZERO, |at| self.asked_at.since(at));
        let span = (waited / GATHERS_FOR_PART).clamp(*GATHERS.start(), *GATHERS.end());
        self.meets_sharers(lock).then(|| self.asked_at + span)
    }

    /// A master no longer notifies of watched keys.
    pub(crate) fn deaf(&mut self, master: MasterId, lock: &Lock, effects: &mut Effects<'_>) {
        if self.masters.unwatched(master) {
            self.put_off(effects);
            self.plan_next_attempt(lock, effects);
        }
    }

    /// Delays a due attempt by one pause, but not repeatedly.
    fn put_off(&mut self, effects: &mut Effects<'_>) {
        let now = effects.now;
        if let Some(waiting) = self.waiting().filter(|waiting| waiting.poll_at <= now) {
            waiting.poll_at = now + effects.jitter.within(&effects.config.retry_delay);
        }
    }

    /// When to ask again without a notification: as soon as a quorum of the masters may be free,
    /// but in time for the last answers.
    pub(crate) fn plan_next_attempt(&mut self, lock: &Lock, effects: &mut Effects<'_>) {
        let now = effects.now;
        // At once if there is no mark yet.
        let renews_wish_at = self.meets_sharers(lock).then(|| self.wishes_again_at().unwrap_or(now));
        let is_beside = self.is_beside();
        let Self { plan: Plan::Waiting(waiting), masters, patient_until, .. } = self else { return };
        if waiting.retry_at.is_none() {
            return;
        }
        let poll_at = waiting.poll_at;
        let free_at = masters.quorum_free_at(effects.config.quorum, poll_at, now);
        // The key on a master that refused may have become free before the read, or while other
        // answers were outstanding. That counts as a notification, but a master that reports it
        // every time must not cause a busy loop.
        let at = if free_at <= now && masters.has_freed_a_refusal(&waiting.votes) {
            poll_at.min((*patient_until).max(now + effects.jitter.within(&BEHIND_THE_END)))
        } else if free_at <= now || free_at == poll_at {
            // If a quorum is already free, the round was lost for another reason, and a pause is
            // needed.
            poll_at
        } else {
            free_at + effects.jitter.within(&BEHIND_THE_END)
        };
        let at = renews_wish_at.map_or(at, |again| at.min(again.max(now)));
        // Nothing else matters while readers of this process hold it.
        let at = renews_wish_at.filter(|_| is_beside).map_or(at, |again| again.max(now));
        // The assigning master's answer about one permit says little about the others.
        let at = if lock.targets().is_permit() { at.min(poll_at.max(now)) } else { at };
        waiting.retry_at = Some(match lock.give_up_at() {
            // A client that has asked only one master does not know enough for the caller's error.
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
