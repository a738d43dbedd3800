//! How soon the command gets TERM once its lock is lost or is about to end.

use std::time::{Duration, Instant};

use quorlock_tests::{Calls, Fleet, RedisServer, eventually, masters};
use rustix::process::Signal;

use crate::running::{JOB, Running, SOON, call, start};

/// The longest time from the event that ends a hold to TERM.
const BOUND: Duration = Duration::from_millis(50);

/// A busy machine may delay any process by more than [`BOUND`], so the best of a few tries counts.
/// If a loss caused no wake-up, all tries would be slow: the next check is hundreds of milliseconds
/// away.
const TRIES: usize = 4;

const TTL: Duration = Duration::from_secs(4);
const TTL_OPTION: [&str; 2] = ["--ttl", "4s"];

/// Prints that it runs, and when it is asked to end. `read` is a builtin that a signal interrupts,
/// so the trap runs at once.
const TELL_TERM: [&str; 3] =
    ["sh", "-c", "trap 'echo asked; exit 0' TERM; echo runs; while :; do read -r _ || exit; done"];

/// Starts a run whose key is on every master.
#[track_caller]
fn holding(masters: &Fleet, options: &[&str]) -> Running {
    let mut run = start(masters, &[&TTL_OPTION, options].concat(), &TELL_TERM);
    run.first_line();
    eventually(SOON, "the key is on every master", || masters.holding(JOB) == masters.len());
    run
}

/// Checks every millisecond until `holds`, and returns when it did.
#[track_caller]
fn when(what: &str, mut holds: impl FnMut() -> bool) -> Instant {
    let give_up = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < give_up, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
    Instant::now()
}

#[track_caller]
fn when_asked(run: &mut Running) -> Instant {
    when("the command is asked to end", || run.out().contains("asked") || !run.goes_on())
}

/// When this master gets the next request to extend.
#[track_caller]
fn when_renewed(master: &RedisServer) -> Instant {
    let before = master.calls(Calls::Script);
    when("a renewal", || master.calls(Calls::Script) > before)
}

/// Fails unless one of a few tries keeps to [`BOUND`]. Each try returns how far TERM was from its
/// time.
#[track_caller]
fn prompt(cause: &str, mut attempt: impl FnMut() -> Duration) {
    let mut took = Vec::new();
    for _ in 0..TRIES {
        took.push(attempt());
        if took.last().is_some_and(|took| *took <= BOUND) {
            return;
        }
    }
    panic!("{cause}: TERM was off by {took:?}");
}

/// The time from the renewal that finds the loss to TERM must be short. `lose` makes the lock lost.
#[track_caller]
fn prompt_after_renewal(cause: &str, options: &[&str], fleet: impl Fn() -> Fleet, lose: impl Fn(&Fleet)) {
    prompt(cause, || {
        let masters = fleet();
        let mut run = holding(&masters, options);
        lose(&masters);
        let renewed = when_renewed(masters.first().expect("there are masters"));
        let asked = when_asked(&mut run);
        let ended = run.end_by_itself();
        assert_eq!(ended.code, Some(75), "{}", ended.err);
        assert!(ended.err.contains("job was lost"), "{}", ended.err);
        asked.saturating_duration_since(renewed)
    });
}

#[test]
fn keys_deleted_on_a_quorum_end_the_command_promptly() {
    prompt_after_renewal(
        "deleted",
        &[],
        || masters(3),
        |masters| {
            assert!(masters[0].del(JOB) && masters[1].del(JOB));
        },
    );
}

#[test]
fn keys_overwritten_by_another_client_end_the_command_promptly() {
    prompt_after_renewal(
        "overwritten",
        &[],
        || masters(3),
        |masters| {
            for master in masters.iter() {
                assert!(master.command(&["SET", JOB, "x"]).is_ok());
            }
        },
    );
}

#[test]
fn masters_flushed_under_the_restart_guard_end_the_command_promptly() {
    let guard = ["--restart-guard", "1m"];
    let fleet = || {
        let masters = masters(3);
        assert_eq!(call(&masters, &[&["bootstrap"], &guard[..]].concat(), None).code, Some(0));
        masters
    };
    prompt_after_renewal("flushed", &guard, fleet, |masters| {
        assert!(masters.iter().all(|master| master.command(&["FLUSHALL"]).is_ok()));
    });
}

#[test]
fn a_deleted_fenced_and_healed_lock_ends_the_command_promptly() {
    prompt_after_renewal(
        "fenced",
        &["--fenced", "--heal"],
        || masters(3),
        |masters| {
            assert!(masters.iter().all(|master| master.del(JOB)));
        },
    );
}

/// When validity ends: the drift before the end of the key that lives longest.
#[track_caller]
fn end_of_validity(masters: &Fleet) -> Instant {
    let now = Instant::now();
    let left = masters.iter().map(|master| master.pttl(JOB)).max().expect("there are masters");
    let drift = TTL / 100 + Duration::from_millis(2);
    now + Duration::from_millis(u64::try_from(left).expect("a life that is left")) - drift
}

/// TERM must come shortly after the beginning of grace, and not before it. `ail` keeps the lock
/// from being renewed. Validity counts from before the first send, and the keys' lives from when
/// the masters execute the request. If a busy machine delays them, grace seems to begin too late,
/// so a TERM that seems to come too early is another failed try.
#[track_caller]
fn prompt_at_grace(cause: &str, options: &[&str], ail: impl Fn(&Fleet)) {
    prompt(cause, || {
        let masters = masters(3);
        let mut run = holding(&masters, &[&["--grace", "1900ms"], options].concat());
        let end = end_of_validity(&masters);
        ail(&masters);
        let asked = when_asked(&mut run);
        // The masters continue, because masters that hang would delay the release.
        masters.iter().filter(|master| master.is_running()).for_each(RedisServer::cont);
        let ended = run.end_by_itself();
        assert_eq!(ended.code, Some(75), "{}", ended.err);
        let grace = end - Duration::from_millis(1900);
        asked.saturating_duration_since(grace).max(grace.saturating_duration_since(asked))
    });
}

#[test]
fn a_lock_that_runs_out_because_masters_are_dead_ends_the_command_promptly() {
    prompt_at_grace("dead", &[], |masters| {
        masters[0].kill();
        masters[1].kill();
    });
}

#[test]
fn a_lock_that_runs_out_because_masters_hang_ends_the_command_promptly() {
    prompt_at_grace("hung", &[], |masters| {
        masters[0].stop();
        masters[2].stop();
    });
}

#[test]
fn a_lock_that_runs_out_because_it_is_not_renewed_ends_the_command_promptly() {
    prompt_at_grace("not renewed", &["--no-renew"], |_| {});
}

#[test]
fn a_lock_that_runs_out_while_quorlock_is_stopped_ends_the_command_promptly() {
    prompt("stopped", || {
        let masters = masters(3);
        let mut run = holding(&masters, &[]);
        run.signal(Signal::STOP);
        eventually(SOON, "the key has expired", || masters.holding(JOB) == 0);
        let continued = Instant::now();
        run.signal(Signal::CONT);
        let asked = when_asked(&mut run);
        assert_eq!(run.end_by_itself().code, Some(75));
        asked.saturating_duration_since(continued)
    });
}

#[test]
fn the_longest_hold_ends_the_command_promptly() {
    prompt("--max-hold", || {
        let masters = masters(3);
        let mut run = start(&masters, &["--ttl", "1m", "--max-hold", "700ms"], &TELL_TERM);
        let begun = when("the command runs", || run.out().contains("runs") || !run.goes_on());
        let asked = when_asked(&mut run);
        assert_eq!(run.end_by_itself().code, Some(75));
        asked.saturating_duration_since(begun + Duration::from_millis(700))
    });
}
