//! Many workers at once, each with its own lock.

use std::time::Duration;

use quorlock_tests::masters;

use super::{MICROS, Shown, where_they_are};
use crate::figures::{Figures, Rounds};
use crate::panel::Panel;
use crate::table::{self, Table};
use crate::trial::{self, from_word};
use crate::ways::{self, IN_FLIGHT, PEERS, RAW};

pub(crate) const NAME: &str = "inflight";
const WARM_UP: Duration = Duration::from_millis(250);
const SPAN: Duration = Duration::from_millis(700);
/// How many workers there are on how many masters.
const SIZES: [(usize, &[usize]); 2] = [(3, &[16, 64, 256, 1_024]), (5, &[64, 256])];
/// The only number of workers for other clients.
const PEERS_SIZE: usize = 64;

pub(crate) fn measure(way: &str, words: &[&str]) -> Figures {
    let &[addresses, workers] = words else { panic!("masters and a number of workers") };
    let mut client = ways::open(way, &from_word(addresses)).expect("a way");
    let workers = workers.parse().expect("a number of workers");
    client.in_flight(workers, WARM_UP);
    let mut figures = Figures::default();
    client.in_flight(workers, SPAN).tell(&mut figures);
    figures
}

pub(crate) fn show(rounds: usize) -> Shown {
    let mut shown = Shown::default();
    for (count, sizes) in SIZES {
        let masters = masters(count);
        for workers in sizes {
            let peers = if *workers == PEERS_SIZE { PEERS } else { &[] };
            let ways: Vec<&'static str> = IN_FLIGHT.iter().chain(peers).copied().collect();
            let what = format!("{workers} workers, {count} masters");
            let words = [where_they_are(&masters), workers.to_string()];
            let trials = trial::rounds(NAME, &what, &ways, rounds, &words);
            shown.tables.push(throughput(&what, &ways, &trials));
            let title = format!("{what}: time for each pair");
            shown.panels.push(Panel::of(title, &ways, &trials, "time_per_pair"));
        }
    }
    shown
}

fn throughput(what: &str, ways: &[&str], trials: &Rounds) -> Table {
    let title = format!("{what}; least and most in brackets");
    let columns = ["way", "pairs/s", "to raw", "client CPU of a pair, µs", "CPU to raw", "errors"];
    let mut table = Table::new(title, &columns);
    for way in ways {
        table.row([
            (*way).to_owned(),
            table::spread(trials.spread(way, "pairs_per_second"), 1.0),
            table::spread(trials.ratio(way, RAW, "pairs_per_second"), 1.0),
            table::spread(trials.spread(way, "busy_per_pair"), MICROS),
            table::median(trials.ratio(way, RAW, "busy_per_pair"), 1.0),
            trials.faults(way),
        ]);
    }
    table
}
