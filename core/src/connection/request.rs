//! What goes down to a master and what comes up from it, in the protocol's words.

use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::machine::LockId;
use crate::protocol::{Cause, Resource, Token, Ttl};
use crate::wire::{Decimal, EXTEND, RELEASE, Script, UNDO, put_argument};

/// A resource and one attempt's token, encoded once and shared by every request of that attempt to every master.
///
/// The bytes are the two RESP arguments as all commands carry them: the key, then the token.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Claim(Bytes);

impl Claim {
    pub(crate) fn new(resource: &Resource, token: Token) -> Self {
        let key = resource.as_bytes();
        let mut bytes = BytesMut::with_capacity(key.len() + 72);
        put_argument(&mut bytes, key);
        put_argument(&mut bytes, &token.to_hex());
        Self(bytes.freeze())
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claim(hidden)")
    }
}

/// What a request does with its claim on one master.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Action {
    /// `SET key token NX PX ttl`.
    Acquire,
    /// Compare the token and move the end of the key's life, never towards now.
    Extend,
    /// Compare the token and delete.
    Release,
    /// Compare the token and delete; if another holds the key, say who and for how long.
    Undo,
}

impl Action {
    /// Whether it takes the key away; such requests are kept for a master that cannot be reached.
    pub(crate) fn clears(self) -> bool {
        matches!(self, Self::Release | Self::Undo)
    }

    fn script(self) -> Option<&'static Script> {
        match self {
            Self::Acquire => None,
            Self::Extend => Some(&EXTEND),
            Self::Release => Some(&RELEASE),
            Self::Undo => Some(&UNDO),
        }
    }
}

/// Which lock asked, and in which of its rounds: the way home for the answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Ticket {
    pub(crate) lock: LockId,
    pub(crate) round: u32,
}

/// One request to one master.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Request {
    /// `None` for a release that nobody waits for.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) action: Action,
    pub(crate) claim: Claim,
    pub(crate) ttl: Ttl,
}

/// How a script is named on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ScriptForm {
    /// By its SHA-1, for a master that has it.
    BySha,
    /// By its text, for a master that may not have it.
    ByText,
}

impl Request {
    /// Appends the command and returns how many bytes it takes.
    pub(crate) fn encode(&self, form: ScriptForm, out: &mut BytesMut) -> usize {
        let before = out.len();
        let ttl = Decimal::new(self.ttl.as_millis());
        match self.action.script() {
            None => {
                out.extend_from_slice(b"*6\r\n$3\r\nSET\r\n");
                out.extend_from_slice(&self.claim.0);
                out.extend_from_slice(b"$2\r\nNX\r\n$2\r\nPX\r\n");
                put_argument(out, ttl.as_bytes());
            }
            Some(script) => {
                let extends = self.action == Action::Extend;
                out.extend_from_slice(if extends { b"*6\r\n" } else { b"*5\r\n" });
                match form {
                    ScriptForm::BySha => {
                        out.extend_from_slice(b"$7\r\nEVALSHA\r\n$40\r\n");
                        out.extend_from_slice(script.sha1_hex.as_bytes());
                        out.extend_from_slice(b"\r\n");
                    }
                    ScriptForm::ByText => {
                        out.extend_from_slice(b"$4\r\nEVAL\r\n");
                        put_argument(out, script.text.as_bytes());
                    }
                }
                out.extend_from_slice(b"$1\r\n1\r\n");
                out.extend_from_slice(&self.claim.0);
                if extends {
                    put_argument(out, ttl.as_bytes());
                }
            }
        }
        out.len() - before
    }
}

/// What a master said to a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Answer {
    /// The key was set, extended or deleted: the token stood there.
    Yes,
    /// The key stands with another's token (acquire), or not with ours (extend, release, undo).
    No,
    /// Another holds the key (undo).
    Holder { holder: u64, remaining: Option<Duration> },
    /// No usable answer.
    Failed { cause: Cause, fate: Fate, stale: bool },
}

/// What may have become of a request without a usable answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Fate {
    /// It never left.
    NotSent,
    /// It may have been executed, or may yet be.
    Unknown,
    /// It may have been executed, or may yet be, and a release follows it on the same connection. Whatever this
    /// master says about the token from now on may be undone a moment later, so it must not be counted.
    Undone,
}
