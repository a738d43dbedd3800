//! Searches that go through every state of the shipped lock, as far as that takes seconds.
#![allow(clippy::print_stdout)]

use quorlock_core::sim::search::{Counterexample, Report, Scenario, Search, Violation};

fn run(scenario: Scenario) -> Report {
    let name = scenario.name;
    let report = Search::new(scenario).run(|_, _| {});
    println!("{name}: {} states, depth {}", report.states, report.depth);
    report
}

/// Every state was met, and none must not be.
fn holds(scenario: Scenario) -> Report {
    let report = run(scenario);
    if let Some(counterexample) = &report.counterexample {
        println!("{counterexample}");
    }
    assert_eq!(report.counterexample.as_ref().map(Counterexample::violation), None);
    assert!(report.complete && report.states > 0);
    report
}

#[test]
fn unbounded_delay_brings_no_second_holder() {
    let report = holds(Scenario { ttl: 3, ..Scenario::DELAY });
    assert!(report.states > 10_000, "{}", report.states);
}

#[test]
fn dropping_the_restart_assumption_finds_two_holders() {
    let report = run(Scenario { ttl: 3, ..Scenario::AMNESIA });
    let counterexample = report.counterexample.expect("a master that forgets votes twice");
    assert_eq!(counterexample.violation(), Violation::TwoHolders);
    let timeline = counterexample.to_string();
    println!("{timeline}");
    assert!(timeline.contains("crashes and starts again"), "{timeline}");
    assert!(counterexample.as_mermaid().starts_with("sequenceDiagram"));
}

#[test]
fn clocks_that_differ_by_more_than_the_drift_find_two_holders() {
    let report = run(Scenario { ttl: 3, ..Scenario::DRIFT });
    let counterexample = report.counterexample.expect("a key that ends before its guard");
    assert_eq!(counterexample.violation(), Violation::TwoHolders);
}
