//! Measures Quorlock, other clients and a floor of raw sockets, on real servers that it starts.
//!
//! `cargo xtask bench [--svg FILE] [ROUNDS] [SCENARIO ...]`; `tests/RESULTS.md` says what is
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
#[cfg(feature = "peers")]
mod peers;
mod plot;
mod raw;
mod scenario;
mod table;
mod trial;
mod usage;
mod ways;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use quorlock_tests::Servers;

use options::{HELP, Todo};

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
    match todo {
        Todo::Measure { rounds, scenarios, svg } => measure(rounds, &scenarios, svg.as_deref()),
        Todo::HandOffs { rounds, letters } => {
            handoff::main(rounds, &letters);
            ExitCode::SUCCESS
        }
        Todo::Kinds { rounds, letters } => {
            kinds::main(rounds, &letters);
            ExitCode::SUCCESS
        }
        Todo::Help => ExitCode::SUCCESS,
    }
}

fn measure(rounds: usize, scenarios: &[&str], svg: Option<&Path>) -> ExitCode {
    let start = Instant::now();
    let (mut tables, mut panels) = (Vec::new(), Vec::new());
    for name in scenarios {
        let shown = scenario::show(name, rounds);
        tables.extend(shown.tables);
        panels.extend(shown.panels);
    }
    println!("{}\n", scenario::circumstances(rounds, start.elapsed()));
    for table in tables {
        println!("{table}");
    }
    match svg.map(|file| (file, fs::write(file, plot::svg(&panels)))) {
        Some((file, Err(error))) => {
            eprintln!("bench: {} cannot be written: {error}", file.display());
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
