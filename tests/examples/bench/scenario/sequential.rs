//! One caller, which acquires and releases.

use std::time::Duration;

use quorlock_tests::masters;

use super::{MICROS, Shown, where_they_are};
use crate::client::Limit;
use crate::figures::{Figures, Rounds};
use crate::panel::Panel;
use crate::table::{self, Table};
use crate::trial::{self, from_word};
use crate::usage::Meter;
use crate::ways::{self, PEERS, RAW, SEQUENTIAL, TRANSPORTS};

pub(crate) const NAME: &str = "sequential";
/// Not measured, so that connections, scripts and everything else that happens once does not count.
const WARM_UP: Limit = Limit { pairs: 300, span: Duration::from_millis(300) };
const LIMIT: Limit = Limit { pairs: 2_000, span: Duration::from_millis(600) };
const FEW: [usize; 2] = [3, 5];
const MANY: [usize; 3] = [9, 21, 51];

pub(crate) fn measure(way: &str, words: &[&str]) -> Figures {
    let addresses = from_word(words.first().expect("masters"));
    let mut client = ways::open(way, &addresses).expect("a way");
    client.sequential(WARM_UP);
    let meter = Meter::start();
    let sequence = client.sequential(LIMIT);
    let (_, busy) = meter.stop();
    let mut figures = Figures::default();
    sequence.tell(&mut figures);
    let pairs = sequence.attempts().max(1) as f64;
    figures.set("busy_per_pair", busy.as_secs_f64() / pairs);
    figures.set("busy_per_master", busy.as_secs_f64() / pairs / addresses.len() as f64);
    figures
}

pub(crate) fn show(rounds: usize) -> Shown {
    let mut shown = Shown::default();
    let few: Vec<&'static str> = SEQUENTIAL.iter().chain(PEERS).copied().collect();
    let many: Vec<&'static str> = [RAW, ways::RAW_SMOL].iter().chain(TRANSPORTS).copied().collect();
    let mut by_count = Vec::new();
    for count in FEW.into_iter().chain(MANY) {
        let is_few = FEW.contains(&count);
        let ways = if is_few { &few } else { &many };
        let masters = masters(count);
        let what = format!("{count} masters");
        let trials = trial::rounds(NAME, &what, ways, rounds, &[where_they_are(&masters)]);
        if is_few {
            shown.tables.push(latencies(&what, ways, &trials));
            let title = format!("One caller, {what}: time of a pair");
            shown.panels.push(Panel::of(title, ways, &trials, "pair_p50"));
        }
        by_count.push((count, trials));
    }
    shown.tables.push(to_own_floor(&by_count));
    shown.tables.push(growth(&many, &by_count));
    shown
}

fn latencies(what: &str, ways: &[&str], trials: &Rounds) -> Table {
    let title = format!("One caller, {what}: µs; least and most in brackets");
    let columns = [
        "way",
        "acquire p50",
        "acquire to raw",
        "acquire p99",
        "release p50",
        "release to raw",
        "pair to raw",
        "client CPU of a pair",
        "CPU to raw",
        "errors",
    ];
    let mut table = Table::new(title, &columns);
    for way in ways {
        let to_raw = |name| table::spread(trials.ratio(way, RAW, name), 1.0);
        table.row([
            (*way).to_owned(),
            table::spread(trials.spread(way, "acquire_p50"), MICROS),
            to_raw("acquire_p50"),
            table::median(trials.spread(way, "acquire_p99"), MICROS),
            table::spread(trials.spread(way, "release_p50"), MICROS),
            to_raw("release_p50"),
            to_raw("pair_p50"),
            table::median(trials.spread(way, "busy_per_pair"), MICROS),
            table::median(trials.ratio(way, RAW, "busy_per_pair"), 1.0),
            trials.faults(way),
        ]);
    }
    table
}

/// The ways whose floor is not `raw`: their runtime watches the sockets.
fn to_own_floor(by_count: &[(usize, Rounds)]) -> Table {
    let pairs = [
        ("smol", ways::RAW_SMOL),
        #[cfg(feature = "tokio")]
        ("tokio-main", ways::RAW_MAIN),
    ];
    let columns = ["way", "floor", "acquire p50", "release p50", "pair p50", "client CPU of a pair"];
    let mut table = Table::new("One caller, to the floor that the runtime's sockets set", &columns);
    for (way, floor) in pairs {
        for (count, trials) in by_count.iter().filter(|(_, trials)| trials.spread(way, "pair_p50").is_some())
        {
            let ratio = |name| table::spread(trials.ratio(way, floor, name), 1.0);
            let ratios = ["acquire_p50", "release_p50", "pair_p50", "busy_per_pair"].map(ratio);
            table.row([format!("{way}, {count} masters"), floor.to_owned()].into_iter().chain(ratios));
        }
    }
    table
}

/// How the time of a pair grows with the number of masters, beside how that of the floor grows.
fn growth(ways: &[&str], by_count: &[(usize, Rounds)]) -> Table {
    let title = "One caller, many masters: time of a pair, and how much more it grows from three masters on than raw's";
    let columns =
        ["way", "pair p50, µs", "to raw", "growth to raw's", "client CPU for each master, µs", "errors"];
    let mut table = Table::new(title, &columns);
    let pair = |trials: &Rounds, way| Some(trials.spread(way, "pair_p50")?.median);
    let first = by_count.first().map(|(_, trials)| trials);
    let growth = |trials, way| Some(pair(trials, way)? / pair(first?, way)?);
    for (count, trials) in by_count {
        for way in ways {
            let relative = growth(trials, way).zip(growth(trials, RAW)).map(|(ours, raw)| ours / raw);
            table.row([
                format!("{way}, {count} masters"),
                table::spread(trials.spread(way, "pair_p50"), MICROS),
                table::spread(trials.ratio(way, RAW, "pair_p50"), 1.0),
                table::figure(relative, 1.0),
                table::median(trials.spread(way, "busy_per_master"), MICROS),
                trials.faults(way),
            ]);
        }
    }
    table
}
