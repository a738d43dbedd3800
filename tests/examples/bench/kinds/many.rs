//! A thousand names at once: for how long a master serves no other client.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use quorlock_tests::{Fleet, Random, RedisServer, Summary, Value};

use super::kind::Kind;
use super::worker::open;
use crate::record::Record;

const NAMES: [usize; 3] = [10, 100, 1_000];
/// By then all masters have executed a request, also those that a quorum did not wait for.
const DONE: Duration = Duration::from_millis(30);
/// A median of fewer requests says little.
const PAIRS_IN_A_ROUND: usize = 10;

pub(crate) fn main(record: &mut Record, masters: &Fleet, rounds: usize) {
    let addresses: Vec<_> = masters.iter().map(RedisServer::address).collect();
    let locker = open(&addresses);
    let mut random = Random::new(1);
    record.header(&["p50_ms", "max_ms", "busy_p50_ms", "busy_p99_ms", "busy_max_ms", "scripts"]);
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
            for _ in 0..rounds * PAIRS_IN_A_ROUND {
                let before = on_processor(masters);
                let held = kind.take(&locker, "many", &mut random);
                sleep(DONE);
                let between = on_processor(masters);
                held.give_back();
                sleep(DONE);
                let after = on_processor(masters);
                busy.extend(between.iter().zip(before).map(|(end, start)| *end - start));
                busy.extend(after.iter().zip(between).map(|(end, start)| *end - start));
            }
            for master in masters.iter() {
                all.extend(scripts(&master.command(&["SLOWLOG", "GET", "-1"])));
                master.command(&["CONFIG", "SET", "slowlog-log-slower-than", "-1"]);
            }
            let (clock, busy) = (Summary::of(&all), Summary::of(&busy));
            let times = [clock.p50, clock.max, busy.p50, busy.p99, busy.max];
            let mut cells = times.map(|time| format!("{:.2}", time.as_secs_f64() * 1e3)).to_vec();
            cells.push(clock.count.to_string());
            record.row("M", masters.len(), &kind.to_string(), &cells);
        }
    }
}

/// For how long each master's main thread has been on a processor.
fn on_processor(masters: &Fleet) -> Vec<Duration> {
    let busy = |master: &RedisServer| {
        let all = fs::read_to_string(format!("/proc/{}/schedstat", master.pid()?)).ok()?;
        all.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    };
    masters.iter().map(|master| busy(master).expect("Linux counts this for each process")).collect()
}

/// How long each script of a slow log took.
fn scripts(log: &Value) -> Vec<Duration> {
    let entries = log.array().unwrap_or_default();
    let time = |entry: &Value| {
        let [_, _, micros, words, ..] = entry.array()? else { return None };
        let name = words.array()?.first()?.text()?.to_owned();
        let micros = micros.int().and_then(|micros| u64::try_from(micros).ok());
        name.eq_ignore_ascii_case("EVALSHA").then_some(micros?).map(Duration::from_micros)
    };
    entries.iter().filter_map(time).collect()
}
