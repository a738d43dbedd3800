//! Prints the table of supervision, one line for each cell. Fails if a cell is not as it must be.
//!
//! `cargo xtask supervision [--seed N --cells N] [--jobs N] [--times N] [WORD ...]`: the whole
//! table, a seeded part of it, or the cells whose names contain each of the words. Each cell is run
//! once unless told otherwise.
// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::print_stdout, clippy::panic)]

use std::process::ExitCode;

#[path = "../tests/command/binary.rs"]
mod binary;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use lexopt::prelude::*;
    use quorlock_tests::results::Results;
    use quorlock_tests::supervision::{Cell, table};

    let (mut seed, mut number, mut at_once, mut times) = (1, usize::MAX, 4, 1);
    let mut words = Vec::<String>::new();
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next().expect("arguments") {
        let option = match argument {
            Value(word) => {
                words.push(word.string().expect("a word"));
                continue;
            }
            Long(option) => option.to_owned(),
            Short(_) => panic!("{}", argument.unexpected()),
        };
        let value = arguments.value().expect("a value");
        match option.as_str() {
            "seed" => seed = value.parse().expect("a seed"),
            "cells" => number = value.parse().expect("a number of cells"),
            "times" => times = value.parse().expect("a number of times"),
            "jobs" => at_once = value.parse().expect("a number of cells at once"),
            _ => panic!("there is no option --{option}"),
        }
    }
    let mut cells = if number == usize::MAX { Cell::all() } else { Cell::sample(seed, number) };
    cells.retain(|cell| words.iter().all(|word| cell.to_string().contains(word.as_str())));
    let cells = cells.repeat(times);
    let faults = table(&cells, binary::quorlock(), at_once, |line| println!("{line}"));
    println!("{} cells, {} at fault", cells.len(), faults.len());
    if !faults.is_empty() {
        return ExitCode::FAILURE;
    }
    // A part of the table is no result.
    if cells.len() < Cell::all().len() {
        return ExitCode::SUCCESS;
    }
    let mut results = Results::new();
    results.figure("cells at fault", 0, "none");
    results.figure("cells", cells.len(), "");
    results.write().expect("the results can be written");
    ExitCode::SUCCESS
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    println!("not run: processes can be followed on Linux only");
    ExitCode::SUCCESS
}
