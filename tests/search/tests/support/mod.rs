//! Helpers for the files of searches.
#![allow(clippy::print_stdout)]

use quorlock_search::{Counterexample, Report, Search, Violation};

pub(crate) fn run(search: &Search) -> Report {
    let report = search.run(|_, _| {});
    println!("{} states for {}, depth {}", report.states, report.named, report.depth);
    if let Some(counterexample) = &report.counterexample {
        println!("{counterexample}");
    }
    report
}

/// Checks that every state was visited, without a violation.
pub(crate) fn holds(search: &Search) -> Report {
    let report = run(search);
    assert_eq!(report.counterexample.as_ref().map(Counterexample::violation), None);
    assert!(report.complete);
    report
}

/// Checks that this violation was found after this number of steps.
pub(crate) fn fails(search: &Search, violation: Violation, steps: usize) -> Counterexample {
    let counterexample = run(search).counterexample.expect("a state that must not be");
    assert_eq!((counterexample.violation(), counterexample.steps()), (violation, steps));
    counterexample
}
