//! A cluster of three primaries with a replica each.

use std::fmt::Display;
use std::time::Duration;

use super::{info, reply, start_all};
use crate::eventually::{eventually, poll};
use crate::options::ServerOptions;
use crate::server::RedisServer;

const SHARDS: usize = 3;
const NODES: usize = 2 * SHARDS;
const SLOTS: usize = 16_384;
/// The longest wait for anything here. A cluster forms within a second or two, and a failover takes
/// about the same time.
const SOON: Duration = Duration::from_secs(60);

/// A cluster. Dropping it ends it.
///
/// Nodes are identified by index: the first three are primaries at first, and each of the other
/// three is the replica of one of them.
#[derive(Debug)]
pub struct ClusterGroup {
    nodes: Vec<RedisServer>,
    ids: Vec<String>,
}

/// How a replica takes its primary's place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takeover {
    /// The primary waits until the replica has all its data.
    Agreed,
    /// The primary is not asked, but the other primaries vote.
    Forced,
    /// The replica asks no other server.
    Alone,
}

/// A line of `CLUSTER NODES`.
struct Line {
    /// The place of the node.
    node: usize,
    primary: Option<usize>,
    slots: Vec<(u16, u16)>,
}

/// Setup and inspection.
impl ClusterGroup {
    /// How many replicas each primary has.
    pub const REPLICAS: usize = 1;

    /// Starts a cluster, and waits until it is complete.
    #[track_caller]
    pub fn start() -> Self {
        Self::with(|options| options)
    }

    /// The same with options of all nodes.
    #[track_caller]
    pub fn with(configure: impl Fn(ServerOptions) -> ServerOptions) -> Self {
        let options = configure(ServerOptions::new())
            .cluster_node()
            .config("cluster-node-timeout 500")
            .config("cluster-replica-validity-factor 0")
            // The other shards continue while one fails over.
            .config("cluster-require-full-coverage no")
            .config("cluster-allow-replica-migration no");
        let nodes = start_all(vec![options; NODES]);
        let id = |node: &RedisServer| {
            let id = node.command(&["CLUSTER", "MYID"]);
            id.text().expect("a node has a name").to_owned()
        };
        let ids = nodes.iter().map(id).collect();
        let cluster = Self { nodes, ids };
        cluster.form();
        cluster.await_complete();
        cluster
    }

    fn form(&self) {
        let ask = |node: &RedisServer, words: &[&str]| {
            let reply = node.command(words);
            assert!(reply.is_ok(), "{words:?}: {reply:?}");
        };
        for (place, node) in self.nodes.iter().enumerate() {
            ask(node, &["CLUSTER", "SET-CONFIG-EPOCH", &(place + 1).to_string()]);
            if place < SHARDS {
                let slots = place * SLOTS / SHARDS..(place + 1) * SLOTS / SHARDS;
                let slots: Vec<_> = slots.map(|slot| slot.to_string()).collect();
                let words = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str));
                ask(node, &words.collect::<Vec<_>>());
            }
        }
        let first = self.node(0);
        for node in self.nodes.iter().skip(1) {
            ask(first, &["CLUSTER", "MEET", "127.0.0.1", &node.port().to_string()]);
        }
        let knows_all = |node: &RedisServer| {
            let told = reply(node, &["CLUSTER", "INFO"]);
            told.is_some_and(|told| told.text().is_some_and(|text| text.contains("cluster_known_nodes:6")))
        };
        eventually(SOON, "all nodes know each other", || self.nodes.iter().all(knows_all));
        for (replica, id) in self.nodes.iter().skip(SHARDS).zip(&self.ids) {
            // A node learns of another node's slots, and so that it is a primary, only after it
            // knows its name.
            eventually(SOON, "a node becomes a replica", || {
                reply(replica, &["CLUSTER", "REPLICATE", id]).is_some_and(|reply| reply.is_ok())
            });
        }
    }

    /// `host:port,host:port,…`, of all nodes.
    pub fn place(&self) -> impl Display {
        let places: Vec<_> = self.nodes.iter().map(|node| node.address().to_string()).collect();
        places.join(",")
    }

    /// The node at this place, below six.
    #[track_caller]
    pub fn node(&self, place: usize) -> &RedisServer {
        self.nodes.get(place).expect("a node's place")
    }

    /// The slot of a key.
    #[track_caller]
    pub fn slot(&self, key: &str) -> u16 {
        let slot = self.node(0).command(&["CLUSTER", "KEYSLOT", key]).int();
        slot.and_then(|slot| u16::try_from(slot).ok()).expect("a key has a slot")
    }

    /// The owner of a slot, if most nodes agree about it.
    pub fn owner(&self, slot: u16) -> Option<usize> {
        let owns = |line: &Line| line.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot));
        let told = |node: &RedisServer| self.lines(node)?.into_iter().find(owns).map(|line| line.node);
        let told: Vec<_> = self.nodes.iter().filter_map(told).collect();
        let is_agreed = |place: &usize| told.iter().filter(|other| *other == place).count() > NODES / 2;
        told.iter().copied().find(is_agreed)
    }

    /// Waits for another owner of the slot.
    #[track_caller]
    pub fn owner_after(&self, before: usize, slot: u16) -> usize {
        let after = poll(SOON, || self.owner(slot).filter(|owner| *owner != before));
        after.unwrap_or_else(|| panic!("no failover within {SOON:?}:\n{}", self.logs()))
    }

    /// Waits until all nodes run and agree, and each primary has its replica.
    #[track_caller]
    pub fn await_complete(&self) {
        if poll(SOON, || self.is_complete()?.then_some(())).is_none() {
            panic!("not complete within {SOON:?}:\n{}", self.logs());
        }
    }

    fn is_complete(&self) -> Option<bool> {
        let known: Vec<_> = self.nodes.iter().map(|node| self.lines(node)).collect::<Option<_>>()?;
        let roles = |lines: &[Line]| {
            let mut roles: Vec<_> = lines.iter().map(|line| (line.node, line.primary)).collect();
            roles.sort_unstable();
            roles
        };
        let first = roles(known.first()?);
        let is_well = |node: &RedisServer| {
            let told = reply(node, &["CLUSTER", "INFO"]);
            told.is_some_and(|told| told.text().is_some_and(|text| text.contains("cluster_state:ok")))
        };
        let is_attached = |(node, primary): &(usize, Option<usize>)| match primary {
            Some(_) => info(self.node(*node), "master_link_status").as_deref() == Some("up"),
            None => info(self.node(*node), "slave0").is_some_and(|replica| replica.contains("state=online")),
        };
        let primaries = first.iter().filter(|(_, primary)| primary.is_none()).count();
        let is_agreed = known.iter().all(|lines| roles(lines) == first);
        Some(
            primaries == SHARDS
                && is_agreed
                && self.nodes.iter().all(is_well)
                && first.iter().all(is_attached),
        )
    }

    /// What a node knows of all nodes; `None` if it does not answer, or knows of a failure.
    fn lines(&self, node: &RedisServer) -> Option<Vec<Line>> {
        let told = reply(node, &["CLUSTER", "NODES"])?;
        let place = |id: &str| self.ids.iter().position(|other| other == id);
        let line = |line: &str| {
            let words: Vec<_> = line.split(' ').collect();
            let slots = words.iter().skip(8).filter(|slots| !slots.starts_with('['));
            let range = |slots: &&str| {
                let (first, last) = slots.split_once('-').unwrap_or((slots, slots));
                Some((first.parse().ok()?, last.parse().ok()?))
            };
            let node = place(words.first()?)?;
            Some(Line { node, primary: place(words.get(3)?), slots: slots.filter_map(range).collect() })
        };
        told.text()?.lines().map(line).collect()
    }

    /// What all nodes have logged.
    pub fn logs(&self) -> String {
        self.nodes.iter().map(RedisServer::log).collect::<Vec<_>>().join("\n")
    }
}

/// Faults.
impl ClusterGroup {
    /// Makes the replica of a slot's owner replace it, and returns it as soon as most nodes agree.
    /// The owner keeps running.
    #[track_caller]
    pub fn fail_over(&self, slot: u16, how: Takeover) -> usize {
        let owner = self.await_owner(slot);
        let replica = self.replica_of(owner);
        let how: &[&str] = match how {
            Takeover::Agreed => &[],
            Takeover::Forced => &["FORCE"],
            Takeover::Alone => &["TAKEOVER"],
        };
        let words = [&["CLUSTER", "FAILOVER"], how].concat();
        eventually(SOON, "the replica takes over", || {
            // An election may be lost, and is called again.
            reply(self.node(replica), &words);
            poll(Duration::from_secs(3), || (self.owner(slot) == Some(replica)).then_some(())).is_some()
        });
        replica
    }

    /// Moves a slot to another node, key by key. `between` is called before each key is moved, and
    /// before the move ends.
    #[track_caller]
    pub fn move_slot(&self, slot: u16, to: usize, mut between: impl FnMut()) {
        let from = self.await_owner(slot);
        let (number, port) = (slot.to_string(), self.node(to).port().to_string());
        let set = |node: &RedisServer, how: &str, id: usize| {
            let id = self.ids.get(id).expect("a node's place");
            node.command(&["CLUSTER", "SETSLOT", &number, how, id])
        };
        assert!(set(self.node(to), "IMPORTING", from).is_ok());
        assert!(set(self.node(from), "MIGRATING", to).is_ok());
        loop {
            let keys = self.node(from).command(&["CLUSTER", "GETKEYSINSLOT", &number, "10"]);
            let keys: Vec<_> = keys
                .array()
                .unwrap_or_default()
                .iter()
                .filter_map(|key| key.text().map(str::to_owned))
                .collect();
            if keys.is_empty() {
                break;
            }
            for key in keys {
                between();
                // A key that has expired meanwhile is not an error.
                let moved = self.node(from).command(&["MIGRATE", "127.0.0.1", &port, &key, "0", "5000"]);
                assert!(moved.error().is_none(), "{moved:?}");
            }
        }
        between();
        // The new owner is told first, so that the slot always has an owner. It also informs the
        // others.
        let others = self.nodes.iter().enumerate().filter(|(place, _)| *place != to).map(|(_, node)| node);
        for node in std::iter::once(self.node(to)).chain(others) {
            // A replica learns it from its primary.
            set(node, "NODE", to);
        }
        eventually(SOON, "the slot has moved", || self.owner(slot) == Some(to));
    }

    /// Waits for an owner of a slot about which most nodes agree.
    #[track_caller]
    pub fn await_owner(&self, slot: u16) -> usize {
        poll(SOON, || self.owner(slot)).unwrap_or_else(|| panic!("no owner of {slot}:\n{}", self.logs()))
    }

    /// The replica of a primary.
    #[track_caller]
    pub fn replica_of(&self, primary: usize) -> usize {
        let told = |node: &RedisServer| {
            let mut lines = self.lines(node)?.into_iter();
            lines.find(|line| line.primary == Some(primary)).map(|line| line.node)
        };
        let replica = poll(SOON, || self.nodes.iter().find_map(told));
        replica.unwrap_or_else(|| panic!("no replica of {primary}:\n{}", self.logs()))
    }
}
