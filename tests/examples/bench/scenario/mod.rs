//! What is measured. Each scenario has a part that runs in the process of a trial, and one that makes tables of all trials.

pub(crate) mod faults;
pub(crate) mod held;
pub(crate) mod in_flight;
pub(crate) mod sequential;

use std::fs;
use std::time::Duration;

use quorlock_tests::{RedisServer, master};

use crate::figures::Figures;
use crate::plot::Panel;
use crate::table::Table;
use crate::trial;

/// All of them.
pub(crate) const NAMES: &[&str] =
    &[sequential::NAME, in_flight::NAME, faults::HUNG, faults::DEAD, held::NAME];

/// What a scenario has to show.
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
        other => panic!("no scenario: {other}"),
    }
}

/// Measures one way, in a process of its own.
pub(crate) fn measure(name: &str, way: &str, words: &[&str]) -> Figures {
    match name {
        sequential::NAME => sequential::measure(way, words),
        in_flight::NAME => in_flight::measure(way, words),
        faults::HUNG | faults::DEAD => faults::measure(name, way, words),
        held::NAME => held::measure(way),
        other => panic!("no scenario: {other}"),
    }
}

/// The machine, the server and this run, in a sentence.
pub(crate) fn circumstances(rounds: usize, took: Duration) -> String {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name| move |line: &str| Some(line.strip_prefix(name)?.split_once(':')?.1.trim().to_owned());
    let processor = processor.lines().find_map(field("model name")).unwrap_or_else(|| "unknown".to_owned());
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let system = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let info = master().command(&["INFO", "server"]);
    let info = info.text().unwrap_or_default();
    let server = info.lines().find_map(field("redis_version")).unwrap_or_default();
    format!(
        "{cores} cores of {processor}, Linux {}, server {server}; {rounds} rounds, {} minutes.",
        system.trim(),
        took.as_secs().div_ceil(60),
    )
}

/// Where these masters are, as a word for the process of a trial.
fn where_they_are(masters: &[RedisServer]) -> String {
    trial::to_word(&masters.iter().map(RedisServer::address).collect::<Vec<_>>())
}

const MICROS: f64 = 1e-6;
const MILLIS: f64 = 1e-3;
