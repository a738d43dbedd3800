//! A command runs under the lock: the key exists, and input, output and arguments pass through.

use std::time::{Duration, Instant};

use quorlock_tests::{ServerOptions, eventually_equals, master, masters};

use crate::running::{HOLD, JOB, Running, SOON, TELL, assert_free, quorlock, run, start, start_over};

#[test]
fn the_token_is_a_plain_string_on_every_master_until_the_command_ends() {
    let masters = masters(3);
    let mut run = start(&masters, &["--ttl", "30s"], &TELL);
    let token = run.first_line();

    assert_eq!(token.len(), 40);
    assert!(token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{token}");
    for master in masters.iter() {
        // The run continues with a quorum; the third answer may come a moment later.
        eventually_equals(SOON, "the key is there", Some(token.clone()), || master.get(JOB));
        assert_eq!(master.command(&["TYPE", JOB]).text(), Some("string"));
        let left = master.pttl(JOB);
        assert!((1..=30_000).contains(&left), "{left} ms");
    }
    let ended = run.end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert_free(&masters);
}

#[test]
fn one_master_two_masters_and_four_masters_work() {
    for number in [1, 2, 4] {
        let masters = masters(number);
        let mut run = start(&masters, &[], &HOLD);
        run.first_line();

        assert!(masters.holding(JOB) > number / 2, "of {number}");
        assert_eq!(run.end().code, Some(0), "of {number}");
        assert_free(&masters);
    }
}

#[test]
fn the_masters_may_come_from_the_environment() {
    let masters = masters(3);
    let mut command = quorlock(&["run", JOB, "cat"]);
    let ended = Running::of(command.env("QUORLOCK_MASTERS", masters.urls().join(", "))).end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
}

#[test]
fn standard_input_output_and_error_are_the_commands() {
    let masters = masters(3);
    let mut run = start(&masters, &[], &["sh", "-c", "echo runs; cat; echo \"to err\" >&2"]);
    run.first_line();
    run.say("through the pipe\n");

    let ended = run.end();
    assert_eq!(ended.out, "runs\nthrough the pipe\n");
    assert_eq!(ended.err, "to err\n");
    assert_eq!(ended.code, Some(0));
}

#[test]
fn the_exit_code_is_the_commands_own_or_128_and_the_signal() {
    let masters = masters(3);
    for (script, code) in
        [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137)]
    {
        let ended = run(&masters, &[], &["sh", "-c", script]);
        assert_eq!((ended.code, ended.err.as_str()), (Some(code), ""), "{script}");
        assert_free(&masters);
    }
}

#[test]
fn a_command_that_cannot_be_run_exits_with_126_a_missing_one_with_127_and_no_key_stays() {
    let masters = masters(3);
    for (program, code) in
        [("/dev/null", 126), ("/nonexistent/program", 127), ("quorlock-no-such-program", 127)]
    {
        let ended = run(&masters, &["--ttl", "1m"], &[program]);
        assert_eq!(ended.code, Some(code), "{program}: {}", ended.err);
        assert!(ended.err.contains(program), "{}", ended.err);
        assert_free(&masters);
    }
}

#[test]
fn arguments_of_the_command_are_left_alone() {
    let masters = masters(3);
    let words = ["sh", "-c", "printf '[%s]' \"$@\"", "sh", "-n", "--", "--ttl", "a b", ""];
    assert_eq!(run(&masters, &[], &words).out, "[-n][--][--ttl][a b][]");
}

#[test]
fn a_lock_with_an_unusual_name_is_that_key() {
    let master = master();
    let name = "über uns:\t42";
    let script = "printf '%s\\n' \"$QUORLOCK_RESOURCE\"; exec cat";
    let mut run = Running::of(&mut quorlock(&["run", "-m", &master.url(), name, "sh", "-c", script]));

    assert_eq!(run.first_line(), name);
    assert!(master.exists(name));
    assert_eq!(run.end().code, Some(0));
}

#[test]
fn a_command_that_runs_for_three_ttls_keeps_its_key() {
    let masters = masters(3);
    let mut run = start(&masters, &["--ttl", "1s"], &TELL);
    let token = run.first_line();

    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        let ours = masters.get(JOB).iter().filter(|value| value.as_deref() == Some(&token)).count();
        assert!(ours >= 2, "the key is on {ours} of 3 masters: {:?}", run.err());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(run.goes_on());
    let ended = run.end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert_free(&masters);
}

#[test]
fn password_and_database_work_in_urls() {
    let server = ServerOptions::new().password("p@ss word/é").start_any();
    let tcp = format!("{}/3", server.url());
    let mut run = start_over(&[&tcp], &[], &HOLD);
    run.first_line();
    let mut client = server.client().unwrap();
    client.command(&["SELECT", "3"]);
    assert_eq!(client.command(&["EXISTS", JOB]).int(), Some(1));
    assert_eq!(run.end().code, Some(0));
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_unix_socket_and_its_password_work_in_urls() {
    let server = ServerOptions::new().password("p@ss word/é").unix_socket().start();
    let unix = format!("{}?pass=p%40ss%20word%2F%C3%A9", server.unix_url());
    let mut run = start_over(&[&unix], &[], &HOLD);
    run.first_line();
    assert!(server.exists(JOB));
    assert_eq!(run.end().code, Some(0));
}

#[test]
fn background_processes_of_the_command_delay_neither_the_end_nor_the_release() {
    let masters = masters(3);
    let begun = Instant::now();
    let ended = run(&masters, &["--ttl", "1m"], &["sh", "-c", "sleep 10 & exit 4"]);
    assert_eq!(ended.code, Some(4));
    assert!(begun.elapsed() < Duration::from_secs(9));
    assert_free(&masters);
}

#[test]
fn ten_runs_for_one_lock_never_overlap() {
    let masters = masters(3);
    let directory = tempfile::tempdir().unwrap();
    // mkdir is atomic: it fails if another command is inside.
    let inside = directory.path().join("inside");
    let script = format!("mkdir '{0}' && sleep 0.02 && rmdir '{0}'", inside.display());

    let runs: Vec<_> = (0..10).map(|_| start(&masters, &[], &["sh", "-c", &script])).collect();

    for run in runs {
        let ended = run.end();
        // With this many runs at once, masters may be too slow to confirm a release. That is only
        // reported.
        assert_eq!(ended.code, Some(0), "{}", ended.err);
    }
    assert_free(&masters);
}
