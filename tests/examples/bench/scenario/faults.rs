//! One caller, while a minority of the masters hangs or is dead.

use std::thread;
use std::time::Duration;

use quorlock_tests::{RedisServer, masters};

use super::{MILLIS, Shown};
use crate::client::Limit;
use crate::figures::{Figures, Rounds};
use crate::panel::Panel;
use crate::table::{self, Table};
use crate::trial;
use crate::usage::resident;
use crate::ways::{self, PEERS, RAW, TRANSPORTS};

/// The masters are stopped: their systems accept connections and bytes, but nothing is answered.
pub(crate) const HUNG: &str = "hung";
/// The masters are killed: their ports refuse connections.
pub(crate) const DEAD: &str = "dead";

const WARM_UP: Limit = Limit { pairs: 200, span: Duration::from_millis(200) };
const HEALTHY: Limit = Limit { pairs: 1_500, span: Duration::from_millis(400) };
/// How long is measured while masters are gone: longer than all timeouts. A client that waits for
/// these masters needs some seconds for a few pairs, hence the other limit.
const STRUCK: Limit = Limit { pairs: usize::MAX, span: Duration::from_millis(1_500) };
const STRUCK_PEERS: Limit = Limit { pairs: 5, span: Duration::from_secs(4) };
/// No client needs longer to notice that a master is back.
const UNTIL_BACK: Duration = Duration::from_secs(10);
/// How many masters are gone, and of how many.
const SIZES: [(usize, usize); 2] = [(1, 3), (2, 5)];
const MOST_ROUNDS: usize = 5;

/// Measures one way, on masters that this trial starts itself.
pub(crate) fn measure(name: &str, way: &str, words: &[&str]) -> Figures {
    let numbers: Vec<usize> = words.iter().map(|word| word.parse().expect("a number of masters")).collect();
    let &[gone, count] = numbers.as_slice() else { panic!("how many of how many masters") };
    let masters = masters(count);
    let addresses: Vec<_> = masters.iter().map(RedisServer::address).collect();
    let mut client = ways::open(way, &addresses).expect("a way");
    client.sequential(WARM_UP);
    let mut figures = Figures::default();
    client.sequential(HEALTHY).tell(&mut figures);
    let healthy = figures.get("pair_p50");

    let is_hung = name == HUNG;
    let strike = if is_hung { RedisServer::stop } else { RedisServer::kill };
    let (_, last) = masters.split_at(count - gone);
    let before = resident();
    last.iter().for_each(strike);
    client.leave_out(gone);
    let limit = if is_hung && PEERS.contains(&way) { STRUCK_PEERS } else { STRUCK };
    let mut struck = Figures::default();
    let sequence = client.sequential(limit);
    let grown = resident().saturating_sub(before + sequence.bytes());
    sequence.tell(&mut struck);
    struck.set("grown", grown as f64);
    if let Some((healthy, now)) = healthy.zip(struck.get("pair_p50")) {
        struck.set("healthy", healthy);
        struck.set("to_healthy", now / healthy);
    }
    last.iter().for_each(if is_hung { RedisServer::cont } else { RedisServer::restart });
    if let Some(back) = client.until_all_vote(UNTIL_BACK) {
        struck.set("back", back.as_secs_f64());
    }
    struck
}

pub(crate) fn show(name: &'static str, rounds: usize) -> Shown {
    let mut shown = Shown::default();
    for (gone, count) in SIZES {
        // A client that opens a connection for each command and has no timeout waits forever for a
        // stopped master.
        let peers: Vec<_> = match (name, count) {
            (HUNG, 3) => PEERS.iter().filter(|way| **way == "rslock").collect(),
            (HUNG, _) => Vec::new(),
            _ => PEERS.iter().collect(),
        };
        let ways: Vec<&'static str> = [RAW].iter().chain(TRANSPORTS).chain(peers).copied().collect();
        let what = format!("{gone} of {count} masters {name}");
        let words = [gone.to_string(), count.to_string()];
        let trials = trial::rounds(name, &what, &ways, rounds.min(MOST_ROUNDS), &words);
        shown.tables.push(cost(&what, &ways, &trials));
        shown.panels.push(Panel::of(
            format!("One caller, {what}: time of a pair"),
            &ways,
            &trials,
            "pair_p50",
        ));
        // Gives servers that have just ended time to free their memory.
        thread::sleep(Duration::from_millis(100));
    }
    shown
}

fn cost(what: &str, ways: &[&str], trials: &Rounds) -> Table {
    let title = format!("One caller, {what}: time of a pair in ms; least and most in brackets");
    let columns = [
        "way",
        "healthy p50",
        "p50",
        "to healthy",
        "to raw",
        "p99",
        "longest stall",
        "memory, KiB",
        "votes again after, ms",
        "errors",
    ];
    let mut table = Table::new(title, &columns);
    for way in ways {
        table.row([
            (*way).to_owned(),
            table::median(trials.spread(way, "healthy"), MILLIS),
            table::median(trials.spread(way, "pair_p50"), MILLIS),
            table::spread(trials.spread(way, "to_healthy"), 1.0),
            table::spread(trials.ratio(way, RAW, "pair_p50"), 1.0),
            table::median(trials.spread(way, "pair_p99"), MILLIS),
            table::figure(trials.most(way, "longest"), MILLIS),
            table::figure(trials.most(way, "grown"), 1024.0),
            table::spread(trials.spread(way, "back"), MILLIS),
            trials.faults(way),
        ]);
    }
    table
}
