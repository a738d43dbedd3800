//! Ten thousand locks that one process holds and renews.

use std::time::{Duration, Instant};

use quorlock_core::front::Guard;
use quorlock_tests::{Calls, RedisServer, masters};

use super::{MICROS, MILLIS, Shown};
use crate::figures::{Figures, Rounds};
use crate::ours::Ours;
use crate::raw::Raw;
use crate::table::{self, Table};
use crate::trial;
use crate::usage::{Meter, resident};
use crate::ways::{self, RAW, TRANSPORTS};

pub(crate) const NAME: &str = "held";
const LOCKS: usize = 10_000;
const TTL: Duration = Duration::from_secs(6);
/// The time between two renewals of a lock: a third of its TTL.
const PERIOD: Duration = Duration::from_secs(2);
/// So that renewals are spread over the whole period, the locks are taken in this many steps.
const STEPS: usize = 100;
const SPAN: Duration = Duration::from_secs(20);
const IDLE: Duration = Duration::from_secs(1);
/// How often all guards are checked.
const SAMPLE: Duration = Duration::from_millis(100);
const MOST_ROUNDS: usize = 2;

/// Measures one way, on masters that this trial starts itself.
pub(crate) fn measure(way: &str) -> Figures {
    let masters = masters(3);
    let addresses: Vec<_> = masters.iter().map(RedisServer::address).collect();
    if way == RAW {
        let mut raw = Raw::open(&addresses);
        let before = resident();
        let locks = raw.hold(&addresses, LOCKS, TTL);
        let bytes = resident().saturating_sub(before) as f64 / LOCKS as f64;
        let mut figures = renewals(&masters, || raw.renew(&locks, PERIOD, SPAN));
        figures.set("bytes", bytes);
        return figures;
    }
    let ours = ways::ours(way, &addresses).expect("one of ours");
    acquire(&ours, "warm-up", 100).clear();
    let before = resident();
    ours.idle(IDLE);
    let idle = resident();
    let begin = Instant::now();
    let mut guards = Vec::with_capacity(LOCKS);
    for step in 0..STEPS {
        guards.extend(acquire(&ours, &step.to_string(), LOCKS / STEPS));
        let next = PERIOD.mul_f64((step + 1) as f64 / STEPS as f64);
        ours.idle(next.saturating_sub(begin.elapsed()));
    }
    // Waits until each lock has been renewed.
    ours.idle(PERIOD);
    let held = resident();
    let (mut least, mut most, mut gap) = (TTL, Duration::ZERO, Duration::ZERO);
    let mut figures = renewals(&masters, || {
        let begin = Instant::now();
        while begin.elapsed() < SPAN {
            let slept = Instant::now();
            ours.idle(SAMPLE);
            gap = gap.max(slept.elapsed().saturating_sub(SAMPLE));
            for guard in &guards {
                let remaining = guard.remaining();
                least = least.min(remaining);
                most = most.max(remaining);
            }
        }
    });
    let refused = LOCKS - guards.len();
    let losses: Vec<_> = guards.iter().filter_map(|guard| guard.check().err()).collect();
    if let Some(first) = losses.first() {
        eprintln!(
            "{way}: {refused} locks were refused and {} lost, one of them because {first}",
            losses.len()
        );
    }
    figures.set("errors", (refused + losses.len()) as f64);
    figures.set("idle", idle.saturating_sub(before) as f64);
    figures.set("bytes", held.saturating_sub(idle) as f64 / LOCKS as f64);
    figures.set("later", resident().saturating_sub(held) as f64);
    figures.set("least", least.as_secs_f64() / TTL.as_secs_f64());
    // Right after a renewal the remaining validity is largest. The next renewal is due a third of
    // the TTL later; `late` is how much later it came.
    figures.set("gap", gap.as_secs_f64());
    figures.set("late", most.saturating_sub(PERIOD).saturating_sub(least).as_secs_f64());
    figures
}

/// Takes some locks at once, and returns those that were granted.
fn acquire(ours: &Ours, name: &str, count: usize) -> Vec<Guard> {
    let outcomes = ours.run(count, |number| {
        let request = ours.locker().lock(format!("held-{name}-{number}")).ttl(TTL).renew();
        async move { request.await }
    });
    outcomes.into_iter().flatten().collect()
}

/// The load of this process and of the masters while `meanwhile` runs.
fn renewals(masters: &[RedisServer], mut meanwhile: impl FnMut()) -> Figures {
    let extended = || masters.iter().map(|master| master.calls(Calls::Extension)).sum::<u64>();
    let before = extended();
    let meter = Meter::start();
    meanwhile();
    let (took, busy) = meter.stop();
    let renewals = (extended() - before) as f64 / masters.len() as f64;
    let mut figures = Figures::default();
    figures.set("share", busy.as_secs_f64() / took.as_secs_f64());
    figures.set("per_second", renewals / took.as_secs_f64());
    figures.set("busy", busy.as_secs_f64() / renewals.max(1.0));
    figures
}

pub(crate) fn show(rounds: usize) -> Shown {
    let ways: Vec<&'static str> = [RAW].iter().chain(TRANSPORTS).copied().collect();
    let trials = trial::rounds(NAME, "10,000 locks", &ways, rounds.min(MOST_ROUNDS), &[]);
    Shown { tables: vec![table(&ways, &trials)], panels: Vec::new() }
}

fn table(ways: &[&str], trials: &Rounds) -> Table {
    let columns = [
        "way",
        "memory of a lock, bytes",
        "growth before, in 1 s, KiB",
        "growth in 20 s, KiB",
        "renewals/s",
        "client CPU, % of a core",
        "CPU to raw",
        "CPU of a renewal, µs",
        "least validity left, % of the TTL",
        "latest renewal, ms",
        "longest standstill of the observer, ms",
        "lost or refused",
    ];
    let mut table = Table::new("10,000 locks of 6 s, held and renewed for 20 s on 3 masters", &columns);
    for way in ways {
        table.row([
            (*way).to_owned(),
            table::median(trials.spread(way, "bytes"), 1.0),
            table::median(trials.spread(way, "idle"), 1024.0),
            table::median(trials.spread(way, "later"), 1024.0),
            table::median(trials.spread(way, "per_second"), 1.0),
            table::spread(trials.spread(way, "share"), 0.01),
            table::median(trials.ratio(way, RAW, "busy"), 1.0),
            table::median(trials.spread(way, "busy"), MICROS),
            table::median(trials.spread(way, "least"), 0.01),
            table::figure(trials.most(way, "late"), MILLIS),
            table::figure(trials.most(way, "gap"), MILLIS),
            trials.faults(way),
        ]);
    }
    table
}
