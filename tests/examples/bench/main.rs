//! Measures Quorlock, other clients and a floor of raw sockets, on real servers that it starts.
//!
//! `cargo xtask bench [ROUNDS] [SCENARIO ...]`; `tests/README.md` says what is
//! measured. The ways take turns in each round, each measurement in its own process, so that
//! any other load of the machine affects all of them, and ratios are taken within a round. The
//! tables are printed at the end, in Markdown.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::panic)]

mod client;
mod figures;
mod handoff;
mod kinds;
mod options;
mod ours;
mod panel;
#[cfg(feature = "peers")]
mod peers;
mod raw;
mod record;
mod scenario;
mod table;
mod targets;
mod trial;
mod usage;
mod ways;

use std::io;
use std::process::ExitCode;
use std::time::Instant;

use quorlock_tests::Servers;

use options::{HELP, Todo};
use record::Record;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some(trial::NAME) => {
            trial::main(arguments);
            return ExitCode::SUCCESS;
        }
        Some(handoff::NAME) if handoff::is_helper(&mut arguments) => return ExitCode::SUCCESS,
        Some(kinds::NAME) if kinds::is_worker(&mut arguments) => return ExitCode::SUCCESS,
        _ => {}
    }
    let todo = match Todo::read(std::env::args_os().skip(1)) {
        Ok(Todo::Help) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(todo) => todo,
        Err(error) => {
            eprintln!("bench: {error}; try --help");
            return ExitCode::from(2);
        }
    };
    if Servers::chosen() != Servers::Real {
        eprintln!("bench: this measures real servers, and there is no redis-server");
        return ExitCode::FAILURE;
    }
    let outcome = match todo {
        Todo::Help => return ExitCode::SUCCESS,
        Todo::Measure { rounds, scenarios } => measure(rounds, &scenarios),
        Todo::HandOffs { rounds, letters, rows } => {
            let mut record = Record::new(rounds);
            handoff::main(rounds, &letters, &rows, &mut record);
            record.keep(letters == handoff::SCENARIOS)
        }
        Todo::Kinds { rounds, letters } => {
            let mut record = Record::new(rounds);
            kinds::main(rounds, &letters, &mut record);
            record.keep(letters == kinds::SCENARIOS)
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: the results cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(rounds: usize, scenarios: &[&str]) -> io::Result<()> {
    let start = Instant::now();
    let (mut tables, mut panels) = (Vec::new(), Vec::new());
    for name in scenarios {
        let shown = scenario::show(name, rounds);
        tables.extend(shown.tables);
        panels.extend(shown.panels);
    }
    let mut record = Record::new(rounds);
    scenario::circumstances(start.elapsed(), &mut record);
    tables.iter().for_each(|table| record.table(table));
    panels.iter().for_each(|panel| record.panel(panel));
    record.keep(scenarios == scenario::NAMES)
}
