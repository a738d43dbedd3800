//! Passes orders down to connections and answers up to locks. Returns the outputs of both, and the
//! next deadline.

use super::{Machine, Output, Wake, WakeReason};
use crate::connection::{Answers, Connection, DriverTask, RunId, Upward};
use crate::endpoint::{Discovery, Endpoint};
use crate::protocol::{Cause, Entropy, LockId, MasterId};
use crate::time::Instant;

/// One master's connection, and the machine's state for it.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) connection: Connection,
    /// The connection's deadline when it was last read. There are few connections and their
    /// deadlines move with each request, so they are compared and not sorted.
    deadline: Option<Instant>,
    /// Whether the deadline may have changed since.
    pub(super) has_moved: bool,
    pub(super) is_busy: bool,
}

impl Link {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection, deadline: None, has_moved: true, is_busy: false }
    }

    /// The connection was used. Returns whether it has tasks for the driver, and had none before.
    #[inline]
    pub(super) fn gets_busy(&mut self) -> bool {
        self.has_moved = true;
        let gets_busy = !self.is_busy && self.connection.has_task();
        self.is_busy |= gets_busy;
        gets_busy
    }

    #[inline]
    pub(super) fn deadline(&mut self) -> Option<Instant> {
        if self.has_moved {
            (self.deadline, self.has_moved) = (self.connection.deadline(), false);
        }
        self.deadline
    }
}

impl<E: Entropy> Machine<E> {
    /// Passes orders down and answers up until there are none. That ends: for each answer a lock
    /// gives a bounded number of orders, and each order is answered a bounded number of times,
    /// mostly later.
    pub(super) fn settle(&mut self, now: Instant) {
        self.due.now = now;
        loop {
            if let Some(order) = self.orders.pop_front() {
                self.wording.clear();
                for master in order.to.iter() {
                    let Some(link) = self.connections.get_mut(master.index()) else { continue };
                    link.connection.submit(&order.request, &mut self.wording, now, &mut self.answers);
                    if link.gets_busy() {
                        self.busy.push_back(master);
                    }
                }
            } else if let Some(freed) = self.freed.pop_front() {
                // This comes before any answer: so the next lock's request goes into the same write
                // as the last one's release.
                self.advance(freed, now);
            } else if let Some((master, upward)) = self.answers.next() {
                match upward {
                    Upward::Answer(ticket, answer) => {
                        self.answer(master, ticket.lock, ticket.round, answer, now);
                    }
                    Upward::Told(ticket, said) => self.told(master, ticket.lock, said, now),
                    Upward::News(news) => self.tell(master, &news, now),
                }
            } else {
                return;
            }
        }
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
        if let Some(place) = self.ranks.get_mut(master.index()) {
            if place.is_some() != link.connection.is_ready() {
                *place = link.connection.is_ready().then(|| rank(master, link.connection.identity()));
                self.without_queue.remove(master);
            }
        }
        if link.gets_busy() {
            self.busy.push_back(master);
        }
    }

    /// One server has one vote, however many addresses lead to it. The first connection keeps it.
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
            let has_tag = |master: MasterId| {
                let endpoint = self.config.masters.get(master.index());
                matches!(endpoint.and_then(Endpoint::discovery), Some(Discovery::Cluster { .. }))
            };
            let cause = if has_tag(master) && has_tag(other) {
                Cause::SharedServer { other }
            } else {
                Cause::SameServer { other }
            };
            self.with_connection(master, now, |connection, answers| connection.lose(cause, now, answers));
        }
    }

    // Outputs.

    /// Returns the next output. Drain it after every command and input, until it returns
    /// [`Output::Wake`].
    pub fn poll_output(&mut self) -> Output<'_> {
        while let Some(&master) = self.busy.front() {
            let Some(link) = self.connections.get_mut(master.index()) else { break };
            match link.connection.next_task(&mut self.shown, self.written_at) {
                Some(DriverTask::Write { generation }) => {
                    link.has_moved |= self.written_at.is_some();
                    return Output::Write { master, generation, bytes: &self.shown };
                }
                Some(DriverTask::Close { generation }) => return Output::Close { master, generation },
                Some(DriverTask::Open { generation, address }) => {
                    return Output::Connect { master, generation, address };
                }
                None => {
                    link.is_busy = false;
                    self.busy.pop_front();
                }
            }
        }
        let Some(event) = self.events.pop_front() else {
            if self.due.is_empty() {
                return Output::Wake(self.next_wake());
            }
            self.go_on_with_due();
            return self.poll_output();
        };
        if event.is_last() {
            self.forget(event.lock());
        }
        Output::Event(event)
    }

    fn next_wake(&mut self) -> Option<Wake> {
        let masters = MasterId::all(self.connections.len()).zip(&mut self.connections);
        let master = masters.filter_map(|(master, link)| Some((link.deadline()?, master))).min();
        let master = master.map(|(at, master)| Wake { at, reason: WakeReason::Master(master) });
        let lock = self.next_lock().map(|(at, lock)| Wake { at, reason: WakeReason::Lock(lock) });
        master.into_iter().chain(lock).min_by_key(|wake| wake.at)
    }

    /// Skips the entries of locks that have gone or have another deadline.
    fn next_lock(&mut self) -> Option<(Instant, LockId)> {
        while let Some((at, lock)) = self.timers.first() {
            let Some(slot) = self.locks.get_mut(lock).filter(|slot| slot.armed == Some(at)) else {
                self.timers.drop_first();
                continue;
            };
            let deadline = slot.deadline();
            if deadline == Some(at) {
                return Some((at, lock));
            }
            slot.armed = None;
            self.timers.drop_first();
            self.timers.arm(lock, deadline, &mut slot.armed);
        }
        None
    }
}

/// A master's number that does not depend on the order of a client's list, if the master reports
/// its identity.
fn rank(master: MasterId, identity: Option<RunId>) -> u64 {
    match identity {
        // Hexadecimal digits: the first 16 are the number.
        Some(id) => {
            std::str::from_utf8(&id[..16]).ok().and_then(|digits| u64::from_str_radix(digits, 16).ok())
        }
        None => None,
    }
    .unwrap_or(master.index() as u64)
}
