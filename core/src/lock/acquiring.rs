//! Attempts: one round each, of all masters at once or of one before the others.

use std::time::Duration;

use super::clearing::{LostRound, Refused};
use super::context::{Context, Grant};
use super::fencing::Numbers;
use super::holding::Held;
use super::seating::{Asking, Said};
use super::{NOTICE, Next};
use crate::protocol::{
    Action, Answer, Cause, Decision, MasterId, MasterSet, QueuePlace, Request, Sentinel, Vote, Votes,
};
use crate::time::Instant;

/// Head start of the first master, as a fraction (1/n) of `request_timeout`: 12.5 ms by default. A
/// shorter one (larger n) is below some round trips: the others are asked too early and split the
/// votes. A longer one (smaller n) delays each attempt if the first master hangs.
pub(crate) const HEAD_START: u32 = 16;

/// How an attempt is made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attempt {
    /// The master that is asked before the others, and when the others are asked.
    pub(crate) first: Option<(MasterId, Instant)>,
    /// Whether others are expected to want the lock: then a refusal names the holder.
    pub(crate) is_wary: bool,
    /// Whether it is another round of the previous attempt, which does not count towards the
    /// caller's number of attempts.
    pub(crate) is_repeated: bool,
    /// Whether it only sets a mark, while readers of this process hold the resource. It does not
    /// count either, and is lost even if masters that have lost those readers' keys grant it.
    pub(crate) only_marks: bool,
    /// Whether a refusal by the first master ends the round although no further attempt is allowed,
    /// because a split vote is being settled.
    pub(crate) settles: bool,
    /// For permits: which master is asked to assign seats.
    pub(crate) assigner: Assigner,
    /// How long the caller has waited, if a mark must be set to keep others out: new readers, or
    /// requests that have waited less for a permit.
    pub(crate) waited: Option<Duration>,
    /// Whether a reader proceeds although a writer waits.
    pub(crate) insists: bool,
    /// Whether it is its place's turn on a quorum of masters: then it asks without the place.
    pub(crate) in_turn: bool,
}

/// Which master is asked first to assign permits in an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) enum Assigner {
    /// The one that all clients ask first. Its refusal ends the round.
    #[default]
    Common,
    /// Another one: when they were last asked, the common one or a majority had none.
    Another,
    /// Any one beside these: they have assigned permits that others did not grant. If these are all
    /// masters, it is the common one again, but its refusal does not end the round.
    Beside(MasterSet),
}

/// A round of acquisitions that is not decided yet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Trying {
    pub(super) round: u32,
    /// The instant before the first send: elapsed time counts from here.
    since: Instant,
    votes: Votes,
    /// Masters whose connection had been quiet for long and was found dead: they were not really
    /// asked.
    stale: MasterSet,
    /// For a fenced lock.
    numbers: Option<Box<Numbers>>,
    /// For permits: masters that assigned the chosen seats, of this round and of those just before
    /// it. All of them once one did so twice: then the others had none.
    assigners: MasterSet,
    /// When the other masters are asked, while only one has been.
    pub(super) rest_at: Option<Instant>,
    /// For fair waiting: when the place must be renewed. A lost round that waits for outstanding
    /// answers ends then, and a partial grant is taken back.
    place_due: Option<Instant>,
    /// Whether a refusal by the only master asked so far ends the round.
    yields: bool,
    /// Whether a refusal names the holder, and the master then notifies of changes.
    watches: bool,
    /// Whether waiting writers are overtaken.
    insists: bool,
    /// How long the caller has waited, if a mark of it must be set.
    waited: Option<Duration>,
    only_marks: bool,
}

impl Trying {
    pub(super) fn begin(attempt: Attempt, cx: &mut Context<'_, '_>) -> Self {
        let now = cx.effects.now;
        let masters = cx.effects.config.masters.len();
        let round = cx.base.next_round();
        if let Some(queueing) = &mut cx.base.queueing {
            queueing.begins(round, attempt.in_turn);
        }
        let trying = Self {
            round,
            since: now,
            votes: Votes::outstanding(masters),
            stale: MasterSet::EMPTY,
            numbers: cx.base.is_fenced.then(|| Box::new(Numbers::new(masters))),
            assigners: match attempt.assigner {
                Assigner::Beside(assigners) if cx.effects.has_others(assigners) => assigners,
                Assigner::Common | Assigner::Another | Assigner::Beside(_) => MasterSet::EMPTY,
            },
            rest_at: attempt.first.map(|(_, rest_at)| rest_at),
            place_due: cx.place_due_in_turn(),
            // One master does not know enough for the caller's error.
            yields: attempt.assigner == Assigner::Common
                && (attempt.settles || cx.base.may_try_again() && !cx.base.is_last_in_time(cx.effects)),
            watches: (attempt.is_wary || cx.has_place()) && cx.base.may_try_again(),
            insists: attempt.insists,
            waited: attempt.waited,
            only_marks: attempt.only_marks,
        };
        match attempt.first {
            Some((first, _)) if cx.keys.seating.is_some() => cx.take_seats(first, trying.asking()),
            _ => trying.ask(cx.keys.reached, cx),
        }
        trying
    }

    fn asking(&self) -> Asking {
        Asking { round: self.round, watch: self.watches, waited: self.waited, is_open: true }
    }

    fn ask(&self, masters: MasterSet, cx: &mut Context<'_, '_>) {
        let request = cx.request(Some(self.round), Action::Acquire, cx.base.ttl);
        if cx.asks_in_turn() {
            return cx.effects.order(masters, request.without_place());
        }
        let Self { watches: watch, waited, .. } = *self;
        let insists = if cx.has_place() { cx.is_settled_in_queue() } else { self.insists };
        let (fence, turn) = (cx.queue_number(), cx.queue_turn());
        let request = Request { watch, insists, waited, turn, fence, ..request };
        cx.effects.order(masters, request);
    }

    /// When there is something to do even without an answer.
    pub(super) fn deadline(&self) -> Option<Instant> {
        Instant::first_of(self.rest_at, self.place_due)
    }

    fn ask_the_rest(&mut self, cx: &mut Context<'_, '_>) {
        if cx.keys.seating.as_ref().is_some_and(|seating| seating.chosen().is_none()) {
            return self.ask_another_to_assign(cx);
        }
        self.rest_at = None;
        let mut rest = MasterSet::EMPTY;
        for (master, vote) in MasterId::all(self.votes.len()).zip(self.votes.iter()) {
            if *vote == Vote::Outstanding && !cx.keys.reached.contains(master) {
                rest.insert(master);
            }
        }
        rest.iter().for_each(|master| cx.keys.reached.insert(master));
        self.ask(rest, cx);
    }

    /// No seat is chosen yet: the next master assigns one.
    fn ask_another_to_assign(&mut self, cx: &mut Context<'_, '_>) {
        let (now, timeout) = (cx.effects.now, cx.effects.config.request_timeout);
        let is_open = |master: &MasterId| self.votes.get(master.index()) == Some(&Vote::Outstanding);
        let fresh = |master: &MasterId| !cx.keys.reached.contains(*master) && is_open(master);
        let Some(next) = cx.effects.next_to_assign(&cx.base.targets, self.assigners, fresh) else {
            self.rest_at = None;
            return;
        };
        // One whose seats others did not grant may be much faster than one that has yet to answer,
        // and would then choose the same seats in each round.
        let has_yet_to_assign = |master| !self.assigners.contains(master) && is_open(&master);
        if self.assigners.contains(next) && cx.keys.reached.iter().any(has_yet_to_assign) {
            self.rest_at = Some(now + timeout);
            return;
        }
        self.rest_at = Some(now + timeout / HEAD_START);
        cx.take_seats(next, self.asking());
    }

    /// The master has assigned the chosen seats.
    fn assigned_by(&mut self, master: MasterId) {
        if self.assigners.contains(master) {
            self.assigners = MasterSet::all(self.votes.len());
        } else {
            self.assigners.insert(master);
        }
    }

    pub(super) fn answer(&mut self, master: MasterId, mut answer: Answer, cx: &mut Context<'_, '_>) -> Next {
        if let Some(seating) = &cx.keys.seating {
            let is_open = seating.chosen().is_none();
            answer = match cx.chosen_by(master, answer, self.asking()) {
                Said::All(answer) => answer,
                Said::Some(answer) => {
                    // The master is at work: the others are not asked yet.
                    let head_start = cx.effects.config.request_timeout / HEAD_START;
                    self.rest_at = self.rest_at.map(|_| cx.effects.now + head_start);
                    return Next::Named(master, answer);
                }
            };
            if is_open && cx.keys.seating.as_ref().is_some_and(|seating| seating.chosen().is_some()) {
                self.assigned_by(master);
            }
        }
        // If the master has already counted the grant, it answers a raise here, which sets no key.
        let has_counted = self.numbers.as_ref().is_some_and(|numbers| numbers.has_counted(master));
        if !has_counted {
            cx.keys.note_fate(master, answer);
        }
        if matches!(answer, Answer::Failed { stale: true, .. }) {
            self.stale.insert(master);
        }
        let vote = match answer {
            Answer::Counted(number)
                if !self.numbers.as_mut().is_some_and(|numbers| numbers.note(master, number)) =>
            {
                Vote::Failed(Cause::UnexpectedReply)
            }
            Answer::No if has_counted => Vote::NotHeld,
            answer => answer.vote(),
        };
        self.votes.record(master, vote);
        let tally = self.votes.tally();
        if tally.other_fleet() > 0 {
            return Next::RoundLost(self.lost(Some((master, answer)), cx));
        }
        if self.rest_at.is_some() {
            // Another master that was asked to assign a permit may still do so: then the permit
            // must be taken back.
            let is_alone = cx.keys.reached.without(MasterSet::only(master)).is_empty();
            if vote.is_refusal() && self.yields && is_alone {
                return Next::Refused(Refused {
                    round: self.round,
                    since: self.since,
                    votes: self.votes.take_of(cx.keys.reached),
                    first: master,
                    answer,
                });
            }
            self.ask_the_rest(cx);
        }
        let quorum = cx.quorum();
        let agreed = self.numbers.as_ref().map_or(tally.granted(), |numbers| numbers.agreed(&self.votes));
        match quorum.decide(agreed, tally.outstanding() + tally.granted() - agreed) {
            Decision::Open => {
                if tally.granted() >= quorum.needed() {
                    self.raise_numbers(cx);
                }
                named(master, answer).unwrap_or(Next::Stay)
            }
            Decision::Won if !self.only_marks => self.won(cx),
            Decision::Lost if tally.outstanding() > 0 && cx.goes_on_in_queue() => {
                // If the round ended now, a master that has yet to report the place would have to
                // be asked again. So the round waits, but not too long to renew the place in time.
                let half = cx.effects.config.request_timeout / 2;
                let place_due = self.since + half.min(QueuePlace::RENEWED_EACH);
                self.place_due.get_or_insert(place_due.max(cx.effects.now));
                named(master, answer).unwrap_or(Next::GoOn)
            }
            Decision::Won | Decision::Lost => Next::RoundLost(self.lost(Some((master, answer)), cx)),
        }
    }

    /// On these masters the key is free now. If they and those that granted the lock are a quorum,
    /// a lost round does not wait for further answers.
    pub(super) fn freed(&mut self, free: MasterSet, cx: &mut Context<'_, '_>) -> Next {
        let may_grant = |(master, vote): &(MasterId, &Vote)| match vote {
            Vote::Granted => true,
            vote => vote.is_refusal() && free.contains(*master),
        };
        let masters = MasterId::all(self.votes.len()).zip(self.votes.iter());
        let is_lost = self.place_due.is_some() && !cx.asks_in_turn();
        if is_lost && masters.filter(may_grant).count() >= cx.quorum().needed() {
            return Next::RoundLost(self.lost(None, cx));
        }
        Next::Stay
    }

    /// A quorum granted the lock with different numbers: the smaller ones are raised, if the lock
    /// is still ours.
    fn raise_numbers(&mut self, cx: &mut Context<'_, '_>) {
        let Some(numbers) = &mut self.numbers else { return };
        let behind = numbers.ask_those_behind(&self.votes);
        cx.order_numbered(behind, self.round, Action::Raise, cx.base.ttl, numbers.highest);
    }

    /// "If the client managed to acquire the lock in the majority of the instances, and the total
    /// time elapsed to acquire the lock is less than lock validity time, the lock is considered to
    /// be acquired" (Redis distributed-locks page, "The Redlock Algorithm", step 3).
    fn won(&mut self, cx: &mut Context<'_, '_>) -> Next {
        let now = cx.effects.now;
        let valid_until = cx.base.ttl.valid_until(self.since);
        if now + NOTICE >= valid_until {
            return Next::RoundLost(self.lost(None, cx));
        }
        let mut unsettled = MasterSet::EMPTY;
        let mut was_refused = false;
        for (master, vote) in MasterId::all(self.votes.len()).zip(self.votes.iter()) {
            if vote.is_refusal() {
                was_refused = true;
                cx.keys.reached.remove(master);
            }
            let is_settled = matches!(vote, Vote::Granted | Vote::HeldByAnother { .. } | Vote::NotHeld);
            if !is_settled && cx.keys.reached.contains(master) {
                unsettled.insert(master);
            }
        }
        cx.keys.fence = self.numbers.as_ref().and_then(|numbers| numbers.highest);
        cx.base.grant = Some(Grant { asked_at: self.since, at: now, was_refused });
        let mut held = Held::new(self.round, self.since, self.votes.take(), valid_until, cx);
        held.unsettled = unsettled;
        Next::Held(held)
    }

    /// `last` is the answer that decided it.
    fn lost(&mut self, last: Option<(MasterId, Answer)>, cx: &mut Context<'_, '_>) -> LostRound {
        let votes = self.votes.take_of(cx.keys.reached);
        cx.skip_seats();
        // A master that has named the holder has not set our key, and needs no read, except if the
        // round did not ask it for a notification. A read does not look at a waiting writer's mark.
        let is_watched = self.watches || cx.keys.seating.is_some() || !cx.base.may_try_again();
        for (master, vote) in MasterId::all(votes.len()).zip(&votes) {
            let Vote::HeldByAnother { holder: Some(holder), .. } = vote else { continue };
            if is_watched || *holder == Sentinel::WANTED {
                cx.keys.reached.remove(master);
            }
        }
        let Self { round, since, stale, assigners, .. } = *self;
        LostRound { last, stale, assigners, ..LostRound::new(round, since, votes, cx) }
    }

    /// Handles the end of the caller's time in the middle of a round, the end of the first master's
    /// head start, and that the place must be renewed.
    pub(super) fn time_passed(&mut self, cx: &mut Context<'_, '_>) -> Next {
        let now = cx.effects.now;
        if self.place_due.is_some_and(|at| at <= now) {
            if !cx.asks_in_turn() {
                return Next::RoundLost(self.lost(None, cx));
            }
            cx.renew_place();
            self.place_due = Some(now + QueuePlace::RENEWED_EACH);
        }
        if cx.base.give_up_at.is_none_or(|limit| now < limit) {
            self.ask_the_rest(cx);
            return Next::Stay;
        }
        Next::RoundLost(LostRound { is_last: true, ..self.lost(None, cx) })
    }
}

/// In an open round, a master has named the holder, or what is ahead of us in the queue.
fn named(master: MasterId, answer: Answer) -> Option<Next> {
    let is_named = matches!(answer, Answer::Holder { .. } | Answer::Queued { .. });
    is_named.then_some(Next::Named(master, answer))
}
