//! Taking the lock, and being refused.

use std::io::Write;
use std::time::{Duration, Instant};

use quorlock_tests::masters;

use super::process::{gone, held_on, on, run, start};

#[test]
fn the_key_is_the_token_on_every_master_while_the_program_runs_and_gone_after() {
    let masters = masters(3);
    let script = "printf '%s %s\\n' \"$QUORLOCK_RESOURCE\" \"$QUORLOCK_TOKEN\"; cat >/dev/null";

    let quorlock = run(&masters, &["--ttl", "5s"], script);
    held_on(&masters, 3);
    let values = masters.get("job");
    assert!(masters.iter().all(|master| (1..=5_000).contains(&master.pttl("job"))));
    let ended = quorlock.end();

    assert_eq!(ended.code(), 0, "{}", ended.err);
    let (resource, token) = ended.out.trim().split_once(' ').unwrap();
    assert_eq!(resource, "job");
    assert_eq!(token.len(), 40);
    assert!(values.iter().all(|value| value.as_deref() == Some(token)), "{values:?}");
    gone(&masters);
}

#[test]
fn one_and_two_masters_are_enough_where_no_more_are_configured() {
    for count in [1, 2] {
        let masters = masters(count);
        assert_eq!(run(&masters, &[], "exit 0").end().code(), 0);
        gone(&masters);
    }
}

#[test]
fn standard_streams_and_the_exit_code_are_the_programs_own() {
    let masters = masters(3);
    let mut quorlock = run(&masters, &[], "cat; echo oops >&2; exit 7");
    quorlock.stdin().write_all(b"through and through").unwrap();

    let ended = quorlock.end();

    assert_eq!(ended.code(), 7);
    assert_eq!(ended.out, "through and through");
    assert_eq!(ended.err, "oops\n");
}

#[test]
fn a_second_one_is_refused_at_once_or_after_its_wait_with_the_code_it_asked_for() {
    let masters = masters(3);
    let holder = run(&masters, &[], "cat");
    held_on(&masters, 3);

    let at_once = run(&masters, &["-n"], "echo no").end();
    assert_eq!((at_once.code(), at_once.out.as_str()), (1, ""));
    assert!(at_once.err.contains("held by another for"), "{}", at_once.err);

    let begun = Instant::now();
    let after_a_wait = run(&masters, &["-w", "500ms"], "echo no").end();
    assert_eq!((after_a_wait.code(), after_a_wait.out.as_str()), (1, ""));
    assert!(begun.elapsed() >= Duration::from_millis(400), "it waits");
    assert!(begun.elapsed() < Duration::from_secs(5), "and not for long");

    assert_eq!(run(&masters, &["-n", "-E", "42"], "echo no").end().code(), 42);
    assert_eq!(holder.end().code(), 0);
}

#[test]
fn one_that_waits_runs_when_the_first_has_ended() {
    let masters = masters(3);
    let holder = run(&masters, &[], "cat");
    held_on(&masters, 3);

    let mut waiter = run(&masters, &[], "echo mine");
    std::thread::sleep(Duration::from_millis(300));
    assert!(waiter.is_running());
    assert_eq!(holder.end().code(), 0);

    let ended = waiter.end();
    assert_eq!((ended.code(), ended.out.as_str()), (0, "mine\n"));
    gone(&masters);
}

#[test]
fn a_foreign_client_is_excluded_and_excludes() {
    let masters = masters(3);
    let holder = run(&masters, &[], "cat");
    held_on(&masters, 3);
    assert!(masters.iter().all(|master| !master.set_nx("job", "x")));
    assert_eq!(holder.end().code(), 0);
    gone(&masters);

    assert!(masters.iter().all(|master| master.set_nx("job", "x")));
    assert_eq!(run(&masters, &["-n"], "echo no").end().code(), 1);
    assert!(masters.iter().all(|master| master.get("job").as_deref() == Some("x")));
}

#[test]
fn usage_and_configuration_are_64_and_start_nothing_and_tell_no_password() {
    let masters = masters(3);
    let url = masters.urls().remove(0);
    let secret = "redis://user:hunter2@127.0.0.1:1/notadatabase";
    for arguments in [
        vec!["job", "--", "echo", "no"],
        vec!["-m", &url],
        vec!["-m", &url, "job"],
        vec!["-m", &url, "--no-such-option", "job", "--", "echo", "no"],
        vec!["-m", &url, "--ttl", "0s", "job", "--", "echo", "no"],
        vec!["-m", &url, "--ttl", "10", "job", "--", "echo", "no"],
        vec!["-m", &url, "--ttl", "10s", "--grace", "5s", "job", "--", "echo", "no"],
        vec!["-m", &url, "-n", "-w", "1s", "job", "--", "echo", "no"],
        vec!["-m", &url, "-E", "256", "job", "--", "echo", "no"],
        vec!["-m", &url, "-m", &url, "job", "--", "echo", "no"],
        vec!["-m", &url, "", "--", "echo", "no"],
        vec!["-m", secret, "job", "--", "echo", "no"],
        vec!["-m", "rediss://127.0.0.1", "job", "--", "echo", "no"],
    ] {
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        let ended = start(&arguments, &[]).end();
        assert_eq!((ended.code(), ended.out.as_str()), (64, ""), "{arguments:?}: {}", ended.err);
        assert!(ended.err.starts_with("quorlock: "), "{arguments:?}: {}", ended.err);
        assert!(!ended.err.contains("hunter2"), "{}", ended.err);
    }
    gone(&masters);
}

#[test]
fn a_wrong_password_is_configuration() {
    let server = quorlock_tests::ServerOptions::new().password("right").start();
    let url = format!("redis://:wrong@127.0.0.1:{}", server.port());
    let arguments = ["-m", &url, "job", "--", "echo", "no"].map(str::to_owned);

    let ended = start(&arguments, &[]).end();

    assert_eq!((ended.code(), ended.out.as_str()), (64, ""), "{}", ended.err);
    assert!(ended.err.contains("WRONGPASS"), "{}", ended.err);
    assert!(!ended.err.contains("wrong@"), "{}", ended.err);
}

#[test]
fn masters_may_come_from_the_environment() {
    let masters = masters(3);
    let arguments = ["job", "--", "true"].map(str::to_owned);

    let ended = start(&arguments, &[("QUORLOCK_MASTERS", &masters.urls().join(","))]).end();

    assert_eq!(ended.code(), 0, "{}", ended.err);
}

#[test]
fn a_stopped_minority_costs_nothing_and_a_stopped_majority_is_69_within_the_wait() {
    let masters = masters(3);
    let (first, others) = masters.split_first().unwrap();
    others.last().unwrap().stop();
    assert_eq!(run(&masters, &[], "exit 0").end().code(), 0);

    others.first().unwrap().stop();
    let begun = Instant::now();
    let ended = run(&masters, &["-w", "1s"], "echo no").end();

    assert_eq!((ended.code(), ended.out.as_str()), (69, ""), "{}", ended.err);
    assert!(begun.elapsed() < Duration::from_secs(6), "within the wait");
    gone(std::slice::from_ref(first));
    for master in others {
        master.cont();
    }
    gone(&masters);
}

#[test]
fn dead_masters_are_69_at_once_and_named() {
    let masters = masters(3);
    masters.iter().for_each(quorlock_tests::RedisServer::kill);

    let ended = run(&masters, &["-n"], "echo no").end();

    assert_eq!((ended.code(), ended.out.as_str()), (69, ""));
    // Two of them settle it; the third may not have been heard by then.
    assert!(ended.err.matches("connection refused").count() >= 2, "{}", ended.err);
}

#[test]
fn json_is_one_object_a_line_and_quiet_says_nothing_and_no_token_is_told() {
    let masters = masters(3);
    let json = run(&masters, &["--json", "-v"], "echo $QUORLOCK_TOKEN").end();
    assert!(json.err.lines().count() >= 2, "{}", json.err);
    assert!(json.err.lines().all(|line| line.starts_with('{') && line.ends_with('}')), "{}", json.err);
    assert!(!json.err.contains(json.out.trim()), "the token stays with the program");

    let quiet = run(&masters, &["-q"], "exit 0").end();
    assert_eq!(quiet.err, "");
    assert_eq!(on(&masters).len(), 6);
}
