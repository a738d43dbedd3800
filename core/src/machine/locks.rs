//! Inputs to a lock, and its contender's reactions to its reports.

use std::sync::Arc;
use std::time::Duration;

use super::Machine;
use super::table::{Place, Slab, Slot, Task};
use crate::connection::News;
use crate::lock::{Attempt, Effects, Lock, Report, State};
use crate::protocol::{
    Answer, Decision, Entropy, EntropyFailed, Event, LockId, MasterId, Mode, Resource, Tally, Targets, Vote,
};
use crate::time::Instant;
use crate::waiting::{Begin, Bid, Contenders, Front, LetGo, Next, Start};

/// After this time a lock behind one that this process holds is reported. Longer: code that waits
/// for itself learns of it later. Shorter: ordinary waits are reported, too.
pub(super) const NESTED_AFTER: Duration = Duration::from_secs(1);

impl<E: Entropy> Machine<E> {
    pub(super) fn answer(&mut self, master: MasterId, id: LockId, round: u32, answer: Answer, now: Instant) {
        match self.locks.get_mut(id).map(|slot| &mut slot.task) {
            Some(Task::Lock(_)) | None => {}
            Some(Task::Bootstrap(bootstrap)) => {
                return bootstrap.answer(master, answer, &mut effects!(self, now));
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

    /// A command of a lock's caller. Its contender is only notified if the lock ends.
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

    /// An input to a lock. Its contender gets the report.
    pub(super) fn input(
        &mut self,
        id: LockId,
        now: Instant,
        input: impl FnOnce(&mut Lock, &mut Effects<'_>) -> Report,
    ) {
        let Some(Slot { task: Task::Lock(lock), place, .. }) = self.locks.get_mut(id) else { return };
        let was_held = lock.state() == State::Held;
        let effects = &mut effects!(self, now);
        match input(lock, effects) {
            Report::Unchanged => return,
            Report::Nothing => {}
            report => {
                if let Some(bid) = bid_of(place, &self.contenders, lock.targets()) {
                    bid.hear(report, lock, effects);
                }
            }
        }
        self.changed(id, was_held, now);
    }

    /// An input for the bid of the lock in front of a queue, which is created if there was none.
    fn contend(
        &mut self,
        id: LockId,
        now: Instant,
        change: impl FnOnce(&mut Bid, &mut Lock, &mut Effects<'_>),
    ) {
        let Some(Slot { task: Task::Lock(lock), place, .. }) = self.locks.get_mut(id) else { return };
        let was_held = lock.state() == State::Held;
        if let Some(bid) = bid_of(place, &self.contenders, lock.targets()) {
            change(bid, lock, &mut effects!(self, now));
        }
        self.changed(id, was_held, now);
    }

    /// A lock may have been granted or lost, or have another deadline.
    pub(super) fn changed(&mut self, id: LockId, was_held: bool, now: Instant) {
        let Some(slot) = self.locks.get_mut(id) else { return };
        let Task::Lock(lock) = &slot.task else { return };
        let state = lock.state();
        match (was_held, state == State::Held) {
            (false, true) => self.held += 1,
            (true, false) => self.held -= 1,
            _ => {}
        }
        let has_left = match &slot.place {
            Place::Front(_) | Place::Outside(_) => state >= State::LetGo,
            Place::Behind(..) => state != State::Queued,
            Place::Gone => state == State::Over,
        };
        if has_left {
            self.leave(id, now);
        } else {
            self.timers.arm(id, slot.deadline(), &mut slot.armed);
        }
    }

    /// A lock no longer needs its contender and its timers.
    fn leave(&mut self, id: LockId, now: Instant) {
        let Some(Slot { task: Task::Lock(lock), place, .. }) = self.locks.get_mut(id) else { return };
        let (targets, is_over) = (lock.targets().clone(), lock.state() == State::Over);
        match std::mem::replace(place, Place::Gone) {
            Place::Front(bid) => {
                let (grant, place) = (lock.grant(), lock.leave_place());
                self.freed.push_back(LetGo { id, targets, grant, bid, place });
            }
            Place::Behind(places, _) => {
                if self.contenders.leave(&targets, &places) {
                    self.freed.push_back(LetGo { id, targets, grant: None, bid: None, place: None });
                }
            }
            Place::Outside(_) => {
                if let Some(place) = lock.leave_place() {
                    place.end(&mut effects!(self, now));
                }
            }
            Place::Gone => {}
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
        match &slot.place {
            // Its timer is always that of its next deadline, so one of them is due.
            Place::Behind(..) => {
                if slot.own_deadline().is_some_and(|deadline| deadline <= now) {
                    self.give_up_behind(id, now);
                } else {
                    self.report_own(id, now);
                }
            }
            _ if is_due => self.input(id, now, |lock, effects| lock.time_passed(effects)),
            _ => {
                let is_held = slot.is_held();
                self.changed(id, is_held, now);
            }
        }
    }

    /// A lock has ended: those behind it come to the front.
    pub(super) fn advance(&mut self, mut let_go: LetGo, now: Instant) {
        let targets = let_go.targets.clone();
        for (resource, mode) in targets.queues() {
            let is_waited_for = self.contenders.let_go(resource, &let_go, now);
            if matches!(mode, Mode::Shared(_)) {
                self.reader_has_left(resource, now);
            }
            if is_waited_for {
                self.admit(resource, &mut let_go, now);
            }
        }
        if let Some(place) = let_go.place {
            place.end(&mut effects!(self, now));
        }
    }

    /// If a writer waits beside readers, one of which has left, it may be alone now.
    fn reader_has_left(&mut self, resource: &Resource, now: Instant) {
        let writer = self.contenders.front(resource.key()).and_then(Front::writer);
        let Some(id) = writer else { return };
        let is_beside = |slot: &&Slot| slot.bid().is_some_and(Bid::is_beside);
        let Some(slot) = self.locks.get(id).filter(is_beside) else { return };
        let Some(lock) = slot.task.as_lock() else { return };
        let targets = lock.targets();
        let start = self.contenders.start_behind_reader(targets, id, &mut self.jitter, now);
        let start = if lock.queues_up(&effects!(self, now)) { start.of_queue() } else { start };
        self.contend(id, now, |bid, lock, effects| bid.reader_has_left(start, lock, effects));
    }

    /// Once a caller has a lock that shares resources, a writer behind it comes beside it.
    pub(super) fn admit_writers(&mut self, id: LockId, now: Instant) {
        let Some(slot) = self.locks.get(id).filter(|slot| slot.is_taken()) else { return };
        let Some(lock) = slot.task.as_lock().filter(|lock| lock.targets().has_shared()) else { return };
        let targets = lock.targets().clone();
        let mut nothing = LetGo { id, targets: targets.clone(), grant: None, bid: None, place: None };
        for (resource, _) in targets.queues() {
            self.admit(resource, &mut nothing, now);
        }
    }

    /// As many locks as there is room for come to the front of a resource.
    fn admit(&mut self, resource: &Resource, let_go: &mut LetGo, now: Instant) {
        while let Some(next) = self.next(resource, let_go, now) {
            if self.comes_to_front(resource, next.id) {
                self.inherit(next.id, let_go, now);
                self.begin(next.id, next.begin, now);
            }
            if !next.may_follow {
                break;
            }
        }
    }

    /// A lock that wants to wait fairly goes on with the place of the one before it. Another one
    /// asks only after what that one may have been granted is taken back.
    fn inherit(&mut self, id: LockId, let_go: &mut LetGo, now: Instant) {
        let Some(Slot { task: Task::Lock(lock), .. }) = self.locks.get_mut(id) else { return };
        let Some(place) = let_go.place.take() else { return };
        if lock.is_fair() {
            lock.go_on_with(place, &mut effects!(self, now));
        } else {
            place.end(&mut effects!(self, now));
        }
    }

    /// A lock in front shares its resources from now on.
    pub(super) fn shares(&mut self, id: LockId, now: Instant) {
        let Some(Slot { task: Task::Lock(lock), place: Place::Front(_), .. }) = self.locks.get(id) else {
            return;
        };
        let targets = lock.targets().clone();
        let mut nothing = LetGo { id, targets: targets.clone(), grant: None, bid: None, place: None };
        for (resource, _) in targets.queues() {
            self.contenders.share(resource, id);
            self.admit(resource, &mut nothing, now);
        }
    }

    fn next(&mut self, resource: &Resource, let_go: &mut LetGo, now: Instant) -> Option<Next> {
        let is = |id| mode_of(&self.locks, resource, id);
        let is_taken = |id| self.locks.get(id).is_some_and(Slot::is_taken);
        self.contenders.next(resource, let_go, is, is_taken, &mut self.jitter, now)
    }

    /// A lock is in front for one of its targets. Returns whether it is in front for all of them.
    fn comes_to_front(&mut self, resource: &Resource, id: LockId) -> bool {
        let Some(Slot { task: Task::Lock(lock), place, .. }) = self.locks.get_mut(id) else { return false };
        if let Place::Behind(places, _) = place {
            if let Some(target) = lock.targets().queues().position(|(queue, _)| queue == resource) {
                places.comes_to_front(target);
            }
            if places.is_behind() {
                return false;
            }
        }
        *place = Place::Front(None);
        true
    }

    /// A lock has come to the front of all its queues.
    fn begin(&mut self, id: LockId, begin: Begin, now: Instant) {
        let Some(Slot { task: Task::Lock(lock), place, .. }) = self.locks.get_mut(id) else { return };
        let targets = lock.targets();
        let queues_up = lock.queues_up(&effects!(self, now));
        let start = match begin {
            Begin::Start(start) if queues_up => start.of_queue(),
            Begin::GoOn(_) if queues_up => Start::default(),
            Begin::GoOn(bid) => {
                *place = Place::Front(Some(bid));
                return self.contend(id, now, |bid, lock, effects| bid.go_on(lock, effects));
            }
            Begin::Start(start) if targets.only().is_some() => start,
            Begin::Start(_) => self.contenders.start(targets, id, now),
        };
        *place = Place::Front(Bid::for_start(start, || self.contenders.lets_pass(targets), now));
        if start.is_plain() {
            self.with_lock(id, now, |lock, effects| {
                let begun = lock.attempt(Attempt::default(), effects);
                tell_failure(begun, lock, effects);
            });
        } else {
            self.contend(id, now, |bid, lock, effects| {
                let begun = bid.begin(start, lock, effects);
                tell_failure(begun, lock, effects);
            });
        }
    }

    /// A lock has waited behind others for a second: reports it if this process has held the lock
    /// ahead for as long.
    fn report_own(&mut self, id: LockId, now: Instant) {
        let Some(Slot { task: Task::Lock(lock), place: Place::Behind(places, report_at), .. }) =
            self.locks.get_mut(id)
        else {
            return;
        };
        *report_at = None;
        let resource = self.contenders.behind_at(lock.targets(), places);
        let front = resource.and_then(|resource| self.contenders.front(resource.key()));
        let has_long_been_held = |ahead: LockId| {
            let ahead = self.locks.get(ahead).filter(|ahead| ahead.is_held());
            let grant = ahead.and_then(|ahead| ahead.task.as_lock()?.grant());
            grant.is_some_and(|grant| grant.at + NESTED_AFTER <= now)
        };
        if front.is_some_and(|front| front.locks().all(has_long_been_held)) {
            self.events.push_back(Event::WaitsForOwn { lock: id });
        }
        self.changed(id, false, now);
    }

    /// A lock behind others has waited for as long as its caller allows.
    fn give_up_behind(&mut self, id: LockId, now: Instant) {
        let Some(Slot { task: Task::Lock(lock), place: Place::Behind(places, _), .. }) = self.locks.get(id)
        else {
            return;
        };
        let resource = self.contenders.behind_at(lock.targets(), places);
        let front = resource.and_then(|resource| self.contenders.front(resource.key()));
        let front = front.and_then(|front| self.locks.get(front.locks().next()?));
        let votes = front.filter(|front| !front.is_held()).and_then(Slot::bid).and_then(Bid::last_votes);
        // One master's answer alone decides nothing.
        let quorum = self.config.quorum;
        let is_decided = |votes: &&Arc<[Vote]>| {
            let tally = Tally::of(votes);
            quorum.decide(tally.granted(), tally.outstanding()) != Decision::Open
        };
        if let Some(votes) = votes.filter(is_decided).cloned() {
            let before = self.told_behind.take();
            self.told_behind =
                self.with_lock(id, now, |lock, effects| lock.finish_behind(votes, before, effects));
        } else {
            let others = self.contenders.ahead_of(lock.targets(), places);
            self.with_lock(id, now, |lock, effects| lock.give_up_behind(others, effects));
        }
    }

    /// Passes a notification to the bids that it concerns.
    pub(super) fn tell(&mut self, master: MasterId, news: &News, now: Instant) {
        match news {
            News::Changed(key) | News::ChangedByUs(key) => {
                let by_us = matches!(news, News::ChangedByUs(_));
                let seats = Resource::seats_of(key);
                let key = seats.as_deref().or_else(|| Resource::of_want_key(key)).unwrap_or(key);
                let change = |bid: &mut Bid, lock: &mut Lock, effects: &mut Effects<'_>| {
                    bid.changed(master, by_us, lock, effects);
                };
                if let Some((key, place)) = Resource::of_place_key(key) {
                    if let Some(id) = self.only_bidder(key) {
                        self.contend(id, now, |bid, lock, effects| {
                            bid.turn_has_come(master, place, lock, effects);
                        });
                    }
                    return;
                }
                match self.contenders.front(key) {
                    Some(&Front::One(id)) if self.has_bid(id) => self.contend(id, now, change),
                    Some(front @ Front::Sharers(_)) => {
                        let sharers: Vec<_> = front.locks().filter(|id| self.has_bid(*id)).collect();
                        sharers.into_iter().for_each(|id| self.contend(id, now, change));
                    }
                    _ => {}
                }
            }
            News::LeftByUs(key) => {
                if let Some(id) = self.only_bidder(key) {
                    self.contend(id, now, |bid, lock, effects| bid.queue_has_moved(master, lock, effects));
                }
            }
            News::QueuesDenied => self.without_queue.insert(master),
            News::AllChanged | News::Deaf => {
                // Each lock is notified only once: a lock of several targets is in front of several
                // resources, and is taken from the first of them.
                let is_first = |resource: &Resource, id| {
                    let first = self.lock(id).and_then(|lock| lock.targets().queues().next());
                    first.is_some_and(|(first, _)| first == resource)
                };
                let all = self.contenders.all_in_front();
                let bidders = all.filter(|(resource, id)| is_first(resource, *id) && self.has_bid(*id));
                let bidders: Vec<_> = bidders.map(|(_, id)| id).collect();
                for id in bidders {
                    self.contend(id, now, |bid, lock, effects| match news {
                        News::Deaf => bid.deaf(master, lock, effects),
                        _ => bid.changed(master, false, lock, effects),
                    });
                }
            }
        }
    }

    /// The lock in front of this resource, if it is alone there and has a bid.
    fn only_bidder(&self, key: &[u8]) -> Option<LockId> {
        match self.contenders.front(key) {
            Some(&Front::One(id)) if self.has_bid(id) => Some(id),
            _ => None,
        }
    }

    fn has_bid(&self, id: LockId) -> bool {
        self.locks.get(id).is_some_and(|slot| slot.bid().is_some())
    }
}

/// The bid for a lock, which is created if there was none.
fn bid_of<'a>(place: &'a mut Place, contenders: &Contenders, targets: &Targets) -> Option<&'a mut Bid> {
    match place {
        Place::Outside(bid) => Some(bid.get_or_insert_default()),
        Place::Front(bid) => {
            Some(bid.get_or_insert_with(|| Box::new(Bid::of_asking(contenders.lets_pass(targets)))))
        }
        Place::Behind(..) | Place::Gone => {
            debug_assert!(false, "a lock behind others, or one that has ended, has a report");
            None
        }
    }
}

fn tell_failure(begun: Result<(), EntropyFailed>, lock: &mut Lock, effects: &mut Effects<'_>) {
    if let Err(error) = begun {
        lock.fail(error.into(), effects);
    }
}

/// How a lock wants a resource.
fn mode_of(locks: &Slab<Slot>, resource: &Resource, id: LockId) -> Mode {
    let lock = locks.get(id).and_then(|slot| slot.task.as_lock());
    let mode = lock.and_then(|lock| lock.targets().queues().find(|(queue, _)| *queue == resource));
    mode.map_or(Mode::Exclusive, |(_, mode)| mode.clone())
}
