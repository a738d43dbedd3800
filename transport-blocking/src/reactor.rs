//! The I/O loop: sockets, a poll with a timeout, a wake-up, and nothing about locks.

use std::io;
use std::task::Waker;
use std::time::Duration;

use mio::event::Event;
use mio::{Events, Poll, Token};
use quorlock_core::front::{Addresses, Demand, Port};
use quorlock_core::{Cause, Config, MasterId};

use crate::calls::{Calls, Connector};
use crate::connect::Connecting;
use crate::lead::EventLoop;
use crate::socket::Socket;

/// How many reads one socket gets in one turn, so that a flood from one master does not starve the
/// others.
const READS_PER_TURN: usize = 16;

/// The token of the wake-up. A master's token is its place in the list of masters.
pub(crate) const INTERRUPT: Token = Token(usize::MAX);

enum Link {
    None,
    Connecting(u32, Connecting),
    Open(u32, Socket),
}

struct Master {
    id: MasterId,
    addresses: Addresses,
    /// The calls of the caller's connector that opens its connections, if there is one.
    calls: Option<Calls>,
    link: Link,
    /// There may be something to do in this turn: more to read than one turn allows, or an opening
    /// in progress.
    unread: bool,
    /// The poll has reported room in the socket since the last retry that found none. It reports
    /// that once, perhaps before the thread that found the socket full has reported that to the
    /// front.
    has_room: bool,
    /// The poll has reported the end or an error of the connection. No further event follows, so
    /// the socket must be read to its end.
    ended: bool,
}

/// The state of the loop, which runs turn by turn.
pub(crate) struct Reactor {
    port: Port,
    poll: Poll,
    events: Events,
    masters: Vec<Master>,
    waker: Waker,
    buffer: Box<[u8]>,
}

impl Reactor {
    /// `waker` interrupts the poll, or makes a thread take turns.
    pub(crate) fn new(
        port: Port,
        poll: Poll,
        config: &Config,
        connector: Option<&Connector>,
        waker: Waker,
    ) -> Self {
        let masters = config
            .master_ids()
            .map(|id| Master {
                id,
                addresses: Addresses::new(config),
                calls: connector.map(Calls::new),
                link: Link::None,
                unread: false,
                has_room: false,
                ended: false,
            })
            .collect();
        Self {
            port,
            poll,
            events: Events::with_capacity(256),
            masters,
            waker,
            buffer: vec![0; 16 * 1024].into(),
        }
    }

    /// How long the poll may sleep at most.
    fn sleep(&self) -> Option<Duration> {
        let openings = self.masters.iter().filter_map(|master| match &master.link {
            Link::Connecting(_, connecting) => connecting.sleep(),
            Link::None | Link::Open(..) => None,
        });
        self.port.sleep().into_iter().chain(openings).min()
    }

    fn carry_out(&mut self, demand: Demand) {
        let (Demand::Connect { master, .. } | Demand::Close { master, .. }) = demand;
        let Some(master) = self.masters.get_mut(master.index()) else { return };
        match demand {
            Demand::Connect { generation, address, .. } => {
                master.close(&self.poll);
                if !self.port.has_served(master.id) {
                    master.addresses.avoid_last();
                }
                let connecting = match &master.calls {
                    Some(calls) => Connecting::call(address, calls, &self.waker),
                    None => Connecting::begin(&address, &master.addresses, &self.waker),
                };
                master.link = Link::Connecting(generation, connecting);
                master.advance(&self.port, &self.poll);
            }
            Demand::Close { generation, .. } => {
                if matches!(master.link, Link::Connecting(own, _) | Link::Open(own, _) if own == generation) {
                    master.close(&self.poll);
                }
            }
        }
    }
}

impl EventLoop for Reactor {
    /// The loop ends when the locker is no longer in use.
    fn turn(&mut self) -> bool {
        self.port.register(&self.waker);
        // The last user may have dropped the locker between two turns, and then nothing would end
        // the sleep.
        if self.port.is_finished() {
            return false;
        }
        // The thread of a resolver or connector may have answered while no thread led. That has not
        // ended a poll, so such answers are looked for before the next one.
        for master in &mut self.masters {
            if matches!(&master.link, Link::Connecting(_, connecting) if connecting.is_due()) {
                master.advance(&self.port, &self.poll);
            }
        }
        let is_busy = self
            .masters
            .iter()
            .any(|master| master.unread || master.has_fault() || master.can_retry(&self.port));
        let time_out = if is_busy { Some(Duration::ZERO) } else { self.sleep() };
        if let Err(error) = self.poll.poll(&mut self.events, time_out) {
            debug_assert_eq!(error.kind(), io::ErrorKind::Interrupted, "the poll itself works: {error}");
        }
        for event in &self.events {
            if let Some(master) = self.masters.get_mut(event.token().0) {
                master.happened(event);
            }
        }
        for master in &mut self.masters {
            if master.can_retry(&self.port) {
                master.has_room = self.port.retry_write(master.id);
            }
            let unread = std::mem::take(&mut master.unread) || master.has_fault();
            match &master.link {
                Link::Connecting(_, connecting) if unread || connecting.is_due() => {
                    master.advance(&self.port, &self.poll);
                }
                Link::Open(..) if unread => master.read(&self.port, &self.poll, &mut self.buffer),
                _ => {}
            }
        }
        self.port.tick();
        while let Some(demand) = self.port.next_demand() {
            self.carry_out(demand);
        }
        !self.port.is_finished()
    }

    fn rest(&mut self) {
        self.port.end_turn();
    }
}

impl Master {
    fn token(&self) -> Token {
        Token(self.id.index())
    }

    fn happened(&mut self, event: &Event) {
        match &self.link {
            Link::None => {}
            // All attempts of an opening have this token, so the opening continues only after the
            // other events have been handled.
            Link::Connecting(..) => self.unread = true,
            Link::Open(..) => {
                self.has_room |= event.is_writable();
                self.ended |= event.is_read_closed() || event.is_error();
                self.unread |= event.is_readable() || self.ended;
            }
        }
    }

    /// Whether bytes that the socket had no room for may be written now. If another thread finds
    /// the socket full, it interrupts the poll, so that this is checked afterwards.
    fn can_retry(&self, port: &Port) -> bool {
        self.has_room && port.is_blocked(self.id)
    }

    /// Whether writing to its socket has failed: the next read reports that.
    fn has_fault(&self) -> bool {
        matches!(&self.link, Link::Open(_, socket) if socket.has_fault())
    }

    /// Takes an opening as far as it goes without waiting.
    fn advance(&mut self, port: &Port, poll: &Poll) {
        let token = self.token();
        let Link::Connecting(generation, connecting) = &mut self.link else { return };
        let generation = *generation;
        let opened = match connecting.advance(poll.registry(), token) {
            None => return,
            Some(opened) => opened
                .and_then(|fresh| fresh.split(poll.registry(), token).map_err(|error| Cause::from(&error))),
        };
        match opened {
            Ok((socket, sink)) => {
                // Bytes that were read ahead cause no event.
                self.unread = !socket.gives_all();
                self.link = Link::Open(generation, socket);
                port.opened(self.id, generation, sink);
            }
            Err(cause) => {
                self.link = Link::None;
                port.closed(self.id, generation, cause);
            }
        }
    }

    fn read(&mut self, port: &Port, poll: &Poll, buffer: &mut [u8]) {
        let Link::Open(generation, socket) = &mut self.link else { return };
        let generation = *generation;
        for _ in 0..READS_PER_TURN {
            let cause = match socket.read(buffer) {
                None => return,
                Some(Ok(bytes @ 1..)) => {
                    port.received(self.id, generation, buffer.get(..bytes).unwrap_or_default());
                    // The socket is empty; bytes that arrive later cause a new event.
                    if bytes < buffer.len() && !self.ended && socket.gives_all() {
                        return;
                    }
                    continue;
                }
                Some(Ok(0)) => Cause::Closed,
                Some(Err(cause)) => cause,
            };
            self.close(poll);
            return port.closed(self.id, generation, cause);
        }
        self.unread = true;
    }

    fn close(&mut self, poll: &Poll) {
        match std::mem::replace(&mut self.link, Link::None) {
            Link::None => {}
            Link::Connecting(_, connecting) => connecting.end(poll.registry()),
            Link::Open(_, socket) => socket.leave(poll.registry()),
        }
        self.unread = false;
        self.has_room = false;
        self.ended = false;
    }
}

#[cfg(test)]
#[cfg(unix)]
#[path = "../../tests/shared/black_hole.rs"]
mod black_hole;

#[cfg(test)]
#[cfg(unix)]
mod tests;
