//! What TLS costs: for one caller, for many at once, and at the opening of a connection.

use std::time::{Duration, Instant};

use quorlock_core::{Config, MasterState};
use quorlock_tests::{Certificates, Fleet, Summary, masters};
use quorlock_tls::Tls;

use super::{MICROS, MILLIS, Shown, where_they_are};
use crate::client::{Client, Limit};
use crate::figures::{Figures, Rounds};
use crate::table::{self, Table};
use crate::trial::{self, from_word};
use crate::usage::Meter;
use crate::ways;

pub(crate) const NAME: &str = "tls";
const COUNTS: [usize; 2] = [3, 5];
const WORKERS: usize = 64;
const WARM_UP: Limit = Limit { pairs: 300, span: Duration::from_millis(300) };
const LIMIT: Limit = Limit { pairs: 2_000, span: Duration::from_millis(600) };
const SPAN: Duration = Duration::from_millis(700);
/// How many openings are measured. With 100 of them, the 99th percentile shows only the slowest
/// one.
const HANDSHAKES: usize = 100;
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// Each transport, plain and encrypted.
const PAIRS: &[[&str; 2]] = &[
    ["blocking", "blocking-tls"],
    ["smol", "smol-tls"],
    #[cfg(feature = "tokio")]
    ["tokio", "tokio-tls"],
];

/// The way whose openings are measured.
const OPENS: &str = "blocking-tls";

pub(crate) fn measure(way: &str, words: &[&str]) -> Figures {
    let &[plain, encrypted] = words else { panic!("masters, and masters that speak TLS") };
    let transport = way.strip_suffix("-tls");
    let urls: Vec<_> = match transport {
        None => from_word(plain).iter().map(|address| format!("redis://{address}")).collect(),
        Some(_) => {
            let root = Certificates::shared().root();
            let url = |address| format!("rediss://{address}?cacert={}", root.display());
            from_word(encrypted).into_iter().map(url).collect()
        }
    };
    let mut client = ways::ours_at(transport.unwrap_or(way), urls.iter().cloned()).expect("a way");
    client.sequential(WARM_UP);
    let meter = Meter::start();
    let sequence = client.sequential(LIMIT);
    let (_, busy) = meter.stop();
    let mut figures = Figures::default();
    sequence.tell(&mut figures);
    let parts = (sequence.attempts().max(1) * urls.len()) as f64;
    figures.set("busy_per_master", busy.as_secs_f64() / parts);
    let errors = figures.get("errors").unwrap_or_default();
    client.in_flight(WORKERS, SPAN / 3);
    client.in_flight(WORKERS, SPAN).tell(&mut figures);
    figures.set("errors", errors + figures.get("errors").unwrap_or_default());
    drop(client);
    if way == OPENS {
        let opened = Summary::of(&handshakes(urls.first().expect("a master")));
        figures.set("handshake_p50", opened.p50.as_secs_f64());
        figures.set("handshake_p99", opened.p99.as_secs_f64());
    }
    figures
}

/// The times from the opening of a locker until its only master votes: connection, handshake and
/// greeting. Each locker has its own store of TLS sessions, so each handshake is a full one.
fn handshakes(url: &str) -> Vec<Duration> {
    let opened = |_| {
        let tls = Tls::builder().root_file(Certificates::shared().root()).build().expect("an issuer");
        let config = Config::builder([url]).tls(tls).build().expect("usable masters");
        let start = Instant::now();
        let locker = quorlock_blocking::open(config).expect("a poll and a thread are left");
        while !matches!(locker.masters().first(), Some((_, MasterState::Ready { .. }))) {
            assert!(start.elapsed() < HANDSHAKE_WITHIN, "{:?}", locker.masters());
            std::thread::sleep(Duration::from_micros(50));
        }
        start.elapsed()
    };
    (0..HANDSHAKES).map(opened).collect()
}

pub(crate) fn show(rounds: usize) -> Shown {
    let mut shown = Shown::default();
    for count in COUNTS {
        let plain = masters(count);
        let encrypted = Fleet::start(count, |options, _| options.tls(Certificates::shared(), "no"));
        let ways: Vec<&'static str> = PAIRS.iter().flatten().copied().collect();
        let words = [where_they_are(&plain), where_they_are(&encrypted)];
        let trials = trial::rounds(NAME, &format!("{count} masters"), &ways, rounds, &words);
        shown.tables.push(costs(count, &trials));
        shown.tables.push(openings(count, &trials));
    }
    shown
}

fn costs(count: usize, trials: &Rounds) -> Table {
    let title = format!("Over TLS 1.3, {count} masters: ratios to the same transport without it");
    let columns = [
        "transport",
        "pair p50",
        "pair p50, µs",
        "64 at once: pairs/s",
        "client CPU of 64",
        "client CPU more for each master, µs",
        "errors",
    ];
    let mut table = Table::new(title, &columns);
    for [plain, encrypted] in PAIRS {
        let ratio = |name| table::spread(trials.ratio(encrypted, plain, name), 1.0);
        let busy = |way| Some(trials.spread(way, "busy_per_master")?.median);
        let more = busy(encrypted).zip(busy(plain)).map(|(encrypted, plain)| encrypted - plain);
        table.row([
            (*plain).to_owned(),
            ratio("pair_p50"),
            table::spread(trials.spread(encrypted, "pair_p50"), MICROS),
            ratio("pairs_per_second"),
            ratio("busy_per_pair"),
            table::figure(more, MICROS),
            trials.faults(encrypted),
        ]);
    }
    table
}

fn openings(count: usize, trials: &Rounds) -> Table {
    let title = format!("From the opening of a locker until its master votes, ms; {count} masters beside it");
    let mut table = Table::new(title, &["p50", "p99"]);
    let figures = ["handshake_p50", "handshake_p99"];
    table.row(figures.map(|name| table::spread(trials.spread(OPENS, name), MILLIS)));
    table
}
