//! Every check that a change must pass, in order. `.ci/run` runs all of them.

mod beside;
mod book;
mod deployments;
mod loom;
mod outside;
mod scenarios;
mod steps;
mod trees;

pub(crate) use loom::models;

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::time::Instant;

use self::beside::Beside;
use crate::{Outcome, results, words};

/// One check.
struct Step {
    /// Its name in `cargo xtask check NAME`.
    name: &'static str,
    /// What holds if it passes.
    title: &'static str,
    run: fn() -> Outcome,
}

/// What could not run, because a tool is missing, and why. It neither passed nor failed.
#[derive(Debug)]
pub(crate) struct NotRun(pub(crate) String);

impl Display for NotRun {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "not run: {}", self.0)
    }
}

impl Error for NotRun {}

const STEPS: [Step; 29] = [
    Step { name: "tools", title: "The tools are there", run: steps::tools },
    Step { name: "format", title: "Formatting", run: steps::format },
    Step { name: "words", title: "Plain words, and lines that fit", run: words::check },
    Step { name: "results", title: "The page of results is what its data says", run: results::check },
    Step { name: "spelling", title: "Spelling", run: outside::spelling },
    Step { name: "lints", title: "Lints", run: steps::lints },
    Step { name: "docs", title: "Documentation", run: steps::docs },
    Step { name: "book", title: "The book, and its links", run: outside::book },
    Step { name: "surface", title: "The public surface is what is written down", run: steps::surface },
    Step {
        name: "pure",
        title: "The core and the simulator have no runtime, sockets, clock or entropy in their trees",
        run: trees::pure,
    },
    Step {
        name: "transports",
        title: "No transport depends on the simulator, its worlds or the search",
        run: trees::transports,
    },
    Step { name: "tokio", title: "tokio is only in quorlock-tokio", run: trees::tokio },
    Step {
        name: "rust-version",
        title: "The libraries' dependencies accept the libraries' Rust version",
        run: steps::rust_version,
    },
    Step {
        name: "deny",
        title: "Licences, sources and versions of what the libraries depend on",
        run: outside::deny,
    },
    Step {
        name: "packages",
        title: "The packages are made without a warning, and have their licences",
        run: steps::packages,
    },
    Step {
        name: "deployments",
        title: "Workflows and examples of deployments are what their readers accept",
        run: deployments::check,
    },
    Step { name: "rustls", title: "There is one rustls, and no OpenSSL", run: trees::rustls },
    Step { name: TESTS, title: "The README's test command", run: steps::tests },
    Step { name: "seed", title: "The same seed gives the same run in two builds", run: steps::seed },
    Step {
        name: "pairs",
        title: "A lock allocates no more than is written down while nothing observes it",
        run: steps::pairs,
    },
    Step {
        name: "examples",
        title: "The examples, on embedded masters, on servers and on a group",
        run: scenarios::examples,
    },
    Step { name: "real", title: "Those tests ran on real servers", run: scenarios::real },
    Step {
        name: "postgres",
        title: "The tests of fencing ran on PostgreSQL, and so does their example",
        run: scenarios::postgres,
    },
    Step { name: "embedded", title: "The scenarios on embedded masters", run: scenarios::embedded },
    Step {
        name: "clusters",
        title: "The scenarios of one transport on nodes of clusters",
        run: scenarios::clusters,
    },
    Step { name: "tls", title: "The scenarios over TLS", run: scenarios::tls },
    Step { name: "simulator", title: "The simulator builds for release", run: steps::simulator },
    Step {
        name: "loom",
        title: "No interleaving loses an output or a wake-up, or leaves a caller without a leader",
        run: loom::check,
    },
    Step { name: "features", title: "Lints without features, and with each one", run: steps::features },
];
/// In a run of all steps, these start with the step [`TESTS`] and run beside it and the later ones.
const BESIDE: [&str; 4] = ["lints", "simulator", "loom", "features"];
const TESTS: &str = "tests";

/// Runs the named steps in their order, or all of them. A step that cannot run is a failure if it
/// was named; otherwise the last lines say that it did not run.
pub(crate) fn run(names: &[&str]) -> Outcome {
    if names == ["--list"] {
        STEPS.iter().for_each(|step| println!("{:<14} {}", step.name, step.title));
        return Ok(());
    }
    if let Some(unknown) = names.iter().find(|name| !STEPS.iter().any(|step| step.name == **name)) {
        return Err(format!("there is no step {unknown:?}; cargo xtask check --list lists them").into());
    }
    let (mut times, mut not_run) = (Vec::new(), Vec::new());
    let runs_all = names.is_empty();
    let mut beside = None;
    let is_chosen = |step: &&Step| {
        if runs_all { !BESIDE.contains(&step.name) } else { names.contains(&step.name) }
    };
    for step in STEPS.iter().filter(is_chosen) {
        if runs_all && step.name == TESTS {
            beside = Some(Beside::start(&BESIDE)?);
        }
        beside.iter_mut().try_for_each(Beside::look)?;
        println!("\n== {} ({})", step.title, step.name);
        let start = Instant::now();
        match (step.run)() {
            Ok(()) => times.push(format!("{} {:.0} s", step.name, start.elapsed().as_secs_f32())),
            Err(error) if runs_all && error.is::<NotRun>() => {
                println!("{error}");
                not_run.push(format!("{}: {error}", step.name));
            }
            Err(error) => return Err(format!("step {}: {error}", step.name).into()),
        }
    }
    if let Some(beside) = beside {
        let start = Instant::now();
        beside.finish()?;
        times.push(format!("{} {:.0} s more", BESIDE.join(", "), start.elapsed().as_secs_f32()));
    }
    println!("\npassed: {}", times.join(", "));
    not_run.iter().for_each(|step| println!("{step}"));
    Ok(())
}
