//! Goes through every state of two clients and three masters.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use quorlock_core::sim::search::{Scenario, Search};

fn main() {
    let name = std::env::args().nth(1).expect("a scenario");
    let bound = std::env::args().nth(2).map_or(usize::MAX, |n| n.parse().expect("a number"));
    let scenario = Scenario::named(&name).expect("a known scenario");
    let mut search = Search::new(scenario).states(bound);
    if std::env::args().any(|arg| arg == "--names") {
        search = search.without_symmetry();
    }
    let start = Instant::now();
    let report = search.run(|depth, states| {
        eprintln!("depth {depth}: {states} states, {:?}", start.elapsed());
    });
    let s = start.elapsed().as_secs_f64();
    println!(
        "{} states, {} steps, depth {}, complete {}, {} locks, {} lock steps, {s:.2} s, {:.0} states/s",
        report.states,
        report.steps,
        report.depth,
        report.complete,
        report.locks,
        report.lock_steps,
        report.states as f64 / s
    );
    if let Some(c) = report.counterexample {
        println!("{c}");
    }
}
