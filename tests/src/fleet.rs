//! Several servers that are started and inspected together.

use std::ops::Deref;
use std::panic::resume_unwind;
use std::thread;

use crate::options::ServerOptions;
use crate::server::RedisServer;

/// Starts `n` independent masters at the same time: real servers or embedded ones, see
/// [`Servers`](crate::Servers).
#[track_caller]
pub fn masters(n: usize) -> Fleet {
    Fleet::start(n, |options, _| options)
}

/// Starts one master in the same way as [`masters`].
#[track_caller]
pub fn master() -> RedisServer {
    ServerOptions::new().start_any()
}

/// Several servers. It dereferences to a slice.
#[derive(Debug)]
pub struct Fleet {
    servers: Vec<RedisServer>,
}

impl Fleet {
    /// Starts `n` servers at the same time, each with the options that `configure` makes of the
    /// defaults and its index.
    #[track_caller]
    pub fn start(n: usize, configure: impl Fn(ServerOptions, usize) -> ServerOptions) -> Self {
        let options: Vec<_> = (0..n).map(|index| configure(ServerOptions::new(), index)).collect();
        let servers = thread::scope(|scope| {
            let starting: Vec<_> =
                options.iter().map(|options| scope.spawn(|| options.start_any())).collect();
            starting
                .into_iter()
                .map(|server| server.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        Self { servers }
    }

    /// The URL of every server, in order.
    pub fn urls(&self) -> Vec<String> {
        self.iter().map(RedisServer::url).collect()
    }

    /// What each server holds at this key, in order; every server has to answer.
    #[track_caller]
    pub fn get(&self, key: &str) -> Vec<Option<String>> {
        self.iter().map(|server| server.get(key)).collect()
    }

    /// On how many servers this key exists; every server has to answer.
    #[track_caller]
    pub fn holding(&self, key: &str) -> usize {
        self.iter().filter(|server| server.exists(key)).count()
    }
}

impl Deref for Fleet {
    type Target = [RedisServer];

    fn deref(&self) -> &[RedisServer] {
        &self.servers
    }
}
