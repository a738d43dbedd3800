//! Problem: a thousand locks at once, on one thread and without an async runtime for the sockets.
//!
//! The futures run on an executor, and `Locker::block_on` has the thread serve the sockets whenever
//! all of them wait.
//!
//! Run: `cargo run -p quorlock-blocking --example many_futures`, on embedded masters.
//!
//! Watch: the thousand locks take far less than a thousand times one lock, because what the futures
//! request goes out in one write for each master.
#![allow(clippy::print_stdout)]

use std::cell::Cell;
use std::error::Error;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use quorlock_embedded::Masters;
use smol::LocalExecutor;

const TASKS: usize = 1_000;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let masters = Masters::start(3)?;
    let locker = quorlock_blocking::open(masters.config()?)?;
    // Any executor will do that runs on the calling thread; nothing here has to be `Send`.
    let executor = LocalExecutor::new();
    let held = Rc::new(Cell::new(0));
    let start = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|number| {
            let (locker, held) = (locker.clone(), Rc::clone(&held));
            executor.spawn(async move {
                let guard = locker.lock(format!("page:{number}")).ttl(Duration::from_secs(20)).await?;
                held.set(held.get() + 1);
                guard.release().await?;
                Ok::<(), Box<dyn Error>>(())
            })
        })
        .collect();
    let all = executor.run(async {
        for task in tasks {
            task.await?;
        }
        Ok::<(), Box<dyn Error>>(())
    });
    locker.block_on(all).ok_or("the transport stopped waiting")??;

    let latency = locker.report().acquisitions.latency;
    println!("{TASKS} locks taken and released by one thread in {:?}", start.elapsed());
    println!(
        "each was held after {:?} on average, {:?} at most",
        latency.mean().unwrap_or_default(),
        latency.longest().unwrap_or_default()
    );
    Ok(if held.get() == TASKS { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
