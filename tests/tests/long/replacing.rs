//! Dead masters that are replaced in the lists of clients that are restarted one after the other:
//! the right order of steps has one holder, and each wrong order has two.

use std::path::PathBuf;

use quorlock_tests::Transport;
use quorlock_tests::chaos::Program;
use quorlock_tests::chaos::checker::Rule;
use quorlock_tests::replacing::{Run, Story, Told};

/// Tells a story, on another transport than the ones before and after it.
#[track_caller]
fn tell(story: Story, transport: usize) -> Told {
    let names = Transport::NAMES;
    let directory = tempfile::tempdir().unwrap();
    story.tell(&Transport::named(names[transport % names.len()]), &directory.path().join("history")).unwrap()
}

#[track_caller]
fn assert_two_holders(story: Story, transport: usize) {
    let Told { overlap, violations } = tell(story, transport);
    assert!(violations.iter().any(|violation| violation.rule == Rule::TwoHolders), "{overlap:?}");
}

#[test]
fn a_master_that_is_off_for_the_longest_ttl_may_be_replaced_while_clients_run() {
    assert_eq!(tell(Story::Right, 0).violations, []);
}

#[test]
fn a_successor_that_was_tried_before_the_old_master_was_off_has_two_holders() {
    assert_two_holders(Story::TriedBefore, 1);
}

#[test]
fn a_successor_whose_quarantine_begins_anew_is_as_good_as_one_that_was_not_tried() {
    assert_eq!(tell(Story::BegunAnew, 1).violations, []);
}

#[test]
fn an_old_master_that_comes_back_has_two_holders() {
    assert_two_holders(Story::OldReturns, 2);
}

#[test]
fn two_successors_of_one_master_have_two_holders() {
    assert_two_holders(Story::TwoSuccessors, 0);
}

#[test]
fn a_bootstrap_after_a_loss_of_all_masters_has_two_holders() {
    assert_two_holders(Story::Bootstrapped, 1);
}

/// Whether a lock fails without a reason is left to `cargo xtask replacing`: on a machine that is
/// busy with other tests, a client may be stopped for longer than a TTL.
#[test]
fn clients_with_old_and_new_lists_never_hold_one_lock() {
    let directory = tempfile::tempdir().unwrap();
    let program = Program { path: PathBuf::from(env!("CARGO_BIN_EXE_chaos_client")), arguments: Vec::new() };
    let history = directory.path().join("history");
    let run = Run { masters: 3, replacements: 2, seed: 1, history, program };
    let outcome = run.go().unwrap();
    eprintln!("{outcome}");
    assert_eq!(outcome.violations, []);
}
