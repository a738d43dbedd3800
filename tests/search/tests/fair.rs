//! Searches of fair waiting that take only seconds in a debug build: order, exclusion, and that no
//! waiter is stuck. The larger searches are in `tests/PROOFS.md`.
#![allow(clippy::print_stdout)]

use quorlock_search::{Fair, FairFlaw, FairReport, FairViolation};

fn search(fair: Fair) -> FairReport {
    let report = fair.search(|_, _| {});
    let FairReport { states, named, depth, waiters, ends, .. } = report;
    println!("{states} states for {named}, depth {depth}, {waiters} of a waiter, {ends} ends");
    report.story.iter().for_each(|line| println!("{line}"));
    report
}

/// Checks that all states were visited, or as many as the bound allows, without a violation.
#[track_caller]
fn holds(fair: Fair) -> FairReport {
    let report = search(fair);
    assert_eq!(report.violation, None, "{fair:?}");
    assert!(report.complete || report.states >= fair.bound, "{fair:?}");
    report
}

#[track_caller]
fn breaks(fair: Fair) -> FairViolation {
    search(fair).violation.expect("a state that must not be")
}

const ONE: Fair = Fair { masters: 1, held: 0b1, attempts: [3; 3], lapses: true, ..Fair::PAIR };
const TWO: Fair = Fair { masters: 2, held: 0b11, ..Fair::PAIR };

#[test]
fn one_master_serves_two_waiters_in_their_order() {
    holds(Fair { renewals: 2, deaths: 1, cancels: 1, forgets: 1, ..ONE });
    let report = holds(Fair { renewals: 1, losses: 1, attempts: [2; 3], ..ONE });
    assert!(report.complete && report.states > 10_000, "{}", report.states);
}

#[test]
fn two_masters_serve_two_waiters_in_their_order() {
    let report = holds(TWO);
    assert!(report.complete && report.states > 20_000, "{}", report.states);
}

#[test]
fn three_masters_serve_two_waiters_in_their_order_as_far_as_a_bound() {
    let report = holds(Fair { bound: 40_000, ..Fair::PAIR });
    assert!(report.depth >= 8, "{}", report.depth);
}

#[test]
fn a_waiter_that_reaches_one_master_of_three_blocks_no_other_waiter() {
    let report = holds(Fair { reach: [0b001, 0b111, 0b111], ..Fair::PAIR });
    assert!(report.complete && report.states > 20_000, "{}", report.states);
}

#[test]
fn states_that_differ_in_the_names_of_masters_are_one_state() {
    // A waiter that reaches no master represents one that does not exist.
    let fair = Fair { reach: [0b11, 0, 0], attempts: [2; 3], ..TWO };
    let (reduced, named) = (holds(fair), holds(Fair { named: true, ..fair }));
    assert!(reduced.complete && reduced.states < named.states);
    assert_eq!((reduced.named, named.named), (named.states as u64, named.states as u64));
}

#[test]
fn queues_by_arrival_get_stuck() {
    let flaw = Some(FairFlaw::ByArrival);
    assert_eq!(breaks(Fair { flaw, ..TWO }), FairViolation::Stuck { down: None });
    assert_eq!(breaks(Fair { flaw, ..Fair::PAIR }), FairViolation::Stuck { down: None });
}

#[test]
fn the_search_finds_a_grant_or_an_undo_that_removes_the_place() {
    for flaw in [FairFlaw::GrantRemovesPlace, FairFlaw::UndoRemovesPlace] {
        let found = breaks(Fair { flaw: Some(flaw), attempts: [2, 1, 1], ..Fair::PAIR });
        assert!(matches!(found, FairViolation::Overtaken | FairViolation::Stuck { .. }), "{found:?}");
    }
}

#[test]
fn numbers_that_restart_while_a_client_waits_break_the_order() {
    let fair = Fair { forgets: 1, flaw: Some(FairFlaw::NumbersBeginAnew), ..Fair::PAIR };
    assert_eq!(breaks(fair), FairViolation::Overtaken);
}

#[test]
#[ignore = "takes a minute; PROOFS.md has the results"]
fn three_masters_serve_two_waiters_in_their_order() {
    assert!(holds(Fair::PAIR).complete);
}

#[test]
#[ignore = "takes minutes; PROOFS.md has the results"]
fn two_waiters_with_a_further_attempt_are_served_in_their_order_up_to_a_bound() {
    for attempts in [[2, 1, 1], [1, 2, 1]] {
        holds(Fair { attempts, bound: 5_000_000, ..Fair::PAIR });
    }
}

#[test]
#[ignore = "takes minutes; PROOFS.md has the results"]
fn two_masters_serve_two_waiters_in_their_order_with_more_attempts_and_faults() {
    let all = [
        Fair { attempts: [2, 1, 1], ..TWO },
        Fair { attempts: [1, 2, 1], ..TWO },
        Fair { renewals: 1, ..TWO },
        Fair { deaths: 1, cancels: 1, ..TWO },
        Fair { lapses: true, forgets: 1, ..TWO },
    ];
    all.into_iter().for_each(|fair| assert!(holds(fair).complete));
}
