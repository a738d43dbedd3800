//! Goes through every state that the shipped lock can reach, with two clients or one among any
//! others, and three masters. `cargo run --release -p quorlock-search -- --help`
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;
use std::time::Instant;

use lexopt::{Arg, ValueExt as _};
use quorlock_search::{Scenario, Search};

struct Options {
    scenario: Scenario,
    states: usize,
    names: bool,
    mermaid: bool,
    quiet: bool,
}

fn main() -> ExitCode {
    match options() {
        Ok(Some(options)) => run(&options),
        Ok(None) => {
            help();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("search: {error}; try --help");
            ExitCode::from(2)
        }
    }
}

fn options() -> Result<Option<Options>, lexopt::Error> {
    let (mut name, mut states) = (None, usize::MAX);
    let (mut names, mut mermaid, mut quiet) = (false, false, false);
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("states") => states = parser.value()?.parse()?,
            Arg::Long("names") => names = true,
            Arg::Long("mermaid") => mermaid = true,
            Arg::Short('q') | Arg::Long("quiet") => quiet = true,
            Arg::Short('h') | Arg::Long("help") => return Ok(None),
            Arg::Value(value) if name.is_none() => name = Some(value.string()?),
            other => return Err(other.unexpected()),
        }
    }
    let Some(name) = name else { return Ok(None) };
    let scenario = Scenario::named(&name).ok_or_else(|| format!("there is no scenario {name:?}"))?;
    Ok(Some(Options { scenario, states, names, mermaid, quiet }))
}

fn help() {
    println!("search SCENARIO [--states N] [--names] [--mermaid] [--quiet]\n");
    println!("Goes through every state of the shipped lock, nearest first, and checks each.");
    println!(
        "Exit codes: 0, all visited states are allowed; 1, one is a violation, whose timeline is printed.\n"
    );
    println!("  --states N  end when N states have been visited");
    println!("  --names     distinguish masters and clients by name: the same states, several times each");
    println!("  --mermaid   print the timeline as a Mermaid sequence diagram");
    println!("  -q, --quiet do not report progress\n");
    println!("Scenarios:");
    for scenario in Scenario::NAMED {
        println!("  {:<14} {}", scenario.name, scenario.about);
    }
}

fn run(options: &Options) -> ExitCode {
    let mut search = Search::new(options.scenario.clone()).states(options.states);
    if options.names {
        search = search.without_symmetry();
    }
    let start = Instant::now();
    let report = search.run(|depth, states| {
        if !options.quiet {
            eprintln!("{:>8.1} s  depth {depth:>3}  {states:>11} states", start.elapsed().as_secs_f64());
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let rate = f64::from(u32::try_from(report.states).unwrap_or(u32::MAX)) / seconds;
    println!(
        "{}: {} states (for {} by name), {} steps, depth {}, {}",
        options.scenario.name,
        report.states,
        report.named,
        report.steps,
        report.depth,
        match (&report.counterexample, report.complete) {
            (Some(_), _) => "ended at a counterexample",
            (None, true) => "complete",
            (None, false) => "ended at the bound",
        }
    );
    println!(
        "{seconds:.1} s, {rate:.0} states/s; {} states of a single lock, {} steps of its code",
        report.locks, report.lock_steps
    );
    let Some(counterexample) = report.counterexample else { return ExitCode::SUCCESS };
    println!("\n{} in {} steps:\n", counterexample.violation(), counterexample.steps());
    if options.mermaid {
        println!("{}", counterexample.as_mermaid());
    } else {
        println!("{counterexample}");
    }
    ExitCode::FAILURE
}
