//! What a machine gives out.

use std::fmt;

use crate::connection::{Connection, Warning};
use crate::endpoint::Address;
use crate::protocol::{Cause, Event, LockId, MasterId};
use crate::time::Instant;

/// One thing that a driver is to do or to pass on.
pub enum Output<'a> {
    /// Open a connection to a master, then call [`Machine::connected`](super::Machine::connected)
    /// or [`Machine::closed`](super::Machine::closed) with the same generation.
    Connect {
        /// Which master it is for.
        master: MasterId,
        /// The number of the connection to be.
        generation: u32,
        /// Where to. It is not always the same, nor always the master's: where that is found by
        /// asking, connections are also opened to those who are asked.
        address: Address,
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
    /// Close a connection, or give up opening it. What was to be written before may still be
    /// written if that needs no waiting.
    Close {
        /// The master.
        master: MasterId,
        /// The connection's number.
        generation: u32,
    },
    /// Something that a caller waits for.
    Event(Event),
    /// That is all for now: call [`Machine::time_passed`](super::Machine::time_passed) at this
    /// instant, if anything, unless something else comes first.
    Wake(Option<Wake>),
}

impl fmt::Debug for Output<'_> {
    /// With the number of bytes to be written and not the bytes: passwords and tokens are in them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect { master, generation, address } => {
                write!(f, "Connect({master:?}.{generation}, {address})")
            }
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
