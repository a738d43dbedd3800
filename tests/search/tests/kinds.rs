//! Searches of claims of several resources and of shared ones that take only seconds in a debug
//! build. The larger searches are in `tests/PROOFS.md`.

mod support;

use quorlock_search::{Scenario, Search, Violation};

use self::support::{fails, holds, run};

#[test]
fn a_reader_and_a_writer_are_never_valid_at_once() {
    let report = holds(&Search::new(Scenario { ttl: 3, ..Scenario::READ_WRITE }));
    assert!(report.states > 100_000, "{}", report.states);
}

#[test]
fn a_reader_among_any_writers_and_readers_never_holds_without_a_quorum_of_entries() {
    let report = holds(&Search::new(Scenario { losses: Some(0), ..Scenario::ALONE_READ }));
    assert!(report.states > 10_000, "{}", report.states);
}

#[test]
fn masters_that_count_readers_let_a_writer_in_beside_a_reader() {
    fails(&Search::new(Scenario::READERS_COUNTED), Violation::TwoHolders, 13);
}

#[test]
fn a_key_that_lives_as_long_as_the_last_reader_lets_a_writer_in_beside_a_longer_one() {
    fails(&Search::new(Scenario::READERS_CUT_SHORT), Violation::TwoHolders, 14);
}

#[test]
fn three_clients_of_which_two_read_are_searched_as_far_as_a_bound() {
    let report = run(&Search::new(Scenario::READ_READ_WRITE).states(300_000));
    assert!(report.counterexample.is_none() && report.depth >= 8, "{}", report.depth);
}

#[test]
fn a_writer_that_downgrades_its_lock_excludes_writers_and_no_readers() {
    // Among any number of others, all states are searched; beside one reader, a bounded number.
    let report = holds(&Search::new(Scenario { alone: true, ..Scenario::DOWNGRADE_CROWD }));
    assert!(report.states > 10_000, "{}", report.states);
    let report = run(&Search::new(Scenario::DOWNGRADE).states(300_000));
    assert!(report.counterexample.is_none() && report.depth >= 14, "{}", report.depth);
}

#[test]
fn a_holder_that_calls_itself_exclusive_until_a_quorum_shares_is_valid_beside_a_reader() {
    fails(&Search::new(Scenario::DOWNGRADED_BY_QUORUM), Violation::TwoHolders, 14);
}

#[test]
fn two_batches_with_a_resource_in_common_are_never_valid_at_once() {
    let report = holds(&Search::new(Scenario { ttl: 3, ..Scenario::BATCH }));
    assert!(report.states > 100_000, "{}", report.states);
}

#[test]
fn a_batch_among_any_others_never_holds_without_a_quorum_of_all_its_keys() {
    let report = holds(&Search::new(Scenario { losses: Some(0), ..Scenario::ALONE_BATCH }));
    assert!(report.states > 10_000, "{}", report.states);
}

#[test]
fn a_batch_that_is_extended_by_any_of_its_keys_is_valid_without_them() {
    let scenario = Scenario { alone: true, ..Scenario::BATCH_BY_ANY_KEY };
    fails(&Search::new(scenario), Violation::GuardWithoutKeys, 16);
}

#[test]
fn a_batch_that_lost_a_key_on_one_master_is_held_by_the_other_masters() {
    let report = holds(&Search::new(Scenario { alone: true, ..Scenario::BATCH_LOST }));
    assert!(report.states > 10_000, "{}", report.states);
}

#[test]
fn one_permit_has_one_holder_whichever_master_assigns_it() {
    let report = run(&Search::new(Scenario::PERMIT).states(200_000));
    assert!(report.counterexample.is_none() && report.depth >= 12, "{}", report.depth);
}

#[test]
fn two_clients_get_two_different_permits() {
    let report = run(&Search::new(Scenario::PERMITS).states(200_000));
    assert!(report.counterexample.is_none() && report.depth >= 12, "{}", report.depth);
}

#[test]
fn three_clients_hold_no_more_than_two_permits() {
    let report = run(&Search::new(Scenario::PERMITS_THREE).states(200_000));
    assert!(report.counterexample.is_none() && report.depth >= 8, "{}", report.depth);
}

#[test]
fn a_reader_has_a_number_between_those_of_the_writers_around_it() {
    let report = holds(&Search::new(Scenario { counted: 0, ..Scenario::READ_FENCED }));
    assert!(report.states > 100_000, "{}", report.states);
    // If a reader's number is not raised on a quorum, a later writer gets it too. That can happen
    // only if the masters' counters differ.
    let report = run(&Search::new(Scenario { losses: Some(0), ..Scenario::READ_FENCED }).states(200_000));
    assert!(report.counterexample.is_none() && report.depth >= 12, "{}", report.depth);
}

#[test]
fn a_batch_and_a_lock_of_one_of_its_resources_are_numbered_in_their_order() {
    let report = holds(&Search::new(Scenario { counted: 0, ..Scenario::BATCH_FENCED }));
    assert!(report.states > 100_000, "{}", report.states);
}

#[test]
fn batches_that_count_each_key_by_itself_have_a_number_twice() {
    fails(&Search::new(Scenario::BATCH_BY_EACH_KEY), Violation::NumberTwice, 12);
}
