//! Masters that are stopped or dead before the lock is taken.

use std::time::Duration;

use quorlock_tests::{Direction, FaultProxy, RedisServer, masters};

use crate::running::{HOLD, JOB, SHOW, assert_free, run, start, start_over};

#[test]
fn one_of_three_masters_stopped_or_dead_makes_no_difference() {
    let masters = masters(3);
    masters[1].stop();
    for _ in 0..2 {
        let mut run = start(&masters, &["-n"], &HOLD);
        run.first_line();
        assert!(masters[0].exists(JOB) && masters[2].exists(JOB));
        let ended = run.end();
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
        assert_free(&masters[..1]);
        assert_free(&masters[2..]);
        masters[1].kill();
    }
}

#[test]
fn a_refusal_names_the_master_that_is_stopped_or_dead() {
    let masters = masters(3);
    assert!(masters[0].set_nx(JOB, "x"));
    masters[1].stop();
    let name = |master: &RedisServer| master.address().to_string();

    let refused = run(&masters, &["-n"], &SHOW);
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{}", refused.err);
    assert!(refused.err.contains(&format!("{} no ", name(&masters[1]))), "{}", refused.err);

    masters[1].kill();
    let refused = run(&masters, &["-n"], &SHOW);
    assert_eq!(refused.out, "");
    let refusal = format!("{} connection refused", name(&masters[1]));
    assert!(refused.err.contains(&refusal), "{}", refused.err);
}

#[test]
fn with_two_of_three_masters_stopped_the_wait_ends_in_69_and_no_key_stays() {
    let masters = masters(3);
    masters[0].stop();
    masters[2].stop();
    for (wait, least) in [(["-w", "1s"], Duration::from_millis(800)), (["-w", "0"], Duration::ZERO)] {
        let refused = run(&masters, &[&wait[..], &["--ttl", "1m"]].concat(), &SHOW);
        assert_eq!((refused.code, refused.out.as_str()), (Some(69), ""), "{}", refused.err);
        assert!(refused.took >= least && refused.took < Duration::from_secs(5), "{:?}", refused.took);
        assert_free(&masters[1..2]);
    }
    masters[0].cont();
    masters[2].cont();
    assert_free(&masters);
}

#[test]
fn with_two_of_three_masters_dead_the_wait_ends_in_69_and_no_key_stays() {
    let masters = masters(3);
    masters[0].kill();
    masters[1].kill();

    let refused = run(&masters, &["-w", "500ms", "--ttl", "1m"], &SHOW);

    assert_eq!((refused.code, refused.out.as_str()), (Some(69), ""), "{}", refused.err);
    assert!(refused.took >= Duration::from_millis(400), "{:?}", refused.took);
    assert!(refused.took < Duration::from_secs(5), "{:?}", refused.took);
    assert_free(&masters[2..]);
}

#[test]
fn with_all_masters_dead_one_try_ends_in_69_at_once() {
    let masters = masters(3);
    masters.iter().for_each(RedisServer::kill);

    let refused = run(&masters, &["-n"], &SHOW);

    assert_eq!((refused.code, refused.out.as_str()), (Some(69), ""), "{}", refused.err);
    assert!(refused.took < Duration::from_secs(5), "{:?}", refused.took);
    // Two masters decide the outcome; the third may not have answered by then.
    assert!(refused.err.matches("connection refused").count() >= 2, "{}", refused.err);
}

#[test]
fn a_wait_without_a_quorum_of_masters_is_reported_after_some_seconds() {
    let masters = masters(3);
    masters[0].kill();
    masters[1].kill();
    let dead = |master: &RedisServer| format!("{} connection refused", master.address());

    let refused = run(&masters, &["-w", "6s"], &SHOW);

    assert_eq!(refused.code, Some(69), "{}", refused.err);
    let [warning, _] = refused.err.lines().collect::<Vec<_>>()[..] else { panic!("{}", refused.err) };
    let causes = format!("{}; {}", dead(&masters[0]), dead(&masters[1]));
    assert!(
        warning
            .ends_with(&format!("still waiting for {JOB}: 1 of 3 masters can vote, 2 are needed: {causes}")),
        "{warning}"
    );
}

#[test]
fn one_try_has_time_for_masters_that_are_far_away() {
    let masters = masters(3);
    let far: Vec<_> = masters.iter().map(|master| FaultProxy::start(master.address())).collect();
    for proxy in &far {
        proxy.delay(Direction::ToServer, Duration::from_millis(300));
    }
    let urls: Vec<_> = far.iter().map(FaultProxy::url).collect();

    let ended = start_over(&urls, &["-n"], &SHOW).end();

    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
}

/// A balancer that has forgotten idle connections drops what is written to them, or resets them.
#[test]
fn no_key_stays_behind_connections_that_were_forgotten_while_the_command_ran() {
    for resets in [false, true] {
        let masters = masters(3);
        let proxies: Vec<_> = masters.iter().map(|master| FaultProxy::start(master.address())).collect();
        let urls: Vec<_> = proxies.iter().map(FaultProxy::url).collect();
        let mut run = start_over(&urls, &["--ttl", "60s"], &HOLD);
        run.first_line();
        std::thread::sleep(Duration::from_secs(6));
        let forget = if resets { FaultProxy::half_open_until_used } else { FaultProxy::half_open };
        proxies.iter().for_each(forget);

        let ended = run.end();

        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
        let left = masters.iter().filter(|master| master.exists(JOB)).count();
        assert_eq!(left, 0, "keys that are left after the end, resets: {resets}");
    }
}

#[test]
fn a_run_without_a_limit_waits_for_masters_that_come_back() {
    let masters = masters(3);
    masters[0].kill();
    masters[1].kill();
    let mut run = start(&masters, &[], &HOLD);
    std::thread::sleep(Duration::from_millis(300));
    assert!(run.goes_on());

    masters[0].restart();
    run.first_line();

    assert_eq!(run.end().code, Some(0));
    masters[1].restart();
    assert_free(&masters);
}

#[test]
fn a_master_that_dies_while_the_command_runs_makes_no_difference() {
    let masters = masters(3);
    let mut run = start(&masters, &["--ttl", "1s"], &HOLD);
    run.first_line();
    masters[2].kill();
    std::thread::sleep(Duration::from_secs(2));

    assert_eq!(masters[..2].iter().filter(|master| master.exists(JOB)).count(), 2);
    let ended = run.end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert_free(&masters[..2]);
}

#[test]
fn a_release_without_a_confirmation_is_a_warning_and_the_commands_code_stays() {
    let masters = masters(3);
    let mut run = start(&masters, &["--ttl", "1m"], &["sh", "-c", "echo runs; cat; exit 6"]);
    run.first_line();
    masters[0].stop();
    masters[1].stop();

    let ended = run.end();

    assert_eq!(ended.code, Some(6), "{}", ended.err);
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    masters[0].cont();
    masters[1].cont();
    assert_free(&masters);
}
