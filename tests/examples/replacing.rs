//! Dead masters are replaced in the lists of clients that are restarted one after the other. `cargo
//! xtask replacing --help`
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io;
use std::path::Path;
use std::process::ExitCode;

use quorlock_tests::Transport;
use quorlock_tests::chaos::{Program, client};
use quorlock_tests::replacing::{Outcome, Run, Story};
use quorlock_tests::results::Results;

/// The first argument of the processes that this one starts.
const CLIENT: &str = "client";
/// The most failures of a run that are printed.
const SHOWN: usize = 10;

const HELP: &str = "\
replacing [RUNS] [SEED]

First tells how right orders of steps keep one holder, and how each wrong order has two. Then, in each run,
masters of a list of 3 or 5 die under load and are replaced in the right order, while clients with old and new lists
run at once. Half of the clients have fencing tokens. The seed decides what happens.

Exit codes: 0, each wrong order has two holders, and in the right one no lock has two, and none fails but those that
rested on dead masters; else 1, and the histories are kept. Defaults: 10 runs, seed 1.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == CLIENT) {
        client::main(arguments.into_iter().skip(1));
    }
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let numbers: Option<Vec<u64>> = arguments.iter().map(|argument| argument.parse().ok()).collect();
    let (runs, seed) = match numbers.as_deref() {
        Some([]) => (10, 1),
        Some([runs]) => (*runs, 1),
        Some([runs, seed]) => (*runs, *seed),
        _ => {
            eprintln!("replacing: takes RUNS and SEED, two numbers; try --help");
            return ExitCode::from(2);
        }
    };
    match go(runs, seed) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("replacing: {error}");
            ExitCode::FAILURE
        }
    }
}

fn go(runs: u64, seed: u64) -> io::Result<bool> {
    let directory = std::env::temp_dir().join(format!("quorlock-replacing-{seed}-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    println!("seed {seed}, histories in {}", directory.display());
    let program = Program { path: std::env::current_exe()?, arguments: vec![CLIENT.to_owned()] };
    let mut results = Results::new();
    results.servers();
    let mut is_good = stories(&directory, &mut results)?;
    let (mut locks, mut failed) = (0, 0);
    for seed in seed..seed + runs {
        let masters = if seed % 2 == 0 { 5 } else { 3 };
        // Every third run replaces two masters, one after the other.
        let replacements = if seed % 3 == 0 { 2 } else { 1 };
        let history = directory.join(seed.to_string());
        let run = Run { masters, replacements, seed, history, program: program.clone() };
        let outcome = run.go()?;
        println!("seed {seed}, {masters} masters, {replacements} replaced: {outcome}");
        show(&outcome);
        is_good &= outcome.is_good();
        locks += outcome.figures.grants;
        failed += usize::from(!outcome.is_good());
    }
    println!("{runs} runs, {locks} locks: {failed} runs with broken promises or failed locks");
    if is_good {
        std::fs::remove_dir_all(&directory)?;
        results.figure("runs with broken promises or failed locks", failed, "none");
        results.figure("runs", runs, "");
        results.figure("locks", locks, "");
        results.write()?;
    }
    Ok(is_good)
}

/// Tells all stories. Returns whether each showed what it should.
fn stories(directory: &Path, results: &mut Results) -> io::Result<bool> {
    let mut is_good = true;
    for (place, story) in Story::ALL.iter().enumerate() {
        let names = Transport::NAMES;
        let transport = Transport::named(names.get(place % names.len()).copied().unwrap_or("blocking"));
        let told = story.tell(&transport, &directory.join(format!("story-{place}")))?;
        let overlap = format!("{:.2}", told.overlap.as_secs_f64());
        println!("{}: two holders for {overlap} s", story.name());
        let target = if story.is_right() { "0.00" } else { "more than 0" };
        results.figure(&format!("{}: two holders for, s", story.name()), overlap, target);
        let has_two = !told.violations.is_empty();
        is_good &= has_two != story.is_right();
    }
    Ok(is_good)
}

fn show(outcome: &Outcome) {
    outcome.violations.iter().take(SHOWN).for_each(|violation| println!("  {violation}"));
    outcome.unexplained.iter().take(SHOWN).for_each(|failure| println!("  {failure}"));
}
