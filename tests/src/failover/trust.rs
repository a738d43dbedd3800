//! What a client relies on at a failover.

use std::fmt::Display;

use crate::groups::{ClusterGroup, SentinelGroup};
use crate::proxy::FaultProxy;
use crate::tls::{self, url_by, url_of};

/// What clients rely on when a master fails over. All of them use the restart guard. Each kind of
/// trust has its own database, because the guard's marker differs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Trust {
    /// `replicas=K`: votes that all replicas have confirmed.
    Confirmed,
    /// The same through a proxy that confirms for the replicas: only the scripts check them.
    Unconfirmed,
    /// Only the guard.
    GuardAlone,
    /// A majority of several masters, each with votes that its replicas have confirmed.
    Quorum,
}

impl Trust {
    /// All kinds of trust for one master; over TLS no proxy can answer for a server.
    pub fn of_one_master() -> &'static [Self] {
        if tls::is_chosen() {
            &[Self::Confirmed, Self::GuardAlone]
        } else {
            &[Self::Confirmed, Self::Unconfirmed, Self::GuardAlone]
        }
    }

    /// A name for use in the names of clients.
    pub fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Unconfirmed => "unconfirmed",
            Self::GuardAlone => "guard-alone",
            Self::Quorum => "quorum",
        }
    }

    /// Its database.
    pub fn database(self) -> u8 {
        match self {
            Self::Confirmed => 0,
            Self::Unconfirmed => 1,
            Self::GuardAlone => 2,
            Self::Quorum => 3,
        }
    }

    /// The URL of a host name that leads to the primary.
    pub fn url(self, name: impl Display, replicas: usize) -> String {
        let url = url_of(format_args!("{name}/{}", self.database()));
        with(&url, &self.said(replicas))
    }

    /// The URL by which the primary of a group is found.
    pub fn url_by_sentinels(self, group: &SentinelGroup) -> String {
        let url = url_by("+sentinel", format_args!("{}/{}", group.place(), self.database()));
        with(&url, &self.said(SentinelGroup::REPLICAS))
    }

    /// The URL by which the owner of a tag's slot is found. There is one database only.
    pub fn url_in_cluster(self, cluster: &ClusterGroup, tag: &str) -> String {
        let url = with(&url_by("+cluster", cluster.place()), &format!("tag={tag}"));
        with(&url, &self.said(ClusterGroup::REPLICAS))
    }

    /// Whether promises hold at failovers.
    pub(super) fn is_sound(self) -> bool {
        matches!(self, Self::Confirmed | Self::Quorum)
    }

    /// The part of a URL about failovers.
    fn said(self, replicas: usize) -> String {
        match self {
            Self::Confirmed | Self::Unconfirmed | Self::Quorum => format!("replicas={replicas}"),
            Self::GuardAlone => "failover=may-lose-locks".to_owned(),
        }
    }

    /// Prepares the proxy in front of a primary for this kind of trust.
    pub fn prepare(self, proxy: &FaultProxy) {
        if self == Self::Unconfirmed {
            proxy.confirm_for_replicas();
        }
    }
}

/// A URL with one more parameter.
fn with(url: &str, parameter: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}{parameter}")
}
