//! Masters that cost nothing: they answer the greeting like a server, and grant everything after
//! that.

use std::time::Duration;

use quorlock_core::Config;
use quorlock_sim::{Master, Session};

/// What a master answers to the request for a lock, and to its release.
pub(crate) const GRANTED: &[u8] = b"+OK\r\n";
pub(crate) const RELEASED: &[u8] = b":1\r\n";

pub(crate) struct Masters(Vec<(Master, Session)>);

impl Masters {
    pub(crate) fn new(number: usize) -> Self {
        let accept = |identity| {
            let mut master = Master::new(identity);
            let session = master.accept();
            (master, session)
        };
        Self((1..=number as u64).map(accept).collect())
    }

    /// A configuration with these masters. Requests look different if other processes want the same
    /// locks; here there are none.
    pub(crate) fn config(number: usize) -> Config {
        let urls = (0..number).map(|number| format!("redis://master{number}"));
        let config = Config::new(urls);
        config.expect("a configuration")
    }

    /// What this master answers while a connection is being greeted.
    pub(crate) fn greet(&mut self, number: usize, bytes: &[u8]) -> Vec<u8> {
        let mut replies = Vec::new();
        if let Some((master, session)) = self.0.get_mut(number) {
            let _ = master.serve(session, bytes, Duration::ZERO, &mut replies);
        }
        replies
    }
}
