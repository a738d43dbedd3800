//! A bid for one lock in front of its queue: what its process knows of the masters and of others
//! that want the lock, and what it waits for. A lock that asks at once and meets no others has none
//! until it loses a round.
//!
//! The lock itself makes attempts and reports how they were lost; the bid decides whether, when and
//! how the next one is made.

use super::masters::Masters;
use super::pace::{LetsPass, Start};
use super::settling::Settling;
use std::sync::Arc;
use std::time::Duration;

use crate::lock::{Attempt, Effects, Grant, HEAD_START, Lock, Report};
use crate::protocol::{Answer, EntropyFailed, MasterId, MasterSet, Vote};
use crate::time::Instant;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Bid {
    /// When the lock came to the front. Not known of one that asked at once, until it has lost its
    /// first round: that began then.
    pub(super) came_at: Option<Instant>,
    /// Whether others are expected to want it at the same time.
    pub(super) is_wary: bool,
    /// Whether it goes on listening while it lets others go first.
    pub(super) listens: bool,
    /// Whether it lets a third process come first when its rival has had its turn.
    pub(super) yields: bool,
    /// How far it lets others pass.
    pub(super) lets_pass: LetsPass,
    /// Until when it lets others go first if it is refused.
    pub(super) patient_until: Instant,
    /// How late the timer was that ended its pause.
    pub(super) woke_late: Option<Duration>,
    /// When it left a free lock to others, of which none has taken it since.
    pub(super) left_free_at: Option<Instant>,
    /// When another was last found to hold the lock.
    pub(super) met_others: Option<Instant>,
    /// The holder when it was last refused, and how many others have held it before.
    pub(super) holder: Option<u64>,
    pub(super) passed_over: u32,
    /// When it last marked what it waits to write.
    pub(super) wished_at: Option<Instant>,
    /// Since when the wish of others to write has kept it out, if that alone does.
    pub(super) kept_out_since: Option<Instant>,
    /// When it last asked masters for the lock.
    pub(super) asked_at: Instant,
    /// When its place in the masters' queues is to be renewed, if it has one.
    pub(super) renews_at: Option<Instant>,
    /// When all masters are to be asked, whatever the first one says.
    pub(super) all_at: Option<Instant>,
    /// While a split of the votes of its last attempt is being settled.
    pub(super) settling: Option<Settling>,
    /// Masters for whose sake an attempt has been repeated, because their connections had been
    /// dropped while they were quiet.
    pub(super) repeated: MasterSet,
    pub(super) masters: Masters,
    /// What the masters said in the last attempt that came to a decision.
    pub(super) last_votes: Option<Arc<[Vote]>>,
    pub(super) plan: Plan,
}

/// What a bid waits for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Plan {
    /// The lock is asking, or holds what it asked for. With a first master whose refusal means that
    /// another has come before, and goes on to the others: not if it may have been held all the
    /// time.
    Asking { first_leads: bool },
    /// Others get their turn until then.
    Pause { until: Instant },
    /// An attempt was lost, or the bid listens before its first one.
    Waiting(Waiting),
}

/// Between two attempts, or before the first one of a process that listens.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Waiting {
    /// What the masters say of the lost attempt, and behind it.
    pub(super) votes: Arc<[Vote]>,
    /// Masters whose answer is still to come, and matters.
    pub(super) awaited: MasterSet,
    /// `None`: there is no further attempt, and the command ends when the awaited answers are
    /// there.
    pub(super) retry_at: Option<Instant>,
    /// When to ask again those of whom nothing will be heard.
    pub(super) poll_at: Instant,
    /// The one master that was asked: it refused before any other was, or was only asked who holds
    /// the key.
    pub(super) refused_first: Option<MasterId>,
    /// Whether that master has been asked who holds the key, and no more, and has yet to answer:
    /// see `listening.rs`.
    pub(super) listens: bool,
}

impl Default for Bid {
    /// Of a lock that asked as it came to the front, and knows of no others.
    fn default() -> Self {
        Self {
            came_at: None,
            is_wary: false,
            listens: false,
            yields: false,
            lets_pass: LetsPass::default(),
            patient_until: Instant::ORIGIN,
            woke_late: None,
            left_free_at: None,
            met_others: None,
            holder: None,
            passed_over: 0,
            wished_at: None,
            kept_out_since: None,
            asked_at: Instant::ORIGIN,
            renews_at: None,
            all_at: None,
            settling: None,
            repeated: MasterSet::EMPTY,
            masters: Masters::default(),
            last_votes: None,
            plan: Plan::Asking { first_leads: false },
        }
    }
}

impl Bid {
    /// Of a lock that comes to the front now, and begins like this; none where it asks at once, and
    /// expects no others.
    pub(crate) fn for_start(
        start: Start,
        lets_pass: impl FnOnce() -> LetsPass,
        now: Instant,
    ) -> Option<Box<Self>> {
        (!start.is_plain()).then(|| Box::new(Self::starting(start, lets_pass(), now)))
    }

    /// Of a lock that has asked already.
    pub(crate) fn of_asking(lets_pass: LetsPass) -> Self {
        Self { lets_pass, ..Self::default() }
    }

    /// Of a lock that comes to the front now.
    pub(super) fn starting(start: Start, lets_pass: LetsPass, now: Instant) -> Self {
        let patient_until = if start.patience.is_zero() { Instant::ORIGIN } else { now + start.patience };
        Self {
            came_at: Some(now),
            is_wary: start.is_wary,
            listens: start.listens,
            yields: start.yields,
            lets_pass,
            patient_until,
            ..Self::default()
        }
    }

    /// Whether the next lock goes on waiting where this one has left.
    pub(super) fn is_worth_keeping(&self) -> bool {
        self.met_others.is_some()
            && self.renews_at.is_none()
            && matches!(&self.plan, Plan::Waiting(waiting) if waiting.retry_at.is_some())
    }

    /// The next lock goes on waiting where this one has left.
    pub(super) fn passed_on(self, start: Start, lets_pass: LetsPass, now: Instant) -> Self {
        let Plan::Waiting(waiting) = self.plan else {
            debug_assert!(false, "a bid that does not wait has nothing to pass on");
            return Self::starting(start, lets_pass, now);
        };
        Self {
            is_wary: true,
            patient_until: now,
            met_others: Some(now),
            masters: self.masters,
            last_votes: Some(Arc::clone(&waiting.votes)),
            plan: Plan::Waiting(Waiting { awaited: MasterSet::EMPTY, listens: false, ..waiting }),
            ..Self::starting(start, lets_pass, now)
        }
    }

    /// For how long it had to wait in front until it asked for what it was granted. A while in
    /// which it left a lock to others that nobody wanted does not count: the next wait would be
    /// longer for it, and the one after that longer still.
    pub(super) fn waited(&self, grant: Grant) -> Duration {
        let might_have_asked_at = self.left_free_at.map_or(grant.asked_at, |at| at.min(grant.asked_at));
        self.came_at.map_or(Duration::ZERO, |at| might_have_asked_at.since(at))
    }

    /// When the next attempt is to be made or the place in the queue renewed, unless there is news
    /// before.
    pub(crate) fn next_attempt(&self) -> Option<Instant> {
        match &self.plan {
            Plan::Asking { .. } => None,
            Plan::Pause { until } => Some(*until),
            Plan::Waiting(waiting) => {
                let retry_at = waiting.retry_at?;
                Some(self.renews_at.map_or(retry_at, |at| at.min(retry_at)))
            }
        }
    }

    /// What the masters said in the last attempt that came to a decision.
    pub(crate) fn last_votes(&self) -> Option<&Arc<[Vote]>> {
        self.last_votes.as_ref()
    }

    /// The wait behind a lost round, for what comes only then.
    pub(super) fn lost_wait(&mut self) -> Option<&mut Waiting> {
        debug_assert!(
            matches!(self.plan, Plan::Waiting(_)),
            "an answer behind a lost round comes behind one"
        );
        self.waiting()
    }

    pub(super) fn waiting(&mut self) -> Option<&mut Waiting> {
        match &mut self.plan {
            Plan::Waiting(waiting) => Some(waiting),
            Plan::Asking { .. } | Plan::Pause { .. } => None,
        }
    }

    /// Forgets what only other locks of the process are told of, and what nothing depends on once
    /// the lock is held: bids for locks that do the same from now on are equal then. What one that
    /// waits fairly, and for as long as it takes, has been told last is never reported.
    #[cfg(feature = "internals")]
    pub(crate) fn forget_its_queue(&mut self, is_held: bool, is_fair: bool) {
        let masters = if is_held { Masters::default() } else { std::mem::take(&mut self.masters) };
        let keeps_place = is_fair && !is_held;
        *self = Self {
            is_wary: self.is_wary,
            repeated: self.repeated,
            asked_at: if keeps_place { self.asked_at } else { Instant::ORIGIN },
            renews_at: self.renews_at.filter(|_| keeps_place),
            last_votes: self.last_votes.take().filter(|_| !is_fair),
            masters,
            plan: std::mem::replace(&mut self.plan, Plan::Asking { first_leads: false }),
            ..Self::default()
        };
    }

    // Attempts.

    /// Has the lock make an attempt.
    pub(super) fn ask(&mut self, lock: &mut Lock, effects: &mut Effects<'_>) {
        if let Err(error) = self.attempt(false, lock, effects) {
            lock.fail(error.into(), effects);
        }
    }

    pub(super) fn attempt(
        &mut self,
        is_repeated: bool,
        lock: &mut Lock,
        effects: &mut Effects<'_>,
    ) -> Result<(), EntropyFailed> {
        let now = effects.now;
        // The one rival of a process that listens has let go, the first master last: so the others
        // are free, too, and nobody else asks.
        let follows_rival = self.listens && self.last_votes.is_none();
        let first = self.first_to_ask(lock, effects).filter(|_| !follows_rival);
        let first_leads = first.is_some_and(|first| !self.masters.is_unheard(first));
        self.plan = Plan::Asking { first_leads };
        self.asked_at = now;
        let attempt = Attempt {
            first: first.map(|first| (first, now + effects.config.request_timeout / HEAD_START)),
            is_wary: self.is_wary,
            is_repeated: is_repeated || self.is_settling(),
            settles: self.is_settling(),
            waited: self.wishes(lock, now),
            insists: self.insists(),
        };
        lock.attempt(attempt, effects)
    }

    /// What the lock reports.
    pub(crate) fn hear(&mut self, report: Report, lock: &mut Lock, effects: &mut Effects<'_>) {
        match report {
            Report::Nothing | Report::Unchanged => {}
            Report::Named(master, answer) => self.note(master, answer, false, effects),
            Report::RoundLost(lost) => self.lost(lost, lock, effects),
            Report::Refused(refused) => {
                self.note(refused.first, refused.answer, false, effects);
                if lock.may_try_again() {
                    self.turned_away(refused, lock, effects);
                } else {
                    self.look_around(refused, lock, effects);
                }
            }
            Report::Late(master, answer) => self.voted_late(master, answer, lock, effects),
            Report::Read(master, answer) => self.was_read(master, answer, lock, effects),
            Report::Idle => self.time_passed(lock, effects),
        }
    }

    fn time_passed(&mut self, lock: &mut Lock, effects: &mut Effects<'_>) {
        let now = effects.now;
        let is_due = match &self.plan {
            Plan::Waiting(waiting) => waiting.retry_at.is_some_and(|at| at <= now),
            Plan::Asking { .. } | Plan::Pause { .. } => self.next_attempt().is_some_and(|at| at <= now),
        };
        let is_over = lock.give_up_at().is_some_and(|limit| limit <= now);
        match &self.plan {
            Plan::Pause { until } if is_due => {
                self.woke_late = Some(now.since(*until));
                self.ask(lock, effects);
            }
            Plan::Waiting(_) if is_due && !is_over => self.ask(lock, effects),
            Plan::Waiting(_) if is_due || is_over => self.finish(lock, effects),
            Plan::Waiting(_) if self.renews_at.is_some() => self.renew_place(lock, effects),
            Plan::Asking { .. } | Plan::Pause { .. } | Plan::Waiting(_) => {}
        }
    }

    /// What an answer says about the key on a master.
    pub(super) fn note(&mut self, master: MasterId, answer: Answer, is_read: bool, effects: &Effects<'_>) {
        let now = effects.now;
        if is_read || matches!(answer, Answer::Holder { .. } | Answer::Queued { .. }) {
            self.masters.note(master, answer, is_read, effects.config.masters.len(), now);
        }
    }

    /// Ends without the lock: the caller is told what the masters said last.
    pub(super) fn finish(&mut self, lock: &mut Lock, effects: &mut Effects<'_>) {
        lock.finish(self.last_votes.take(), effects);
    }
}
