//! Problem: machines take jobs from one queue, and the jobs need something scarce, here two
//! graphics cards for the whole fleet. No more jobs may run at once than there are cards, and no
//! two on one card.
//!
//! Each job runs under a permit of a semaphore, and the permit's index is the number of its card. A
//! machine that dies keeps its card until the TTL ends, and no longer.
//!
//! Run: `cargo run -p quorlock-smol --example job_queue`, on embedded masters, or on those that
//! `QUORLOCK_MASTERS` names.
//!
//! Watch: there are three machines, yet never more than two jobs run, each on a card of its own. A
//! job whose permit is lost goes back to the queue, so a job may begin twice but ends once.
#![allow(clippy::print_stdout)]

use std::collections::{BTreeSet, VecDeque};
use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorlock_embedded::Masters;
use quorlock_smol::{Config, Locker, Permit};
use smol::Timer;

const CARDS: u32 = 2;
const JOBS: u32 = 12;
const MACHINES: [&str; 3] = ["ariel", "belinda", "cordelia"];

/// What all machines see: the queue, and for the example which cards are in use.
#[derive(Default)]
struct Shared {
    queue: VecDeque<u32>,
    done: BTreeSet<u32>,
    in_use: BTreeSet<u32>,
    most_at_once: usize,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Works on a job, and returns it if it has to be done again.
async fn work(machine: &str, job: u32, permit: Permit, shared: &Mutex<Shared>) -> Option<u32> {
    let card = permit.index();
    println!("{machine}: job {job} on card {card}");
    {
        let mut shared = lock(shared);
        assert!(shared.in_use.insert(card), "card {card} has one job");
        shared.most_at_once = shared.most_at_once.max(shared.in_use.len());
    }
    Timer::after(Duration::from_millis(60)).await;
    // Check this before anything that must not happen without the card.
    let checked = permit.check();
    {
        let mut shared = lock(shared);
        shared.in_use.remove(&card);
        if checked.is_ok() {
            shared.done.insert(job);
        }
    }
    // An error means that too few masters have answered: the permit ends with its TTL.
    let _ = permit.release().await;
    checked.err().map(|cause| {
        println!("{machine}: job {job} goes back to the queue: {cause}");
        job
    })
}

async fn machine(name: &str, locker: Locker, shared: &Mutex<Shared>) -> Result<(), Box<dyn Error>> {
    let cards = locker.semaphore("graphics-card", CARDS)?;
    loop {
        // Takes a permit before a job: otherwise the job could wait here for a card while another
        // machine has a free one.
        let permit = cards.acquire().ttl(Duration::from_secs(5)).renew().await?;
        let Some(job) = lock(shared).queue.pop_front() else { return Ok(()) };
        let again = work(name, job, permit, shared).await;
        lock(shared).queue.extend(again);
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let embedded = Masters::start(3)?;
    let shared = Mutex::new(Shared { queue: (0..JOBS).collect(), ..Shared::default() });
    let executor = smol::LocalExecutor::new();
    let mut machines = Vec::new();
    for name in MACHINES {
        let config = match env::var_os(Config::MASTERS_VARIABLE) {
            Some(_) => Config::from_env(env::var_os)?,
            None => embedded.config()?,
        };
        machines.push(executor.spawn(machine(name, quorlock_smol::open(config)?, &shared)));
    }
    smol::block_on(executor.run(async {
        for machine in machines {
            machine.await?;
        }
        Ok::<(), Box<dyn Error>>(())
    }))?;
    let shared = lock(&shared);
    println!("{} jobs done, at most {} at once", shared.done.len(), shared.most_at_once);
    let is_right = shared.done.len() == JOBS as usize && shared.most_at_once <= CARDS as usize;
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
