//! What one master reports about itself. Asking changes nothing.

use std::time::{Duration, Instant};

use quorlock_core::{Address, Cause, Endpoint, EvictionPolicy, Fleet, Resource, Security, ServerError, Ttl};

use super::clock::{self, Reading};
use super::encryption::Encryption;
use super::permissions::{self, Need, Permissions};
use crate::asking::{self, Found, Reply, words};

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
    /// The restart guard's marker.
    pub(super) marker: Marker,
    /// Whether it notifies this connection of changes, or why not.
    pub(super) tracking: Result<(), ServerError>,
    pub(super) permissions: Permissions,
    /// Its clock, and round trips.
    pub(super) reading: Reading,
}

/// The facts of INFO.
#[derive(Debug, Default)]
pub(super) struct Info {
    /// `redis`, `valkey` or another name.
    pub(super) kind: Option<String>,
    pub(super) version: Option<String>,
    pub(super) role: Option<String>,
    pub(super) is_cluster: Option<bool>,
    /// New at every start of the server.
    pub(super) run_id: Option<String>,
    /// New at every start of the server and at every promotion.
    pub(super) replication_id: Option<String>,
    pub(super) replicas: Option<u64>,
    /// Whether each change is appended to a file.
    pub(super) appends: Option<bool>,
    /// The limit of its memory in bytes; 0 for none.
    pub(super) max_memory: Option<u64>,
    pub(super) eviction: Option<String>,
}

/// The restart guard's marker.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Marker {
    /// There is none.
    Absent,
    /// It may not be read.
    Unknown,
    Present {
        /// Whether it was written since the last start of the server.
        is_own: bool,
        /// The longest TTL of the clients under the guard.
        longest: Duration,
        /// How many masters they use.
        masters: u32,
    },
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
        marker,
        words(&["TIME"]),
    ])?;
    let [info, append_fsync, save, marker, time] =
        <[Reply; 5]>::try_from(answers).map_err(|_| Cause::UnexpectedReply)?;
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
    let tracking = match master.ask(words(&["CLIENT", "TRACKING", "ON", "NOLOOP"]))? {
        Reply::Error(error) => Err(error),
        _ => Ok(()),
    };
    let replication_id = info.as_ref().and_then(|info| info.replication_id.as_deref());
    Ok(Facts {
        found_at: endpoint.discovery().map(|_| address),
        encryption: master.encryption().as_ref().map(Encryption::of),
        append_fsync: setting(&append_fsync),
        has_snapshots: setting(&save).map(|save| !save.is_empty()),
        marker: Marker::read(&marker, replication_id, clock::since_1970(&time)),
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

impl Info {
    fn read(info: &str) -> Self {
        let field = |name: &str| {
            let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            found.map(|value| value.trim_end().to_owned()).filter(|value| !value.is_empty())
        };
        let number = |name: &str| field(name).and_then(|value| value.parse::<u64>().ok());
        // Valkey and Redict also report the version of Redis that they are compatible with.
        let own = ["valkey", "redict"].into_iter().find(|kind| field(&format!("{kind}_version")).is_some());
        let kind =
            field("server_name").or_else(|| own.map(str::to_owned)).unwrap_or_else(|| "redis".to_owned());
        let version = field(&format!("{kind}_version")).or_else(|| field("redis_version"));
        Self {
            kind: version.is_some().then_some(kind),
            version,
            role: field("role"),
            is_cluster: number("cluster_enabled").map(|enabled| enabled != 0),
            run_id: field("run_id"),
            replication_id: field("master_replid"),
            replicas: number("connected_slaves"),
            appends: number("aof_enabled").map(|enabled| enabled != 0),
            max_memory: number("maxmemory"),
            eviction: field("maxmemory_policy"),
        }
    }
}

impl Marker {
    fn read(marker: &Reply, replication_id: Option<&str>, clock: Option<Duration>) -> Self {
        if *marker == Reply::Null {
            return Self::Absent;
        }
        let read = || {
            let marker = marker.text()?;
            let (clock, replication_id) = (clock?, replication_id?);
            let mut parts = marker.split(' ');
            let id = parts.next()?;
            let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok());
            let (born, _, longest, masters) = (number()?, number()?, number()?, number()?);
            let is_own = id == replication_id && Duration::from_millis(born) <= clock;
            let longest = Duration::from_millis(longest);
            let fleet = Fleet::of_marker(Ttl::new(longest).ok()?, u32::try_from(masters).ok()?);
            Some(Self::Present { is_own, longest, masters: fleet.masters })
        };
        read().unwrap_or(Self::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_counts_only_until_the_restart_of_the_server_that_wrote_it() {
        let read = |marker: &str, id, clock: u64| {
            let marker = Reply::Text(marker.as_bytes().to_vec());
            Marker::read(&marker, id, Some(Duration::from_secs(clock)))
        };
        let marker = "ab12 5000 65000 60000 3";
        let present = |is_own| Marker::Present { is_own, longest: Duration::from_secs(60), masters: 3 };
        assert_eq!(read(marker, Some("ab12"), 25), present(true));
        // From before a restart, or from the future.
        assert_eq!(read(marker, Some("cd34"), 25), present(false));
        assert_eq!(read(marker, Some("ab12"), 4), present(false));
        assert_eq!(read(marker, None, 25), Marker::Unknown);
        for strange in ["", "ab12", "ab12 x y z 3", "ab12 1 1 1"] {
            assert_eq!(read(strange, Some("ab12"), 25), Marker::Unknown);
        }
        assert_eq!(Marker::read(&Reply::Null, Some("ab12"), None), Marker::Absent);
    }

    #[test]
    fn the_name_of_every_kind_of_server_is_read() {
        for (info, kind, version) in [
            ("redis_version:7.0.15\r\n", "redis", "7.0.15"),
            ("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n", "valkey", "8.1.1"),
            ("redict_version:7.3.6\r\nredis_version:7.2.4\r\n", "redict", "7.3.6"),
        ] {
            let info = Info::read(info);
            assert_eq!((info.kind.as_deref(), info.version.as_deref()), (Some(kind), Some(version)));
        }
        let info = Info::read("");
        assert_eq!((info.kind, info.version, info.is_cluster), (None, None, None));
    }
}
