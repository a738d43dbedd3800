//! Processes that are killed while they wait fairly, on real servers: how long the others wait
//! because of them. And processes that are stopped for a while, which blame no master.

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use quorlock_core::front::Locker;
use quorlock_core::{Config, QueuePlace, Resource};
use quorlock_tests::{RedisServer, Transport, Value, eventually, masters};
use rustix::process::{Pid, Signal, kill_process};

/// Far longer than any quick operation takes, even on a busy machine.
const SOON: Duration = Duration::from_secs(20);
const JOB: &str = "job";
const PROCESSES: usize = 4;
/// The number of waiters in each process. Each has its own locker, and so its own place in the
/// queue.
const WAITERS_OF_EACH: usize = 25;
/// The variables with the URLs of the masters and the name of the transport, for another process.
const MASTERS: &str = "QUORLOCK_TEST_OVER";
const TRANSPORT: &str = "QUORLOCK_TEST_THROUGH";

/// Another process of this test. Dropping it kills it.
struct Other(Child);

impl Other {
    fn start(masters: impl Iterator<Item = String>) -> Self {
        let mut waits = other_half("waits_until_this_process_is_killed", masters);
        Self(waits.stdout(Stdio::null()).spawn().unwrap())
    }
}

/// Another process, which runs a test of this program over these masters.
fn other_half(test: &str, masters: impl Iterator<Item = String>) -> Command {
    let masters: Vec<_> = masters.collect();
    let mut half = Command::new(std::env::current_exe().unwrap());
    half.args(["--exact", test, "--ignored", "--nocapture"]).env(MASTERS, masters.join(" "));
    half
}

impl Drop for Other {
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
    match master.command(&["ZRANGE", &queue, "0", "-2"]) {
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
    let mut processes: Vec<_> = (0..PROCESSES).map(|_| Other::start(urls())).collect();
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

/// Longer than the limit for an answer.
const STOP: Duration = Duration::from_millis(350);
const STOPS: u32 = 8;

fn a_stopped_process_fails_no_request(transport: &str) {
    let masters = masters(3);
    let urls = masters.iter().map(RedisServer::url);
    let mut works = other_half("works_until_its_input_ends", urls);
    works.env(TRANSPORT, transport).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut works = Other(works.spawn().unwrap());
    let pid = Pid::from_child(&works.0);
    for stop in 1..=STOPS {
        // Each stop begins in another phase of the work.
        sleep(Duration::from_millis(60) + stop * Duration::from_micros(137));
        kill_process(pid, Signal::STOP).unwrap();
        sleep(STOP);
        kill_process(pid, Signal::CONT).unwrap();
    }
    drop(works.0.stdin.take());
    let mut told = String::new();
    works.0.stdout.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(told.contains("nothing failed\n"), "{told}");
}

/// After a stop the answers are in the process's sockets, while the time for them is over.
#[test]
fn a_process_that_was_stopped_blames_no_master_on_sockets_that_block() {
    a_stopped_process_fails_no_request("blocking");
}

#[test]
fn a_process_that_was_stopped_blames_no_master_on_smol() {
    a_stopped_process_fails_no_request("smol");
}

#[cfg(feature = "tokio")]
#[test]
fn a_process_that_was_stopped_blames_no_master_on_tokio() {
    a_stopped_process_fails_no_request("tokio");
}

#[test]
#[ignore = "the other half of a_process_that_was_stopped_blames_no_master"]
fn works_until_its_input_ends() {
    let urls = std::env::var(MASTERS).unwrap();
    let config = Config::builder(urls.split(' ')).build().unwrap();
    let transport = Transport::named(&std::env::var(TRANSPORT).unwrap());
    let locker = transport.open(config);
    let failed = scope(|scope| {
        let input = scope.spawn(|| std::io::stdin().read_to_end(&mut Vec::new()));
        let mut failed = Vec::new();
        for turn in 0.. {
            if input.is_finished() {
                break;
            }
            let ttl = Duration::from_secs(60);
            // Nobody else wants it, and it need not be granted at the first attempt.
            let guard = locker.lock(format!("{JOB}:{turn}")).ttl(ttl).wait().unwrap();
            for _ in 0..20 {
                failed.extend(guard.extend(ttl).wait().err().map(|error| error.to_string()));
            }
            failed.extend(guard.release().wait().err().map(|error| error.to_string()));
        }
        failed
    });
    let told = if failed.is_empty() { "nothing failed".to_owned() } else { failed.join("\n") };
    writeln!(std::io::stdout(), "{told}").unwrap();
}
