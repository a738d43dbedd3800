//! A thousand names at once: for how long a master serves no other client.

use quorlock_tests::{Fleet, Random, RedisServer, Value};

use super::kind::Kind;
use super::worker::open;
use crate::handoff::table;

const NAMES: [usize; 3] = [10, 100, 1_000];

pub(crate) fn main(masters: &Fleet, rounds: usize) {
    let addresses: Vec<_> = masters.iter().map(RedisServer::address).collect();
    let locker = open(&addresses);
    let mut random = Random::new(1);
    table::header(&["longest_ms", "mean_ms", "scripts"]);
    for names in NAMES {
        for kind in [Kind::Several { names, of: names }, Kind::FencedSeveral { names, of: names }] {
            // The scripts are loaded with the first one.
            kind.take(&locker, "many", &mut random).give_back();
            let mut all = Vec::new();
            for master in masters.iter() {
                master.command(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
                master.command(&["CONFIG", "SET", "slowlog-max-len", "100000"]);
                master.command(&["SLOWLOG", "RESET"]);
            }
            for _ in 0..rounds {
                kind.take(&locker, "many", &mut random).give_back();
            }
            for master in masters.iter() {
                all.extend(scripts(&master.command(&["SLOWLOG", "GET", "-1"])));
                master.command(&["CONFIG", "SET", "slowlog-log-slower-than", "-1"]);
            }
            let longest = all.iter().copied().max().unwrap_or_default();
            let mean = all.iter().sum::<i64>() as f64 / all.len().max(1) as f64;
            let cells =
                [format!("{:.2}", longest as f64 / 1e3), format!("{:.2}", mean / 1e3), all.len().to_string()];
            table::row("M", masters.len(), &kind.to_string(), &cells);
        }
    }
}

/// Microseconds of each script in a slow log.
fn scripts(log: &Value) -> Vec<i64> {
    let entries = log.array().unwrap_or_default();
    let micros = |entry: &Value| {
        let [_, _, micros, words, ..] = entry.array()? else { return None };
        let name = words.array()?.first()?.text()?.to_owned();
        name.eq_ignore_ascii_case("EVALSHA").then(|| micros.int()).flatten()
    };
    entries.iter().filter_map(micros).collect()
}
