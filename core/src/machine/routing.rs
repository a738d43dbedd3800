//! Orders down, answers up, and the deadlines of both.

use super::Machine;
use crate::connection::{Answers, Connection, RunId, Upward};
use crate::protocol::{Cause, Entropy, MasterId};
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
                self.advance(&freed, now);
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
            }
        }
        if !link.is_busy && link.connection.has_task() {
            link.is_busy = true;
            self.busy.push_back(master);
        }
        link.deadline = link.connection.deadline();
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
