//! The lock ends before the command does.

use std::time::{Duration, Instant};

use quorlock_tests::{Fleet, eventually, masters};
use rustix::process::Signal;

use crate::running::{Ended, HOLD, JOB, Running, SOON, TICK_ON, assert_free, run, start};

const LOST: Option<i32> = Some(75);

/// When a command was asked to terminate, and when it last ticked.
struct Observed {
    asked: Option<Instant>,
    last_tick: Instant,
    ended: Ended,
}

/// Watches a ticking command to its end. Events are seen here a little after they happen.
fn watch(mut run: Running) -> Observed {
    let (mut seen, mut asked, mut last_tick) = (0, None, Instant::now());
    let give_up = Instant::now() + SOON;
    loop {
        let goes_on = run.goes_on();
        let out = run.out();
        if out.len() > seen {
            last_tick = Instant::now();
            seen = out.len();
        }
        if asked.is_none() && out.contains("asked") {
            asked = Some(last_tick);
        }
        if !goes_on {
            return Observed { asked, last_tick, ended: run.end() };
        }
        assert!(Instant::now() < give_up, "the run does not end: {:?}", run.err());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for a moment in which no renewal is near, and returns when the key ends if there is no
/// further one.
fn end_without_renewal(masters: &Fleet, ttl: i64) -> Instant {
    let mut end = None;
    eventually(SOON, "a renewal has just been", || {
        let left = masters.first().expect("there are masters").pttl(JOB);
        let left = (left > ttl * 17 / 20).then(|| Duration::from_millis(u64::try_from(left).unwrap()));
        end = left.map(|left| Instant::now() + left);
        end.is_some()
    });
    end.unwrap()
}

#[test]
fn when_no_quorum_renews_the_command_is_asked_to_end_and_killed_before_its_lock_ends() {
    let masters = masters(3);
    let mut run = start(&masters, &["--ttl", "3s"], &TICK_ON);
    run.first_line();
    let end = end_without_renewal(&masters, 3000);
    masters[0].kill();
    masters[1].kill();
    let killed = Instant::now();

    let observed = watch(run);

    let asked = observed.asked.expect("the command is asked first");
    assert!(asked < end, "asked {:?} too late", asked - end);
    // The grace is a quarter of the TTL. Until it begins, renewal is tried.
    assert!(asked - killed > Duration::from_secs(1), "asked after {:?} already", asked - killed);
    assert!(observed.last_tick > asked + Duration::from_millis(300), "no time was left");
    assert!(observed.last_tick < end, "it lived on for {:?}", observed.last_tick - end);
    assert_eq!(observed.ended.code, LOST);
    assert!(observed.ended.err.contains("could not be renewed"), "{}", observed.ended.err);
    assert!(observed.ended.err.contains("SIGKILL"), "{}", observed.ended.err);
    assert_free(&masters[2..]);
}

#[test]
fn when_no_quorum_renews_a_command_that_ends_when_it_is_asked_is_not_killed() {
    let masters = masters(3);
    let script = "trap 'echo asked; exit 0' TERM; echo runs; while :; do read -r _ || exit; done";
    let mut run = start(&masters, &["--ttl", "2s"], &["sh", "-c", script]);
    run.first_line();
    masters[0].stop();
    masters[2].stop();

    let ended = run.end_by_itself();

    assert_eq!((ended.code, ended.out.as_str()), (LOST, "runs\nasked\n"));
    assert!(!ended.err.contains("SIGKILL"), "{}", ended.err);
    assert_free(&masters[1..2]);
    masters[0].cont();
    masters[2].cont();
    assert_free(&masters);
}

#[test]
fn masters_that_come_back_before_grace_begins_keep_the_command_running() {
    // The masters keep their data, as masters of locks must.
    let masters = Fleet::start(3, |options, _| options.append_only());
    let mut run = start(&masters, &["--ttl", "4s"], &HOLD);
    run.first_line();
    eventually(SOON, "the key is on every master", || masters.holding(JOB) == 3);
    masters[0].kill();
    masters[1].kill();
    std::thread::sleep(Duration::from_millis(1500));
    masters[0].restart();
    std::thread::sleep(Duration::from_secs(4));

    assert!(run.goes_on(), "{}", run.err());
    let ended = run.end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
}

#[test]
fn when_the_key_is_deleted_on_a_quorum_the_next_renewal_ends_the_command() {
    let masters = masters(3);
    let mut run = start(&masters, &["--ttl", "6s"], &HOLD);
    run.first_line();
    eventually(SOON, "the key is on every master", || masters.holding(JOB) == 3);
    let begun = Instant::now();
    assert!(masters[0].del(JOB) && masters[1].del(JOB));

    let ended = run.end_by_itself();

    assert_eq!(ended.code, LOST);
    assert!(ended.err.contains("job was lost"), "{}", ended.err);
    // Renewal is at a third of the TTL; validity would end at the whole TTL.
    assert!(begun.elapsed() < Duration::from_millis(4500), "{:?}", begun.elapsed());
    assert_free(&masters);
}

#[test]
fn a_key_that_another_client_took_is_left_alone() {
    let masters = masters(3);
    let mut run = start(&masters, &["--ttl", "2s"], &HOLD);
    run.first_line();
    eventually(SOON, "the key is on every master", || masters.holding(JOB) == 3);
    for master in masters.iter() {
        assert!(master.command(&["SET", JOB, "x"]).is_ok());
    }

    assert_eq!(run.end_by_itself().code, LOST);

    assert_eq!(masters.get(JOB), [(); 3].map(|()| Some("x".to_owned())));
}

#[test]
fn a_key_that_is_gone_when_the_command_ends_exits_with_75() {
    let masters = masters(3);
    let mut run = start(&masters, &["--ttl", "1m"], &HOLD);
    run.first_line();
    eventually(SOON, "the key is on every master", || masters.holding(JOB) == 3);
    assert!(masters[0].del(JOB) && masters[1].del(JOB));

    let ended = run.end();

    assert_eq!(ended.code, LOST, "{}", ended.err);
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    assert_free(&masters);
}

#[test]
fn without_renewal_the_command_is_asked_to_end_before_its_lock_ends() {
    let masters = masters(3);
    let mut run = start(&masters, &["--ttl", "2s", "--no-renew"], &TICK_ON);
    run.first_line();
    let left = masters[0].pttl(JOB).max(masters[1].pttl(JOB));
    let end = Instant::now() + Duration::from_millis(u64::try_from(left).unwrap());

    let observed = watch(run);

    let asked = observed.asked.expect("the command is asked first");
    assert!(asked < end && observed.last_tick < end);
    assert_eq!(observed.ended.code, LOST);
    assert!(observed.ended.took > Duration::from_millis(1200), "{:?}", observed.ended.took);
    assert!(!observed.ended.err.contains("could not be renewed"), "{}", observed.ended.err);
    assert!(observed.ended.err.contains("--no-renew"), "{}", observed.ended.err);
    assert_free(&masters);
}

#[test]
fn without_renewal_a_command_that_ends_in_time_is_fine() {
    let masters = masters(3);
    let ended = run(&masters, &["--ttl", "5s", "--no-renew"], &["sh", "-c", "exit 3"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(3), ""));
    assert_free(&masters);
}

#[test]
fn grace_says_how_long_before_the_end_the_command_is_asked() {
    let masters = masters(3);
    let ended = run(&masters, &["--ttl", "4s", "--grace", "1900ms", "--no-renew"], &["sleep", "20"]);
    assert_eq!(ended.code, LOST);
    assert!(ended.took > Duration::from_millis(1500), "{:?}", ended.took);
    // Without the option the command would have been asked to terminate after 3 s.
    assert!(ended.took < Duration::from_millis(2900), "{:?}", ended.took);
}

#[test]
fn at_the_longest_hold_the_command_is_asked_to_end() {
    let masters = masters(3);
    // The loop ends in time even if it is not ended from outside.
    let script = "trap 'echo asked; exit 0' TERM; echo runs; \
                  n=0; while [ $n -lt 1500 ]; do sleep 0.02; n=$((n + 1)); done";
    let ended = run(&masters, &["--ttl", "1m", "--max-hold", "1500ms"], &["sh", "-c", script]);
    assert_eq!(ended.code, LOST);
    assert!(ended.out.ends_with("asked\n"), "{}", ended.out);
    assert!(ended.err.contains("--max-hold"), "{}", ended.err);
    assert!(ended.took >= Duration::from_millis(1500), "{:?}", ended.took);
    assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
    assert_free(&masters);
}

#[test]
fn at_the_longest_hold_a_command_that_stays_is_killed_when_its_lock_runs_out() {
    let masters = masters(3);
    let observed = watch(start(&masters, &["--ttl", "1500ms", "--max-hold", "500ms"], &TICK_ON));
    assert!(observed.asked.is_some());
    assert_eq!(observed.ended.code, LOST);
    assert!(observed.ended.took < Duration::from_secs(6), "{:?}", observed.ended.took);
    assert_free(&masters);
}

#[test]
fn background_processes_of_a_lost_command_are_killed_too() {
    let masters = masters(3);
    let script = format!("({}) & exec cat", TICK_ON[2]);
    let mut run = start(&masters, &["--ttl", "1500ms", "--no-renew"], &["sh", "-c", &script]);
    run.first_line();
    eventually(SOON, "the run ends", || !run.goes_on());

    // One tick may have been on its way, but not two.
    let ticks = run.out().len();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(run.out().len(), ticks);
    assert_eq!(run.end().code, LOST);
}

#[test]
fn a_run_that_was_stopped_for_longer_than_its_lock_ends_the_command() {
    let masters = masters(3);
    let mut run = start(&masters, &["--ttl", "1s"], &HOLD);
    run.first_line();
    run.signal(Signal::STOP);
    eventually(SOON, "the key has expired", || masters.holding(JOB) == 0);
    assert!(run.goes_on());
    assert!(masters.iter().all(|master| master.set_nx(JOB, "x")));
    run.signal(Signal::CONT);
    let continued = Instant::now();

    let ended = run.end_by_itself();

    assert_eq!(ended.code, LOST, "{}", ended.err);
    assert!(ended.err.contains("job was lost"), "{}", ended.err);
    assert!(continued.elapsed() < Duration::from_secs(5), "{:?}", continued.elapsed());
    assert_eq!(masters.get(JOB), [(); 3].map(|()| Some("x".to_owned())));
}
