//! A bid: one lock in front of its queue, from its first attempt on. What its process knows of the masters, and what it waits for.
//!
//! The lock itself makes attempts and reports how they were lost; the bid decides whether, when and how the next one is made.

use super::masters::Masters;
use super::pace::{LETS_PASS, Start};
use super::settling::Settling;
use crate::lock::{Attempt, Effects, Lock, Lost, Refused, Report};
use crate::protocol::{AcquireError, Answer, Cause, MasterId, MasterSet, RequestError, Tally, Vote};
use crate::time::Instant;
use crate::wire::ServerError;

/// Head start of the first master, as a fraction (1/n) of `request_timeout`: 12.5 ms by default. It must be above the usual round trip, or the others are
/// asked too early and split the votes; a first master that hangs costs that much, so it is far below the longest round trip.
const HEAD_START: u32 = 16;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Bid {
    /// When the lock came to the front, if it did not ask at that very instant and has lost no round.
    pub(super) came_at: Option<Instant>,
    /// Whether others are expected to want it at the same time.
    pub(super) is_wary: bool,
    /// Whether it goes on listening while it lets others go first.
    pub(super) listens: bool,
    /// After how many other holders it insists.
    pub(super) lets_pass: u32,
    /// Until when it lets others go first if it is refused.
    pub(super) patient_until: Instant,
    /// When another was last found to hold the lock.
    pub(super) met_others: Option<Instant>,
    /// Who held it when it was last refused, and how many others have held it before.
    holder: Option<u64>,
    pub(super) passed_over: u32,
    /// When all masters are to be asked, whatever the first one says.
    pub(super) all_at: Option<Instant>,
    /// While a split of the votes of its last attempt is being settled.
    pub(super) settling: Option<Settling>,
    /// Masters for whose sake an attempt has been repeated, because their connections had been dropped while they were quiet.
    repeated: MasterSet,
    pub(super) masters: Masters,
    /// What the masters said in the last attempt that came to a decision.
    pub(super) last_votes: Option<Vec<Vote>>,
    pub(super) plan: Plan,
}

/// What a bid waits for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Plan {
    /// The lock is asking, or holds what it asked for. With a first master whose refusal means that another has come before, and goes on to
    /// the others: not if it may have been held all the time.
    Asking { first_leads: bool },
    /// Others get their turn until then.
    Pause { until: Instant },
    /// An attempt was lost.
    Waiting(Waiting),
}

/// Between two attempts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Waiting {
    /// What the masters say of the lost attempt, and behind it.
    pub(super) votes: Vec<Vote>,
    /// Masters whose answer is still to come, and matters.
    pub(super) awaited: MasterSet,
    /// `None`: there is no further attempt, and the command ends when the awaited answers are there.
    pub(super) retry_at: Option<Instant>,
    /// When to ask again those of whom nothing will be heard.
    pub(super) poll_at: Instant,
    /// The master that refused before any other was asked.
    pub(super) refused_first: Option<MasterId>,
    /// Whether that master has been asked who holds the key, and no more, and has yet to answer: see `listening.rs`.
    pub(super) listens: bool,
}

impl Default for Bid {
    /// Of a lock that asked as it came to the front, and knows of no others.
    fn default() -> Self {
        Self {
            came_at: None,
            is_wary: false,
            listens: false,
            lets_pass: LETS_PASS,
            patient_until: Instant::ORIGIN,
            met_others: None,
            holder: None,
            passed_over: 0,
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
    /// Of a lock that has asked already.
    pub(super) fn of_asking(lets_pass: u32) -> Self {
        Self { lets_pass, ..Self::default() }
    }

    /// Of a lock that comes to the front now.
    pub(super) fn starting(start: Start, lets_pass: u32, now: Instant) -> Self {
        let patient_until = if start.patience.is_zero() { Instant::ORIGIN } else { now + start.patience };
        Self {
            came_at: Some(now),
            is_wary: start.is_wary,
            listens: start.listens,
            lets_pass,
            patient_until,
            ..Self::default()
        }
    }

    /// Whether the next lock goes on waiting where this one has left.
    pub(super) fn is_worth_keeping(&self) -> bool {
        self.met_others.is_some()
            && matches!(&self.plan, Plan::Waiting(waiting) if waiting.retry_at.is_some())
    }

    /// The next lock goes on waiting where this one has left.
    pub(super) fn passed_on(self, start: Start, lets_pass: u32, now: Instant) -> Self {
        let Plan::Waiting(waiting) = self.plan else {
            debug_assert!(false, "a bid that does not wait has nothing to pass on");
            return Self::starting(start, lets_pass, now);
        };
        Self {
            is_wary: true,
            patient_until: now,
            met_others: Some(now),
            masters: self.masters,
            last_votes: Some(waiting.votes.clone()),
            plan: Plan::Waiting(Waiting { awaited: MasterSet::EMPTY, listens: false, ..waiting }),
            ..Self::starting(start, lets_pass, now)
        }
    }

    /// Waits on where the lock before this one left.
    pub(crate) fn go_on(&mut self, lock: &Lock, now: Instant, effects: &mut Effects<'_>) {
        self.plan_next_attempt(lock, now, effects);
    }

    /// When the next attempt is to be made, unless there is news before.
    pub(crate) fn next_attempt(&self) -> Option<Instant> {
        match &self.plan {
            Plan::Asking { .. } => None,
            Plan::Pause { until } => Some(*until),
            Plan::Waiting(waiting) => waiting.retry_at,
        }
    }

    /// What the masters said in the last attempt that came to a decision.
    pub(crate) fn last_votes(&self) -> Option<&[Vote]> {
        self.last_votes.as_deref()
    }

    pub(super) fn waiting(&mut self) -> Option<&mut Waiting> {
        match &mut self.plan {
            Plan::Waiting(waiting) => Some(waiting),
            Plan::Asking { .. } | Plan::Pause { .. } => None,
        }
    }

    /// Forgets what only other locks of the process are told of, and what nothing depends on once the lock is held: bids for locks that do the
    /// same from now on are equal then.
    #[cfg(feature = "sim")]
    pub(crate) fn forget_its_queue(&mut self, is_held: bool) {
        let masters = if is_held { Masters::default() } else { std::mem::take(&mut self.masters) };
        *self = Self {
            is_wary: self.is_wary,
            repeated: self.repeated,
            last_votes: self.last_votes.take(),
            masters,
            plan: std::mem::replace(&mut self.plan, Plan::Asking { first_leads: false }),
            ..Self::default()
        };
    }

    // Attempts.

    /// Has the lock make an attempt.
    pub(super) fn ask(&mut self, lock: &mut Lock, now: Instant, effects: &mut Effects<'_>) {
        if let Err(error) = self.attempt(false, lock, now, effects) {
            lock.fail(AcquireError::Request(error), effects);
        }
    }

    pub(super) fn attempt(
        &mut self,
        is_repeated: bool,
        lock: &mut Lock,
        now: Instant,
        effects: &mut Effects<'_>,
    ) -> Result<(), RequestError> {
        let first = self.first_to_ask(lock, now, effects);
        let first_leads = first.is_some_and(|first| !self.masters.is_unheard(first));
        self.plan = Plan::Asking { first_leads };
        let attempt = Attempt {
            first: first.map(|first| (first, now + effects.config.request_timeout / HEAD_START)),
            is_wary: self.is_wary,
            is_repeated: is_repeated || self.is_settling(),
            settles: self.is_settling(),
        };
        lock.attempt(attempt, now, effects)
    }

    /// What the lock reports.
    pub(crate) fn hear(&mut self, report: Report, lock: &mut Lock, now: Instant, effects: &mut Effects<'_>) {
        match report {
            Report::Nothing => {}
            Report::Named(master, answer) => self.note(master, answer, false, now, effects),
            Report::Lost(lost) => self.lost(lost, lock, now, effects),
            Report::Refused(refused) => {
                self.note(refused.first, refused.answer, false, now, effects);
                if lock.may_try_again() {
                    self.turned_away(refused, lock, now, effects);
                } else {
                    self.look_around(refused, lock, now, effects);
                }
            }
            Report::Late(master, answer) => self.voted_late(master, answer, lock, now, effects),
            Report::Read(master, answer) => self.was_read(master, answer, lock, now, effects),
            Report::Idle => self.time_passed(lock, now, effects),
        }
    }

    fn time_passed(&mut self, lock: &mut Lock, now: Instant, effects: &mut Effects<'_>) {
        let is_due = self.next_attempt().is_some_and(|at| at <= now);
        let is_over = lock.give_up_at().is_some_and(|limit| limit <= now);
        match &self.plan {
            Plan::Pause { .. } if is_due => self.ask(lock, now, effects),
            Plan::Waiting(_) if is_due && !is_over => self.ask(lock, now, effects),
            Plan::Waiting(_) if is_due || is_over => self.finish(lock, effects),
            Plan::Asking { .. } | Plan::Pause { .. } | Plan::Waiting(_) => {}
        }
    }

    /// What an answer says about the key on a master.
    pub(super) fn note(
        &mut self,
        master: MasterId,
        answer: Answer,
        is_read: bool,
        now: Instant,
        effects: &Effects<'_>,
    ) {
        if is_read || matches!(answer, Answer::Holder { .. }) {
            self.masters.note(master, answer, is_read, effects.config.masters.len(), now);
        }
    }

    fn lost(&mut self, lost: Lost, lock: &mut Lock, now: Instant, effects: &mut Effects<'_>) {
        self.came_at.get_or_insert(lost.since);
        if lost.was_granted {
            // What was known before it was held is of the past.
            self.masters = Masters::default();
        }
        if let Some((master, answer)) = lost.last {
            self.note(master, answer, false, now, effects);
        }
        if !lost.is_undecided || self.last_votes.is_none() {
            self.last_votes = Some(lost.votes.clone());
        }
        let stale = lost.stale.without(self.repeated);
        // A round is lost by one vote, so a single fresh connection may win it; a wait that is over wins nothing.
        if !lost.is_undecided && !stale.is_empty() {
            // Once for each master, so that it ends.
            stale.iter().for_each(|master| self.repeated.insert(master));
            lock.give_back(effects);
            if let Err(error) = self.attempt(true, lock, now, effects) {
                lock.fail(AcquireError::Request(error), effects);
            }
            return;
        }
        let goes_on = !Tally::of(&lost.votes).is_misconfigured(effects.config.quorum) && lock.may_try_again();
        lock.undo(goes_on, effects);
        let may_settle = !goes_on && effects.config.settles_splits;
        let poll_at = if may_settle {
            now + super::settling::pause(now.since(lost.since), effects)
        } else {
            now + effects.jitter.within(&effects.config.retry_delay)
        };
        self.learn(&lost.votes, goes_on || may_settle, now);
        self.plan = Plan::Waiting(Waiting {
            votes: lost.votes,
            awaited: lost.awaited,
            retry_at: goes_on.then_some(poll_at),
            poll_at,
            refused_first: None,
            listens: false,
        });
        self.plan_next_attempt(lock, now, effects);
        self.conclude(lock, now, effects);
        if lost.is_last && lock.is_clearing() {
            self.finish(lock, effects);
        }
    }

    /// A round was lost with these votes. Another may follow if it `goes_on`.
    fn learn(&mut self, votes: &[Vote], goes_on: bool, now: Instant) {
        if votes.iter().any(|vote| vote.is_refusal()) {
            self.met_others = Some(now);
            self.is_wary = true;
        }
        let named = |vote: &&Vote| matches!(vote, Vote::HeldByAnother { holder: Some(_), .. });
        if let Some(vote) = votes.iter().find(named) {
            self.met(*vote);
        }
        if goes_on {
            self.all_at = None;
            self.masters.undone(votes);
        }
    }

    /// A round was lost for this vote. A holder that renews passes over nobody.
    pub(super) fn met(&mut self, vote: Vote) {
        if let Vote::HeldByAnother { holder: Some(holder), .. } = vote {
            if self.holder.replace(holder).is_some_and(|last| last != holder) {
                self.passed_over += 1;
            }
        }
    }

    /// The one master that was asked refused. Nothing is to be undone, and of the others nothing new is known: they are
    /// taken to follow this one, unless it may have been held since before they became free.
    fn turned_away(&mut self, refused: Refused, lock: &Lock, now: Instant, effects: &mut Effects<'_>) {
        let (first, said) = (refused.first, refused.votes);
        let vote = said.get(first.index()).copied().unwrap_or(Vote::Outstanding);
        self.met(vote);
        let mut votes = self.last_votes.take().unwrap_or(said);
        record(&mut votes, first, vote);
        self.last_votes = Some(votes.clone());
        self.met_others = Some(now);
        let pause = effects.jitter.within(&effects.config.retry_delay);
        let poll_at = *self.all_at.get_or_insert(now + pause);
        if self.plan == (Plan::Asking { first_leads: true }) {
            self.masters.forget_all_but(first);
        }
        self.plan = Plan::Waiting(Waiting {
            votes,
            awaited: MasterSet::EMPTY,
            retry_at: Some(poll_at),
            poll_at,
            refused_first: Some(first),
            listens: false,
        });
        self.plan_next_attempt(lock, now, effects);
    }

    // Answers behind a lost round.

    /// A vote that comes too late to count tells the caller more than silence does.
    fn voted_late(
        &mut self,
        master: MasterId,
        answer: Answer,
        lock: &mut Lock,
        now: Instant,
        effects: &mut Effects<'_>,
    ) {
        let Some(waiting) = self.waiting() else { return };
        let vote = answer.vote();
        if waiting.votes.get(master.index()) == Some(&Vote::Outstanding) {
            record(&mut waiting.votes, master, vote);
            if matches!(vote, Vote::HeldByAnother { holder: None, .. }) {
                waiting.awaited.insert(master);
            } else {
                waiting.awaited.remove(master);
            }
        }
        self.answered(master, answer, false, lock, now, effects);
    }

    fn was_read(
        &mut self,
        master: MasterId,
        answer: Answer,
        lock: &mut Lock,
        now: Instant,
        effects: &mut Effects<'_>,
    ) {
        let Some(waiting) = self.waiting() else { return };
        if waiting.listens {
            return self.listened(master, answer, lock, now, effects);
        }
        waiting.awaited.remove(master);
        let refused = waiting.votes.get(master.index()).is_some_and(|vote| vote.is_refusal());
        match answer {
            Answer::Holder { holder, remaining, .. } if refused => {
                record(&mut waiting.votes, master, Vote::HeldByAnother { remaining, holder: Some(holder) });
            }
            // A key of a foreign type refuses `SET NX` like a lock does; only the read tells them apart. Whatever
            // else keeps the read from being done for a while does not unsay the refusal.
            Answer::Failed { cause, .. }
                if refused
                    && (cause == Cause::Server(ServerError::WrongType) || cause.is_configuration()) =>
            {
                record(&mut waiting.votes, master, Vote::Failed(cause));
            }
            _ => {}
        }
        self.answered(master, answer, true, lock, now, effects);
    }

    fn answered(
        &mut self,
        master: MasterId,
        answer: Answer,
        is_read: bool,
        lock: &mut Lock,
        now: Instant,
        effects: &mut Effects<'_>,
    ) {
        let Some(waiting) = self.waiting() else { return };
        let (goes_on, votes) = (waiting.retry_at.is_some(), waiting.votes.clone());
        self.last_votes = Some(votes);
        if goes_on || effects.config.settles_splits {
            self.masters.note(master, answer, is_read, effects.config.masters.len(), now);
        }
        if goes_on {
            self.plan_next_attempt(lock, now, effects);
        }
        self.conclude(lock, now, effects);
    }

    /// Ends without the lock: the caller is told what the masters said last.
    pub(super) fn finish(&mut self, lock: &mut Lock, effects: &mut Effects<'_>) {
        lock.finish(self.last_votes.take().unwrap_or_default(), effects);
    }
}

pub(super) fn record(votes: &mut [Vote], master: MasterId, vote: Vote) {
    if let Some(place) = votes.get_mut(master.index()) {
        *place = vote;
    }
}
