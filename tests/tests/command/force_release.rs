//! `quorlock force-release`: only after a confirmation, and only keys that are locks.

use quorlock_tests::{eventually, masters};

use crate::running::{JOB, SHOW, acquire, assert_free, call, run};

const MEANT: [&str; 3] = ["force-release", "--yes-delete-it-whoever-holds-it", JOB];

#[test]
fn a_lock_of_any_client_is_deleted_on_all_masters_and_can_be_taken_again() {
    let masters = masters(3);
    let token = acquire(&masters, &["--ttl", "5m"]);
    let told = call(&masters, &MEANT, None);
    assert_eq!((told.code, told.out.as_str()), (Some(0), ""), "{}", told.err);
    assert!(told.err.contains("deleted job on 3 of 3 masters"), "{}", told.err);
    assert!(told.err.contains("is not notified at once"), "{}", told.err);
    assert!(!told.err.contains(&token[..40]), "{}", told.err);
    assert_free(&masters);
    assert_eq!(run(&masters, &["-n"], &SHOW).code, Some(0));
    // Its holder notices at its next request.
    assert_eq!(call(&masters, &["extend", JOB], Some(&token)).code, Some(75));

    let again = call(&masters, &MEANT, None);
    assert_eq!(again.code, Some(0));
    assert!(again.err.contains("deleted job on 0 of 3 masters; 3 had no such key"), "{}", again.err);
}

#[test]
fn without_a_confirmation_nothing_is_deleted_in_a_pipe() {
    let masters = masters(3);
    acquire(&masters, &["--ttl", "5m"]);
    for words in [&["force-release", JOB][..], &["force-release", "--json", JOB]] {
        let refused = call(&masters, words, None);
        assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{}", refused.err);
        assert!(refused.err.contains("--yes-delete-it-whoever-holds-it"), "{}", refused.err);
    }
    // The third one has no key if its connection was not open yet when `acquire` ended.
    eventually(std::time::Duration::from_secs(5), "a quorum has it", || {
        masters.iter().filter(|master| master.exists(JOB)).count() >= 2
    });
}

#[test]
fn a_key_that_is_not_a_string_stays() {
    let masters = masters(3);
    acquire(&masters, &["--ttl", "5m"]);
    masters[1].del(JOB);
    masters[1].command(&["LPUSH", JOB, "x"]);
    let told = call(&masters, &MEANT, None);
    assert_eq!(told.code, Some(1), "{}", told.err);
    assert!(told.err.contains(&format!("{}: the key is not a string", masters[1].address())), "{}", told.err);
    assert!(told.err.contains("deleted job on 2 of 3 masters"), "{}", told.err);
    assert!(masters[1].exists(JOB) && !masters[0].exists(JOB) && !masters[2].exists(JOB));
}

#[test]
fn masters_that_are_down_are_reported_and_too_few_exit_with_69() {
    let masters = masters(3);
    acquire(&masters, &["--ttl", "5m"]);
    masters[0].stop();
    let told = call(&masters, &MEANT, None);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.err.contains(&format!("{}: no connection in 1 s", masters[0].address())), "{}", told.err);

    masters[1].kill();
    let told = call(&masters, &MEANT, None);
    assert_eq!(told.code, Some(69), "{}", told.err);
    assert!(told.err.contains("too few to free it"), "{}", told.err);
    masters[0].cont();
}
