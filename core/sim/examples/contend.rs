//! Measures in simulated worlds what contention for one lock costs with several ways of waiting:
//! how long the lock stays idle between two holders, how many requests a turn takes, and whether a
//! client is passed over.

#![allow(clippy::print_stdout, clippy::indexing_slicing)] // A command: its results are its output.

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use quorlock_core::ConfigBuilder;
use quorlock_core::internals::ask_one_first;
use quorlock_sim::{Failure, World};

const HELP: &str = "\
Has clients contend for one lock in simulated worlds. The same numbers come out each time.

Usage: contend [WORLDS]

  WORLDS  how many worlds to run for each line; 3 unless given
";

const HOLD: Duration = Duration::from_millis(1);

/// How a client waits for a lock that it was refused.
struct Way {
    name: &'static str,
    settings: fn(ConfigBuilder) -> ConfigBuilder,
    is_fair: bool,
}

const WAYS: [Way; 6] = [
    Way {
        name: "random delay",
        settings: |config| ask_one_first(config.wake_ups(false), false),
        is_fair: false,
    },
    Way {
        name: "random short delay",
        settings: |config| {
            let (shortest, longest) = (Duration::from_millis(1), Duration::from_millis(5));
            ask_one_first(config.wake_ups(false), false).retry_delay(shortest..=longest)
        },
        is_fair: false,
    },
    Way { name: "random delay, one first", settings: |config| config.wake_ups(false), is_fair: false },
    Way { name: "woken", settings: |config| ask_one_first(config, false), is_fair: false },
    Way { name: "woken, one first", settings: |config| config, is_fair: false },
    Way { name: "fair", settings: |config| config, is_fair: true },
];

/// One client's turn with the lock, in true time.
#[derive(Clone, Copy)]
struct Turn {
    client: usize,
    asked: Duration,
    granted: Duration,
    released: Duration,
}

#[derive(Default)]
struct Sum {
    gaps: Vec<Duration>,
    requests: u64,
    turns: usize,
    passed_over: usize,
    busiest: f64,
}

/// All clients take the same number of turns. Each requests the lock again as soon as it has
/// released it.
fn contend(seed: u64, masters: usize, clients: usize, way: &Way, sum: &mut Sum) -> Result<(), Box<Failure>> {
    let turns = 640 / clients;
    let mut world = World::with_masters(seed, masters).without_timeline();
    let log = Rc::new(RefCell::new(Vec::new()));
    for number in 0..clients {
        let client = world.client_with(way.settings).expect("a configuration");
        let (log, is_fair) = (Rc::clone(&log), way.is_fair);
        world.spawn(&client.clone(), async move {
            for _ in 0..turns {
                let asked = client.true_time();
                let request = client.locker().lock("wanted").timeout(Duration::from_secs(600));
                let request = if is_fair { request.fair() } else { request };
                let guard = request.await.expect("all masters are well");
                let granted = client.true_time();
                client.sleep(HOLD).await;
                log.borrow_mut().push(Turn { client: number, asked, granted, released: client.true_time() });
                // It does not matter whether the answers come in time.
                let _ = guard.release().await;
            }
        });
    }
    let report = world.run(Duration::from_secs(3_600))?;
    let mut log = log.take();
    log.sort_by_key(|turn| turn.granted);
    sum.requests += report.requests;
    sum.turns += log.len();
    sum.gaps.extend(log.iter().zip(&log[1..]).map(|(last, next)| next.granted.saturating_sub(last.released)));
    for turn in &log {
        let is_later = |other: &&Turn| other.asked > turn.asked && other.granted < turn.granted;
        sum.passed_over = sum.passed_over.max(log.iter().filter(is_later).count());
    }
    // Only the first half counts, in which all clients contend: at the end the last client has the
    // lock to itself.
    let early = &log[..log.len() / 2];
    for number in 0..clients {
        let share = early.iter().filter(|turn| turn.client == number).count() as f64 / early.len() as f64;
        sum.busiest = sum.busiest.max(share * clients as f64);
    }
    Ok(())
}

fn main() -> ExitCode {
    let worlds = match std::env::args().nth(1).map(|text| text.parse::<u64>()) {
        None => 3,
        Some(Ok(worlds)) => worlds,
        Some(Err(_)) => {
            print!("{HELP}");
            return ExitCode::from(2);
        }
    };
    println!(
        "| masters | clients | way | idle p50 | idle p99 | requests a turn | passed over | busiest, of fair |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for masters in [3, 5, 7] {
        for clients in [2, 8, 32] {
            for way in &WAYS {
                let mut sum = Sum::default();
                for seed in 1..=worlds {
                    if let Err(failure) = contend(seed, masters, clients, way, &mut sum) {
                        println!("{failure}");
                        return ExitCode::FAILURE;
                    }
                }
                sum.gaps.sort_unstable();
                let millis =
                    |percent: usize| sum.gaps[sum.gaps.len() * percent / 100].as_secs_f64() * 1_000.0;
                println!(
                    "| {masters} | {clients} | {} | {:.2} ms | {:.1} ms | {:.1} | {} | {:.1} |",
                    way.name,
                    millis(50),
                    millis(99),
                    sum.requests as f64 / sum.turns as f64,
                    sum.passed_over,
                    sum.busiest,
                );
            }
        }
    }
    ExitCode::SUCCESS
}
