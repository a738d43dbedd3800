//! The scenarios. Each has one part that runs in the process of a trial, and another that makes
//! tables from all trials.

pub(crate) mod faults;
pub(crate) mod held;
pub(crate) mod in_flight;
pub(crate) mod sequential;
pub(crate) mod tls;

use std::fs;
use std::time::Duration;

use quorlock_tests::RedisServer;

use crate::figures::Figures;
use crate::panel::Panel;
use crate::record::Record;
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

/// What else was measured, and on what: the processor, the system, and the other clients.
pub(crate) fn circumstances(took: Duration, record: &mut Record) {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |line: &str| Some(line.strip_prefix("model name")?.split_once(':')?.1.trim().to_owned());
    let processor = processor.lines().find_map(field).unwrap_or_else(|| "unknown".to_owned());
    let system = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    record.detail("processor", &processor);
    record.detail("Linux", system.trim());
    record.detail("minutes", &took.as_secs().div_ceil(60).to_string());
    for (name, version) in PEERS.iter().filter_map(|name| Some((name, version(LOCK_FILE, name)?))) {
        record.detail(name, &version);
    }
}

/// The version of a crate, of those that this was built with.
fn version(lock_file: &str, name: &str) -> Option<String> {
    let (_, entry) = lock_file.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    Some(entry.split_once('"')?.0.to_owned())
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
    fn versions_are_those_of_the_lock_file() {
        let file = "[[package]]\nname = \"one\"\nversion = \"1.2.3\"\n";
        assert_eq!(version(file, "one").as_deref(), Some("1.2.3"));
        assert_eq!(version(file, "other"), None);
    }
}
