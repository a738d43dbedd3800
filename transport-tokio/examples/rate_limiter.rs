//! Problem: an external service allows a limited number of calls a second, counted over all
//! machines that call it. A limiter in each process cannot count the calls of the others.
//!
//! A call takes a permit of a semaphore, and `release_after` keeps the permit taken until a second
//! after its grant. So in no second are there more grants than permits, whichever machine asks, and
//! no counter has to be reset.
//!
//! Run: `cargo run -p quorlock-tokio --example rate_limiter`, on embedded masters, or on those that
//! `QUORLOCK_MASTERS` names.
//!
//! Watch: calls come in groups of four, half a second apart, which stands for the second. The limit
//! is on grants: a call that is delayed on its way may arrive together with later ones, so leave a
//! margin below what the service allows. A machine that dies between a grant and `release_after`
//! costs the others one permit until the TTL ends; it never adds a call.
#![allow(clippy::print_stdout)]

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use quorlock_embedded::Masters;
use quorlock_tokio::{AcquireError, Config, Locker, Semaphore};

/// How many calls are allowed in any window.
const CALLS: u32 = 4;
/// Stands for a second: half of one keeps the example short.
const WINDOW: Duration = Duration::from_millis(500);
const MACHINES: [&str; 3] = ["ariel", "belinda", "cordelia"];
/// How many calls each machine makes.
const WANTED: u32 = 4;

/// Waits until one more call is allowed. The TTL must not be shorter than the window.
async fn allowed(limit: &Semaphore) -> Result<(), AcquireError> {
    let permit = limit.acquire().ttl(4 * WINDOW).timeout(Duration::from_secs(60)).await?;
    // The release is sent at once, and not awaited. If it does not arrive, the permit is taken
    // until its TTL ends: it is never free too early.
    drop(permit.release_after(WINDOW));
    Ok(())
}

async fn call(machine: &'static str, locker: Locker, start: Instant) -> Result<(), String> {
    let limit = locker.semaphore("calls/weather-service", CALLS).map_err(|error| error.to_string())?;
    for number in 1..=WANTED {
        allowed(&limit).await.map_err(|error| format!("{machine}: {error}"))?;
        println!("{:>5} ms: {machine}, call {number}", start.elapsed().as_millis());
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let embedded = Masters::start(3)?;
    let start = Instant::now();
    let mut machines = Vec::new();
    for name in MACHINES {
        let config = match env::var_os(Config::MASTERS_VARIABLE) {
            Some(_) => Config::from_env(env::var_os)?,
            None => embedded.config()?,
        };
        machines.push(tokio::spawn(call(name, quorlock_tokio::open(config)?, start)));
    }
    let mut calls = 0;
    for machine in machines {
        machine.await??;
        calls += WANTED;
    }
    // Twelve calls are three windows' worth, and the third window begins two windows after the
    // first call. The clocks of masters may run faster by a hundredth.
    let took = start.elapsed();
    let least = WINDOW * (calls.div_ceil(CALLS) - 1);
    println!("{calls} calls in {took:.1?}, which is no less than {least:.1?}");
    Ok(if took >= least.mul_f64(0.99) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
