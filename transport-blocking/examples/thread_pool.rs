//! Problem: a pool of workers takes payments from a queue, and two payments of one account must not
//! meet, in this process or in another. Each reads a balance, thinks, and writes it back, so
//! without a lock some would be lost.
//!
//! The threads share one locker, and lock the account.
//!
//! Run: `cargo run -p quorlock-blocking --example thread_pool`, on embedded masters.
//!
//! Watch: every balance is right. Threads that wait for one account are served in the order in
//! which they came, and payments of other accounts do not wait for them.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use quorlock_blocking::{Locker, RunError};
use quorlock_embedded::Masters;

const WORKERS: usize = 8;
const PAYMENTS: usize = 200;
const ACCOUNTS: [&str; 4] = ["alice", "bob", "carol", "dave"];

/// A store that knows no transactions: each call is safe by itself, and two together are not.
#[derive(Default)]
struct Balances(Mutex<BTreeMap<&'static str, u64>>);

impl Balances {
    fn read(&self, account: &str) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(account).copied().unwrap_or(0)
    }

    fn write(&self, account: &'static str, balance: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(account, balance);
    }
}

fn pay(locker: &Locker, balances: &Balances, account: &'static str) -> Result<(), RunError<Infallible>> {
    // A thread that waits serves the sockets itself, for all of them; there is no thread for each
    // lock. Waiters of this process are served in the order in which they came. A panic in here
    // releases the lock.
    locker.lock(format!("account:{account}")).run_wait(|_| {
        let balance = balances.read(account);
        thread::sleep(Duration::from_micros(200));
        balances.write(account, balance + 1);
        Ok(())
    })
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let masters = Masters::start(3)?;
    let locker = quorlock_blocking::open(masters.config()?)?;
    let balances = Balances::default();
    let (queue, payments) = mpsc::channel();
    for account in ACCOUNTS.iter().cycle().take(PAYMENTS) {
        queue.send(*account)?;
    }
    drop(queue);
    let payments = Mutex::new(payments);
    let next = || payments.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    thread::scope(|scope| {
        let work = || {
            while let Some(account) = next() {
                pay(&locker, &balances, account)?;
            }
            Ok::<_, RunError<Infallible>>(())
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().map_err(|_| "a worker has panicked")?.map_err(|e| e.to_string())
        })
    })?;

    let balances = ACCOUNTS.map(|account| balances.read(account));
    let latency = locker.report().acquisitions.latency;
    println!("{PAYMENTS} payments by {WORKERS} threads; balances: {balances:?}");
    println!(
        "a lock took {:?} on average, {:?} at most",
        latency.mean().unwrap_or_default(),
        latency.longest().unwrap_or_default()
    );
    let is_right = balances.iter().all(|balance| *balance == (PAYMENTS / ACCOUNTS.len()) as u64);
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
