//! A lock over the masters that the command line names, from code that is not async.
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
