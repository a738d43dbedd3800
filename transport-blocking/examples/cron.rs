//! Problem: a job must run once although every machine starts it at the same hour.
//!
//! Three machines, here threads with a locker each, try for a lock that is named after the run. One
//! gets it, and runs the job under a lock that is renewed and fenced. The others skip the job. If
//! your only masters are one group with Sentinels, see `cron_sentinel`.
//!
//! Run: `cargo run -p quorlock-blocking --example cron`, on embedded masters.
//!
//! Watch: one machine runs the job, the others say so and end. The key stays for its TTL after the
//! job, for a machine whose clock is a little behind. If the machine with the lock dies, the job of
//! this hour is not run by another one.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use quorlock_blocking::{AcquireError, FencingToken, Locker};
use quorlock_embedded::Masters;

/// Where the reports go. It refuses a report whose fencing token is smaller than an earlier one, so
/// that a machine that was paused writes nothing late.
#[derive(Default)]
struct Archive {
    largest: Option<FencingToken>,
    reports: Vec<String>,
}

impl Archive {
    fn write(&mut self, token: FencingToken, report: String) -> Result<(), &'static str> {
        if self.largest.is_some_and(|largest| token < largest) {
            return Err("the archive has heard from a later holder");
        }
        self.largest = Some(token);
        self.reports.push(report);
        Ok(())
    }
}

/// Whether this machine ran the job.
fn nightly(machine: &str, hour: &str, locker: &Locker, archive: &Mutex<Archive>) -> Result<bool, String> {
    // The name says which run it is, so that the run of the next hour is free at once. If all
    // machines ask in the same millisecond, one of them gets the lock.
    let wanted = locker.try_lock(format!("nightly-report/{hour}"));
    let guard = match wanted.ttl(Duration::from_secs(5)).renew().fenced().wait() {
        Ok(guard) => guard,
        Err(AcquireError::HeldByAnother(_)) => {
            println!("{machine}: another machine runs it, or has run it");
            return Ok(false);
        }
        // It is unknown whether the job runs: an operator should know.
        Err(error) => return Err(format!("{machine}: {error}")),
    };
    let token = guard.fencing_token().ok_or("the fenced lock has no fencing token")?;
    println!("{machine}: runs it, with fencing token {token}");
    // The work; renewal goes on meanwhile.
    thread::sleep(Duration::from_millis(300));
    // What must not happen without the lock: look at the clock first, and let the archive have the
    // last word.
    guard.check().map_err(|cause| format!("{machine}: {cause}"))?;
    let mut archive = archive.lock().unwrap_or_else(PoisonError::into_inner);
    archive.write(token, format!("report of {hour} by {machine}"))?;
    // Not released: the key stays for its TTL, for a machine whose clock is a little behind.
    guard.hand_over().map_err(|cause| format!("{machine}: {cause}"))?;
    Ok(true)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let masters = Masters::start(3)?;
    let archive = Mutex::default();
    let machines = ["ariel", "belinda", "cordelia"];
    let mut lockers = Vec::new();
    for _ in machines {
        lockers.push(quorlock_blocking::open(masters.config()?)?);
    }
    let runs = thread::scope(|scope| {
        let started: Vec<_> = machines
            .iter()
            .zip(&lockers)
            .map(|(machine, locker)| scope.spawn(|| nightly(machine, "03:00", locker, &archive)))
            .collect();
        let ended =
            started.into_iter().map(|machine| machine.join().map_err(|_| "a machine has panicked")?);
        ended.collect::<Result<Vec<_>, String>>()
    })?;
    let archive = archive.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("in the archive: {:?}", archive.reports);
    let is_right = runs.iter().filter(|ran| **ran).count() == 1 && archive.reports.len() == 1;
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
