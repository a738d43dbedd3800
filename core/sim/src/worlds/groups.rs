//! The groups of a world's servers: a primary with its replicas, and groups among which the slot of
//! a master moves.

use std::collections::BTreeMap;
use std::ops::Range;

use quorlock_core::Address;

use super::clock::TrueTime;
use super::slots::Holding;

/// The tag of all masters in clusters.
pub(super) const TAG: &str = "q0";

/// The prefix of all names of keys there.
const PREFIX: &str = "{q0}";

/// How the groups of a world are made. Without replicas each group is one server.
///
/// A group is a primary with its replicas. A master of the clients' configuration is one group, or
/// in a cluster several, one of which owns its slot. All servers have consecutive numbers: first
/// those of the first master's first group, then those of its next group, and so on.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// How many replicas each primary has,
    pub(super) replicas: usize,
    /// and how many all clients say that it has, if they say so.
    pub(super) declared: Option<u8>,
    /// How many groups each master has: more than one in a cluster.
    shards: usize,
    /// How many groups there are besides, which no client has in its list at first. None in a
    /// cluster.
    pub(super) spares: usize,
    /// Whether scripts check the marker before the replicas.
    pub(super) early_quarantine: bool,
    /// Whether slots also move back before any request for a lock was made at the group that had
    /// them meanwhile.
    pub(super) returns_unasked: bool,
    /// The server of each group that was promoted last, or its first.
    pub(super) named: Vec<usize>,
    /// For each master in a cluster, which group has its slot.
    pub(super) slots: Vec<Holding>,
    /// When the last message between two servers arrives: later ones do not overtake it.
    pub(super) last: BTreeMap<(usize, usize), TrueTime>,
}

impl Groups {
    pub(super) fn new(masters: usize, replicas: usize, declared: Option<u8>) -> Self {
        Self { replicas, declared, ..Self::default() }.of(masters, 1)
    }

    /// Creates groups for this number of masters in the clients' configuration, each with this
    /// number of groups.
    pub(super) fn of(mut self, masters: usize, shards: usize) -> Self {
        self.shards = shards.max(1);
        self.spares = if self.is_cluster() { 0 } else { self.spares };
        let groups = masters * self.shards + self.spares;
        self.named = (0..groups).map(|group| group * (1 + self.replicas)).collect();
        let slots = if self.is_cluster() { masters } else { 0 };
        self.slots = (0..slots).map(|master| Holding::new(master * self.shards)).collect();
        self
    }

    /// The number of masters in the clients' configuration.
    pub(super) fn masters(&self) -> usize {
        (self.named.len() - self.spares) / self.shards
    }

    /// The groups that are masters from the beginning, unless this is a cluster.
    pub(super) fn founders(&self) -> Vec<usize> {
        (0..self.masters()).collect()
    }

    /// Whether a server belongs to a master from the beginning.
    pub(super) fn is_founder(&self, server: usize) -> bool {
        self.master_of(server) < self.masters()
    }

    pub(super) fn servers(&self) -> usize {
        self.named.len() * (1 + self.replicas)
    }

    /// Whether a master is more than one server.
    pub(super) fn have_peers(&self) -> bool {
        self.replicas > 0 || self.is_cluster()
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.shards > 1
    }

    pub(super) fn group_of(&self, server: usize) -> usize {
        server / (1 + self.replicas)
    }

    /// The servers of a group.
    pub(super) fn members(&self, group: usize) -> Range<usize> {
        let first = group * (1 + self.replicas);
        first..first + 1 + self.replicas
    }

    /// The groups of a master.
    pub(super) fn groups_of(&self, master: usize) -> Range<usize> {
        master * self.shards..(master + 1) * self.shards
    }

    /// The master of the clients' configuration to which a server belongs.
    pub(super) fn master_of(&self, server: usize) -> usize {
        self.group_of(server) / self.shards
    }

    /// The servers that belong to it.
    pub(super) fn servers_of(&self, master: usize) -> Range<usize> {
        let groups = self.groups_of(master);
        self.members(groups.start).start..self.members(groups.end).start
    }

    /// The servers that were promoted last in these groups, which new clients are told of. In a
    /// cluster, clients find the server themselves.
    pub(super) fn named(&self, groups: &[usize]) -> Vec<usize> {
        groups.iter().filter_map(|group| self.named.get(*group).copied()).collect()
    }

    /// Whether clients declare all replicas that there are.
    pub(super) fn are_declared(&self) -> bool {
        usize::from(self.declared.unwrap_or_default()) == self.replicas
    }

    /// The URLs of the masters of a client's list.
    pub(super) fn urls(&self, list: &[usize], is_secured: bool) -> Vec<String> {
        let scheme = if is_secured { "rediss" } else { "redis" };
        let masters = 0..self.masters();
        if self.is_cluster() {
            let promise = match self.declared {
                None => "failover=durable".to_owned(),
                Some(declared) => format!("replicas={declared}"),
            };
            let hosts = |master| {
                let firsts = self.groups_of(master).map(|group| host(self.members(group).start));
                firsts.collect::<Vec<_>>().join(",")
            };
            let url = |master| format!("{scheme}+cluster://{}/?tag={TAG}&{promise}", hosts(master));
            return masters.map(url).collect();
        }
        let replicas = match self.declared {
            None => String::new(),
            Some(declared) => format!("?replicas={declared}"),
        };
        let first = |group: &usize| self.members(*group).start;
        list.iter().map(|group| format!("{scheme}://{}{replicas}", host(first(group)))).collect()
    }

    /// The server of a cluster that is reached at this address.
    pub(super) fn server_at(&self, address: &Address) -> Option<usize> {
        let Address::Tcp { host, .. } = address else { return None };
        host.strip_prefix("master")?.parse().ok().filter(|server| *server < self.servers())
    }

    /// The name of a key on the servers.
    pub(super) fn key(&self, name: &[u8]) -> Vec<u8> {
        let prefix = if self.is_cluster() { PREFIX } else { "" };
        [prefix.as_bytes(), name].concat()
    }
}

/// A key's name without the tag. No resource of a world has a name that begins like one.
pub(super) fn untagged(key: &[u8]) -> &[u8] {
    key.strip_prefix(PREFIX.as_bytes()).unwrap_or(key)
}

/// The name of a server in URLs and in timelines.
pub(super) fn host(server: usize) -> String {
    format!("master{server}")
}
