//! Mistakes: exit code 64, a helpful sentence without a password, and nothing is started.

use quorlock_tests::{Fleet, ServerOptions, master, masters};

use crate::running::{JOB, Running, SHOW, assert_free, quorlock, run, start_over};

/// Runs `quorlock` with these arguments and returns its message.
#[track_caller]
fn refusal(arguments: &[&str]) -> String {
    let ended = Running::of(&mut quorlock(arguments)).end();
    assert_eq!((ended.code, ended.out.as_str()), (Some(64), ""), "{arguments:?}: {}", ended.err);
    assert_eq!(ended.err.lines().count(), 1, "{arguments:?}: {}", ended.err);
    assert!(ended.err.starts_with("quorlock: "), "{arguments:?}: {}", ended.err);
    assert!(!ended.err.contains("hunter2"), "{arguments:?}: {}", ended.err);
    ended.err
}

#[test]
fn a_command_line_that_makes_no_sense_exits_with_64_and_starts_nothing() {
    let master = master();
    let url = master.url();
    for (options, says) in [
        (&["--bogus"][..], "--bogus"),
        (&["-x"], "-x"),
        (&["--ttl", "0"], "--ttl"),
        (&["--ttl", "10"], "unit"),
        (&["--ttl", "-1s"], "--ttl"),
        (&["--ttl", "20ms"], "TTL"),
        (&["--ttl", "1s", "--grace", "500ms"], "--grace"),
        (&["--grace", "5s"], "--grace"),
        (&["--max-hold", "0"], "--max-hold"),
        (&["-w", "soon"], "--wait"),
        (&["-n", "-w", "1s"], "--no-wait and --wait"),
        (&["-q", "-v"], "--quiet and --verbose"),
        (&["-E", "256"], "--conflict-exit-code needs a number"),
        (&["-E", "no"], "--conflict-exit-code needs a number"),
        (&["--json=yes"], "--json"),
    ] {
        let words = [&["run", "-m", &url], options, &[JOB], &SHOW].concat();
        let said = refusal(&words);
        assert!(said.contains(says), "{options:?}: {said}");
    }
    for (words, says) in [
        (&[][..], "quorlock run"),
        (&["job", "true"], "quorlock run"),
        (&["--ttl", "1s", "run", "job", "true"], "run --ttl"),
        (&["run", "-m", &url], "RESOURCE"),
        (&["run", "-m", &url, "job"], "COMMAND"),
        (&["run", "-m", &url, "job", "--"], "COMMAND"),
        (&["run", "-m", &url, "", "true"], "RESOURCE"),
        (&["run", "job", "true", "-m"], "QUORLOCK_MASTERS"),
    ] {
        let said = refusal(words);
        assert!(said.contains(says), "{words:?}: {said}");
    }
    assert_free(&[master]);
}

#[test]
fn impossible_masters_exit_with_64_and_no_password_is_shown() {
    for (urls, says) in [
        (&[][..], "QUORLOCK_MASTERS"),
        (&[""], "--master"),
        (&["host:6379"], "redis://"),
        (&["http://:hunter2@host"], "redis://"),
        (&["redis://:hunter2@host:99999"], "port"),
        (&["redis://:hunter2@host:6379/x"], "database"),
        (&["redis://:hunter2%zz@host"], "%25"),
        (&["redis://:hunter2/x@host"], "%2F"),
        (&["redis://:hunter2@host?ttl=1"], "ttl"),
        (&["rediss://:hunter2@host#insecure"], "cacert="),
        (&["rediss://:hunter2@host?cacert=/no/such/file"], "/no/such/file"),
        (&["redis://:hunter2@host?cacert=/ca.pem"], "rediss://"),
        (&["unix://:hunter2@host"], "unix:///"),
        (&["redis://:hunter2@host:1", "redis://b", "redis://HOST:1"], "twice"),
    ] {
        let named = urls.iter().flat_map(|url| ["-m", url]);
        let words: Vec<&str> = ["run"].into_iter().chain(named).chain([JOB]).chain(SHOW).collect();
        let said = refusal(&words);
        assert!(said.contains(says), "{urls:?}: {said}");
    }
}

#[test]
fn a_wrong_url_is_named_by_its_position() {
    let words = ["run", "-m", "redis://a", "-m", "redis://:hunter2@b:x", "-m", "redis://c", JOB, "true"];
    let said = refusal(&words);
    assert!(said.starts_with("quorlock: master 2 of 3: "), "{said}");
}

#[test]
fn a_wrong_password_exits_with_64_and_a_message() {
    let masters = Fleet::start(3, |options, _| options.password("right"));
    let urls: Vec<_> =
        masters.iter().map(|master| format!("redis://:hunter2@{}", master.address())).collect();
    for options in [&["-n"][..], &["-w", "1s"], &[]] {
        let refused = start_over(&urls, options, &SHOW).end();
        assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{}", refused.err);
        assert!(refused.err.contains("password"), "{}", refused.err);
        assert!(!refused.err.contains("hunter2"), "{}", refused.err);
    }

    let urls: Vec<_> = masters.iter().map(|master| format!("redis://{}", master.address())).collect();
    let refused = start_over(&urls, &["-n"], &SHOW).end();
    assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{}", refused.err);
    assert!(refused.err.contains("password"), "{}", refused.err);
    assert_free(&masters);
}

#[test]
fn a_wrong_password_on_one_of_three_masters_makes_no_difference() {
    let masters =
        Fleet::start(3, |options, index| if index == 1 { options.password("right") } else { options });
    let urls: Vec<_> = masters.iter().map(|master| format!("redis://{}", master.address())).collect();
    let ended = start_over(&urls, &["-n"], &SHOW).end();
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "runs\n"), "{}", ended.err);
}

#[test]
fn one_server_behind_two_addresses_exits_with_64() {
    let masters = masters(1);
    let port = masters[0].port();
    let urls = [format!("redis://127.0.0.1:{port}"), format!("redis://localhost:{port}")];
    let refused = start_over(&urls, &["-n"], &SHOW).end();
    assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{}", refused.err);
    assert!(refused.err.contains("same server"), "{}", refused.err);
    assert_free(&masters);
}

#[test]
fn a_key_of_another_type_is_not_called_a_lock_of_another() {
    let masters = masters(3);
    for master in masters.iter() {
        master.command(&["LPUSH", JOB, "x"]);
    }
    let refused = run(&masters, &["-n"], &SHOW);
    assert_eq!(refused.out, "");
    assert_ne!(refused.code, Some(0));
    assert!(!refused.err.contains("held by another"), "{}", refused.err);
}

#[test]
fn replicas_have_no_vote() {
    let primary = master();
    let replica = ServerOptions::new().replica_of(&primary).start_any();
    let refused = start_over(&[replica.url()], &["-n"], &SHOW).end();
    assert_eq!((refused.code, refused.out.as_str()), (Some(69), ""), "{}", refused.err);
    assert!(refused.err.contains("replica"), "{}", refused.err);
}

/// All subcommands.
pub(crate) const SUBCOMMANDS: [&str; 14] = [
    "run",
    "acquire",
    "extend",
    "release",
    "status",
    "doctor",
    "force-release",
    "bootstrap",
    "cluster-plan",
    "master",
    "demo",
    "simulate",
    "completions",
    "man",
];

#[track_caller]
fn assert_is_help(words: &[&str], usage: &str) {
    let ended = Running::of(&mut quorlock(words)).end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{words:?}");
    assert!(ended.out.contains(usage), "{}", ended.out);
    assert!(ended.out.lines().all(|line| line.chars().count() <= 80), "{}", ended.out);
}

#[test]
fn help_and_version_are_asked_for_and_fit_80_columns() {
    for (words, usage) in [
        (&["--help"][..], "Usage: quorlock COMMAND"),
        (&["-h"], "Usage: quorlock COMMAND"),
        (&["run", "-m", "redis://a", "-h"], "Usage: quorlock run"),
    ] {
        assert_is_help(words, usage);
    }
    for subcommand in SUBCOMMANDS {
        assert_is_help(&[subcommand, "--help"], &format!("Usage: quorlock {subcommand}"));
    }
    let version = Running::of(&mut quorlock(&["--version"])).end();
    assert_eq!((version.code, version.out.as_str()), (Some(0), "quorlock 0.1.0\n"));
}
