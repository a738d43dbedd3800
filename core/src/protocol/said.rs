//! One master's report about keys and itself, as a connection passes it up.

use std::time::Duration;

use super::{Group, Marker, ServerFacts};

/// A master's answer to an inspection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Said {
    /// The contents of the keys that exist, each with the key's position in the request; in rising
    /// order.
    pub(crate) keys: Vec<(usize, SaidKey)>,
    pub(crate) server: ServerFacts,
    pub(crate) marker: Marker,
}

/// The content of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SaidKey {
    /// A holder's token.
    Held(SaidHolder),
    /// The sentinel of a group.
    Shared(Box<SaidSharing>),
    OtherType,
}

/// The holder of a key, or of a sharer's entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SaidHolder {
    pub(crate) fingerprint: u64,
    /// `None` if it never expires.
    pub(crate) remaining: Option<Duration>,
    pub(crate) is_ours: bool,
}

/// The sharers of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SaidSharing {
    pub(crate) group: Group,
    /// The remaining life of the key itself.
    pub(crate) remaining: Option<Duration>,
    /// The remaining life of a waiting writer's mark, if there is one.
    pub(crate) wanted: Option<Duration>,
    /// `None` if the user may not read them.
    pub(crate) sharers: Option<Vec<SaidHolder>>,
}
