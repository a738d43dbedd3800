//! Servers that stand in for each other.

mod sentinel;

pub use sentinel::SentinelGroup;

use std::thread;

use crate::client::Value;
use crate::options::ServerOptions;
use crate::server::RedisServer;

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

/// The reply to a command; none where the server does not answer.
fn reply(server: &RedisServer, args: &[&str]) -> Option<Value> {
    server.client().and_then(|mut client| client.try_command(args)).ok()
}

/// A field of `INFO replication`, `0` for example of `master_link_status:0`.
fn info(server: &RedisServer, field: &str) -> Option<String> {
    let info = reply(server, &["INFO", "replication"])?;
    let line = info.text()?.lines().find(|line| line.split(':').next() == Some(field))?;
    Some(line.split_once(':')?.1.trim_end().to_owned())
}
