//! Orders down, answers up, and the deadlines of both.

use super::task::Task;
use super::timers::Owner;
use super::{Entropy, LockId, Machine};
use crate::connection::{Answers, Connection};
use crate::lock::Effects;
use crate::protocol::{Cause, MasterId};
use crate::time::Instant;

impl<E: Entropy> Machine<E> {
    /// Carries orders down and answers up until there are none. Each lock makes a bounded number of orders for an
    /// answer, and each order is answered a bounded number of times, most of them later.
    pub(super) fn settle(&mut self, now: Instant) {
        loop {
            if let Some(order) = self.orders.pop_front() {
                for master in order.to.iter() {
                    let Some(link) = self.connections.get_mut(master.index()) else { continue };
                    link.connection.submit(order.request.clone(), now, &mut self.answers);
                    self.touched(master);
                }
            } else if let Some((master, ticket, answer)) = self.answers.pop_front() {
                self.answer(master, ticket.lock, ticket.round, answer, now);
            } else {
                return;
            }
        }
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
        if slot.task.is_over() {
            self.forget(id);
        } else {
            self.timers.arm(Owner::Lock(id), slot.task.deadline(), &mut slot.armed);
        }
    }

    pub(super) fn forget(&mut self, id: LockId) {
        self.locks.remove(id);
        let owners = self.locks.len() + self.connections.len();
        self.timers.tidy(owners, |at, owner| match owner {
            Owner::Master(master) => {
                self.connections.get(master.index()).is_some_and(|link| link.armed == Some(at))
            }
            Owner::Lock(lock) => self.locks.get(lock).is_some_and(|slot| slot.armed == Some(at)),
        });
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
        if !link.is_busy && link.connection.has_task() {
            link.is_busy = true;
            self.busy.push_back(master);
        }
        self.timers.arm(Owner::Master(master), link.connection.deadline(), &mut link.armed);
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
