//! What one master says of keys and of itself, as a connection hands it up.

use std::time::Duration;

use super::{Group, Marker, ServerFacts};

/// A master's answer to an inspection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Said {
    /// What it has at those keys that exist, with the place of each among those that it was asked
    /// about; in rising order.
    pub(crate) keys: Vec<(usize, SaidKey)>,
    pub(crate) server: ServerFacts,
    pub(crate) marker: Marker,
}

/// What it has at a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SaidKey {
    /// A holder's token.
    Held(SaidHolder),
    /// The sentinel of a group.
    Shared(Box<SaidSharing>),
    OtherType,
}

/// Who has a key, or an entry among those who share it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SaidHolder {
    pub(crate) fingerprint: u64,
    /// `None` if it never ends.
    pub(crate) remaining: Option<Duration>,
    pub(crate) is_ours: bool,
}

/// Those who share a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SaidSharing {
    pub(crate) group: Group,
    /// How long the key itself lives.
    pub(crate) remaining: Option<Duration>,
    /// How long the mark of a writer that waits lives, if there is one.
    pub(crate) wanted: Option<Duration>,
    /// `None` if they may not be read.
    pub(crate) sharers: Option<Vec<SaidHolder>>,
}
