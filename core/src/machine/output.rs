//! The outputs of a machine.

use std::fmt;

use crate::connection::{Connection, Warning};
use crate::endpoint::Address;
use crate::protocol::{Cause, Event, LockId, MasterId};
use crate::time::Instant;

/// One thing for a driver to do or to pass on.
pub enum Output<'a> {
    /// Open a connection to a master, then call [`Machine::connected`](super::Machine::connected)
    /// or [`Machine::closed`](super::Machine::closed) with the same generation.
    Connect {
        /// The master.
        master: MasterId,
        /// The new connection's number.
        generation: u32,
        /// The address to connect to. It may differ each time, and it is not always the master's:
        /// to discover a master, the machine first connects to other servers and asks them.
        address: Address,
    },
    /// Write these bytes to a connection, after all earlier ones.
    Write {
        /// The master.
        master: MasterId,
        /// The connection's number.
        generation: u32,
        /// The bytes, valid until the next call.
        bytes: &'a [u8],
    },
    /// Close a connection, or give up opening it. Earlier bytes may still be written if that needs
    /// no waiting.
    Close {
        /// The master.
        master: MasterId,
        /// The connection's number.
        generation: u32,
    },
    /// Something that a caller waits for.
    Event(Event),
    /// There is nothing more to do for now: call
    /// [`Machine::time_passed`](super::Machine::time_passed) at this instant, if there is one,
    /// unless something else comes first.
    Wake(Option<Wake>),
}

impl fmt::Debug for Output<'_> {
    /// Shows the number of bytes to write and not the bytes, which contain passwords and tokens.
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
    /// The reason.
    pub reason: WakeReason,
}

/// Why a machine wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeReason {
    /// A master must be reconnected, or has reached its timeout.
    Master(MasterId),
    /// A lock must be tried again, renewed, given up, or reported as lost.
    Lock(LockId),
}

/// The state of a master's connection.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MasterState {
    /// The connection is being opened, and no attempt has failed yet.
    Opening,
    /// The master is connected, and votes unless it is in the quarantine of the restart guard
    /// ([`MasterReport::quarantine`](crate::front::MasterReport::quarantine)).
    Ready {
        /// What its operator should know; empty if all is well.
        warnings: Vec<Warning>,
    },
    /// The master has no vote, for this reason. The next attempt to connect follows after
    /// `reconnect_delay`.
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
