//! What a machine gives out.

use std::fmt;

use super::Machine;
use crate::connection::{Connection, Task, Warning};
use crate::protocol::{Cause, Entropy, Event, LockId, MasterId};
use crate::time::Instant;

/// One thing that a driver is to do or to pass on.
pub enum Output<'a> {
    /// Open a connection to a master, then call [`Machine::connected`] or [`Machine::closed`] with the same generation.
    Connect {
        /// Whom to; its address is in the configuration.
        master: MasterId,
        /// The number of the connection to be.
        generation: u32,
    },
    /// Write these bytes to a connection, behind what was written before.
    Write {
        /// The master.
        master: MasterId,
        /// The connection's number.
        generation: u32,
        /// The bytes, until the next call.
        bytes: &'a [u8],
    },
    /// Close a connection, or give up opening it. What was to be written before may still be written if that needs no waiting.
    Close {
        /// The master.
        master: MasterId,
        /// The connection's number.
        generation: u32,
    },
    /// Something that a caller waits for.
    Event(Event),
    /// That is all for now: call [`Machine::time_passed`] at this instant, if anything, unless something else comes first.
    Wake(Option<Wake>),
}

impl fmt::Debug for Output<'_> {
    /// With the number of bytes to be written and not the bytes: passwords and tokens are in them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect { master, generation } => write!(f, "Connect({master:?}.{generation})"),
            Self::Write { master, generation, bytes } => {
                write!(f, "Write({master:?}.{generation}, {} bytes)", bytes.len())
            }
            Self::Close { master, generation } => write!(f, "Close({master:?}.{generation})"),
            Self::Event(event) => f.debug_tuple("Event").field(event).finish(),
            Self::Wake(wake) => f.debug_tuple("Wake").field(wake).finish(),
        }
    }
}

/// When a machine wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wake {
    /// The instant.
    pub at: Instant,
    /// What for.
    pub reason: WakeReason,
}

/// Why a machine wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeReason {
    /// A master is to be connected again, or has been silent for its time.
    Master(MasterId),
    /// A lock is to be tried again, renewed, given up, or reported as lost.
    Lock(LockId),
}

/// The state of a master's connection.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MasterState {
    /// Its connection is being opened, and no attempt has failed yet.
    Opening,
    /// It is connected and votes.
    Ready {
        /// What its operator should know; empty if all is well.
        warnings: Vec<Warning>,
    },
    /// It has no vote, for this reason. Connecting is tried again after `reconnect_delay`.
    Down(Cause),
}

impl MasterState {
    pub(crate) fn of(connection: &Connection) -> Self {
        match (connection.is_ready(), connection.fault()) {
            (true, _) => Self::Ready { warnings: connection.warnings().to_vec() },
            (false, Some(cause)) => Self::Down(cause),
            (false, None) => Self::Opening,
        }
    }
}

impl<E: Entropy> Machine<E> {
    /// The next output. Drain it after every command and input, until it says [`Output::Wake`].
    pub fn poll_output(&mut self) -> Output<'_> {
        while let Some(&master) = self.busy.front() {
            let link = self.connections.get_mut(master.index());
            match link.and_then(|link| link.connection.next_task(&mut self.shown)) {
                Some(Task::Write { generation }) => {
                    return Output::Write { master, generation, bytes: &self.shown };
                }
                Some(Task::Close { generation }) => return Output::Close { master, generation },
                Some(Task::Open { generation }) => return Output::Connect { master, generation },
                None => {
                    self.busy.pop_front();
                    if let Some(link) = self.connections.get_mut(master.index()) {
                        link.is_busy = false;
                    }
                }
            }
        }
        let Some(event) = self.events.pop_front() else { return Output::Wake(self.next_wake()) };
        if event.is_last() {
            self.forget(event.lock());
        }
        Output::Event(event)
    }

    fn next_wake(&mut self) -> Option<Wake> {
        let masters = MasterId::all(self.connections.len()).zip(&self.connections);
        let masters = masters.filter_map(|(master, link)| Some((link.deadline?, WakeReason::Master(master))));
        let master = masters.min_by_key(|(at, _)| *at);
        let lock = self.next_lock().map(|(at, lock)| (at, WakeReason::Lock(lock)));
        let (at, reason) = master.into_iter().chain(lock).min_by_key(|(at, _)| *at)?;
        Some(Wake { at, reason })
    }

    /// Looks past the entries whose locks have gone or have moved their deadlines.
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
