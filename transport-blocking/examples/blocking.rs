//! Problem: one job at a time, on however many machines, in synchronous code.
//!
//! The smallest program: open a locker, wait for the lock, work, release it.
//!
//! Run: `cargo run -p quorlock-blocking --example blocking redis://a redis://b redis://c`, with the
//! URLs of your masters.
//!
//! Watch: `held for` is the TTL less the time that the lock took, less the drift of the clocks.
//! Start two at once: the second waits until the first has released.
#![allow(clippy::print_stdout)]

use std::time::Duration;

use quorlock_blocking::Config;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let masters: Vec<String> = std::env::args().skip(1).collect();
    let locker = quorlock_blocking::open(Config::new(masters)?)?;

    let guard = locker.lock("invoice:42").ttl(Duration::from_secs(5)).wait()?;
    println!("held for {:?}", guard.remaining());
    guard.release().wait()?;
    println!("released");
    Ok(())
}
