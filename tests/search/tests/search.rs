//! Searches that go through every state of the shipped lock, and take only seconds in a debug
//! build. The larger searches, and what they mean, are in `tests/PROOFS.md`.
mod support;

use quorlock_search::{Counterexample, Scenario, Search, Violation};

use self::support::{fails, holds, run};

#[test]
fn two_clients_and_unbounded_delay_bring_no_second_holder() {
    let report = holds(&Search::new(Scenario { ttl: 3, ..Scenario::DELAY }));
    assert!(report.states > 50_000, "{}", report.states);
}

#[test]
fn a_client_among_any_others_never_holds_without_a_quorum_of_keys() {
    let report = holds(&Search::new(Scenario { ttl: 3, losses: Some(1), ..Scenario::ALONE }));
    assert!(report.states > 40_000, "{}", report.states);
}

#[test]
fn no_extension_promises_more_than_the_keys_hold() {
    let scenario = Scenario { extension_ttls: &[5], losses: Some(0), ..Scenario::ALONE_EXTEND };
    assert!(holds(&Search::new(scenario)).states > 10_000);
}

#[test]
fn states_that_differ_in_names_only_are_one_state() {
    let scenario = Scenario { losses: Some(0), ..Scenario::ALONE };
    let reduced = holds(&Search::new(scenario.clone()));
    let named = holds(&Search::new(scenario).without_symmetry());
    assert!(reduced.states < named.states);
    assert_eq!((reduced.named, named.named), (named.states as u64, named.states as u64));
}

#[test]
fn dropping_the_restart_assumption_finds_two_holders() {
    let search = Search::new(Scenario { ttl: 3, releases: false, ..Scenario::AMNESIA });
    let counterexample = fails(&search, Violation::TwoHolders, 14);
    let timeline = counterexample.to_string();
    for line in ["m1        crashes and starts again", "=>        two guards are valid at once"] {
        assert!(timeline.contains(line), "{timeline}");
    }
    assert!(counterexample.as_mermaid().starts_with("sequenceDiagram"));
}

#[test]
fn dropping_the_bound_on_drift_finds_two_holders() {
    let search = Search::new(Scenario { ttl: 3, releases: false, ..Scenario::DRIFT });
    fails(&search, Violation::TwoHolders, 14);
}

#[test]
fn single_tries_that_do_not_settle_a_split_may_leave_no_client_with_the_lock() {
    fails(&Search::new(Scenario::TRIES_UNSETTLED), Violation::NobodyHasIt, 15);
}

#[test]
fn single_tries_that_settle_a_split_are_not_both_told_that_another_holds_the_lock() {
    // This search does not visit all states, only those that are as near as the state in which no
    // client would have the lock, and some that are further.
    let report = run(&Search::new(Scenario::TRIES).states(5_000_000));
    assert_eq!(report.counterexample.as_ref().map(Counterexample::violation), None);
    assert!(report.depth >= 15, "{}", report.depth);
}

#[test]
fn a_search_ends_at_its_bound_and_says_so() {
    let report = Search::new(Scenario::DELAY).states(1_000).run(|_, _| {});
    assert!(!report.complete && report.states >= 1_000 && report.counterexample.is_none());
}

#[test]
fn grants_are_numbered_in_their_order_without_any_assumption_about_time() {
    let report = holds(&Search::new(Scenario { counted: 0, ..Scenario::FENCED }));
    assert!(report.states > 100_000, "{}", report.states);
}

#[test]
fn a_lock_that_is_put_back_counts_from_the_next_round_on() {
    let report = holds(&Search::new(Scenario { crashes: 0, releases: false, ..Scenario::ALONE_HEAL }));
    assert!(report.states > 100_000, "{}", report.states);
}

#[test]
fn a_master_that_votes_as_soon_as_it_has_lost_its_keys_makes_two_holders() {
    fails(&Search::new(Scenario::HEAL_AT_ONCE), Violation::TwoHolders, 14);
}

#[test]
fn a_master_whose_restored_key_counts_in_its_quarantine_is_no_part_of_a_quorum() {
    let scenario = Scenario { gives_up: false, ..Scenario::HEAL_IN_QUARANTINE };
    fails(&Search::new(scenario), Violation::GuardWithoutKeys, 25);
}

#[test]
fn grants_are_numbered_in_their_order_even_if_an_acquisition_arrives_twice() {
    let report = holds(&Search::new(Scenario::FENCED_TWICE));
    assert!(report.states > 500_000, "{}", report.states);
}
