//! Every check that a change must pass, in order. `.ci/run` runs all of them.

mod loom;
mod scenarios;
mod steps;
mod trees;

pub(crate) use loom::models;

use std::time::Instant;

use crate::{Outcome, words};

/// One check.
struct Step {
    /// Its name in `cargo xtask check NAME`.
    name: &'static str,
    /// What holds if it passes.
    title: &'static str,
    run: fn() -> Outcome,
}

const STEPS: [Step; 22] = [
    Step { name: "tools", title: "The tools are there", run: steps::tools },
    Step { name: "format", title: "Formatting", run: steps::format },
    Step { name: "words", title: "Plain words, and lines that fit", run: words::check },
    Step { name: "lints", title: "Lints", run: steps::lints },
    Step {
        name: "features",
        title: "Lints without features, with each one, and with all",
        run: steps::features,
    },
    Step { name: "docs", title: "Documentation", run: steps::docs },
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
        name: "dependencies",
        title: "Licences, sources and versions of what the libraries depend on",
        run: steps::dependencies,
    },
    Step { name: "rustls", title: "There is one rustls, and no OpenSSL", run: trees::rustls },
    Step { name: "tests", title: "The README's test command", run: steps::tests },
    Step { name: "seed", title: "The same seed gives the same run in two builds", run: steps::seed },
    Step {
        name: "loom",
        title: "No interleaving loses an output or a wake-up, or leaves a caller without a leader",
        run: loom::check,
    },
    Step {
        name: "pairs",
        title: "A lock allocates no more than is written down while nothing observes it",
        run: steps::pairs,
    },
    Step { name: "examples", title: "The examples on embedded masters", run: scenarios::examples },
    Step { name: "real", title: "Those tests ran on real servers", run: scenarios::real },
    Step { name: "embedded", title: "The scenarios on embedded masters", run: scenarios::embedded },
    Step {
        name: "clusters",
        title: "The scenarios of one transport on nodes of clusters",
        run: scenarios::clusters,
    },
    Step { name: "tls", title: "The scenarios over TLS", run: scenarios::tls },
];

/// Runs the named steps in their order, or all of them.
pub(crate) fn run(names: &[&str]) -> Outcome {
    if names == ["--list"] {
        STEPS.iter().for_each(|step| println!("{:<14} {}", step.name, step.title));
        return Ok(());
    }
    if let Some(unknown) = names.iter().find(|name| !STEPS.iter().any(|step| step.name == **name)) {
        return Err(format!("there is no step {unknown:?}; cargo xtask check --list lists them").into());
    }
    let mut times = Vec::new();
    for step in STEPS.iter().filter(|step| names.is_empty() || names.contains(&step.name)) {
        println!("\n== {} ({})", step.title, step.name);
        let start = Instant::now();
        (step.run)().map_err(|error| format!("step {}: {error}", step.name))?;
        times.push(format!("{} {:.0} s", step.name, start.elapsed().as_secs_f32()));
    }
    println!("\npassed: {}", times.join(", "));
    Ok(())
}
