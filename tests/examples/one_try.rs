//! Counts the exit codes of `quorlock run -n` while another client holds the lock, on an idle and
//! on a busy machine. Each run is a new process. Fails unless every run ends with 1.
//!
//! `cargo xtask one-try [RUNS]`, 200 of each unless told otherwise.
// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::print_stdout, clippy::panic)]

use std::process::ExitCode;

use quorlock_tests::one_try::{Busy, Case};

#[path = "../tests/command/binary.rs"]
mod binary;

fn main() -> ExitCode {
    let runs = std::env::args().nth(1).map_or(200, |runs| runs.parse().expect("a number of runs"));
    let quorlock = binary::quorlock();
    let mut all_refused = true;
    for is_busy in [false, true] {
        let _busy = is_busy.then(Busy::start);
        for case in Case::ALL {
            let codes = case.run(quorlock, runs);
            let told: Vec<_> = codes
                .iter()
                .map(|(code, runs)| {
                    let code = code.map_or("a signal".to_owned(), |code| code.to_string());
                    format!("{runs} ended with {code}")
                })
                .collect();
            println!("{}, {}: {}", case.name, if is_busy { "busy" } else { "idle" }, told.join(", "));
            all_refused &= codes.keys().all(|code| *code == Some(1));
        }
    }
    if all_refused { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
