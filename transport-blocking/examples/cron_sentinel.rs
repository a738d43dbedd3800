//! Problem: a job must be done once each night although every machine starts it, and the only
//! masters are one group with Sentinels. A replica that is promoted may not know the lock, and the
//! old primary may still grant locks.
//!
//! `replicas=2` in the URL makes a vote count only if both replicas have confirmed it, and under
//! the restart guard a new primary grants nothing for the longest TTL. The job's archive refuses
//! smaller fencing tokens, and says whether the job is done.
//!
//! Run: with the URL of your group in `QUORLOCK_MASTERS`. In a clone, `cargo xtask on-masters`
//! starts a group whose primary fails over after five seconds, while the job runs.
//!
//! ```sh
//! export QUORLOCK_MASTERS='redis+sentinel://s1:26379,s2:26379/mymaster?replicas=2'
//! cargo run -p quorlock-blocking --example cron_sentinel
//! cargo xtask on-masters --fail-over 5 target/debug/examples/cron_sentinel
//! ```
//!
//! Watch: the first grant takes as long as the restart guard says. If the primary fails over while
//! the job runs, the job either keeps its lock or is told of the loss and writes nothing; then it
//! is done again, by any of the machines, once the new primary grants locks. There is one report.
//! While one replica is away nothing is granted: that is the price of `replicas=`.
#![allow(clippy::print_stdout)]

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use quorlock_blocking::quorlock_core::ConfigBuilder;
use quorlock_blocking::{FencingToken, Locker};

/// How long a lock lives without renewal. It must be longer than a replica needs to follow again
/// after it was away, or each failover ends the job.
const TTL: Duration = Duration::from_secs(2);
const WORK: Duration = Duration::from_secs(4);
const MACHINES: [&str; 3] = ["ariel", "belinda", "cordelia"];

/// Where the reports go. It refuses a report whose fencing token is smaller than an earlier one.
#[derive(Default)]
struct Archive {
    largest: Option<FencingToken>,
    reports: Vec<String>,
}

/// Does the job, or waits until another machine has done it.
fn nightly(machine: &str, locker: &Locker, archive: &Mutex<Archive>) -> Result<(), String> {
    let open = || -> MutexGuard<'_, Archive> { archive.lock().unwrap_or_else(PoisonError::into_inner) };
    loop {
        // All machines wait, because the one that has the lock may lose it with the primary.
        let wanted = locker.lock("nightly-report/2026-01-31").timeout(Duration::from_secs(120));
        let guard = wanted.renew().fenced().wait().map_err(|error| format!("{machine}: {error}"))?;
        if !open().reports.is_empty() {
            println!("{machine}: the report is there");
            // An error means that the lock ends with its TTL.
            let _ = guard.release().wait();
            return Ok(());
        }
        let token = guard.fencing_token().ok_or("the fenced lock has no fencing token")?;
        println!("{machine}: runs the job, with fencing token {token}");
        // The work, in small steps: each looks whether the lock is still ours.
        let end = Instant::now() + WORK;
        let mut checked = guard.check();
        while checked.is_ok() && Instant::now() < end {
            thread::sleep(Duration::from_millis(50));
            checked = guard.check();
        }
        if let Err(cause) = checked {
            println!("{machine}: stops without a report: {cause}");
            continue;
        }
        let mut archive = open();
        if archive.largest.is_some_and(|largest| token < largest) {
            println!("{machine}: the archive has heard from a later holder");
            continue;
        }
        archive.largest = Some(token);
        archive.reports.push(format!("report by {machine}"));
        drop(archive);
        let _ = guard.release().wait();
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let archive = Mutex::default();
    let mut lockers = Vec::new();
    for name in MACHINES {
        let config = ConfigBuilder::from_env(env::var_os)?.ttl(TTL).restart_guard(TTL).build()?;
        lockers.push((name, quorlock_blocking::open(config)?));
    }
    thread::scope(|scope| {
        let started: Vec<_> = lockers
            .iter()
            .map(|(machine, locker)| scope.spawn(|| nightly(machine, locker, &archive)))
            .collect();
        started.into_iter().try_for_each(|machine| machine.join().map_err(|_| "a machine has panicked")?)
    })?;
    let archive = archive.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("in the archive: {:?}", archive.reports);
    Ok(if archive.reports.len() == 1 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
