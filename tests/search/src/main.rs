//! Goes through every state that the shipped lock can reach, with two clients or one among any
//! others, and three masters. `cargo run --release -p quorlock-search -- --help`
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[allow(unreachable_pub, reason = "it is public in the library of the tests")]
#[path = "../../shared/results.rs"]
mod results;

use std::io;
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lexopt::{Arg, ValueExt as _};
use quorlock_search::{Report, Scenario, Search};

use results::Results;

/// How many states `--all` visits of a scenario.
const BOUND: usize = 10_000_000;

enum Todo {
    Help,
    One { scenario: Scenario, states: usize, names: bool, mermaid: bool, quiet: bool },
    All { states: usize },
}

fn main() -> ExitCode {
    let todo = match Todo::read() {
        Ok(todo) => todo,
        Err(error) => {
            eprintln!("search: {error}; try --help");
            return ExitCode::from(2);
        }
    };
    match todo {
        Todo::Help => {
            help();
            ExitCode::SUCCESS
        }
        Todo::One { scenario, states, names, mermaid, quiet } => {
            let search = Search::new(scenario.clone()).states(states);
            let search = if names { search.without_symmetry() } else { search };
            one(&scenario, &search, mermaid, quiet)
        }
        Todo::All { states } => all(states).unwrap_or_else(|error| {
            eprintln!("search: the results cannot be written: {error}");
            ExitCode::from(2)
        }),
    }
}

impl Todo {
    fn read() -> Result<Self, lexopt::Error> {
        let (mut name, mut states) = (None, None);
        let (mut all, mut names, mut mermaid, mut quiet) = (false, false, false, false);
        let mut parser = lexopt::Parser::from_env();
        while let Some(arg) = parser.next()? {
            match arg {
                Arg::Long("all") => all = true,
                Arg::Long("states") => states = Some(parser.value()?.parse()?),
                Arg::Long("names") => names = true,
                Arg::Long("mermaid") => mermaid = true,
                Arg::Short('q') | Arg::Long("quiet") => quiet = true,
                Arg::Short('h') | Arg::Long("help") => return Ok(Self::Help),
                Arg::Value(value) if name.is_none() => name = Some(value.string()?),
                other => return Err(other.unexpected()),
            }
        }
        match name {
            None if all && !names && !mermaid => Ok(Self::All { states: states.unwrap_or(BOUND) }),
            _ if all => Err("--all goes with --states only".into()),
            None => Ok(Self::Help),
            Some(name) => {
                let scenario =
                    Scenario::named(&name).ok_or_else(|| format!("there is no scenario {name:?}"))?;
                Ok(Self::One { scenario, states: states.unwrap_or(usize::MAX), names, mermaid, quiet })
            }
        }
    }
}

fn help() {
    println!("search SCENARIO [--states N] [--names] [--mermaid] [--quiet]");
    println!("search --all [--states N]\n");
    println!("Goes through every state of the shipped lock, nearest first, and checks each.");
    println!(
        "Exit codes: 0, all visited states are allowed; 1, one is a violation, whose timeline is printed.\n"
    );
    println!("  --all       all scenarios, one on each processor, with at most {BOUND} states of each:");
    println!("              an hour. Those with a deliberate fault must have a violation, the others none");
    println!("  --states N  end when N states have been visited");
    println!("  --names     distinguish masters and clients by name: the same states, several times each");
    println!("  --mermaid   print the timeline as a Mermaid sequence diagram");
    println!("  -q, --quiet do not report progress\n");
    println!("Scenarios:");
    for scenario in Scenario::NAMED {
        println!("  {:<14} {}", scenario.name, scenario.about);
    }
}

fn one(scenario: &Scenario, search: &Search, mermaid: bool, quiet: bool) -> ExitCode {
    let start = Instant::now();
    let report = search.run(|depth, states| {
        if !quiet {
            eprintln!("{:>8.1} s  depth {depth:>3}  {states:>11} states", start.elapsed().as_secs_f64());
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let rate = f64::from(u32::try_from(report.states).unwrap_or(u32::MAX)) / seconds;
    println!(
        "{}: {} states (for {} by name), {} steps, depth {}, {}",
        scenario.name,
        report.states,
        report.named,
        report.steps,
        report.depth,
        end(&report)
    );
    println!(
        "{seconds:.1} s, {rate:.0} states/s; {} states of a single lock, {} steps of its code",
        report.locks, report.lock_steps
    );
    let Some(counterexample) = report.counterexample else { return ExitCode::SUCCESS };
    println!("\n{} in {} steps:\n", counterexample.violation(), counterexample.steps());
    if mermaid {
        println!("{}", counterexample.as_mermaid());
    } else {
        println!("{counterexample}");
    }
    ExitCode::FAILURE
}

fn end(report: &Report) -> String {
    match (&report.counterexample, report.complete) {
        (Some(found), _) => format!("{} in {} steps", found.violation(), found.steps()),
        (None, true) => "complete".to_owned(),
        (None, false) => "ended at the bound".to_owned(),
    }
}

/// A scenario, what was found, and how long that took.
type Found = (&'static Scenario, Report, Duration);

/// Searches every scenario, several at once. Reports each as soon as it is over.
fn searched(states: usize) -> Receiver<Found> {
    let (found, all) = mpsc::channel();
    thread::spawn(move || {
        let next = Mutex::new(Scenario::NAMED.iter());
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
                let (next, found) = (&next, found.clone());
                scope.spawn(move || {
                    let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
                    while let Some(scenario) = take() {
                        let start = Instant::now();
                        let report = Search::new(scenario.clone()).states(states).run(|_, _| {});
                        if found.send((scenario, report, start.elapsed())).is_err() {
                            return;
                        }
                    }
                });
            }
        });
    });
    all
}

fn all(states: usize) -> io::Result<ExitCode> {
    let mut found: Vec<_> = searched(states)
        .into_iter()
        .inspect(|(scenario, report, took)| {
            let Report { states, depth, .. } = report;
            let seconds = took.as_secs();
            println!(
                "{:<22} {states:>11} states, depth {depth:>3}, {seconds:>4} s: {}",
                scenario.name,
                end(report)
            );
        })
        .collect();
    let place = |scenario: &Scenario| Scenario::NAMED.iter().position(|named| named.name == scenario.name);
    found.sort_by_key(|(scenario, ..)| place(scenario));
    let count = |fits: &dyn Fn(&Found) -> bool| found.iter().filter(|found| fits(found)).count();
    let has_violation = |(_, report, _): &Found| report.counterexample.is_some();
    let is_broken = |(scenario, ..): &Found| scenario.is_broken();
    let violations = count(&|found| !is_broken(found) && has_violation(found));
    let missed = count(&|found| is_broken(found) && !has_violation(found));
    let mut results = Results::new();
    results.figure("violations", violations, "none");
    results.figure("deliberate faults without a violation", missed, "none");
    results.figure("scenarios", count(&|found| !is_broken(found)), "");
    results.figure("of these complete", count(&|found| !is_broken(found) && found.1.complete), "");
    results.figure("states", found.iter().map(|(_, report, _)| report.states).sum::<usize>(), "");
    results.figure("scenarios with a deliberate fault", count(&is_broken), "");
    results.detail("bound", states);
    results.row("scenarios", ["scenario", "what may happen", "states", "depth", "end", "s"]);
    for (scenario, report, took) in &found {
        let Report { states, depth, .. } = report;
        let figures = [states.to_string(), depth.to_string(), end(report), took.as_secs().to_string()];
        let words = [scenario.name, scenario.about];
        results.row("scenarios", words.into_iter().chain(figures.iter().map(String::as_str)));
    }
    results.write()?;
    if violations + missed > 0 {
        println!("{violations} violations, and {missed} deliberate faults without one");
    }
    Ok(if violations + missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
