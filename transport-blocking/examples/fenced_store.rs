//! Problem: a holder stands still past its TTL, another takes over, and then the first one writes.
//! A lock alone cannot prevent that.
//!
//! The store refuses a write whose fencing token is smaller than one that it has seen.
//!
//! Run: `cargo run -p quorlock-blocking --example fenced_store`, on embedded masters, or on those
//! that the command line names.
//!
//! Watch: the second holder has the larger token, and the late write is refused by the store, which
//! asks no clock and no lock.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use quorlock_blocking::{Config, FencingToken, Guard};
use quorlock_embedded::Masters;

/// Remembers the largest fencing token that it has seen. It asks no clock and no lock.
#[derive(Default)]
struct Store {
    largest: Option<FencingToken>,
    value: String,
}

impl Store {
    /// Whether the write was accepted.
    fn write(&mut self, value: &str, token: FencingToken) -> bool {
        if self.largest.is_some_and(|largest| token < largest) {
            println!("  the store refuses {value:?} with {token}");
            return false;
        }
        self.largest = Some(token);
        value.clone_into(&mut self.value);
        println!("  the store takes {value:?} with {token}");
        true
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let named: Vec<_> = std::env::args().skip(1).collect();
    let embedded = if named.is_empty() { Some(Masters::start(3)?) } else { None };
    let config = || match &embedded {
        Some(masters) => masters.config(),
        None => Config::new(&named),
    };
    let first = quorlock_blocking::open(config()?)?;
    let second = quorlock_blocking::open(config()?)?;
    let mut store = Store::default();

    // Nothing renews it, as nothing renews the lock of a process that stands still.
    let ttl = Duration::from_millis(500);
    let held = first.lock("invoice:42").ttl(ttl).fenced().wait()?;
    let token = token_of(&held)?;
    println!("the first holder has {token}");
    let early = store.write("first", token);

    println!("the first holder has looked at its lock ({}) and stands still", validity(&held));
    sleep(2 * ttl);

    let next = second.lock("invoice:42").ttl(10 * ttl).fenced().wait()?;
    let larger = token_of(&next)?;
    println!("the second holder has {larger}");
    let taken_over = store.write("second", larger);

    println!("the first holder goes on where it was; its lock is {}", validity(&held));
    let late = store.write("first, late", token);

    println!("the store holds {:?}", store.value);
    next.release().wait()?;
    let is_right = early && taken_over && !late && larger > token && store.value == "second";
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn token_of(guard: &Guard) -> Result<FencingToken, &'static str> {
    guard.fencing_token().ok_or("the fenced lock has no fencing token")
}

fn validity(guard: &Guard) -> &'static str {
    if guard.is_valid() { "valid" } else { "not valid" }
}
