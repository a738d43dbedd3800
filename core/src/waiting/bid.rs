//! A bid for one lock in front of its queue, or for a single try outside of it: what its process
//! knows about the masters and about rivals, and what it waits for. A lock that asks at once and
//! meets no rivals has no bid until it loses a round.
//!
//! The lock itself makes attempts and reports how they were lost; the bid decides whether, when and
//! how the next one is made.

use super::masters::{Key, Masters};
use super::pace::{LetsPass, Start};
use super::settling::Settling;
use std::sync::Arc;
use std::time::Duration;

use crate::lock::{Assigner, Attempt, Effects, Grant, HEAD_START, Lock, Report};
use crate::protocol::{Answer, EntropyFailed, MasterId, MasterSet, Vote};
use crate::time::Instant;

#[cfg(test)]
mod tests;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Bid {
    /// When the lock came to the front. For a lock that asked at once it is unknown until the first
    /// round is lost; then it is the beginning of that round.
    pub(super) came_at: Option<Instant>,
    /// Whether others are expected to want it at the same time.
    pub(super) is_wary: bool,
    /// Whether it keeps listening while it lets others go first.
    pub(super) listens: bool,
    /// Whether it lets a third process go first when its rival has had its turn.
    pub(super) yields: bool,
    /// The number of readers of this process beside which it waits: see `front.rs`.
    pub(super) readers_beside: usize,
    /// How long, or for how many turns, it lets others go first.
    pub(super) lets_pass: LetsPass,
    /// Until when it lets others go first if it is refused.
    pub(super) patient_until: Instant,
    /// How late the timer that ended its pause fired.
    pub(super) woke_late: Option<Duration>,
    /// When it left a free lock to others, if none has taken it since.
    pub(super) left_free_at: Option<Instant>,
    /// When another holder was last found.
    pub(super) met_others: Option<Instant>,
    /// The holder when it was last refused, and how many others have held it before.
    pub(super) holder: Option<u64>,
    pub(super) passed_over: u32,
    /// When it last set its mark as a waiting writer.
    pub(super) wished_at: Option<Instant>,
    /// Since when only the marks of waiting writers have kept it out, if they do.
    pub(super) kept_out_since: Option<Instant>,
    /// When it last asked masters for the lock.
    pub(super) asked_at: Instant,
    /// When to renew its place in the masters' queues, if it has one.
    pub(super) renews_at: Option<Instant>,
    /// When to ask all masters, whatever the first one answers.
    pub(super) all_at: Option<Instant>,
    /// The state of settling a split vote, if the last attempt had one.
    pub(super) settling: Option<Settling>,
    /// For permits: which master is asked next to assign seats.
    pub(super) assigner: Assigner,
    /// Masters whose dropped quiet connections have caused an attempt to be repeated.
    pub(super) repeated: MasterSet,
    pub(super) masters: Masters,
    /// The masters' votes in the last attempt that was decided.
    pub(super) last_votes: Option<Arc<[Vote]>>,
    pub(super) plan: Plan,
}

/// What a bid waits for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Plan {
    /// The lock is asking, or held. `first_leads`: a refusal by the first master means that a rival
    /// came first and now asks the others. It is false if the key on that master may have been held
    /// all the time. `named`: masters that have refused in this attempt, and may yet answer more.
    Asking { first_leads: bool, named: MasterSet },
    /// Other processes get their turn until this instant.
    Pause { until: Instant },
    /// The lock waits after a lost attempt, or listens before the first one.
    Waiting(Waiting),
}

/// The wait between two attempts, or before the first one of a process that listens.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Waiting {
    /// The masters' votes in the lost attempt, and later ones.
    pub(super) votes: Arc<[Vote]>,
    /// Masters whose outstanding answers matter.
    pub(super) awaited: MasterSet,
    /// `None`: there is no further attempt, and the command ends when the awaited answers have
    /// come.
    pub(super) retry_at: Option<Instant>,
    /// When to ask the masters again that will not notify.
    pub(super) poll_at: Instant,
    /// The only master that was asked: it refused before others were asked, or was only asked who
    /// holds the key.
    pub(super) refused_first: Option<MasterId>,
    /// Whether that master was only asked who holds the key, and has yet to answer: see
    /// `listening.rs`.
    pub(super) listens: bool,
}

impl Default for Bid {
    /// The bid of a lock that asked when it came to the front, and knows of no rivals.
    fn default() -> Self {
        Self {
            came_at: None,
            is_wary: false,
            listens: false,
            yields: false,
            readers_beside: 0,
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
            assigner: Assigner::Common,
            repeated: MasterSet::EMPTY,
            masters: Masters::default(),
            last_votes: None,
            plan: Plan::Asking { first_leads: false, named: MasterSet::EMPTY },
        }
    }
}

impl Bid {
    /// The bid of a lock that comes to the front now with this start; `None` if it asks at once and
    /// expects no rivals.
    pub(crate) fn for_start(
        start: Start,
        lets_pass: impl FnOnce() -> LetsPass,
        now: Instant,
    ) -> Option<Box<Self>> {
        (!start.is_plain()).then(|| Box::new(Self::starting(start, lets_pass(), now)))
    }

    /// The bid of a lock that has already asked.
    pub(crate) fn of_asking(lets_pass: LetsPass) -> Self {
        Self { lets_pass, ..Self::default() }
    }

    /// The bid of a lock that comes to the front now.
    pub(super) fn starting(start: Start, lets_pass: LetsPass, now: Instant) -> Self {
        let patient_until = if start.patience.is_zero() { Instant::ORIGIN } else { now + start.patience };
        Self {
            came_at: Some(now),
            is_wary: start.is_wary,
            listens: start.listens,
            yields: start.yields,
            readers_beside: start.readers_beside,
            lets_pass,
            patient_until,
            ..Self::default()
        }
    }

    /// Whether the next lock can continue this wait.
    pub(super) fn is_worth_keeping(&self) -> bool {
        self.met_others.is_some()
            && self.renews_at.is_none()
            && matches!(&self.plan, Plan::Waiting(waiting) if waiting.retry_at.is_some())
    }

    /// The next lock continues this wait.
    pub(super) fn passed_on(self, start: Start, lets_pass: LetsPass, now: Instant) -> Self {
        let Plan::Waiting(waiting) = self.plan else {
            debug_assert!(false, "a bid that does not wait has nothing to pass on");
            return Self::starting(start, lets_pass, now);
        };
        Self {
            is_wary: true,
            patient_until: now,
            met_others: Some(now),
            all_at: self.all_at,
            masters: self.masters,
            last_votes: Some(Arc::clone(&waiting.votes)),
            plan: Plan::Waiting(Waiting { listens: false, ..waiting }),
            ..Self::starting(start, lets_pass, now)
        }
    }

    /// How long it waited in front until the attempt that was granted. Time in which it left the
    /// lock to others, but none wanted it, does not count: otherwise each wait would make the next
    /// one longer.
    pub(super) fn waited(&self, grant: Grant) -> Duration {
        let might_have_asked_at = self.left_free_at.map_or(grant.asked_at, |at| at.min(grant.asked_at));
        self.came_at.map_or(Duration::ZERO, |at| might_have_asked_at.since(at))
    }

    /// When to make the next attempt or renew the place in the queue, unless there is a
    /// notification before.
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

    /// The masters' votes in the last attempt that was decided.
    pub(crate) fn last_votes(&self) -> Option<&Arc<[Vote]>> {
        self.last_votes.as_ref()
    }

    /// The wait after a lost round, or before the first attempt, for inputs that only come then.
    pub(super) fn lost_wait(&mut self) -> Option<&mut Waiting> {
        debug_assert!(
            matches!(self.plan, Plan::Waiting(_)),
            "an input that only comes after a lost round comes at another time"
        );
        self.waiting()
    }

    pub(super) fn waiting(&mut self) -> Option<&mut Waiting> {
        match &mut self.plan {
            Plan::Waiting(waiting) => Some(waiting),
            Plan::Asking { .. } | Plan::Pause { .. } => None,
        }
    }

    /// Forgets what only other locks of the process use, and what no longer matters once the lock
    /// is held: bids for locks that behave the same from now on are then equal. The last votes of a
    /// fair wait without a timeout are never reported.
    #[cfg(feature = "internals")]
    pub(crate) fn forget_its_queue(&mut self, is_held: bool, is_fair: bool) {
        let masters = if is_held { Masters::default() } else { std::mem::take(&mut self.masters) };
        let keeps_place = is_fair && !is_held;
        let asking = Plan::Asking { first_leads: false, named: MasterSet::EMPTY };
        *self = Self {
            is_wary: self.is_wary,
            repeated: self.repeated,
            asked_at: if keeps_place { self.asked_at } else { Instant::ORIGIN },
            renews_at: self.renews_at.filter(|_| keeps_place),
            last_votes: self.last_votes.take().filter(|_| !is_fair),
            masters,
            plan: if is_held { asking } else { std::mem::replace(&mut self.plan, asking) },
            ..Self::default()
        };
    }

    // Attempts.

    /// Makes the lock start an attempt.
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
        let is_news = self.masters.count(Key::Free) >= effects.config.quorum.needed();
        if is_news && matches!(self.assigner, Assigner::Beside(_)) {
            // The permits that others did not grant have been returned. Rivals that took one
            // another's votes are notified, too: they meet at the common master.
            self.assigner = Assigner::Common;
        }
        // The only rival of a listening process has released the lock, at the first master last: so
        // the others are free, too, and no other process asks.
        let follows_rival = self.listens && self.last_votes.is_none();
        let first = self.first_to_ask(lock, effects).filter(|_| !follows_rival);
        let first_leads = first.is_some_and(|first| !self.masters.is_unheard(first));
        self.plan = Plan::Asking { first_leads, named: MasterSet::EMPTY };
        self.asked_at = now;
        let attempt = Attempt {
            first: first.map(|first| (first, now + effects.config.request_timeout / HEAD_START)),
            is_wary: self.is_wary,
            is_repeated: is_repeated || self.is_settling(),
            settles: self.is_settling(),
            assigner: self.assigner,
            waited: self.wishes(lock, now),
            insists: self.insists(),
            only_marks: self.is_beside(),
            in_turn: lock.has_its_turn(self.masters.free(), effects),
        };
        lock.attempt(attempt, effects)?;
        if lock.queue_place().is_some() {
            // It has no mark then. If it waits for sharers later, it needs a new one at once.
            self.wished_at = None;
        }
        Ok(())
    }

    /// What the lock reports.
    pub(crate) fn hear(&mut self, report: Report, lock: &mut Lock, effects: &mut Effects<'_>) {
        match report {
            Report::Nothing | Report::Unchanged => {}
            Report::Named(master, answer) => self.named(master, answer, effects),
            Report::RoundLost(lost) => self.lost(lost, lock, effects),
            Report::Refused(refused) => {
                let (first, is_free) = (refused.first, self.is_free_since_named(refused.first));
                self.note(first, refused.answer, false, effects);
                if lock.may_try_again() {
                    self.turned_away(refused, lock, effects);
                    if is_free {
                        self.become_free(first, lock, effects);
                    }
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
        match &self.plan {
            // A pause ends before the caller's time does, so nothing else can be due.
            Plan::Pause { until } => {
                self.woke_late = Some(now.since(*until));
                self.ask(lock, effects);
            }
            Plan::Waiting(waiting) => {
                let is_due = waiting.retry_at.is_some_and(|at| at <= now);
                if lock.give_up_at().is_some_and(|limit| limit <= now) {
                    self.finish(lock, effects);
                } else if is_due {
                    self.ask(lock, effects);
                } else {
                    self.renew_place(lock, effects);
                }
            }
            Plan::Asking { .. } => {}
        }
    }

    /// Notes the answer of a master in an attempt. It may not be the master's first one: for one of
    /// many permits it is asked several times.
    pub(super) fn named(&mut self, master: MasterId, answer: Answer, effects: &Effects<'_>) {
        if !self.is_free_since_named(master) {
            self.note(master, answer, false, effects);
        }
        if let Plan::Asking { named, .. } = &mut self.plan {
            named.insert(master);
        }
    }

    /// Whether what a master has refused in this attempt has changed since. A further answer of
    /// that master is about other permits.
    fn is_free_since_named(&self, master: MasterId) -> bool {
        matches!(self.plan, Plan::Asking { named, .. } if named.contains(master))
            && self.masters.free().contains(master)
    }

    /// Notes what an answer says about the key on a master.
    pub(super) fn note(&mut self, master: MasterId, answer: Answer, is_read: bool, effects: &Effects<'_>) {
        let now = effects.now;
        if is_read || matches!(answer, Answer::Holder { .. } | Answer::Queued { .. }) {
            self.masters.note(master, answer, is_read, effects.config.masters.len(), now);
        }
    }

    /// Ends without the lock, with the masters' last votes for the caller. If no master failed,
    /// readers of its own process tell it more.
    pub(super) fn finish(&mut self, lock: &mut Lock, effects: &mut Effects<'_>) {
        let votes = self.last_votes.take();
        let has_voted = |vote: &Vote| matches!(vote, Vote::Granted | Vote::HeldByAnother { .. });
        if self.is_beside() && votes.as_ref().is_none_or(|votes| votes.iter().all(has_voted)) {
            return lock.give_up_behind(self.readers_beside, effects);
        }
        lock.finish(votes, effects);
    }
}
