//! Kills a holder, and measures how soon after the end of its TTL others have its lock. Kills
//! waiters of one queue, and measures how long the waiter behind them is delayed.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use quorlock_core::Resource;
use quorlock_tests::RedisServer;
use quorlock_tests::chaos::history::now;

use super::helper::Helper;
use super::way::{FAIR, PLAIN, Way};

const TTL_MILLIS: u64 = 1_000;
/// Long enough for waiters to have requested the lock, and shorter than the TTL.
const UNTIL_KILLED: Duration = Duration::from_millis(200);

/// A way's waiters in two processes.
pub(crate) struct Waiters<'a> {
    way: &'a Way,
    masters: &'a [RedisServer],
    addresses: &'a [SocketAddr],
    waiters: [Helper; 2],
    /// The time from the end of the TTL until the first waiter had the lock, and until both had had
    /// it.
    pub(crate) first: Vec<Duration>,
    pub(crate) both: Vec<Duration>,
}

impl<'a> Waiters<'a> {
    pub(crate) fn start(way: &'a Way, masters: &'a [RedisServer], addresses: &'a [SocketAddr]) -> Self {
        let waiters = [Helper::start(way, addresses), Helper::start(way, addresses)];
        Self { way, masters, addresses, waiters, first: Vec::new(), both: Vec::new() }
    }

    /// Kills one holder.
    pub(crate) fn round(&mut self) {
        let resource = format!("of-a-holder-{}", self.first.len());
        let mut holder = Helper::start(self.way, self.addresses);
        holder.tell(&format!("hold {resource} {TTL_MILLIS}"));
        holder.granted();
        let end = self.end(&resource);
        for waiter in &mut self.waiters {
            waiter.tell(&format!("pass {resource} {TTL_MILLIS}"));
        }
        thread::sleep(UNTIL_KILLED);
        holder.kill();
        let mut granted = self.waiters.each_mut().map(Helper::granted);
        granted.sort_unstable();
        // Redis reports the remaining life of a key in whole milliseconds, so a grant may seem to
        // come before the end of the key.
        let [first, both] = granted.map(|granted| Duration::from_nanos(granted.saturating_sub(end)));
        self.first.push(first);
        self.both.push(both);
    }

    /// When the key will have expired on a majority.
    fn end(&self, resource: &str) -> u64 {
        let end = |master: &RedisServer| {
            // On a busy machine a minority may have granted nothing; there is no key to wait for.
            let left = u64::try_from(master.pttl(resource)).unwrap_or(0);
            now() + left * 1_000_000
        };
        let mut ends: Vec<u64> = self.masters.iter().map(end).collect();
        ends.sort_unstable();
        ends.get(self.masters.len() / 2).copied().expect("a majority")
    }
}

/// The number of processes of the waiters that are killed at once.
const PROCESSES: usize = 5;
const HELD_MILLIS: u64 = 60_000;

/// Kills this number of fair waiters at once, and releases the lock. Returns the time from the
/// release until the waiter behind them had the lock.
pub(crate) fn stall(masters: &[RedisServer], addresses: &[SocketAddr], waiters: usize) -> Duration {
    let [plain, fair] = [PLAIN, FAIR].map(|name| Way::named(name).expect("a way"));
    let resource = "of-dead-waiters";
    let queued = |count: usize| {
        let is_full = |master| places(master, resource) == count;
        while !masters.iter().all(is_full) {
            thread::sleep(Duration::from_millis(1));
        }
    };
    queued(0);
    // This holder has no place in the queue, so all places belong to waiters.
    let opened = plain.open(addresses);
    let held = opened.lock(resource, Duration::from_millis(HELD_MILLIS));
    let processes = PROCESSES.min(waiters);
    let mut killed: Vec<_> = (0..processes).map(|_| Helper::start(fair, addresses)).collect();
    for process in &mut killed {
        process.tell(&format!("wait {resource} {}", waiters / processes));
    }
    queued(waiters);
    let mut last = Helper::start(fair, addresses);
    last.tell(&format!("pass {resource} {TTL_MILLIS}"));
    queued(waiters + 1);
    killed.iter_mut().for_each(Helper::kill);
    let released = now();
    opened.release(held);
    Duration::from_nanos(last.granted().saturating_sub(released))
}

/// How many places are in a master's queue.
fn places(master: &RedisServer, resource: &str) -> usize {
    let queue = Resource::new(resource).expect("a name").queue_key();
    let queue = String::from_utf8(queue).expect("text");
    let members = master.command(&["ZCARD", &queue]).int().expect("a number");
    // One of them is the largest number.
    usize::try_from(members).expect("a small number").saturating_sub(1)
}
