//! Another client holds the lock.

use std::time::{Duration, Instant};

use quorlock_tests::{eventually, masters};

use crate::running::{HOLD, JOB, SHOW, SOON, assert_free, run, start};

#[test]
fn a_second_run_that_does_not_wait_is_refused_at_once() {
    let masters = masters(3);
    let mut first = start(&masters, &[], &HOLD);
    first.first_line();

    let second = run(&masters, &["-n"], &SHOW);

    assert_eq!((second.code, second.out.as_str()), (Some(1), ""));
    assert!(second.err.starts_with("quorlock: job not acquired: "), "{}", second.err);
    assert!(second.err.contains(" held by another for "), "{}", second.err);
    // Much less than the TTL of ten seconds.
    assert!(second.took < Duration::from_secs(5), "{:?}", second.took);
    assert_eq!(first.end().code, Some(0));
}

#[test]
fn a_second_run_that_waits_is_refused_when_its_wait_is_over() {
    let masters = masters(3);
    let mut first = start(&masters, &[], &HOLD);
    first.first_line();

    let second = run(&masters, &["-w", "500ms"], &SHOW);

    assert_eq!((second.code, second.out.as_str()), (Some(1), ""), "{}", second.err);
    assert!(second.took >= Duration::from_millis(400), "{:?}", second.took);
    assert!(second.took < Duration::from_secs(5), "{:?}", second.took);
    assert_eq!(first.end().code, Some(0));
    assert_free(&masters);
}

#[test]
fn a_wait_of_zero_is_one_try() {
    let masters = masters(3);
    masters.iter().for_each(|master| assert!(master.set_nx(JOB, "x")));

    let refused = run(&masters, &["-w", "0"], &SHOW);

    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{}", refused.err);
}

#[test]
fn a_second_run_gets_the_lock_when_the_first_ends() {
    let masters = masters(3);
    let mut first = start(&masters, &["--ttl", "1m"], &HOLD);
    first.first_line();
    let second = start(&masters, &[], &SHOW);
    eventually(SOON, "the second has come", || masters[0].connected_clients() == 2);
    assert_eq!(second.out(), "");

    let released = Instant::now();
    assert_eq!(first.end().code, Some(0));
    let second = second.end();

    assert_eq!((second.code, second.out.as_str(), second.err.as_str()), (Some(0), "runs\n", ""));
    assert!(released.elapsed() < Duration::from_secs(10), "{:?}", released.elapsed());
    assert_free(&masters);
}

#[test]
fn the_exit_code_of_a_conflict_can_be_chosen() {
    let masters = masters(3);
    masters.iter().for_each(|master| assert!(master.set_nx(JOB, "x")));
    for (options, code) in [(["-n", "-E", "42"], 42), (["-n", "-E", "0"], 0), (["-w", "200ms", "-E43"], 43)] {
        let refused = run(&masters, &options, &SHOW);
        assert_eq!((refused.code, refused.out.as_str()), (Some(code), ""), "{}", refused.err);
    }
}

#[test]
fn quiet_hides_a_conflict_whose_exit_code_was_set_to_0() {
    let masters = masters(3);
    masters.iter().for_each(|master| assert!(master.set_nx(JOB, "x")));
    for (options, says) in [
        // This is for crontabs: cron mails everything that is written.
        (&["-q", "-n", "-E", "0"][..], false),
        (&["-q", "-w", "200ms", "-E", "0"], false),
        (&["-n", "-E", "0"], true),
        (&["-q", "-n", "-E", "7"], true),
        (&["-q", "-n"], true),
    ] {
        let refused = run(&masters, options, &SHOW);
        assert_eq!(refused.out, "");
        assert_eq!(refused.err.contains("held by another"), says, "{options:?}: {}", refused.err);
        assert!(says || refused.err.is_empty(), "{options:?}: {}", refused.err);
    }
    let told = run(&masters, &["--json", "-n", "-E", "0"], &SHOW);
    assert!(told.err.contains("{\"event\":\"held_by_another\",\"level\":\"warning\","), "{}", told.err);
}

#[test]
fn quiet_still_reports_failures() {
    let masters = masters(3);
    masters[0].kill();
    masters[1].kill();
    let refused = run(&masters, &["-q", "-n", "-E", "0"], &SHOW);
    assert_eq!(refused.code, Some(69));
    assert!(refused.err.contains("not acquired"), "{}", refused.err);

    masters[0].restart();
    let mut held = start(&masters, &["-q", "-E", "0", "--ttl", "1m"], &HOLD);
    held.first_line();
    eventually(SOON, "the key is on both masters", || masters[2].exists(JOB) && masters[0].exists(JOB));
    assert!(masters[0].del(JOB) && masters[2].del(JOB));
    let ended = held.end();
    assert_eq!(ended.code, Some(75));
    assert_ne!(ended.err, "");
}

#[test]
fn a_foreign_client_and_the_command_keep_each_other_out() {
    let masters = masters(3);
    let mut held = start(&masters, &[], &HOLD);
    held.first_line();
    eventually(SOON, "the key is on every master", || masters.holding(JOB) == 3);
    for master in masters.iter() {
        assert!(!master.set_nx(JOB, "x"));
    }
    assert_eq!(held.end().code, Some(0));
    assert_free(&masters);

    assert!(masters[0].set_nx(JOB, "x") && masters[1].set_nx(JOB, "x"));
    let refused = run(&masters, &["-n"], &SHOW);

    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{}", refused.err);
    assert_free(&masters[2..]);
    assert_eq!(masters.get(JOB)[..2], [Some("x".to_owned()), Some("x".to_owned())]);
}

#[test]
fn a_foreign_key_on_a_minority_keeps_no_client_out_and_is_left_alone() {
    let masters = masters(3);
    assert!(masters[1].set_nx(JOB, "x"));

    let ended = run(&masters, &["-n"], &SHOW);

    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), "runs\n", ""));
    assert_eq!(masters[1].get(JOB).as_deref(), Some("x"));
    assert_free(&masters[..1]);
}
