//! A thousand names at once: for how long a master serves no other client.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use quorlock_tests::{Fleet, Random, RedisServer, Value};

use super::kind::Kind;
use super::worker::open;
use crate::handoff::table;

const NAMES: [usize; 3] = [10, 100, 1_000];
/// By then all masters have executed a request, also those that a quorum did not wait for.
const DONE: Duration = Duration::from_millis(30);

pub(crate) fn main(masters: &Fleet, rounds: usize) {
    let addresses: Vec<_> = masters.iter().map(RedisServer::address).collect();
    let locker = open(&addresses);
    let mut random = Random::new(1);
    table::header(&["longest_ms", "mean_ms", "longest_busy_ms", "mean_busy_ms", "scripts"]);
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
            let mut busy = Vec::new();
            for _ in 0..rounds {
                let before = on_processor(masters);
                let held = kind.take(&locker, "many", &mut random);
                sleep(DONE);
                let between = on_processor(masters);
                held.give_back();
                sleep(DONE);
                let after = on_processor(masters);
                busy.extend(between.iter().zip(before).map(|(end, start)| end - start));
                busy.extend(after.iter().zip(between).map(|(end, start)| end - start));
            }
            for master in masters.iter() {
                all.extend(scripts(&master.command(&["SLOWLOG", "GET", "-1"])));
                master.command(&["CONFIG", "SET", "slowlog-log-slower-than", "-1"]);
            }
            let [longest, mean] =
                longest_and_mean(&all.iter().map(|micros| *micros as f64 / 1e3).collect::<Vec<_>>());
            let [longest_busy, mean_busy] = longest_and_mean(&busy);
            let cells = [longest, mean, longest_busy, mean_busy, all.len().to_string()];
            table::row("M", masters.len(), &kind.to_string(), &cells);
        }
    }
}

fn longest_and_mean(millis: &[f64]) -> [String; 2] {
    let longest = millis.iter().copied().fold(0.0, f64::max);
    let mean = millis.iter().sum::<f64>() / millis.len().max(1) as f64;
    [longest, mean].map(|millis| format!("{millis:.2}"))
}

/// For how many milliseconds each master's main thread has been on a processor.
fn on_processor(masters: &Fleet) -> Vec<f64> {
    let busy = |master: &RedisServer| {
        let all = fs::read_to_string(format!("/proc/{}/schedstat", master.pid()?)).ok()?;
        Some(all.split_whitespace().next()?.parse::<f64>().ok()? / 1e6)
    };
    masters.iter().map(|master| busy(master).unwrap_or(f64::NAN)).collect()
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
