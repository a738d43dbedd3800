//! The scenarios. Each has one part that runs in the process of a trial, and another that makes
//! tables from all trials.

pub(crate) mod faults;
pub(crate) mod held;
pub(crate) mod in_flight;
pub(crate) mod sequential;
pub(crate) mod tls;

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorlock_tests::{RedisServer, master};

use crate::figures::Figures;
use crate::plot::Panel;
use crate::table::Table;
use crate::trial;
use crate::ways::PEERS;

/// The names of all scenarios.
pub(crate) const NAMES: &[&str] =
    &[sequential::NAME, in_flight::NAME, faults::HUNG, faults::DEAD, held::NAME, tls::NAME];

/// The tables of a scenario.
#[derive(Default, Debug)]
pub(crate) struct Shown {
    pub(crate) tables: Vec<Table>,
    pub(crate) panels: Vec<Panel>,
}

/// Measures a scenario, one of [`NAMES`].
pub(crate) fn show(name: &str, rounds: usize) -> Shown {
    match name {
        sequential::NAME => sequential::show(rounds),
        in_flight::NAME => in_flight::show(rounds),
        faults::HUNG => faults::show(faults::HUNG, rounds),
        faults::DEAD => faults::show(faults::DEAD, rounds),
        held::NAME => held::show(rounds),
        tls::NAME => tls::show(rounds),
        other => panic!("no scenario: {other}"),
    }
}

/// Measures one way, in its own process.
pub(crate) fn measure(name: &str, way: &str, words: &[&str]) -> Figures {
    match name {
        sequential::NAME => sequential::measure(way, words),
        in_flight::NAME => in_flight::measure(way, words),
        faults::HUNG | faults::DEAD => faults::measure(name, way, words),
        held::NAME => held::measure(way),
        tls::NAME => tls::measure(way, words),
        other => panic!("no scenario: {other}"),
    }
}

/// The day, the machine, what was measured and this run, in a sentence.
pub(crate) fn circumstances(rounds: usize, took: Duration) -> String {
    let today = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 86_400;
    let versions: String = PEERS.iter().filter_map(|name| version(LOCK_FILE, name)).collect();
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name| move |line: &str| Some(line.strip_prefix(name)?.split_once(':')?.1.trim().to_owned());
    let processor = processor.lines().find_map(field("model name")).unwrap_or_else(|| "unknown".to_owned());
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let system = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let info = master().command(&["INFO", "server"]);
    let info = info.text().unwrap_or_default();
    let server = info.lines().find_map(field("redis_version")).unwrap_or_default();
    format!(
        "{}: {cores} cores of {processor}, Linux {}, redis-server {server}{versions}; {rounds} rounds in {} minutes.",
        date(today),
        system.trim(),
        took.as_secs().div_ceil(60),
    )
}

/// The day that is `days` days after the first of January 1970.
fn date(days: u64) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let is_leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].into_iter();
    let month = MONTHS.into_iter().find(|_| {
        let length = lengths.next().unwrap_or(u64::MAX);
        let is_it = day < length;
        day -= if is_it { 0 } else { length };
        is_it
    });
    format!("{} {} {year}", day + 1, month.unwrap_or_default())
}

/// The version of a crate, of those that this was built with.
fn version(lock_file: &str, name: &str) -> Option<String> {
    let (_, entry) = lock_file.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    Some(format!(", {name} {}", entry.split_once('"')?.0))
}

/// The addresses of these masters, as a word for the process of a trial.
fn where_they_are(masters: &[RedisServer]) -> String {
    trial::to_word(&masters.iter().map(RedisServer::address).collect::<Vec<_>>())
}

const LOCK_FILE: &str = include_str!("../../../../Cargo.lock");
const MICROS: f64 = 1e-6;
const MILLIS: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_since_1970_are_printed_as_dates() {
        assert_eq!([0, 58, 59].map(date), ["1 January 1970", "28 February 1970", "1 March 1970"]);
        assert_eq!([11_016, 20_778].map(date), ["29 February 2000", "21 November 2026"]);
    }

    #[test]
    fn versions_are_those_of_the_lock_file() {
        let file = "[[package]]\nname = \"one\"\nversion = \"1.2.3\"\n";
        assert_eq!(version(file, "one").as_deref(), Some(", one 1.2.3"));
        assert_eq!(version(file, "other"), None);
    }
}
