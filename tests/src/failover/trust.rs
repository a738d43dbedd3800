//! What a client relies on at a failover.

use std::fmt::Display;

use crate::proxy::FaultProxy;
use crate::tls::{self, url_of};

/// What clients rely on when a master fails over. All of them use the restart guard, each way in a database of its own, for the
/// guard's marker tells them apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Trust {
    /// `replicas=K`: votes that all replicas have confirmed.
    Confirmed,
    /// The same through a proxy that confirms for the replicas: only the scripts look at them.
    Unconfirmed,
    /// Nothing but the guard.
    GuardAlone,
}

impl Trust {
    /// All that there are; over TLS no proxy can speak for a server.
    pub fn all() -> &'static [Self] {
        if tls::is_chosen() {
            &[Self::Confirmed, Self::GuardAlone]
        } else {
            &[Self::Confirmed, Self::Unconfirmed, Self::GuardAlone]
        }
    }

    /// For names of clients.
    pub fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Unconfirmed => "unconfirmed",
            Self::GuardAlone => "guard-alone",
        }
    }

    /// Its database.
    pub fn database(self) -> u8 {
        match self {
            Self::Confirmed => 0,
            Self::Unconfirmed => 1,
            Self::GuardAlone => 2,
        }
    }

    /// The URL of what leads to a primary with this many replicas, as this way has it.
    pub fn url(self, place: impl Display, replicas: usize) -> String {
        let url = url_of(format_args!("{place}/{}", self.database()));
        let separator = if url.contains('?') { '&' } else { '?' };
        match self {
            Self::Confirmed | Self::Unconfirmed => format!("{url}{separator}replicas={replicas}"),
            Self::GuardAlone => url,
        }
    }

    /// Makes a proxy before a primary what this way takes it for.
    pub fn prepare(self, proxy: &FaultProxy) {
        if self == Self::Unconfirmed {
            proxy.confirm_for_replicas();
        }
    }
}
