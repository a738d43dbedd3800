//! What one master reports about itself. Asking changes nothing.

use std::fmt;
use std::time::{Duration, Instant};

use quorlock_core::{
    Address, Cause, Endpoint, EvictionPolicy, Fleet, Resource, Security, ServerError, Warning,
};

use super::clock::{self, Reading};
use super::encryption::Encryption;
use super::permissions::{self, Need, Permissions, Use};
use crate::asking::{self, Found, Info, Marker, Reply, words};

/// The facts that one master reported.
#[derive(Debug)]
pub(super) struct Facts {
    /// Its address, if sentinels or a cluster reported it.
    pub(super) found_at: Option<Address>,
    /// How the connection is encrypted, if it is.
    pub(super) encryption: Option<Encryption>,
    /// The answer to INFO; `None` if it is denied.
    pub(super) info: Option<Info>,
    /// When changes are written to the disk: `always` (before the answer), `everysec` or `no`.
    pub(super) append_fsync: Option<String>,
    /// Whether it writes snapshots automatically.
    pub(super) has_snapshots: Option<bool>,
    /// After how many seconds without replicas it changes its replication id; 0 for never.
    pub(super) backlog_ttl: Option<u64>,
    /// The restart guard's marker.
    pub(super) marker: Marker,
    /// Whether it notifies waiters of changes, or why not.
    pub(super) tracking: Result<(), Silence>,
    pub(super) permissions: Permissions,
    /// Its clock, and round trips.
    pub(super) reading: Reading,
}

/// Why a master does not notify waiters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Silence {
    /// It refused to.
    Refused(ServerError),
    /// Clients do not ask this version to.
    OfVersion,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::OfVersion => f.write_str("this version also notifies them of their own requests"),
        }
    }
}

/// The text for a master that does not report its persistence.
pub(super) const NOT_TOLD: &str = "persistence not reported";

impl Facts {
    /// Whether a restarted master still has everything that it acknowledged; `None` if it does not
    /// report that.
    pub(super) fn keeps_data(&self) -> Option<bool> {
        match (self.info.as_ref()?.appends?, self.append_fsync.as_deref()) {
            (false, _) => Some(false),
            (true, Some(fsync)) => Some(fsync == "always"),
            (true, None) => None,
        }
    }

    /// For how long it will not vote for a client whose restart guard has this longest TTL.
    pub(super) fn quarantine(&self, longest: Duration) -> Option<Duration> {
        // Without these nothing is granted, and no marker is written.
        let has_scripts = self.permissions.lacking_for(Use::Locks, false).is_none();
        let is_named = self.info.as_ref().is_some_and(|info| info.replication_id.is_some());
        match &self.marker {
            _ if !has_scripts || !is_named => None,
            Marker::Unknown => None,
            Marker::Present(mark) if mark.is_own => {
                mark.opens.checked_sub(mark.now).filter(|left| !left.is_zero())
            }
            Marker::Absent | Marker::Present(_) => Some(longest),
        }
    }

    /// The policy by which it removes keys when its memory is full, if it removes any.
    pub(super) fn evicts(&self) -> Option<EvictionPolicy> {
        let info = self.info.as_ref()?;
        let policy = EvictionPolicy::named(info.eviction.as_deref()?).unwrap_or(EvictionPolicy::Unknown);
        (info.max_memory? > 0 && policy != EvictionPolicy::NoEviction).then_some(policy)
    }

    /// How it stores its data.
    pub(super) fn persistence(&self) -> String {
        let appends = self.info.as_ref().and_then(|info| info.appends).map(|appends| match self {
            _ if !appends => String::new(),
            Self { append_fsync: Some(fsync), .. } => format!("AOF (appendfsync {fsync})"),
            _ => "AOF (appendfsync not reported)".to_owned(),
        });
        match (appends.as_deref(), self.has_snapshots) {
            (None, _) => NOT_TOLD.to_owned(),
            (Some(""), Some(true)) => "RDB, no AOF".to_owned(),
            (Some(""), Some(false)) => "no persistence".to_owned(),
            (Some(""), None) => "no AOF".to_owned(),
            (Some(appends), Some(true)) => format!("RDB and {appends}"),
            (Some(appends), _) => appends.to_owned(),
        }
    }
}

/// Asks a master. All masters' clocks are compared relative to `origin`, and `ends` is the deadline
/// of everything.
pub(super) fn ask(
    master: &Endpoint,
    security: Option<&dyn Security>,
    resource: &Resource,
    origin: Instant,
    ends: Instant,
) -> Result<Facts, Cause> {
    let endpoint = master;
    let Found { conversation: mut master, address } =
        asking::find(endpoint, security, "quorlock-doctor", ends)?;
    let marker = vec![b"GET".to_vec(), endpoint.key_of(Fleet::MARKER.as_bytes()).into_owned()];
    let answers = master.ask_all(&[
        words(&["INFO"]),
        words(&["CONFIG", "GET", "appendfsync"]),
        words(&["CONFIG", "GET", "save"]),
        words(&["CONFIG", "GET", "repl-backlog-ttl"]),
        marker,
        words(&["TIME"]),
    ])?;
    let [info, append_fsync, save, backlog_ttl, marker, time] =
        <[Reply; 6]>::try_from(answers).map_err(|_| Cause::UnexpectedReply)?;
    if let Reply::Error(error) = info {
        if !matches!(error, ServerError::NoPerm | ServerError::UnknownCommand) {
            return Err(Cause::Server(error));
        }
    }
    let info = info.text().map(|info| Info::read(&info));
    let needs: Vec<Need> = permissions::needs(endpoint, resource);
    let permissions = permissions::look(&mut master, &needs)?;
    let reading = clock::read(&mut master, origin)?;
    // Last, because it changes what this connection receives.
    let version = info.as_ref().and_then(|info| info.version.as_deref());
    let tracking = match master.ask(words(&["CLIENT", "TRACKING", "ON", "NOLOOP"]))? {
        Reply::Error(error) => Err(Silence::Refused(error)),
        _ if version.and_then(Warning::of_version) == Some(Warning::TrackingEchoes) => {
            Err(Silence::OfVersion)
        }
        _ => Ok(()),
    };
    let replication_id = info.as_ref().and_then(|info| info.replication_id.as_deref());
    Ok(Facts {
        found_at: endpoint.discovery().map(|_| address),
        encryption: master.encryption().as_ref().map(Encryption::of),
        append_fsync: setting(&append_fsync),
        has_snapshots: setting(&save).map(|save| !save.is_empty()),
        backlog_ttl: setting(&backlog_ttl).and_then(|seconds| seconds.parse().ok()),
        marker: Marker::read(&marker, replication_id, &time),
        info,
        tracking,
        permissions,
        reading,
    })
}

/// The value in an answer to CONFIG GET.
fn setting(answer: &Reply) -> Option<String> {
    match answer.elements()? {
        [_, value] => value.text(),
        _ => None,
    }
}
