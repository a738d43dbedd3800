//! When the lock is lost under the program, or may not be held for longer.

use std::time::{Duration, Instant};

use quorlock_tests::{RedisServer, masters};
use rustix::process::Signal;

use super::process::{gone, held_on, run};

/// Says when TERM came, and ends.
const GIVES_IN: &str = "trap 'echo TERM; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
/// Says when TERM came, and stays.
const STAYS: &str = "trap 'echo TERM' TERM; echo ready; while :; do sleep 0.02; done";

#[test]
fn renewal_keeps_the_key_for_several_ttls() {
    let masters = masters(3);
    let quorlock = run(&masters, &["--ttl", "600ms"], "sleep 2.5");
    held_on(&masters, 3);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        assert!(masters.iter().all(|master| master.exists("job")), "renewed after {:?}", begun.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(quorlock.end().code(), 0);
    gone(&masters);
}

#[test]
fn without_renewal_the_program_is_ended_before_the_lock_is() {
    let masters = masters(3);
    let mut quorlock = run(&masters, &["--ttl", "1500ms", "--no-renew"], GIVES_IN);
    quorlock.ready();
    let ended = quorlock.end();
    assert_eq!((ended.code(), ended.out.as_str()), (75, "TERM\n"), "{}", ended.err);
    gone(&masters);
}

#[test]
fn at_the_longest_hold_the_program_gets_term() {
    let masters = masters(3);
    let begun = Instant::now();
    let mut quorlock = run(&masters, &["--ttl", "2s", "--max-hold", "500ms"], GIVES_IN);
    quorlock.ready();
    let ended = quorlock.end();
    assert_eq!((ended.code(), ended.out.as_str()), (75, "TERM\n"), "{}", ended.err);
    assert!(begun.elapsed() >= Duration::from_millis(500));
    gone(&masters);
}

#[test]
fn when_no_quorum_renews_the_program_gets_term_and_what_stays_is_killed_before_validity_ends() {
    for script in [GIVES_IN, STAYS] {
        let masters = masters(3);
        let mut quorlock = run(&masters, &["--ttl", "2s"], script);
        quorlock.ready();
        let (survivor, others) = masters.split_first().unwrap();
        others.iter().for_each(RedisServer::kill);

        // The survivor's key was given its life at the last renewal, so it marks the end of validity, and a bit more.
        let ended = quorlock.end();
        let held = survivor.pttl("job");

        assert_eq!((ended.code(), ended.out.as_str()), (75, "TERM\n"), "{}", ended.err);
        assert!(held == -2 || held > 0, "released, or not expired yet: {held}");
        gone(std::slice::from_ref(survivor));
    }
}

#[test]
fn a_program_that_stays_is_gone_before_another_can_hold_the_lock() {
    let masters = masters(3);
    // Each line is the time in nanoseconds; the last one must lie before the key could have expired anywhere.
    let script = "trap '' TERM; echo ready; while :; do date +%s%N; sleep 0.01; done";
    let mut quorlock = run(&masters, &["--ttl", "1s", "--no-renew"], script);
    quorlock.ready();
    held_on(&masters, 3);
    let ends: Vec<i64> = masters.iter().map(|master| unix_millis() + master.pttl("job")).collect();

    let ended = quorlock.end();

    assert_eq!(ended.code(), 75, "{}", ended.err);
    let last: i64 = ended.out.lines().last().unwrap().parse::<i64>().unwrap() / 1_000_000;
    assert!(ends.iter().all(|end| last <= *end), "{last} is not after any of {ends:?}");
}

#[test]
fn keys_that_were_deleted_by_hand_end_the_program_at_the_next_renewal() {
    let masters = masters(3);
    let mut quorlock = run(&masters, &["--ttl", "1500ms"], GIVES_IN);
    quorlock.ready();
    held_on(&masters, 3);
    for master in masters.iter().take(2) {
        assert!(master.del("job"));
    }
    let ended = quorlock.end();
    // Nothing is left of its validity, so KILL follows TERM at once, and the program may not get to say anything.
    assert_eq!(ended.code(), 75, "{}", ended.err);
    assert!(ended.err.contains("job was lost"), "{}", ended.err);
    gone(&masters);
}

#[test]
fn stopped_past_its_validity_it_ends_the_program_when_it_goes_on() {
    let masters = masters(3);
    let mut quorlock = run(&masters, &["--ttl", "500ms"], STAYS);
    quorlock.ready();
    quorlock.signal(Signal::STOP);
    gone(&masters);
    assert!(quorlock.is_running());

    quorlock.signal(Signal::CONT);

    assert_eq!(quorlock.end().code(), 75);
}

fn unix_millis() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}
