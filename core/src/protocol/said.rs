//! What one master says of a lock's key and of itself, as a connection hands it up.

use std::time::Duration;

use super::{Marker, ServerFacts};

/// A master's answer to an inspection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Said {
    pub(crate) key: SaidKey,
    pub(crate) server: ServerFacts,
    pub(crate) marker: Marker,
}

/// What it has at the lock's key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SaidKey {
    Free,
    Held {
        fingerprint: u64,
        /// `None` if it never ends.
        remaining: Option<Duration>,
        is_ours: bool,
    },
    OtherType,
}
