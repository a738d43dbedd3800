//! The bid's commands to a lock: attempts, the steps after a lost one, and the end without the
//! lock.

use std::sync::Arc;

use super::acquiring::{Assigner, Attempt, HEAD_START, Trying};
use super::clearing::Clearing;
use super::context::{Base, Context, Keys};
use super::{Effects, Lock, Phase, Stage, State};
use crate::protocol::{AcquireError, Action, Ballot, EntropyFailed, Event, MasterSet, Request, Vote};

impl Lock {
    /// Makes an attempt, with a fresh token: a delayed release of an earlier attempt can never
    /// delete the keys of this one.
    pub(crate) fn attempt(
        &mut self,
        attempt: Attempt,
        effects: &mut Effects<'_>,
    ) -> Result<(), EntropyFailed> {
        debug_assert!(self.state() <= State::Sought, "an attempt of a lock that is not sought");
        let token = effects.fresh_token()?;
        let all = MasterSet::all(effects.config.masters.len());
        if self.is_fair() {
            // A place in the queue does not keep sharers out.
            let needs_place = self.needs_place(effects) && !attempt.only_marks;
            let place = if needs_place { Some(effects.fresh_place()?) } else { None };
            if let Stage::Asked(keys, _) = &mut self.stage {
                if needs_place {
                    // Its release does not remove the mark of an earlier wait behind readers.
                    Context { base: &mut self.base, keys, effects }.unmark_held();
                }
            }
            if !attempt.in_turn {
                self.enters(place, all, effects.now);
            }
        }
        let base = &mut self.base;
        if attempt.waited.is_some() && base.wish.is_none() && !base.targets.is_shared() {
            base.wish = Some(Box::new(effects.fresh_wish()?));
        }
        base.is_contended |= attempt.is_wary;
        if !attempt.is_repeated && !attempt.only_marks {
            base.attempts = base.attempts.saturating_add(1);
        }
        let attempt = if base.targets.is_permit() { assigned(attempt, base, effects) } else { attempt };
        let mut keys = Keys::new(base, token, attempt.first.map_or(all, |(first, _)| MasterSet::only(first)));
        let trying = Trying::begin(attempt, &mut Context { base, keys: &mut keys, effects });
        self.stage = Stage::Asked(keys, Phase::Trying(trying));
        Ok(())
    }

    /// After a lost round: "If the client failed to acquire the lock for some reason, it will try
    /// to unlock all the instances, even the instances it believed it was not able to lock" (Redis
    /// distributed-locks page, "The Redlock Algorithm", step 5). The release reads the key if
    /// another holder has it: `SET NX` says neither who nor for how long. With `watch` the master
    /// notifies when that changes.
    pub(crate) fn undo(&mut self, watch: bool, effects: &mut Effects<'_>) {
        if let Some((clearing, mut cx)) = self.clearing(effects) {
            let round = clearing.read_round;
            cx.undo(cx.keys.reached, round, watch);
        }
    }

    /// After a lost round that is repeated at once: takes the token back without waiting for the
    /// masters' answers.
    pub(crate) fn give_back(&mut self, effects: &mut Effects<'_>) {
        if let Some((_, mut cx)) = self.clearing(effects) {
            cx.give_back();
        }
    }

    /// Asks these masters who holds the key, without asking for a vote.
    pub(crate) fn read(
        &mut self,
        masters: MasterSet,
        watch: bool,
        effects: &mut Effects<'_>,
    ) -> Result<(), EntropyFailed> {
        if self.state() == State::Queued {
            // The script that reads the key compares it with a token: no master has this one.
            let keys = Keys::new(&self.base, effects.fresh_token()?, MasterSet::EMPTY);
            let lost_round = self.base.next_round();
            let clearing = Clearing::behind(lost_round, &mut self.base);
            self.stage = Stage::Asked(keys, Phase::Clearing(clearing));
        } else if let Some((clearing, cx)) = self.clearing(effects) {
            clearing.read_round = cx.base.next_round();
        }
        if let Some((clearing, mut cx)) = self.clearing(effects) {
            let round = clearing.read_round;
            cx.undo(masters, round, watch);
        }
        Ok(())
    }

    fn clearing<'a, 'e>(
        &'a mut self,
        effects: &'a mut Effects<'e>,
    ) -> Option<(&'a mut Clearing, Context<'a, 'e>)> {
        let Self { base, stage: Stage::Asked(keys, Phase::Clearing(clearing)) } = self else {
            debug_assert!(false, "a command for the time between attempts comes at another time");
            return None;
        };
        Some((clearing, Context { base, keys, effects }))
    }

    /// Ends without the lock, with the masters' last votes for the caller.
    pub(crate) fn finish(&mut self, votes: Option<Arc<[Vote]>>, effects: &mut Effects<'_>) {
        let ballot = Arc::new(self.base.ballot(votes, effects));
        self.fail(AcquireError::from_ballot(ballot, effects.config.quorum), effects);
    }

    /// Ends without the lock, with the votes of the lock in front for its caller. Returns the
    /// ballot: tens of thousands of locks that give up together share it, since allocating each one
    /// would take longer than everything else.
    pub(crate) fn finish_behind(
        &mut self,
        votes: Arc<[Vote]>,
        told_before: Option<Arc<Ballot>>,
        effects: &mut Effects<'_>,
    ) -> Arc<Ballot> {
        // None of them has made an attempt.
        let same = told_before.filter(|told| {
            told.targets == self.base.targets
                && told.votes.as_ref().is_some_and(|told| Arc::ptr_eq(told, &votes))
        });
        let ballot = same.unwrap_or_else(|| Arc::new(self.base.ballot(Some(votes), effects)));
        self.fail(AcquireError::from_ballot(Arc::clone(&ballot), effects.config.quorum), effects);
        ballot
    }

    /// Ends without the lock, because other callers of this process hold or requested it earlier.
    pub(crate) fn give_up_behind(&mut self, others: usize, effects: &mut Effects<'_>) {
        let ballot = Ballot { callers_ahead: others, ..self.base.ballot(None, effects) };
        self.fail(AcquireError::HeldByAnother(Arc::new(ballot)), effects);
    }

    /// Ends without the lock.
    pub(crate) fn fail(&mut self, error: AcquireError, effects: &mut Effects<'_>) {
        if let Stage::Asked(keys, _) = &mut self.stage {
            let mut cx = Context { base: &mut self.base, keys, effects };
            cx.leave_place_to_others(MasterSet::EMPTY);
            cx.unmark();
        }
        self.stage = Stage::Told;
        effects.events.push_back(Event::NotAcquired { lock: self.base.id, error });
    }
}

/// In an attempt at a permit one master assigns the seat, even without known rivals and before any
/// master is connected: no request can name a seat that has not been assigned.
fn assigned(attempt: Attempt, base: &Base, effects: &Effects<'_>) -> Attempt {
    let first = attempt.first.or_else(|| {
        let common = || effects.first_master(&base.targets);
        let passed_over = match attempt.assigner {
            Assigner::Common => MasterSet::EMPTY,
            Assigner::Another => common().map_or(MasterSet::EMPTY, MasterSet::only),
            Assigner::Beside(assigners) => assigners,
        };
        let first = effects.next_to_assign(&base.targets, passed_over, |_| true)?;
        Some((first, effects.now + effects.config.request_timeout / HEAD_START))
    });
    Attempt { first, ..attempt }
}

impl Context<'_, '_> {
    /// Makes these masters delete the token, or name the holder.
    fn undo(&mut self, masters: MasterSet, round: u32, watch: bool) {
        let request = self.request(Some(round), Action::Undo, self.base.longest_ttl);
        self.order_back(masters, Request { watch, ..request.without_place() });
    }
}
