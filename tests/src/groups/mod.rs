//! Servers that replace each other.

mod cluster;
mod sentinel;

pub use cluster::{ClusterGroup, Takeover};
pub use sentinel::SentinelGroup;

use std::thread;
use std::time::Duration;

use quorlock_core::Address;

use crate::client::Value;
use crate::options::ServerOptions;
use crate::server::RedisServer;

/// Pairs of ports: one that servers announce, and the one that clients use instead.
pub type Routes = Vec<(u16, u16)>;

/// Translates the addresses that servers announce, by these routes, for clients of this process.
pub fn leading(routes: Routes) -> impl Fn(&Address) -> Address {
    move |named| match named {
        Address::Tcp { host, port } => {
            let route = routes.iter().find(|(from, _)| from == port);
            Address::Tcp { host: host.clone(), port: route.map_or(*port, |(_, to)| *to) }
        }
        Address::Unix(_) => named.clone(),
    }
}

/// Starts these servers at the same time.
#[track_caller]
fn start_all(options: Vec<ServerOptions>) -> Vec<RedisServer> {
    thread::scope(|scope| {
        let starting: Vec<_> =
            options.into_iter().map(|options| scope.spawn(move || options.start())).collect();
        let joined = starting.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|server| server.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// A server that does not answer within this time counts as stopped.
const PATIENCE: Duration = Duration::from_millis(500);

/// The reply to a command; `None` if the server does not answer.
fn reply(server: &RedisServer, args: &[&str]) -> Option<Value> {
    server.client_within(PATIENCE).and_then(|mut client| client.try_command(args)).ok()
}

/// A field of `INFO replication`, `0` for example of `master_link_status:0`.
fn info(server: &RedisServer, field: &str) -> Option<String> {
    let info = reply(server, &["INFO", "replication"])?;
    let line = info.text()?.lines().find(|line| line.split(':').next() == Some(field))?;
    Some(line.split_once(':')?.1.trim_end().to_owned())
}
