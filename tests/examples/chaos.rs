//! Client processes contend for locks on real servers while masters and clients are killed,
//! stopped, emptied and resynced. `cargo xtask chaos --help`
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use lexopt::{Arg, ValueExt as _};
use quorlock_tests::chaos::{Figures, Program, Run, checker, client, history};
use quorlock_tests::results::Results;

/// The first argument of the processes that this one starts.
const CLIENT: &str = "client";
/// The most violations that are printed.
const SHOWN: usize = 20;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(CLIENT) {
        client::main(arguments);
    }
    match options() {
        Ok(Some(Todo::Run(run))) => go(&run),
        Ok(Some(Todo::Check(file))) => check(&file, None),
        Ok(None) => {
            help();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("chaos: {error}; try --help");
            ExitCode::from(2)
        }
    }
}

enum Todo {
    Run(Run),
    Check(PathBuf),
}

fn options() -> Result<Option<Todo>, lexopt::Error> {
    let (mut seconds, mut seed, mut masters, mut clients, mut guard) = (60, 1, 5, 8, true);
    let mut file = None;
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("seconds") => seconds = parser.value()?.parse()?,
            Arg::Long("seed") => seed = parser.value()?.parse()?,
            Arg::Long("masters") => masters = parser.value()?.parse()?,
            Arg::Long("clients") => clients = parser.value()?.parse()?,
            Arg::Long("no-guard") => guard = false,
            Arg::Long("history") => file = Some(PathBuf::from(parser.value()?)),
            Arg::Long("check") => return Ok(Some(Todo::Check(parser.value()?.into()))),
            Arg::Short('h') | Arg::Long("help") => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    let file = file.unwrap_or_else(|| {
        std::env::temp_dir().join(format!("quorlock-chaos-{seed}-{}.history", std::process::id()))
    });
    if file.exists() {
        return Err(format!("{} is there already", file.display()).into());
    }
    let path = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(Some(Todo::Run(Run {
        span: Duration::from_secs(seconds),
        seed,
        masters,
        clients,
        guard,
        history: file,
        program: Program { path, arguments: vec![CLIENT.to_owned()] },
    })))
}

fn help() {
    println!("chaos [--seconds N] [--seed S] [--masters N] [--clients N] [--no-guard] [--history FILE]");
    println!("chaos --check FILE\n");
    println!(
        "Makes client processes contend for locks on real servers while masters and clients are killed, stopped,"
    );
    println!("emptied and resynced, and checks their records, or an earlier history.");
    println!("Exit codes: 0, no promise was broken; 1, one was. Defaults are in parentheses.\n");
    println!("  --seconds N   how long the faults last (60)");
    println!("  --seed S      the seed of the faults and of the clients' choices (1)");
    println!("  --masters N   how many masters (5)");
    println!("  --clients N   how many client processes (8)");
    println!("  --no-guard    do not use the restart guard, so that promises are broken");
    println!("  --history F   write the history into this file, which must not exist");
    println!("  --check F     only check this history");
}

fn go(run: &Run) -> ExitCode {
    println!("seed {}, history in {}", run.seed, run.history.display());
    let outcome = run.go();
    let verdict = check(&run.history, Some(run));
    if let Err(error) = outcome {
        eprintln!("chaos: {error}");
        return ExitCode::FAILURE;
    }
    verdict
}

/// Checks a history. That of a run is a result.
fn check(file: &Path, of: Option<&Run>) -> ExitCode {
    let events = match history::read(file) {
        Ok(events) => events,
        Err(error) => {
            eprintln!("chaos: {}: {error}", file.display());
            return ExitCode::from(2);
        }
    };
    let figures = Figures::of(&events);
    println!("{figures}");
    let violations = checker::check(&events);
    let Some(first) = violations.first() else {
        println!("no promise was broken");
        return match of.map_or(Ok(()), |run| keep(run, &figures)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("chaos: the results cannot be written: {error}");
                ExitCode::from(2)
            }
        };
    };
    for violation in violations.iter().take(SHOWN) {
        println!("{violation}");
    }
    let began = events.iter().find(|event| event.what == history::What::Began).map_or(0, |event| event.at);
    let after = Duration::from_nanos(first.at.saturating_sub(began));
    println!(
        "{} violations, the first {:.1} s after the faults began",
        violations.len(),
        after.as_secs_f64()
    );
    ExitCode::FAILURE
}

/// Keeps the figures of a run in which no promise was broken.
fn keep(run: &Run, figures: &Figures) -> std::io::Result<()> {
    let mut results = Results::new();
    results.servers();
    results.figure("broken promises", 0, "none");
    results.figure("grants", figures.grants, "");
    results.figure("locks that were handed over and resumed", figures.resumed, "");
    results.figure("late writes that the store refused", figures.refused, "");
    results.figure(
        "longest time without a grant, s",
        format_args!("{:.1}", figures.longest_gap.as_secs_f64()),
        "",
    );
    results.detail("seconds of faults", run.span.as_secs());
    results.detail("masters", run.masters);
    results.detail("client processes", run.clients);
    results.detail("attempts", figures.attempts);
    figures.kinds.iter().for_each(|(kind, grants)| results.detail(&format!("grants: {kind}"), grants));
    results.detail("downgraded", figures.downgraded);
    results.detail("extended", figures.extended);
    figures
        .ends
        .iter()
        .for_each(|(how, holders)| results.detail(&format!("holders that ended: {how}"), holders));
    results.detail("writes that the store accepted", figures.accepted);
    figures.faults.iter().for_each(|(what, times)| results.detail(&format!("faults: {what}"), times));
    results.write()
}
