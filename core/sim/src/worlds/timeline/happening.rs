//! The events of a world, as values and as texts.

use std::fmt;
use std::time::Duration;

use quorlock_core::FencingToken;

use super::Actor;
use crate::worlds::access::Shown;
use crate::worlds::clock::TrueTime;
use crate::worlds::fault::Fault;
use crate::worlds::process::Kept;
use crate::worlds::reading::{Answer, Named};
use crate::worlds::violation::Violation;

/// One event. Tokens are shown as numbers, in the order of their first use.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::worlds) enum Happening {
    /// A client sends a command.
    Sent {
        client: usize,
        master: usize,
        command: Named,
        /// Whether the master has executed it since.
        is_executed: bool,
    },
    /// A master executes a command.
    Executed {
        client: usize,
        master: usize,
        command: Named,
        answer: Answer,
        /// Whether the client had closed the connection by then.
        is_late: bool,
        sent: Option<TrueTime>,
        /// When all of the answer was in the client's socket.
        heard: Option<TrueTime>,
    },
    /// A master notifies a client that a key which it has read has changed.
    Pushed {
        client: usize,
        master: usize,
        fate: &'static str,
    },
    /// A client has a guard, or still has it.
    Holds {
        client: usize,
        is_new: bool,
        what: Shown,
        token: usize,
        fence: Option<FencingToken>,
        valid_for: Duration,
        ends: TrueTime,
    },
    /// A guard is gone.
    LetGo {
        client: usize,
        what: Shown,
        token: usize,
        was_valid: bool,
    },
    /// A client reads or writes the data that the lock protects.
    Stored {
        client: usize,
        what: String,
        is_taken: bool,
    },
    /// A client writes a note.
    Said {
        client: usize,
        text: String,
    },
    Fault(Fault),
    /// All faults end.
    Healed,
    /// A master that hung continues.
    GoesOn {
        master: usize,
    },
    /// A master that was down is back.
    Back {
        master: usize,
        kept: Kept,
    },
    /// A master becomes a replica.
    Copies {
        master: usize,
        other: usize,
    },
    Promoted {
        master: usize,
    },
    /// A server must follow another one.
    Follows {
        master: usize,
        other: usize,
    },
    /// A client opens its connections to this server from now on.
    Learns {
        client: usize,
        master: usize,
    },
    /// A server owns its master's slot from now on.
    OwnsSlot {
        master: usize,
    },
    /// The slot of a server begins to move to another one.
    SlotMoves {
        master: usize,
        other: usize,
    },
    /// A promise is broken that may be broken in this world.
    GivenUp(Violation),
    Broken(Violation),
}

impl Happening {
    /// Its actor, and the other participant.
    pub(super) fn actors(&self) -> (Actor, Option<Actor>) {
        match self {
            Self::Executed { client, master, .. } => (Actor::Client(*client), Some(Actor::Master(*master))),
            Self::Pushed { client, master, .. } => (Actor::Master(*master), Some(Actor::Client(*client))),
            Self::Stored { client, .. } => (Actor::Client(*client), Some(Actor::Store)),
            Self::Sent { client, .. }
            | Self::Holds { client, .. }
            | Self::LetGo { client, .. }
            | Self::Learns { client, .. }
            | Self::Said { client, .. } => (Actor::Client(*client), None),
            Self::GoesOn { master }
            | Self::Back { master, .. }
            | Self::Copies { master, .. }
            | Self::Follows { master, .. }
            | Self::OwnsSlot { master }
            | Self::SlotMoves { master, .. }
            | Self::Promoted { master } => (Actor::Master(*master), None),
            Self::Fault(_) | Self::Healed | Self::GivenUp(_) | Self::Broken(_) => (Actor::World, None),
        }
    }
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent { master, command, .. } => write!(f, "sends master{master} {command}"),
            Self::Executed { command, answer, is_late, .. } => {
                let late = if *is_late { ", after the client closed the connection" } else { "" };
                write!(f, "{command}: {}{late}", answer.text)
            }
            Self::Pushed { fate, .. } => write!(f, "notifies of a changed key{fate}"),
            Self::Holds { is_new, what, token, fence, valid_for, .. } => {
                let holds = if *is_new { "holds" } else { "goes on holding" };
                write!(f, "{holds} {what} with token {token}")?;
                if let Some(fence) = fence {
                    write!(f, ", number {fence}")?;
                }
                write!(f, ", valid for {valid_for:?}")
            }
            Self::LetGo { what, token, was_valid, .. } => {
                let why = if *was_valid { "" } else { ", whose validity is over" };
                write!(f, "has {what} no longer with token {token}{why}")
            }
            Self::Stored { what, is_taken, .. } => {
                write!(f, "{what}{}", if *is_taken { "" } else { ": refused" })
            }
            Self::Said { text, .. } => f.write_str(text),
            Self::Fault(fault) => write!(f, "{fault:?}"),
            Self::Healed => f.write_str("all faults end"),
            Self::GoesOn { .. } => f.write_str("goes on"),
            Self::Back { kept: Kept::Own(kept), .. } => write!(f, "is back, keys kept: {kept:?}"),
            Self::Back { kept: Kept::Saved, .. } => f.write_str("is back with the keys of its snapshot"),
            Self::Copies { other, .. } => write!(f, "is a replica of master{other}"),
            Self::Promoted { .. } => f.write_str("is promoted"),
            Self::Follows { other, .. } => write!(f, "is to follow master{other}"),
            Self::OwnsSlot { .. } => f.write_str("owns the slot"),
            Self::SlotMoves { other, .. } => write!(f, "begins to move the slot to master{other}"),
            Self::Learns { master, .. } => write!(f, "opens connections to master{master} from now on"),
            Self::GivenUp(violation) => write!(f, "{violation}, as expected"),
            Self::Broken(violation) => write!(f, "a promise is broken: {violation}"),
        }
    }
}
