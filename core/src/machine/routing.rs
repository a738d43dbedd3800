//! Orders down, answers up, and the deadlines of both.

use super::Machine;
use super::line::{Freed, Place, Standing};
use super::slot::{Slot, move_to};
use super::task::Task;
use crate::connection::{Answers, Connection, News, RunId, Upward};
use crate::lock::{Effects, Lock};
use crate::protocol::{Acquire, Answer, Cause, Decision, Entropy, LockId, MasterId, Tally, Vote};
use crate::time::Instant;

impl<E: Entropy> Machine<E> {
    /// Carries orders down and answers up until there are none. Each lock makes a bounded number of orders for an
    /// answer, and each order is answered a bounded number of times, most of them later.
    pub(super) fn settle(&mut self, now: Instant) {
        loop {
            if let Some(order) = self.orders.pop_front() {
                self.wording.clear();
                for master in order.to.iter() {
                    let Some(link) = self.connections.get_mut(master.index()) else { continue };
                    link.connection.submit(&order.request, &mut self.wording, now, &mut self.answers);
                    // Behind others that the driver has yet to write, a request makes nothing due that is not due by then.
                    let is_due = link.deadline.is_some_and(|at| at <= now + self.config.request_timeout);
                    if !link.is_busy || !is_due {
                        self.touched(master);
                    }
                }
            } else if let Some(freed) = self.freed.pop_front() {
                // Before any answer: what the next one asks goes into the same write as what the last one released.
                self.advance(freed, now);
            } else if let Some((master, upward)) = self.answers.next() {
                match upward {
                    Upward::Answer(ticket, answer) => {
                        self.answer(master, ticket.lock, ticket.round, answer, now);
                    }
                    Upward::News(news) => self.tell(master, &news, now),
                }
            } else {
                return;
            }
        }
    }

    pub(super) fn answer(&mut self, master: MasterId, id: LockId, round: u32, answer: Answer, now: Instant) {
        self.with_task(id, |task, effects| match task {
            Task::Lock(lock) => lock.answer(master, round, answer, now, effects),
            Task::Bootstrap(bootstrap) => bootstrap.answer(master, round, answer, effects),
        });
    }

    pub(super) fn with_lock<R>(
        &mut self,
        id: LockId,
        change: impl FnOnce(&mut Lock, &mut Effects<'_>) -> R,
    ) -> Option<R> {
        let changed = self.with_task(id, |task, effects| match task {
            Task::Lock(lock) => Some(change(lock, effects)),
            Task::Bootstrap(_) => None,
        });
        changed.flatten()
    }

    pub(super) fn with_task<R>(
        &mut self,
        id: LockId,
        change: impl FnOnce(&mut Task, &mut Effects<'_>) -> R,
    ) -> Option<R> {
        let slot = self.locks.get_mut(id)?;
        let was_held = slot.task.is_held();
        let result = change(&mut slot.task, &mut effects!(self));
        self.task_changed(id, was_held);
        Some(result)
    }

    pub(super) fn task_changed(&mut self, id: LockId, was_held: bool) {
        let Some(slot) = self.locks.get_mut(id) else { return };
        match (was_held, slot.task.is_held()) {
            (false, true) => self.held += 1,
            (true, false) => self.held -= 1,
            _ => {}
        }
        let left = slot.leave_place(&mut self.freed);
        let is_over = slot.task.is_over();
        if !is_over {
            self.timers.arm(id, slot.task.deadline(), &mut slot.armed);
        }
        if let Some((resource, place)) = left {
            let locks = &mut self.locks;
            self.lines.leave(&resource, place, |id, place| move_to(locks, id, place));
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

    pub(super) fn with_connection(
        &mut self,
        master: MasterId,
        now: Instant,
        change: impl FnOnce(&mut Connection, &mut Answers),
    ) {
        let Some(link) = self.connections.get_mut(master.index()) else { return };
        change(&mut link.connection, &mut self.answers);
        self.touched(master);
        self.settle(now);
    }

    pub(super) fn touched(&mut self, master: MasterId) {
        let Some(link) = self.connections.get_mut(master.index()) else { return };
        if let Some(place) = self.standing.get_mut(master.index()) {
            if place.is_some() != link.connection.is_ready() {
                *place = link.connection.is_ready().then(|| rank(master, link.connection.identity()));
            }
        }
        if !link.is_busy && link.connection.has_task() {
            link.is_busy = true;
            self.busy.push_back(master);
        }
        link.deadline = link.connection.deadline();
    }

    // Lines.

    /// Where a lock that is wanted is to stand.
    pub(super) fn stand_in_line(&mut self, id: LockId, wanted: &Acquire, now: Instant) -> Standing {
        let resource = &wanted.resource;
        if wanted.resumption.is_some() {
            return Standing::Outside;
        }
        let front = match self.lines.step_in(wanted, id, &mut self.jitter, now) {
            Ok(turn) => return Standing::Ahead(turn),
            Err(front) => front,
        };
        if !wanted.is_single_try() {
            return self.lines.join(resource, id).map_or(Standing::Outside, Standing::Behind);
        }
        let waiting = self.lines.waiting(resource);
        if waiting == 0 && self.locks.get(front).is_some_and(|slot| slot.task.is_held()) {
            // Nobody waits, and what the masters say about the holder is worth more than what is known here.
            Standing::Outside
        } else {
            Standing::Refused { others: waiting + 1 }
        }
    }

    fn advance(&mut self, mut freed: Freed, now: Instant) {
        let locks = &mut self.locks;
        let moved = |id, place| move_to(locks, id, place);
        let next = self.lines.advance(&freed, moved, &mut self.jitter, now);
        let Some((id, turn)) = next else { return };
        if let Some(slot) = self.locks.get_mut(id) {
            slot.place = Place::Ahead { was_granted: false };
        }
        self.with_lock(id, |lock, effects| match freed.knowledge.take() {
            Some(knowledge) => lock.inherit(*knowledge, turn, now, effects),
            None => lock.begin(turn, now, effects),
        });
    }

    /// A lock in line has waited for as long as its caller wants.
    pub(super) fn give_up_in_line(&mut self, id: LockId) {
        let Some(Slot { task: Task::Lock(lock), place, .. }) = self.locks.get(id) else { return };
        let resource = lock.resource();
        let others = match place {
            Place::Behind(place) => self.lines.ahead_of(resource, *place),
            Place::Outside | Place::Ahead { .. } | Place::Gone => 1,
        };
        let front = self.lines.front(resource.as_bytes()).and_then(|front| self.lock(front));
        let votes = front.filter(|front| !front.is_held()).and_then(|front| front.last_votes());
        // What one master said alone decides nothing.
        let quorum = self.config.quorum;
        let is_decided = |votes: &&[Vote]| {
            let tally = Tally::of(votes);
            quorum.decide(tally.granted, tally.outstanding) != Decision::Open
        };
        let votes = votes.filter(is_decided).map(<[_]>::to_vec);
        self.with_lock(id, |lock, effects| lock.give_up_in_line(votes, others, effects));
    }

    /// News of a key goes to whom it concerns.
    fn tell(&mut self, master: MasterId, news: &News, now: Instant) {
        match news {
            News::Changed(key) | News::ChangedByUs(key) => {
                if let Some(front) = self.lines.front(key) {
                    let by_us = matches!(news, News::ChangedByUs(_));
                    self.with_lock(front, |lock, effects| {
                        if !(by_us && lock.is_past_own_changes()) {
                            lock.changed(master, now, effects);
                        }
                    });
                }
            }
            News::AllChanged | News::Deaf => {
                for id in self.lines.fronts() {
                    self.with_lock(id, |lock, effects| match news {
                        News::Deaf => lock.deaf(master, now, effects),
                        _ => lock.changed(master, now, effects),
                    });
                }
            }
        }
    }

    /// One server has one vote, however many addresses lead to it. The one that was there first keeps it.
    pub(super) fn check_identity(&mut self, master: MasterId, now: Instant) {
        let Some(identity) = self.connections.get(master.index()).and_then(|link| link.connection.identity())
        else {
            return;
        };
        let other = MasterId::all(self.connections.len()).find(|&other| {
            other != master
                && self
                    .connections
                    .get(other.index())
                    .is_some_and(|link| link.connection.identity() == Some(identity))
        });
        if let Some(other) = other {
            self.with_connection(master, now, |connection, answers| {
                connection.reject(Cause::SameServer { other }, now, answers);
            });
        }
    }
}

/// A number for a master that does not depend on the order in which a client lists them, if it tells who it is.
fn rank(master: MasterId, identity: Option<RunId>) -> u64 {
    match identity {
        // Hexadecimal digits, 16 of which make a number.
        Some(id) => {
            std::str::from_utf8(&id[..16]).ok().and_then(|digits| u64::from_str_radix(digits, 16).ok())
        }
        None => None,
    }
    .unwrap_or(master.index() as u64)
}
