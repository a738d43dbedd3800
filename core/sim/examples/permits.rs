//! Measures in simulated worlds whether the permits of a semaphore are shared out fairly among many
//! clients, for how much of the time they are in use, and how many requests a turn takes.

#![allow(clippy::print_stdout, clippy::indexing_slicing)] // A command: its results are its output.

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use quorlock_sim::{Failure, World};

const HELP: &str = "\
Has clients contend for the permits of one semaphore in simulated worlds. The same numbers come out each time.

Usage: permits [WORLDS]

  WORLDS  how many worlds to run for each line; 3 unless given
";

const HOLD: Duration = Duration::from_millis(2);
/// For how long the clients of a world request permits.
const SPAN: Duration = Duration::from_secs(2);

/// One client's turn with a permit, in true time.
#[derive(Clone, Copy)]
struct Turn {
    asked: Duration,
    granted: Duration,
    released: Duration,
}

#[derive(Default)]
struct Sum {
    requests: u64,
    turns: usize,
    in_use: f64,
    /// The longest wait, as a multiple of the time after which a client with its fair share gets a
    /// permit.
    longest: f64,
    waits: Vec<f64>,
    most_at_once: usize,
}

/// Each client takes a permit, holds it and asks for the next one as soon as it has released.
fn contend(
    seed: u64,
    masters: usize,
    permits: u32,
    clients: usize,
    sum: &mut Sum,
) -> Result<(), Box<Failure>> {
    let mut world = World::with_masters(seed, masters).without_timeline();
    let log = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..clients {
        let client = world.client_with(|config| config).expect("a configuration");
        let log = Rc::clone(&log);
        world.spawn(&client.clone(), async move {
            let semaphore = client.locker().semaphore("wanted", permits).expect("a semaphore");
            while client.true_time() < SPAN {
                let asked = client.true_time();
                let permit = semaphore.acquire().timeout(Duration::from_secs(600)).await;
                let permit = permit.expect("all masters are well");
                let granted = client.true_time();
                client.sleep(HOLD).await;
                log.borrow_mut().push(Turn { asked, granted, released: client.true_time() });
                // It does not matter whether the answers come in time.
                let _ = permit.release().await;
            }
        });
    }
    let report = world.run(Duration::from_secs(3_600))?;
    let log = log.take();
    sum.requests += report.requests;
    sum.turns += log.len();
    let held = |turn: &Turn| turn.released.min(SPAN).saturating_sub(turn.granted);
    let held: Duration = log.iter().map(held).sum();
    sum.in_use += held.as_secs_f64() / (f64::from(permits) * SPAN.as_secs_f64());
    let share = SPAN.as_secs_f64() * clients as f64 / log.len() as f64;
    let waits = log.iter().map(|turn| turn.granted.saturating_sub(turn.asked).as_secs_f64() / share);
    sum.waits.extend(waits);
    sum.longest = sum.waits.iter().copied().fold(sum.longest, f64::max);
    for turn in &log {
        let is_held = |other: &&Turn| other.granted <= turn.granted && turn.granted < other.released;
        sum.most_at_once = sum.most_at_once.max(log.iter().filter(is_held).count());
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
        "| masters | permits | clients | requests a turn | in use | wait p99 | longest | at once | turns |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for masters in [3, 5] {
        for (permits, clients) in [(4, 4), (4, 8), (4, 32), (16, 64)] {
            let mut sum = Sum::default();
            for seed in 1..=worlds {
                if let Err(failure) = contend(seed, masters, permits, clients, &mut sum) {
                    println!("{failure}");
                    return ExitCode::FAILURE;
                }
            }
            sum.waits.sort_by(f64::total_cmp);
            println!(
                "| {masters} | {permits} | {clients} | {:.1} | {:.2} | {:.1} | {:.1} | {} | {} |",
                sum.requests as f64 / sum.turns as f64,
                sum.in_use / worlds as f64,
                sum.waits[sum.waits.len() * 99 / 100],
                sum.longest,
                sum.most_at_once,
                sum.turns,
            );
        }
    }
    ExitCode::SUCCESS
}
