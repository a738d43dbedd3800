//! Processes that are killed while they wait fairly, on real servers: how long the others wait
//! because of them.

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used)]

use std::process::{Child, Command, Stdio};
use std::thread::scope;
use std::time::{Duration, Instant};

use quorlock_core::front::Locker;
use quorlock_core::{Config, QueuePlace, Resource};
use quorlock_tests::{RedisServer, Transport, Value, eventually};

/// Far longer than any quick operation takes, even on a busy machine.
const SOON: Duration = Duration::from_secs(20);
const JOB: &str = "job";
const PROCESSES: usize = 4;
/// The number of waiters in each process. Each has its own locker, and so its own place in the
/// queue.
const WAITERS_OF_EACH: usize = 25;
/// The variable with the URLs of the masters, for a process of waiters.
const MASTERS: &str = "QUORLOCK_TEST_KILLED_OVER";

/// A process with waiters. Dropping it kills it.
struct Waiters(Child);

impl Waiters {
    fn start(masters: impl Iterator<Item = String>) -> Self {
        let masters: Vec<_> = masters.collect();
        let mut test = Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", "waits_until_this_process_is_killed", "--ignored"]);
        Self(test.env(MASTERS, masters.join(" ")).stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Waiters {
    fn drop(&mut self) {
        // An error means that the process has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn open(urls: impl IntoIterator<Item = impl AsRef<str>>) -> Locker {
    let config = Config::builder(urls).timeout(2 * SOON);
    Transport::named("smol").open(config.build().unwrap())
}

/// How many places there are in a master's queue.
fn places(master: &RedisServer) -> usize {
    let queue = String::from_utf8(Resource::new(JOB).unwrap().queue_key()).unwrap();
    match master.command(&["ZRANGE", &queue, "0", "-1"]) {
        Value::Array(places) => places.len(),
        _ => 0,
    }
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_hundred_fair_waiters_killed_at_once_cost_one_lease_together() {
    let masters: Vec<_> = (0..3).map(|_| RedisServer::start()).collect();
    let urls = || masters.iter().map(RedisServer::url);
    let killed = PROCESSES * WAITERS_OF_EACH;
    let queued = |count: usize| {
        eventually(SOON, "all have their places", || masters.iter().all(|master| places(master) == count));
    };
    // The holder has no place, so all places belong to waiters.
    let holder = open(urls());
    let held = holder.lock(JOB).renew().wait().unwrap();
    let mut processes: Vec<_> = (0..PROCESSES).map(|_| Waiters::start(urls())).collect();
    queued(killed);
    let last = open(urls());
    let stall = scope(|scope| {
        let last = scope.spawn(|| {
            let guard = last.lock(JOB).fair().wait().unwrap();
            (Instant::now(), guard)
        });
        queued(killed + 1);
        for process in &mut processes {
            process.0.kill().unwrap();
        }
        let released = Instant::now();
        held.release().wait().unwrap();
        let (granted, guard) = last.join().unwrap();
        guard.release().wait().unwrap();
        granted.duration_since(released)
    });
    eprintln!("{killed} waiters killed at once cost {} ms", stall.as_millis());
    // If the places expired one after the other, each would cost one lease. On a busy machine all
    // together may cost a few.
    let [lease, most] = [1, 20].map(|leases| leases * QueuePlace::LEASE);
    assert!(stall < most, "{stall:?}, and a lease is {lease:?}");
}

#[test]
#[ignore = "the other half of a_hundred_fair_waiters_killed_at_once_cost_one_lease_together"]
fn waits_until_this_process_is_killed() {
    let urls = std::env::var(MASTERS).unwrap();
    let lockers: Vec<_> = (0..WAITERS_OF_EACH).map(|_| open(urls.split(' '))).collect();
    scope(|scope| {
        for locker in &lockers {
            // This also ends when the test that started this process is gone.
            scope.spawn(|| locker.lock(JOB).fair().wait().map(drop));
        }
    });
}
