//! What a lock is told, and what its contender makes of how the lock answers.

use super::Machine;
use super::slab::Slab;
use super::slot::{Place, Slot, Task};
use crate::connection::News;
use crate::lock::{Attempt, Effects, Grant, Lock, Report, State};
use crate::protocol::{Answer, Decision, Entropy, EntropyFailed, LockId, MasterId, Resource, Tally, Vote};
use crate::time::Instant;
use crate::waiting::{self, Begin, Bid, Contenders};

/// A lock in front of its queue has let go.
#[derive(Clone, Debug)]
pub(super) struct LetGo {
    resource: Resource,
    /// Of what, if it was granted.
    grant: Option<Grant>,
}

impl<E: Entropy> Machine<E> {
    pub(super) fn answer(&mut self, master: MasterId, id: LockId, round: u32, answer: Answer, now: Instant) {
        match self.locks.get_mut(id).map(|slot| &mut slot.task) {
            Some(Task::Lock(_)) | None => {}
            Some(Task::Bootstrap(bootstrap)) => {
                return bootstrap.answer(master, round, answer, &mut effects!(self, now));
            }
            Some(Task::Inquiry(inquiry)) => {
                return inquiry.answer(master, answer, &mut effects!(self, now));
            }
            Some(Task::Clearance(clearance)) => {
                return clearance.answer(master, answer, &mut effects!(self, now));
            }
        }
        self.input(id, now, |lock, effects| lock.answer(master, round, answer, effects));
    }

    /// A command of a lock's caller. Its contender hears of it only if the lock lets go.
    pub(super) fn with_lock<R>(
        &mut self,
        id: LockId,
        now: Instant,
        change: impl FnOnce(&mut Lock, &mut Effects<'_>) -> R,
    ) -> Option<R> {
        let mut result = None;
        self.input(id, now, |lock, effects| {
            result = Some(change(lock, effects));
            Report::Nothing
        });
        result
    }

    /// An input to a lock. Its contender hears what it reports.
    pub(super) fn input(
        &mut self,
        id: LockId,
        now: Instant,
        input: impl FnOnce(&mut Lock, &mut Effects<'_>) -> Report,
    ) {
        let Some(Slot { task: Task::Lock(lock), place, .. }) = self.locks.get_mut(id) else { return };
        let was_held = lock.state() == State::Held;
        let effects = &mut effects!(self, now);
        let report = input(lock, effects);
        if !matches!(report, Report::Nothing) {
            if let Some(bid) = bid_of(place, &mut self.contenders, lock.resource()) {
                bid.hear(report, lock, effects);
                let next = bid.next_attempt();
                plan(place, next);
            }
        }
        self.changed(id, was_held);
    }

    /// Something that the lock in front of a queue is not told itself, but the bid for it; that begins with this if there was none.
    fn contend(
        &mut self,
        id: LockId,
        now: Instant,
        change: impl FnOnce(&mut Bid, &mut Lock, &mut Effects<'_>),
    ) {
        let Some(Slot { task: Task::Lock(lock), place, .. }) = self.locks.get_mut(id) else { return };
        let was_held = lock.state() == State::Held;
        if let Some(bid) = bid_of(place, &mut self.contenders, lock.resource()) {
            change(bid, lock, &mut effects!(self, now));
            let next = bid.next_attempt();
            plan(place, next);
        }
        self.changed(id, was_held);
    }

    /// A lock may have been granted or lost, or want to be woken at another time.
    pub(super) fn changed(&mut self, id: LockId, was_held: bool) {
        let Some(slot) = self.locks.get_mut(id) else { return };
        let Task::Lock(lock) = &slot.task else { return };
        let state = lock.state();
        match (was_held, state == State::Held) {
            (false, true) => self.held += 1,
            (true, false) => self.held -= 1,
            _ => {}
        }
        let has_left = match slot.place {
            Place::Front { .. } | Place::Outside(_) => state >= State::LetGo,
            Place::Behind(_) => state != State::Queued,
            Place::Gone => state == State::Over,
        };
        if has_left {
            self.leave(id);
        } else {
            self.timers.arm(id, slot.deadline(), &mut slot.armed);
        }
    }

    /// A lock wants nothing more from its contender, nor from the timers.
    fn leave(&mut self, id: LockId) {
        let Some(Slot { task: Task::Lock(lock), place, .. }) = self.locks.get_mut(id) else { return };
        let (resource, is_over) = (lock.resource().clone(), lock.state() == State::Over);
        match std::mem::replace(place, Place::Gone) {
            Place::Front { .. } => self.freed.push_back(LetGo { resource, grant: lock.grant() }),
            Place::Behind(place) => {
                let locks = &mut self.locks;
                self.contenders.leave(&resource, place, |id, place| move_to(locks, id, place));
            }
            Place::Outside(_) | Place::Gone => {}
        }
        if is_over {
            self.forget(id);
        }
    }

    pub(super) fn forget(&mut self, id: LockId) {
        self.locks.remove(id);
        let locks = &self.locks;
        let is_armed = |at, lock| locks.get(lock).is_some_and(|slot| slot.armed == Some(at));
        self.timers.tidy(locks.len(), is_armed);
    }

    /// A timer of a lock has fired.
    pub(super) fn fired(&mut self, id: LockId, now: Instant) {
        let Some(slot) = self.locks.get(id) else { return };
        let is_due = slot.deadline().is_some_and(|deadline| deadline <= now);
        match slot.place {
            Place::Behind(place) if is_due => self.give_up_behind(id, place, now),
            _ if is_due => self.input(id, now, |lock, effects| lock.time_passed(effects)),
            _ => self.changed(id, slot.is_held()),
        }
    }

    /// The lock in front has let go: the next one comes there.
    pub(super) fn advance(&mut self, freed: &LetGo, now: Instant) {
        let locks = &mut self.locks;
        let moved = |id, place| move_to(locks, id, place);
        let next = self.contenders.advance(&freed.resource, freed.grant, moved, &mut self.jitter, now);
        let Some((id, begin)) = next else { return };
        if let Some(slot) = self.locks.get_mut(id) {
            slot.place = Place::Front { next_attempt: None };
        }
        match begin {
            Begin::GoOn => self.contend(id, now, |bid, lock, effects| bid.plan_next_attempt(lock, effects)),
            Begin::Start(start) if start.is_plain() => {
                self.with_lock(id, now, |lock, effects| {
                    let begun = lock.attempt(Attempt::default(), effects);
                    tell_failure(begun, lock, effects);
                });
            }
            Begin::Start(start) => self.contend(id, now, |bid, lock, effects| {
                let begun = bid.begin(start, lock, effects);
                tell_failure(begun, lock, effects);
            }),
        }
    }

    /// A lock behind others has waited for as long as its caller wants.
    fn give_up_behind(&mut self, id: LockId, place: waiting::Place, now: Instant) {
        let Some(resource) = self.lock(id).map(Lock::resource) else { return };
        let others = self.contenders.ahead_of(resource, place);
        let front = self.contenders.front(resource.key()).and_then(|front| self.lock(front));
        let bid = self.contenders.bid(resource.key());
        let votes =
            bid.filter(|_| front.is_none_or(|front| front.state() != State::Held)).and_then(Bid::last_votes);
        // What one master said alone decides nothing.
        let quorum = self.config.quorum;
        let is_decided = |votes: &&[Vote]| {
            let tally = Tally::of(votes);
            quorum.decide(tally.granted, tally.outstanding) != Decision::Open
        };
        let votes = votes.filter(is_decided).map(<[_]>::to_vec);
        self.with_lock(id, now, |lock, effects| match votes {
            Some(votes) => lock.finish(votes, effects),
            None => lock.give_up_behind(others, effects),
        });
    }

    /// News of a key goes to the contender that it concerns.
    pub(super) fn tell(&mut self, master: MasterId, news: &News, now: Instant) {
        match news {
            News::Changed(key) | News::ChangedByUs(key) => {
                let by_us = matches!(news, News::ChangedByUs(_));
                if self.contenders.bid(key).is_some() {
                    if let Some(front) = self.contenders.front(key) {
                        self.contend(front, now, |bid, lock, effects| {
                            bid.changed(master, by_us, lock, effects);
                        });
                    }
                }
            }
            News::AllChanged | News::Deaf => {
                for id in self.contenders.bidders() {
                    self.contend(id, now, |bid, lock, effects| match news {
                        News::Deaf => bid.deaf(master, lock, effects),
                        _ => bid.changed(master, false, lock, effects),
                    });
                }
            }
        }
    }
}

/// The bid for a lock, which begins with this if there was none.
fn bid_of<'a>(
    place: &'a mut Place,
    contenders: &'a mut Contenders,
    resource: &Resource,
) -> Option<&'a mut Bid> {
    match place {
        Place::Outside(bid) => Some(bid.get_or_insert_default()),
        Place::Front { .. } => contenders.bid_mut(resource),
        Place::Behind(_) | Place::Gone => {
            debug_assert!(false, "a lock that nobody asked for anything reports");
            None
        }
    }
}

fn plan(place: &mut Place, at: Option<Instant>) {
    if let Place::Front { next_attempt } = place {
        *next_attempt = at;
    }
}

fn tell_failure(begun: Result<(), EntropyFailed>, lock: &mut Lock, effects: &mut Effects<'_>) {
    if let Err(error) = begun {
        lock.fail(error.into(), effects);
    }
}

/// The queue has given a waiter another place.
fn move_to(locks: &mut Slab<Slot>, id: LockId, place: waiting::Place) {
    if let Some(slot) = locks.get_mut(id) {
        slot.place = Place::Behind(place);
    }
}
