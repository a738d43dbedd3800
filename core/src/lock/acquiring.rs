//! Attempts: one round each, the clearing behind a lost one, and the pause before the next.

use super::fencing::Numbers;
use super::settling::settling_pause;
use super::{Effects, Lock, NOTICE, Phase};
use crate::protocol::{
    AcquireError, Action, Answer, Cause, Claim, Decision, Fate, LossCause, MasterId, MasterSet, Request,
    Tally, Token, Vote, Votes,
};
use crate::time::Instant;
use crate::wire::ServerError;

/// Head start of the first master, as a fraction (1/n) of `request_timeout`: 12.5 ms by default. It must be above the usual round trip, or the others are
/// asked too early and split the votes; a first master that hangs costs that much, so it is far below the longest round trip.
const HEAD_START: u32 = 16;

/// A round of acquisitions whose decision is open.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Trying {
    pub(super) round: u32,
    /// Before the first send: elapsed time counts from here.
    pub(super) since: Instant,
    pub(super) votes: Votes,
    /// Masters whose connection had been quiet for long and turned out dead: they have not been asked in truth.
    stale: MasterSet,
    pub(super) numbers: Numbers,
    /// When the others are asked too, while only one master has been.
    pub(super) rest_at: Option<Instant>,
    /// Whether its refusal means that another has come before, and goes on to the others: not if it may have been held all the time.
    pub(super) first_leads: bool,
}

/// Behind a lost round: releases and reads are on their way, and perhaps another attempt comes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Clearing {
    pub(super) acquire_round: u32,
    pub(super) undo_round: u32,
    pub(super) votes: Vec<Vote>,
    /// Masters that refused and have not said yet who holds the key, and those whose vote still tells "held by another" from "no
    /// quorum of answers".
    pub(super) awaited: MasterSet,
    /// `None`: there is no further attempt, and the command ends when the awaited reads are there.
    pub(super) retry_at: Option<Instant>,
    /// When to ask again those of whom nothing will be heard.
    pub(super) poll_at: Instant,
    /// Who refused before anybody else was asked.
    pub(super) refused_first: Option<MasterId>,
    /// Whether that master has been asked who holds the key, and no more, and has yet to answer: see `listening.rs`.
    pub(super) listens: bool,
}

impl Clearing {
    /// Has the next attempt come a pause later if it is due: but not again and again.
    pub(super) fn put_off(&mut self, now: Instant, effects: &mut Effects<'_>) {
        if self.poll_at <= now {
            self.poll_at = now + effects.jitter.within(&effects.config.retry_delay);
        }
    }
}

impl Lock {
    /// Asks anew, with a fresh token: a delayed release of an earlier attempt can never take this one's keys.
    pub(super) fn attempt_again(&mut self, now: Instant, effects: &mut Effects<'_>) {
        match effects.fresh_token() {
            Ok(token) => self.renew_token(token),
            Err(error) => return self.fail(AcquireError::Request(error), effects),
        }
        self.attempt(now, effects);
    }

    /// Asks with the present token, which none has seen yet: all masters, or one before the others.
    pub(super) fn attempt(&mut self, now: Instant, effects: &mut Effects<'_>) {
        if !self.is_settling() {
            self.attempts = self.attempts.saturating_add(1);
        }
        let masters = effects.config.masters.len();
        let round = self.next_round();
        let first = self.first_to_ask(now, effects);
        self.reached = first.map_or(MasterSet::all(masters), MasterSet::only);
        self.forsaken = MasterSet::EMPTY;
        self.unproven = MasterSet::EMPTY;
        self.fence = 0;
        let votes = Votes::outstanding(masters);
        let numbers = Numbers::new(self.claim.is_fenced(), masters);
        let rest_at = first.map(|_| now + effects.config.request_timeout / HEAD_START);
        let first_leads = first.is_some_and(|first| !self.wait.is_unheard(first));
        let stale = MasterSet::EMPTY;
        self.phase = Phase::Trying(Trying { round, since: now, votes, stale, numbers, rest_at, first_leads });
        self.ask(self.reached, round, effects);
    }

    pub(super) fn ask(&self, masters: MasterSet, round: u32, effects: &mut Effects<'_>) {
        // Who expects to be refused asks in a way that says by whom.
        let watch = self.way.is_wary && self.may_try_again();
        let request = self.request(Some(round), Action::Acquire, self.ttl, 0);
        effects.order(masters, Request { watch, ..request });
    }

    pub(super) fn may_try_again(&self) -> bool {
        self.attempts_allowed.is_none_or(|allowed| self.attempts < allowed)
    }

    pub(super) fn attempt_answered(
        &mut self,
        master: MasterId,
        answer: Answer,
        now: Instant,
        effects: &mut Effects<'_>,
    ) {
        let Phase::Trying(trying) = &mut self.phase else { return };
        // Of a master that has counted it is the answer to a raise, which sets no key.
        let is_about_key = !trying.numbers.has_counted(master);
        if is_about_key {
            self.note_fate(master, answer);
        }
        let Phase::Trying(trying) = &mut self.phase else { return };
        if matches!(answer, Answer::Failed { stale: true, .. }) {
            trying.stale.insert(master);
        }
        let vote = match answer {
            Answer::Counted(number) if !trying.numbers.note(master, number) => {
                Vote::Failed(Cause::UnexpectedReply)
            }
            Answer::No if trying.numbers.has_counted(master) => Vote::NotHeld,
            answer => acquire_vote(answer),
        };
        trying.votes.record(master, vote);
        let is_alone = trying.rest_at.is_some();
        let tally = trying.votes.tally();
        if matches!(answer, Answer::Holder { .. }) {
            self.note_stand(master, answer, false, now);
        }
        if tally.other_fleet > 0 {
            return self.attempt_lost(now, effects);
        }
        if is_alone {
            if vote.is_refusal() && self.may_try_again() {
                return self.turned_away(master, now, effects);
            }
            if vote.is_refusal() && self.is_settling() {
                return self.look_around(now, effects);
            }
            self.ask_the_rest(effects);
        }
        let Phase::Trying(trying) = &mut self.phase else { return };
        let quorum = effects.config.quorum;
        let fenced = self.claim.is_fenced();
        let agreed = if fenced { trying.numbers.agreed(&trying.votes) } else { tally.granted };
        match quorum.decide(agreed, tally.outstanding + tally.granted - agreed) {
            Decision::Open if fenced && tally.granted >= quorum.needed() => self.raise_numbers(effects),
            Decision::Open => {}
            Decision::Won => self.attempt_won(now, effects),
            Decision::Lost => self.attempt_lost(now, effects),
        }
    }

    /// "If the client managed to acquire the lock in the majority of the instances, and the total time elapsed to
    /// acquire the lock is less than lock validity time, the lock is considered to be acquired" (Redis
    /// distributed-locks page, "The Redlock Algorithm", step 3).
    fn attempt_won(&mut self, now: Instant, effects: &mut Effects<'_>) {
        let Phase::Trying(trying) = &mut self.phase else { return };
        let valid_until = self.ttl.valid_until(trying.since);
        if now + NOTICE >= valid_until {
            return self.attempt_lost(now, effects);
        }
        for (master, vote) in MasterId::all(trying.votes.len()).zip(trying.votes.iter()) {
            if vote.is_refusal() {
                self.reached.remove(master);
            }
        }
        let (round, since, votes) = (trying.round, trying.since, trying.votes.take());
        self.fence = trying.numbers.highest();
        let mut unsettled = MasterSet::EMPTY;
        for (master, vote) in MasterId::all(votes.len()).zip(&votes) {
            let is_settled = matches!(vote, Vote::Granted | Vote::HeldByAnother { .. } | Vote::NotHeld);
            if !is_settled && self.reached.contains(master) {
                unsettled.insert(master);
            }
        }
        (self.way.asked_at, self.way.granted_at) = (since, now);
        self.wait.take_stands();
        self.become_held(round, since, votes, valid_until, effects);
        if let Phase::Held(held) = &mut self.phase {
            held.unsettled = unsettled;
        }
    }

    fn attempt_lost(&mut self, now: Instant, effects: &mut Effects<'_>) {
        let Phase::Trying(trying) = &mut self.phase else { return };
        let (acquire_round, since, stale) = (trying.round, trying.since, trying.stale);
        let votes = trying.votes.take();
        // Who has said by whom it is held has not set our key, and has nothing more to say.
        for (master, vote) in MasterId::all(votes.len()).zip(&votes) {
            if matches!(vote, Vote::HeldByAnother { holder: Some(_), .. }) {
                self.reached.remove(master);
            }
        }
        self.clear(acquire_round, since, votes, stale, now, effects);
    }

    /// The caller's time is over in the middle of a round, or one master has been waited for long enough.
    pub(super) fn trying_goes_on(&mut self, now: Instant, effects: &mut Effects<'_>) {
        if self.give_up_at.is_none_or(|limit| now < limit) {
            return self.ask_the_rest(effects);
        }
        self.attempt_lost(now, effects);
        if matches!(self.phase, Phase::Clearing(_)) {
            self.finish(effects);
        }
    }

    /// A grant that ended before anybody took it is a lost attempt.
    pub(super) fn grant_came_to_nothing(&mut self, now: Instant, effects: &mut Effects<'_>) {
        let Phase::Held(held) = std::mem::replace(&mut self.phase, Phase::Over) else { return };
        self.end_extensions(&held, LossCause::Expired, effects);
        if self.resumed {
            return self.fail_to_resume(held.votes, effects);
        }
        self.clear(held.round, held.since, held.votes, MasterSet::EMPTY, now, effects);
    }

    /// "If the client failed to acquire the lock for some reason, it will try to unlock all the instances, even the
    /// instances it believed it was not able to lock" (Redis distributed-locks page, "The Redlock Algorithm", step 5).
    /// The release reads the key where another holds it: `SET NX` does not say who, nor for how long.
    fn clear(
        &mut self,
        acquire_round: u32,
        since: Instant,
        mut votes: Vec<Vote>,
        stale: MasterSet,
        now: Instant,
        effects: &mut Effects<'_>,
    ) {
        let undo_round = self.next_round();
        let mut awaited = MasterSet::EMPTY;
        let quorum = effects.config.quorum;
        let tally = Tally::of(&votes);
        let undecided =
            tally.other_fleet == 0 && quorum.decide(tally.granted, tally.outstanding) == Decision::Open;
        let may_turn_out_held = !tally.is_held_by_another(quorum)
            && tally.granted + tally.held + tally.outstanding >= quorum.needed();
        for (master, vote) in MasterId::all(votes.len()).zip(&mut votes) {
            // Who refused a lock that was won without him is not asked once more, so nothing comes from him.
            let answers = self.reached.contains(master);
            match vote {
                Vote::HeldByAnother { .. } if answers => awaited.insert(master),
                Vote::Outstanding if undecided && answers => {
                    *vote = Vote::Failed(Cause::NoAnswer { waited: now.since(since) });
                }
                Vote::Outstanding if answers && may_turn_out_held => awaited.insert(master),
                _ => {}
            }
        }
        if !undecided || self.wait.last_votes.is_none() {
            self.wait.last_votes = Some(votes.clone());
        }
        let stale = stale.without(self.wait.repeated);
        // A round is lost by one vote, so a single fresh connection may win it; a wait that is over wins nothing.
        if !undecided && !stale.is_empty() {
            // Once for each master, so that it ends.
            stale.iter().for_each(|master| self.wait.repeated.insert(master));
            self.attempts -= 1;
            effects.order(self.reached, self.request(None, Action::Release, self.longest_ttl, 0));
            return self.attempt_again(now, effects);
        }
        let watch = !tally.is_misconfigured(quorum) && self.may_try_again();
        let undo = self.request(Some(undo_round), Action::Undo, self.longest_ttl, 0);
        effects.order(self.reached, Request { watch, ..undo });
        let may_settle = !watch && effects.config.settles_splits;
        let poll_at = if may_settle {
            now + settling_pause(now.since(since), effects)
        } else {
            now + effects.jitter.within(&effects.config.retry_delay)
        };
        self.note_votes(&votes, watch, may_settle, now);
        self.phase = Phase::Clearing(Clearing {
            acquire_round,
            undo_round,
            votes,
            awaited,
            retry_at: watch.then_some(poll_at),
            poll_at,
            refused_first: None,
            listens: false,
        });
        self.plan_next_attempt(now, effects);
        self.conclude(now, effects);
    }

    pub(super) fn clearing_answered(
        &mut self,
        master: MasterId,
        round: u32,
        answer: Answer,
        now: Instant,
        effects: &mut Effects<'_>,
    ) {
        let Phase::Clearing(clearing) = &mut self.phase else { return };
        let undo_round = clearing.undo_round;
        if clearing.listens && round == undo_round {
            return self.listened(master, answer, now, effects);
        }
        if round == clearing.acquire_round {
            // Too late to count, but it tells the caller more than silence does.
            let vote = acquire_vote(answer);
            if clearing.votes.get(master.index()) == Some(&Vote::Outstanding) {
                record(&mut clearing.votes, master, vote);
                if matches!(vote, Vote::HeldByAnother { holder: None, .. }) {
                    clearing.awaited.insert(master);
                } else {
                    clearing.awaited.remove(master);
                }
            }
        } else if round == undo_round {
            clearing.awaited.remove(master);
            let refused = clearing.votes.get(master.index()).is_some_and(|vote| vote.is_refusal());
            match answer {
                Answer::Holder { holder, remaining, .. } if refused => {
                    record(
                        &mut clearing.votes,
                        master,
                        Vote::HeldByAnother { remaining, holder: Some(holder) },
                    );
                }
                // A key of a foreign type refuses `SET NX` like a lock does; only the read tells them apart. Whatever
                // else keeps the read from being done for a while does not unsay the refusal.
                Answer::Failed { cause, .. }
                    if refused
                        && (cause == Cause::Server(ServerError::WrongType) || cause.is_configuration()) =>
                {
                    record(&mut clearing.votes, master, Vote::Failed(cause));
                }
                _ => {}
            }
        } else {
            return;
        }
        let goes_on = clearing.retry_at.is_some();
        self.wait.last_votes = Some(clearing.votes.clone());
        if goes_on || effects.config.settles_splits {
            self.note_stand(master, answer, round == undo_round, now);
        }
        if goes_on {
            self.plan_next_attempt(now, effects);
        }
        self.conclude(now, effects);
    }

    pub(super) fn renew_token(&mut self, token: Token) {
        self.token = token;
        self.claim = Claim::new(&self.resource, token, self.claim.is_fenced());
    }

    /// Keeps account of where the token may be, and of where it must not be counted.
    pub(super) fn note_fate(&mut self, master: MasterId, answer: Answer) {
        match answer {
            Answer::Failed { fate: Fate::NotSent, .. } => self.reached.remove(master),
            Answer::Failed { fate: Fate::Undone, .. } => self.forsaken.insert(master),
            _ => {}
        }
    }

    /// A vote that comes after the lock was won: it holds there too, or it never will.
    pub(super) fn late_vote(&mut self, master: MasterId, answer: Answer) {
        let Phase::Held(held) = &mut self.phase else { return };
        // Who has granted it answers a raise, and who is asked to go on with a lock an extension: neither sets a key.
        if self.resumed || held.granted.contains(master) {
            return;
        }
        let vote = acquire_vote(answer);
        record(&mut held.votes, master, vote);
        if vote == Vote::Granted {
            held.granted.insert(master);
        }
        if !matches!(answer, Answer::Failed { fate: Fate::Unknown | Fate::Undone, .. }) {
            held.unsettled.remove(master);
        }
        self.note_fate(master, answer);
        if matches!(answer, Answer::No | Answer::Holder { .. }) {
            self.reached.remove(master);
        }
    }
}

/// The vote that an answer to an acquisition is.
fn acquire_vote(answer: Answer) -> Vote {
    match answer {
        Answer::Yes | Answer::Counted(_) => Vote::Granted,
        Answer::No => Vote::HeldByAnother { remaining: None, holder: None },
        Answer::Holder { holder, remaining, .. } => Vote::HeldByAnother { remaining, holder: Some(holder) },
        Answer::Failed { cause, .. } => Vote::Failed(cause),
    }
}

pub(super) fn record(votes: &mut [Vote], master: MasterId, vote: Vote) {
    if let Some(place) = votes.get_mut(master.index()) {
        *place = vote;
    }
}
