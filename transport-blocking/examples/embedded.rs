//! Problem: you want to see what a lock does while masters hang and die, on a machine with nothing
//! but Rust.
//!
//! Three embedded masters answer, then one hangs, then another dies, then the first one goes on.
//!
//! Run: `cargo run -p quorlock-blocking --example embedded`
//!
//! Watch: a master that hangs delays no lock; compare the slowest of a hundred locks with and
//! without it. Without a quorum the error says what each master said.
// Indexing is safe: there are three masters, and a hundred durations.
#![allow(clippy::print_stdout, clippy::indexing_slicing)]

use std::time::{Duration, Instant};

use quorlock_blocking::Locker;
use quorlock_embedded::Masters;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let masters = Masters::start(3)?;
    println!("three masters: {}", masters.urls().join(" "));
    let locker = quorlock_blocking::open(masters.config()?)?;
    locks(&locker, "all of them answer")?;

    masters[0].pause();
    locks(&locker, "one of them hangs")?;

    masters[1].stop();
    let error = locker.try_lock("invoice:42").wait().err().ok_or("one of three is no quorum")?;
    println!("one hangs and one is dead: {error}");

    masters[0].resume();
    locks(&locker, "one is dead, and the other goes on")?;
    Ok(())
}

/// Takes the lock and gives it back, a hundred times.
fn locks(locker: &Locker, what: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut took = [Duration::ZERO; 100];
    for took in &mut took {
        let start = Instant::now();
        let guard = locker.lock("invoice:42").wait()?;
        guard.release().wait()?;
        *took = start.elapsed();
    }
    took.sort_unstable();
    println!(
        "{what}: 100 times locked and released, half of them within {:?}, all within {:?}",
        took[49], took[99]
    );
    Ok(())
}
