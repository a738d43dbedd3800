//! `--at-least` and `--keep-for`: other clients are kept out although the command has ended.

use std::time::{Duration, Instant};

use quorlock_tests::{RedisServer, eventually, masters};

use crate::running::{JOB, SHOW, acquire, assert_free, call, run};

/// Waits until two of three masters keep the key for at least `millis`. The third one
/// has no key if its connection was not open yet when the lock was released.
fn eventually_kept(masters: &[RedisServer], millis: i64) {
    eventually(Duration::from_secs(5), "a quorum keeps it", || {
        masters.iter().filter(|master| master.pttl(JOB) >= millis).count() >= 2
    });
}

#[test]
fn a_short_job_is_not_run_again_before_its_minimum_hold_time_is_over() {
    let masters = masters(3);
    let begun = Instant::now();
    let first = run(&masters, &["-v", "--at-least", "2s"], &["sh", "-c", "exit 7"]);
    assert_eq!(first.code, Some(7), "{}", first.err);
    assert!(first.err.contains("released job, and others are kept out for 1."), "{}", first.err);
    assert!(first.took < Duration::from_secs(2), "{:?}", first.took);
    assert!(masters.iter().all(|master| master.pttl(JOB) <= 2_022));
    eventually_kept(&masters, 1);

    let second = run(&masters, &["-n", "-E", "0", "-q"], &SHOW);
    assert_eq!((second.code, second.out.as_str(), second.err.as_str()), (Some(0), "", ""));
    let third = run(&masters, &["-w", "20s"], &SHOW);
    assert_eq!((third.code, third.out.as_str()), (Some(0), "runs\n"), "{}", third.err);
    assert!(begun.elapsed() >= Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_free(&masters);
}

#[test]
fn a_job_longer_than_its_minimum_hold_time_is_released_as_usual() {
    let masters = masters(3);
    let told = run(&masters, &["-v", "--at-least", "50ms"], &["sleep", "0.2"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.err.contains("released job\n"), "{}", told.err);
    assert_free(&masters);
}

#[test]
fn the_minimum_hold_time_may_exceed_the_ttl_and_is_in_the_json() {
    let masters = masters(3);
    let told = run(&masters, &["-v", "--json", "--ttl", "5s", "--at-least", "10m"], &SHOW);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(
        told.err.contains("\"event\":\"released\"") && told.err.contains("\"kept_ms\":59"),
        "{}",
        told.err
    );
    eventually_kept(&masters, 500_000);
    let status = call(&masters, &["status", JOB], None);
    assert_eq!(status.code, Some(0), "{}", status.out);
}

#[test]
fn a_lock_that_was_left_held_may_be_kept_as_well() {
    let masters = masters(3);
    let token = acquire(&masters, &["--ttl", "5s"]);
    let told = call(&masters, &["release", "--keep-for", "10m", JOB], Some(&token));
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""));
    eventually_kept(&masters, 500_000);
    // The key has another value now, so the token does not extend it.
    assert_eq!(call(&masters, &["extend", JOB], Some(&token)).code, Some(75));
    assert_eq!(call(&masters, &["release", JOB], Some(&token)).code, Some(75));
    let cleared = call(&masters, &["force-release", "--yes-delete-it-whoever-holds-it", JOB], None);
    assert_eq!(cleared.code, Some(0), "{}", cleared.err);
    assert_free(&masters);
}

#[test]
fn options_that_make_no_sense_exit_with_64_before_anything_is_locked() {
    let masters = masters(1);
    for (options, says) in [
        (&["--at-least", "0"][..], "--at-least"),
        (&["--at-least", "400d"], "--at-least must not be longer than 366 d"),
        (&["--restart-guard", "1m", "--at-least", "2m"], "must not be longer than --restart-guard"),
    ] {
        let refused = run(&masters, options, &SHOW);
        assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{options:?}: {}", refused.err);
        assert!(refused.err.contains(says), "{}", refused.err);
    }
    let refused = call(&masters, &["release", "--keep-for", "400d", JOB], Some(&"ab".repeat(20)));
    assert_eq!(refused.code, Some(64), "{}", refused.err);
    assert_free(&masters);
}
