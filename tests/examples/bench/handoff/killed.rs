//! Kills a holder, and measures how soon after the end of its TTL others have its lock. Kills
//! waiters, and measures how long the waiter behind them is delayed.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use quorlock_core::Resource;
use quorlock_tests::chaos::history::now;
use quorlock_tests::{RedisServer, Value};

use super::helper::Helper;
use super::way::Way;

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
const HELD: Duration = Duration::from_secs(60);

/// Some waiters are killed at once, just before a holder releases the lock.
#[derive(Clone, Copy)]
pub(crate) struct Story {
    /// The way of the holder. Only a fair one has had a place in the queue.
    pub(crate) holder: &'static str,
    /// How long it holds the lock, at least.
    pub(crate) hold: Duration,
    pub(crate) killed: usize,
}

/// Returns the time from the release until a waiter behind the killed ones had the lock. `start`
/// starts a waiter's process, and `is_fair` says whether all of them have places in the queue.
pub(crate) fn stall(
    masters: &[RedisServer],
    addresses: &[SocketAddr],
    start: impl Fn() -> Helper,
    is_fair: bool,
    story: Story,
) -> Duration {
    let resource = format!("of-dead-waiters-{}", now());
    let opened = Way::named(story.holder).expect("a way").open(addresses);
    let processes = PROCESSES.min(story.killed);
    let mut killed: Vec<_> = (0..processes).map(|_| start()).collect();
    let mut last = start();
    let held = opened.lock(&resource, HELD);
    let granted = Instant::now();
    let holders: Vec<_> = masters.iter().map(|master| places(master, &resource)).collect();
    let queued = |count: usize| {
        let is_full = |(master, holders): (&RedisServer, &BTreeSet<String>)| {
            places(master, &resource).difference(holders).count() == count
        };
        if is_fair {
            while !masters.iter().zip(&holders).all(is_full) {
                thread::sleep(Duration::from_millis(1));
            }
        } else {
            thread::sleep(UNTIL_KILLED);
        }
    };
    for process in &mut killed {
        process.tell(&format!("wait {resource} {}", story.killed / processes));
    }
    queued(story.killed);
    last.tell(&format!("pass {resource} {TTL_MILLIS}"));
    queued(story.killed + 1);
    thread::sleep(story.hold.saturating_sub(granted.elapsed()));
    killed.iter_mut().for_each(Helper::kill);
    let released = now();
    opened.release(held);
    Duration::from_nanos(last.granted().saturating_sub(released))
}

/// The places in a master's queue, of waiters and of a holder that has waited.
fn places(master: &RedisServer, resource: &str) -> BTreeSet<String> {
    let queue = Resource::new(resource).expect("a name").queue_key();
    let queue = String::from_utf8(queue).expect("text");
    let members = master.command(&["ZRANGE", &queue, "0", "-1"]);
    let members = members.array().expect("a sorted set, or none").iter().filter_map(Value::text);
    // This member has the largest number.
    members.filter(|member| *member != "~").map(str::to_owned).collect()
}
