//! A primary, its replicas, and three sentinels that watch them.

use std::fmt::Display;
use std::net::SocketAddr;
use std::time::Duration;

use super::{Routes, info, reply, start_all};
use crate::eventually::{eventually, poll};
use crate::options::ServerOptions;
use crate::proxy::{Cut, Direction, FaultProxy};
use crate::server::RedisServer;

const SENTINELS: usize = 3;
/// The longest wait for anything here. A failover takes a second or two; a restarted primary is
/// made a replica some time later.
const SOON: Duration = Duration::from_secs(60);
/// The timing of sentinels, in milliseconds. By default they exchange messages every 2 s, and a
/// server that calls itself the primary is made a replica after four times that.
const PACE: [&str; 4] = ["publish-period", "500", "info-period", "1000"];

/// Three servers under three sentinels. Dropping it ends them.
///
/// Sentinels and replicas reach a server through a proxy, which can cut the server off from them.
/// The primary is the server that two of the sentinels name.
#[derive(Debug)]
pub struct SentinelGroup {
    servers: Vec<RedisServer>,
    ways: Vec<FaultProxy>,
    sentinels: Vec<RedisServer>,
}

/// Setup and inspection.
impl SentinelGroup {
    /// The name by which sentinels know the group.
    pub const NAME: &str = "mymaster";
    /// How many replicas the primary has.
    pub const REPLICAS: usize = 2;

    /// Starts a group, and waits until it is complete.
    #[track_caller]
    pub fn start() -> Self {
        Self::with(|options| options)
    }

    /// The same with options of all servers and sentinels.
    #[track_caller]
    pub fn with(configure: impl Fn(ServerOptions) -> ServerOptions) -> Self {
        let ways: Vec<_> = (0..=Self::REPLICAS).map(|_| FaultProxy::start(NOWHERE)).collect();
        let first = ways.first().map_or(0, FaultProxy::port);
        let server = |(place, way): (usize, &FaultProxy)| {
            let options = ServerOptions::new()
                .config("replica-announce-ip 127.0.0.1")
                .config(&format!("replica-announce-port {}", way.port()));
            configure(match place {
                0 => options,
                _ => options.config(&format!("replicaof 127.0.0.1 {first}")),
            })
        };
        let servers = start_all(ways.iter().enumerate().map(server).collect());
        for (way, server) in ways.iter().zip(&servers) {
            way.set_upstream(server.address());
        }
        let sentinel = configure(
            ServerOptions::new()
                .arg("--sentinel")
                .config(&format!("sentinel monitor {} 127.0.0.1 {first} 2", Self::NAME))
                .config(&format!("sentinel down-after-milliseconds {} 500", Self::NAME))
                .config(&format!("sentinel failover-timeout {} 2000", Self::NAME)),
        );
        let sentinels = start_all(vec![sentinel; SENTINELS]);
        for sentinel in &sentinels {
            // Sentinels before Redis 7.0 do not have these settings, and take longer.
            sentinel.command(&[&["SENTINEL", "DEBUG"], &PACE[..]].concat());
        }
        let group = Self { servers, ways, sentinels };
        group.await_complete();
        group
    }

    /// `host:port,host:port,host:port/mymaster`, of the sentinels.
    pub fn place(&self) -> impl Display {
        let places: Vec<_> = self.sentinels.iter().map(|sentinel| sentinel.address().to_string()).collect();
        format!("{}/{}", places.join(","), Self::NAME)
    }

    /// Routes for clients that bypass the proxies of the servers, so that they reach one that is
    /// cut off.
    pub fn routes(&self) -> Routes {
        self.ways.iter().zip(&self.servers).map(|(way, server)| (way.port(), server.port())).collect()
    }

    /// The server at this place, below three.
    #[track_caller]
    pub fn server(&self, place: usize) -> &RedisServer {
        self.servers.get(place).expect("a server's place")
    }

    /// The sentinels.
    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// The primary, if two sentinels agree about it.
    pub fn primary(&self) -> Option<usize> {
        let told: Vec<_> = self.sentinels.iter().filter_map(|sentinel| self.told_by(sentinel)).collect();
        let is_agreed = |place: &usize| told.iter().filter(|other| *other == place).count() > SENTINELS / 2;
        told.iter().copied().find(is_agreed)
    }

    /// Waits for the primary that two sentinels agree about, and that is not the one before.
    #[track_caller]
    pub fn primary_after(&self, before: usize) -> usize {
        let after = poll(SOON, || self.primary().filter(|primary| *primary != before));
        after.unwrap_or_else(|| panic!("no failover within {SOON:?}:\n{}", self.logs()))
    }

    /// Waits until all servers run and follow the primary, and all sentinels know it and them.
    ///
    /// Returns the place of the primary.
    #[track_caller]
    pub fn await_complete(&self) -> usize {
        poll(SOON, || self.complete())
            .unwrap_or_else(|| panic!("not complete within {SOON:?}:\n{}", self.logs()))
    }

    fn complete(&self) -> Option<usize> {
        let primary = self.primary()?;
        let agreed = self.sentinels.iter().all(|sentinel| {
            self.told_by(sentinel) == Some(primary) && Self::knows_all(sentinel) == Some(true)
        });
        let follows = |(place, server): (usize, &RedisServer)| {
            place == primary || info(server, "master_link_status").as_deref() == Some("up")
        };
        let server = self.servers.get(primary)?;
        let replicas = Self::REPLICAS.to_string();
        let is_confirmed = || {
            // A replica is listed before it has loaded the data that it was sent.
            let mut client = server.client().ok()?;
            client.try_command(&["SET", "probe", "x"]).ok()?;
            client.try_command(&["WAIT", &replicas, "50"]).ok()?.int()
        };
        let is_complete = agreed
            && self.servers.iter().enumerate().all(follows)
            && info(server, "role").as_deref() == Some("master")
            && info(server, "connected_slaves").as_deref() == Some(&replicas)
            && is_confirmed() == i64::try_from(Self::REPLICAS).ok();
        is_complete.then_some(primary)
    }

    fn told_by(&self, sentinel: &RedisServer) -> Option<usize> {
        let told = reply(sentinel, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", Self::NAME])?;
        let port: u16 = told.array()?.get(1)?.text()?.parse().ok()?;
        self.ways.iter().position(|way| way.port() == port)
    }

    /// Whether a sentinel knows all servers and sentinels, and considers the primary healthy.
    fn knows_all(sentinel: &RedisServer) -> Option<bool> {
        let told = reply(sentinel, &["SENTINEL", "MASTER", Self::NAME])?;
        let fields = told.array()?;
        let field = |name: &str| {
            let place = fields.iter().position(|field| field.text() == Some(name))?;
            fields.get(place + 1)?.text()
        };
        let others = (SENTINELS - 1).to_string();
        let is_all = field("flags")? == "master" && field("num-other-sentinels")? == others;
        Some(is_all && field("num-slaves")? == Self::REPLICAS.to_string())
    }

    /// What the sentinels and the servers have logged.
    pub fn logs(&self) -> String {
        self.sentinels.iter().chain(&self.servers).map(RedisServer::log).collect::<Vec<_>>().join("\n")
    }
}

/// Faults.
impl SentinelGroup {
    /// Makes a sentinel promote a replica, and returns as soon as two sentinels agree about
    /// it.
    #[track_caller]
    pub fn fail_over(&self) -> usize {
        let before = self.await_complete();
        let sentinel = self.sentinels.first().expect("there are sentinels");
        // One failover ends before another one begins.
        eventually(SOON, "a sentinel begins a failover", || {
            reply(sentinel, &["SENTINEL", "FAILOVER", Self::NAME]).is_some_and(|reply| reply.is_ok())
        });
        self.primary_after(before)
    }

    /// Holds back what sentinels and replicas send to a server, what they are sent, or both, until
    /// it is healed.
    pub fn cut_off(&self, place: usize, direction: Direction) {
        self.way(place).stall(direction);
    }

    /// Connects a server again. The bytes that were held back arrive.
    pub fn heal(&self, place: usize) {
        self.way(place).heal();
    }

    /// Connects a server again. The bytes that were held back are lost with their connections.
    pub fn heal_anew(&self, place: usize) {
        self.way(place).cut(Cut::Reset);
        self.way(place).heal();
    }

    fn way(&self, place: usize) -> &FaultProxy {
        self.ways.get(place).expect("a server's place")
    }
}

/// Where a proxy leads to while its server has no address yet.
const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);
