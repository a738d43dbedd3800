//! What the command line accepts and what it refuses.

use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use proptest::prelude::*;
use quorlock_core::EvictionPolicy;

use super::*;
use crate::output::Verbosity;

fn read(arguments: &[&str], variable: Option<&str>) -> Result<Request, String> {
    let environment = Environment { masters: variable.map(OsString::from), ..Environment::default() };
    parse(std::iter::once("quorlock").chain(arguments.iter().copied()).map(OsString::from), environment)
}

/// The arguments of a `run` over one master.
fn run(arguments: &[&str]) -> RunArguments {
    let all: Vec<&str> = ["run", "-m", "redis://a"].iter().chain(arguments).copied().collect();
    match read(&all, None) {
        Ok(Request::Run(run)) => *run,
        other => panic!("{arguments:?}: {other:?}"),
    }
}

fn refusal(arguments: &[&str]) -> String {
    let all: Vec<&str> = ["run", "-m", "redis://:hunter2@a"].iter().chain(arguments).copied().collect();
    let error = read(&all, None).expect_err("refused");
    assert!(!error.contains("hunter2"), "{error}");
    error
}

fn command(run: &RunArguments) -> Vec<&str> {
    run.command.0.iter().map(|part| part.to_str().expect("text")).collect()
}

#[test]
fn defaults() {
    let run = run(&["job", "true"]);
    assert_eq!(run.seek.resource, b"job");
    assert_eq!(run.common.ttl, Duration::from_secs(10));
    assert_eq!(run.grace, Duration::from_secs(2));
    assert_eq!(run.seek.wait, Wait::Forever);
    assert_eq!(
        (run.renew, run.common.json, run.seek.conflict_exit_code, run.max_hold),
        (true, false, 1, None)
    );
    assert_eq!((run.seek.fenced, run.heal, run.common.restart_guard), (false, false, None));
    assert_eq!(run.common.verbosity, Verbosity::Normal(0));
    assert_eq!(command(&run), ["true"]);
}

#[test]
fn every_option_in_its_forms() {
    let short = run(&["-nvv", "-E7", "job", "x"]);
    assert_eq!(
        (short.seek.wait, short.common.verbosity, short.seek.conflict_exit_code),
        (Wait::OneTry, Verbosity::Normal(2), 7)
    );
    let long = run(&[
        "--master=redis://b",
        "--ttl=4s",
        "--no-renew",
        "--wait",
        "500ms",
        "--conflict-exit-code",
        "0",
        "--max-hold",
        "1h",
        "--grace=1s",
        "--quiet",
        "--json",
        "job",
        "x",
    ]);
    assert_eq!(long.common.masters.0, ["redis://a", "redis://b"]);
    assert_eq!(long.seek.wait, Wait::UpTo(Duration::from_millis(500)));
    assert_eq!((long.common.ttl, long.grace), (Duration::from_secs(4), Duration::from_secs(1)));
    assert_eq!((long.renew, long.common.json, long.common.verbosity), (false, true, Verbosity::Quiet));
    assert_eq!((long.seek.conflict_exit_code, long.max_hold), (0, Some(Duration::from_secs(3600))));
    let guarded = run(&[
        "--fenced",
        "--heal",
        "--restart-guard=1m",
        "--allow-eviction",
        "allkeys-lru",
        "--allow-eviction=volatile-ttl",
        "job",
        "x",
    ]);
    assert!(guarded.seek.fenced && guarded.heal);
    assert_eq!(guarded.common.restart_guard, Some(Duration::from_secs(60)));
    assert_eq!(guarded.common.evictions, [EvictionPolicy::AllKeysLru, EvictionPolicy::VolatileTtl]);
    assert_eq!(run(&["-w0", "job", "x"]).seek.wait, Wait::OneTry);
    assert_eq!(run(&["--ttl", "1s", "job", "x"]).grace, Duration::from_millis(250));
}

#[test]
fn the_command_is_passed_through_untouched() {
    for (written, expected) in [
        (&["job", "ls", "-n", "--help", "--", "-V"][..], &["ls", "-n", "--help", "--", "-V"][..]),
        (&["job", "--", "ls", "--", "-n"], &["ls", "--", "-n"]),
        (&["--", "job", "ls", "-n"], &["ls", "-n"]),
        (&["--", "job", "--", "ls", "-n"], &["ls", "-n"]),
        (&["job", "-n", "--", "ls"], &["ls"]),
        (&["job", "--", "-odd", "x"], &["-odd", "x"]),
        (&["job", "-n", "ls", ""], &["ls", ""]),
    ] {
        let run = run(written);
        assert_eq!(run.seek.resource, b"job", "{written:?}");
        assert_eq!(command(&run), expected, "{written:?}");
    }
    assert_eq!(run(&["--", "-job", "ls"]).seek.resource, b"-job");
}

#[test]
fn masters_come_from_the_options_or_else_from_the_environment() {
    let Ok(Request::Run(run)) = read(&["run", "job", "x"], Some("redis://a, redis://b,,")) else { panic!() };
    assert_eq!(run.common.masters.0, ["redis://a", "redis://b"]);
    let Ok(Request::Run(run)) = read(&["run", "-mredis://c,d", "job", "x"], Some("redis://a")) else {
        panic!()
    };
    assert_eq!(run.common.masters.0, ["redis://c,d"]);
    for variable in [None, Some(""), Some(" , ")] {
        assert!(read(&["run", "job", "x"], variable).expect_err("refused").contains("No masters"));
    }
}

#[test]
fn what_is_wrong_is_refused_with_the_remedy() {
    for (written, says) in [
        (&[][..], "Name the lock"),
        (&["job"], "No command"),
        (&["job", "--"], "No command"),
        (&["job", ""], "No command"),
        (&["", "x"], "RESOURCE is empty"),
        (&["--"], "Name the lock"),
        (&["-w", "1s", "-n", "job", "x"], "contradict"),
        (&["-q", "-v", "job", "x"], "contradict"),
        (&["-w", "10", "job", "x"], "-w needs a unit"),
        (&["-w"], "-w needs a value"),
        (&["--ttl"], "--ttl needs a value"),
        (&["--ttl", "0", "job", "x"], "--ttl must be"),
        (&["--max-hold", "0", "job", "x"], "--max-hold must be"),
        (&["--grace", "5s", "job", "x"], "--grace must be shorter"),
        (&["--ttl", "4s", "--grace", "2s", "job", "x"], "--grace must be shorter"),
        (&["-E", "256", "job", "x"], "0 to 255"),
        (&["-E", "-1", "job", "x"], "0 to 255"),
        (&["-E", "x", "job", "x"], "0 to 255"),
        (&["--json=redis://:hunter2@b", "job", "x"], "--json takes no value"),
        (&["--mastr=redis://:hunter2@b", "job", "x"], "no option --mastr;"),
        (&["-x", "job", "x"], "no option -x;"),
        (&["-nredis://:hunter2@b", "job", "x"], "no option -r;"),
        (&["-m", "", "job", "x"], "-m is empty"),
        (&["--port", "1", "job", "x"], "--port is an option of master, not of run;"),
        (&["--heal", "--no-renew", "job", "x"], "--heal"),
        (&["--restart-guard", "0", "job", "x"], "--restart-guard must be"),
        (&["--allow-eviction", "allkeys-lru", "job", "x"], "--allow-eviction is for --restart-guard"),
        (&["--allow-eviction", "redis://:hunter2@b", "job", "x"], "volatile-ttl"),
    ] {
        let error = refusal(written);
        assert!(error.contains(says) && error.ends_with('.'), "{written:?}: {error}");
    }
}

#[test]
fn outside_of_run() {
    for (written, request) in [
        (&["--help"][..], Request::Help(None)),
        (&["-h"], Request::Help(None)),
        (&["-V"], Request::Version),
        (&["--version"], Request::Version),
        (&["run", "--help"], Request::Help(Some(Subcommand::Run))),
        (&["run", "job", "-V"], Request::Version),
        (&["master", "--port", "1", "--help"], Request::Help(Some(Subcommand::Master))),
        (&["master", "-V"], Request::Version),
    ] {
        assert_eq!(read(written, None), Ok(request), "{written:?}");
    }
    for (written, says) in [
        (&[][..], "Nothing to do"),
        (&["redis://:hunter2@b"], "bootstrap, master, demo and simulate"),
        (&["-m", "redis://:hunter2@b", "run"], "behind run"),
        (&["--port", "1", "master"], "behind master: quorlock master --port"),
        (&["--frob"], "no option --frob"),
        (&["master", "redis://:hunter2@b"], "--port PORT"),
        (&["master", "--bind", "redis://:hunter2@b"], "--bind"),
        (&["master", "--port", "redis://:hunter2@b"], "--port"),
        (&["simulate", "redis://:hunter2@b"], "no such scenario"),
        (&["simulate", "--fault", "redis://:hunter2@b"], "kinds"),
        (&["simulate", "--fault", "hang:redis//:hunter2@b"], "number"),
    ] {
        let error = read(written, None).expect_err("refused");
        assert!(error.contains(says) && !error.contains("hunter2"), "{written:?}: {error}");
    }
}

#[test]
fn bytes_that_are_not_text_are_welcome_where_they_make_sense() {
    let odd = || OsString::from_vec(vec![0xff, b'x']);
    let arguments = ["quorlock", "run", "-mredis://a"].map(OsString::from);
    let Ok(Request::Run(run)) =
        parse(arguments.clone().into_iter().chain([odd(), odd()]), Environment::default())
    else {
        panic!()
    };
    assert_eq!((run.seek.resource, run.command.0), (vec![0xff, b'x'], vec![odd()]));
    let odd_master = parse(
        arguments.into_iter().chain(["-m".into(), odd(), "job".into(), "x".into()]),
        Environment::default(),
    );
    assert!(odd_master.expect_err("refused").contains("UTF-8"));
}

proptest! {
    #[test]
    fn nothing_panics(words in prop::collection::vec("(--?)?[a-zA-Z0-9=:/-]{0,12}|\\PC{0,6}", 0..8)) {
        for subcommand in Subcommand::ALL {
            let before = ["quorlock".to_owned(), subcommand.to_string()];
            let all = before.into_iter().chain(words.iter().cloned()).map(OsString::from);
            let environment = Environment {
                masters: Some("redis://a".into()),
                proofs: [("QUORLOCK_TOKEN".to_owned(), "ab".repeat(20).into())].into(),
            };
            let _ = parse(all, environment);
        }
    }
}
