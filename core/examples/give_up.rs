//! Measures how long it takes when all waiters of one lock give up at the same instant: 20,000 and
//! 80,000 waiters, in turns.

#![allow(clippy::print_stdout)] // A command: its results are its output.

use std::error::Error;
use std::time::{Duration, Instant as Clock};

use quorlock_core::{
    Acquire, Config, Entropy, EntropyFailed, Event, Instant, Machine, Output, Resource, Ttl,
};

/// How many rounds are run with each number of waiters. The figures are their medians.
const ROUNDS: usize = 7;

struct Zeros;

impl Entropy for Zeros {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        bytes.fill(0);
        Ok(())
    }
}

/// Takes the outputs; returns how many callers were told that another holds the lock.
fn drain(machine: &mut Machine<Zeros>) -> usize {
    let mut told = 0;
    loop {
        match machine.poll_output() {
            Output::Event(Event::NotAcquired { .. }) => told += 1,
            Output::Wake(_) => return told,
            _ => {}
        }
    }
}

/// The time in which the waiters give up and all of them are told.
fn give_up(waiters: usize) -> Result<Duration, Box<dyn Error>> {
    let config = Config::new(["redis://a", "redis://b", "redis://c"])?;
    let mut machine = Machine::new(config, Zeros, Instant::ORIGIN);
    let (resource, ttl) = (Resource::new("job")?, Ttl::new(Duration::from_secs(10))?);
    machine.acquire(&Acquire::new(resource.clone(), ttl), Instant::ORIGIN)?;
    let span = Duration::from_secs(1);
    let wanted = Acquire { timeout: Some(span), ..Acquire::new(resource, ttl) };
    for _ in 0..waiters {
        machine.acquire(&wanted, Instant::ORIGIN)?;
    }
    drain(&mut machine);
    let start = Clock::now();
    machine.time_passed(Instant::ORIGIN + span);
    let told = drain(&mut machine);
    let took = start.elapsed();
    if told == waiters { Ok(took) } else { Err(format!("{told} of {waiters} were told").into()) }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        few.push(give_up(20_000)?);
        many.push(give_up(80_000)?);
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times.get(ROUNDS / 2).copied().unwrap_or_default()
    };
    let (few, many) = (median(&mut few), median(&mut many));
    println!("20,000 waiters give up in {few:.1?}, 80,000 in {many:.1?}");
    println!("ratio {:.2}", many.as_secs_f64() / few.as_secs_f64());
    Ok(())
}
