//! Tools for contributors, as `cargo xtask`: an alias in `.cargo/config.toml`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod affected;
mod check;
mod digests;
mod dist;
mod faults;
mod loom;
mod pip;
mod platforms;
mod process;
mod programs;
mod results;
mod tree;
mod words;

use std::error::Error;
use std::process::ExitCode;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const HELP: &str = "\
Tools for contributors.

cargo xtask check [STEP ...]       runs every check that a change must pass, or the named steps
cargo xtask check --list           lists the steps
cargo xtask affected [COMMIT]      lists what can notice a change, and with --run runs it
cargo xtask bench [SCENARIO ...]   measures locks on real servers; bench --help lists the scenarios
cargo xtask changes [--only TEXT]  changes the core in thousands of small ways; a test must fail for each
cargo xtask digests                writes the SHA-1 of each script whose text has changed
cargo xtask dist [PART ...]        makes what users install: a static binary, archives, an image
cargo xtask faults [--only NAME]   applies known faults to a copy; a test must fail for each
cargo xtask loom                   explores all models of hand-written concurrency
cargo xtask platforms [NAME ...]   checks on which platforms the libraries and the command compile
cargo xtask results                lists the last results that are kept, with those that are too old
cargo xtask search [SCENARIO]      searches every state of a scenario, or of --all; without one,
                                   lists them
cargo xtask servers COMMAND        fetches servers of other versions and runs the tests on them
cargo xtask PROGRAM [ARGUMENT ...] runs one of the programs below

affected, bench, changes, dist, faults, platforms, results, search, servers, chaos, failover and
replacing take --help.

Programs:";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["check", steps @ ..] => check::run(steps),
        ["affected", options @ ..] => affected::run(options),
        ["digests", options @ ..] => digests::run(options),
        ["dist", words @ ..] => dist::run(words),
        ["faults", options @ ..] => faults::run(options),
        ["loom", words @ ..] => loom::run(words),
        ["platforms", words @ ..] => platforms::run(words),
        ["results", options @ ..] => results::run(options),
        [] | ["help" | "-h" | "--help"] => {
            println!("{HELP}");
            programs::ALL.iter().for_each(|program| println!("  {:<11} {}", program.name, program.about));
            Ok(())
        }
        [program, arguments @ ..] => programs::run(program, arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
