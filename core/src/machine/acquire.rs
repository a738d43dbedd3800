//! What is wanted of a machine.

use std::time::Duration;

use crate::protocol::{FencingToken, Resource, Token, Ttl};

/// What is wanted of [`Machine::acquire`](super::Machine::acquire).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Acquire {
    /// What to lock.
    pub resource: Resource,
    /// The life of its keys.
    pub ttl: Ttl,
    /// How long to go on trying; `None` for as long as it takes. One round's answers are awaited in any case no
    /// longer than the configured time-outs.
    pub within: Option<Duration>,
    /// How many rounds to make; `None` for as many as fit.
    pub attempts: Option<u32>,
    /// How long after the grant renewal goes on in the background; `None` for not at all.
    pub renew_for: Option<Duration>,
    /// Whether the grant is to have a fencing token.
    pub fenced: bool,
    /// Whether extensions put the key back on masters that do not have it.
    pub healing: bool,
    /// The lock to go on with, instead of a new one.
    pub resumption: Option<Resumption>,
}

impl Acquire {
    /// This lock, with attempts for as long as it takes, and nothing else.
    pub const fn new(resource: Resource, ttl: Ttl) -> Self {
        Self {
            resource,
            ttl,
            within: None,
            attempts: None,
            renew_for: None,
            fenced: false,
            healing: false,
            resumption: None,
        }
    }
}

/// A lock that was granted to somebody else, and handed on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Resumption {
    /// What its keys hold.
    pub token: Token,
    /// Its fencing token, if it was granted one.
    pub fencing_token: Option<FencingToken>,
}
