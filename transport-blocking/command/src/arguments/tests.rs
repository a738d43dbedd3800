//! Which command lines are accepted, and which are refused.

use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use proptest::prelude::*;
use quorlock_core::EvictionPolicy;

use super::*;

fn read(arguments: &[&str], variable: Option<&str>) -> Result<Subcommand, Instead> {
    let environment = Environment { masters: variable.map(OsString::from), ..Environment::default() };
    parse(std::iter::once("quorlock").chain(arguments.iter().copied()).map(OsString::from), &environment)
}

/// The arguments of a `run` over one master.
fn run(arguments: &[&str]) -> RunArguments {
    let all: Vec<&str> = ["run", "-m", "redis://a"].iter().chain(arguments).copied().collect();
    match read(&all, None) {
        Ok(Subcommand::Run(run)) => *run,
        other => panic!("{arguments:?}: {other:?}"),
    }
}

fn refusal(arguments: &[&str]) -> String {
    let all: Vec<&str> = ["run", "-m", "redis://:hunter2@a"].iter().chain(arguments).copied().collect();
    refused(read(&all, None))
}

/// The sentence of a refusal, which repeats no secret.
#[track_caller]
pub(super) fn refused(read: Result<Subcommand, Instead>) -> String {
    let Err(Instead::Refuse(error)) = read else { panic!("{read:?}") };
    assert!(error.ends_with('.') && !error.contains("hunter2"), "{error}");
    error
}

fn masters(masters: &Masters) -> Vec<&str> {
    masters.urls().collect()
}

fn command(run: &RunArguments) -> Vec<&str> {
    run.command().iter().map(|part| part.to_str().expect("text")).collect()
}

#[test]
fn options_of_run_have_their_defaults() {
    let run = run(&["job", "true"]);
    assert_eq!(run.seek.claim.as_bytes(), b"job");
    assert_eq!((run.seek.ttl, run.grace()), (Duration::from_secs(10), Duration::from_secs(2)));
    assert_eq!((run.seek.wait(), run.seek.conflict_exit_code, run.seek.fenced), (Wait::Forever, 1, false));
    assert_eq!((run.no_renew, run.heal, run.max_hold), (false, false, None));
    assert_eq!((run.terms().restart_guard, run.terms().evictions), (None, &[][..]));
    assert_eq!(run.speech, speech(&[]));
    assert_eq!(command(&run), ["true"]);
}

#[test]
fn every_option_is_accepted_in_all_its_forms() {
    let short = run(&["-nvv", "-E7", "job", "x"]);
    assert_eq!((short.seek.wait(), short.seek.conflict_exit_code), (Wait::OneTry, 7));
    assert_eq!(short.speech, speech(&["-v", "--verbose"]));
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
    assert_eq!(masters(&long.masters), ["redis://a", "redis://b"]);
    assert_eq!(long.seek.wait(), Wait::UpTo(Duration::from_millis(500)));
    assert_eq!((long.seek.ttl, long.grace()), (Duration::from_secs(4), Duration::from_secs(1)));
    assert_eq!((long.no_renew, &long.speech), (true, &speech(&["-q", "--json"])));
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
    assert_eq!(guarded.terms().restart_guard, Some(Duration::from_secs(60)));
    assert_eq!(guarded.terms().evictions, [EvictionPolicy::AllKeysLru, EvictionPolicy::VolatileTtl]);
    assert_eq!(run(&["-w0", "job", "x"]).seek.wait(), Wait::OneTry);
    assert_eq!(run(&["--ttl", "1s", "job", "x"]).grace(), Duration::from_millis(250));
    // The last occurrence of an option counts.
    assert_eq!(
        run(&["--ttl", "1s", "--json", "--ttl", "2s", "--json", "job", "x"]).seek.ttl,
        Duration::from_secs(2)
    );
}

/// What these options of `run` say about its output.
fn speech(options: &[&str]) -> common::Speech {
    run(&[options, &["job", "x"]].concat()).speech
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
        assert_eq!(run.seek.claim.as_bytes(), b"job", "{written:?}");
        assert_eq!(command(&run), expected, "{written:?}");
    }
    assert_eq!(run(&["--", "-job", "ls"]).seek.claim.as_bytes(), b"-job");
}

#[test]
fn options_for_tls_are_refused_if_no_master_uses_tls() {
    let over =
        |url: &str, option: &[&str]| read(&[&["run", "-m", url], option, &["job", "x"]].concat(), None);
    for option in
        [&["--cacert", "ca.pem"][..], &["--cert", "c", "--key", "k"], &["--sni", "a"], &["--tls-insecure"]]
    {
        assert!(refused(over("redis://:hunter2@a", option)).contains("write rediss://"), "{option:?}");
        assert!(over("rediss://a", option).is_ok(), "{option:?}");
    }
    // The environment may be that of a command whose masters use TLS.
    let tls = [Some(OsString::from("ca.pem")), None, None];
    let environment = Environment { tls, ..Environment::default() };
    let words = ["quorlock", "run", "-m", "redis://a", "job", "x"].map(OsString::from);
    assert!(parse(words.into_iter(), &environment).is_ok());
}

#[test]
fn masters_come_from_the_options_or_else_from_the_environment() {
    for (options, named) in [
        (&["job", "x"][..], &["redis://a", "redis://b"][..]),
        (&["-mredis://c,d", "job", "x"], &["redis://c,d"]),
    ] {
        let words = [&["run"], options].concat();
        let Ok(Subcommand::Run(run)) = read(&words, Some("redis://a, redis://b,,")) else { panic!() };
        assert_eq!(masters(&run.masters), named);
    }
    for variable in [None, Some(""), Some(" , ")] {
        assert!(refused(read(&["run", "job", "x"], variable)).contains("No masters"));
    }
}

#[test]
fn the_prefix_comes_from_the_option_or_else_from_the_environment() {
    for (options, variable, prefix) in [
        (&[][..], None, ""),
        (&[], Some("app:"), "app:"),
        (&["--prefix", "own:"], Some("app:"), "own:"),
        (&["--prefix="], Some("app:"), ""),
    ] {
        let environment = Environment { prefix: variable.map(OsString::from), ..Environment::default() };
        let words = ["quorlock", "run", "-m", "redis://a"].iter().chain(options).chain(&["job", "x"]);
        let Ok(Subcommand::Run(run)) = parse(words.map(OsString::from), &environment) else { panic!() };
        assert_eq!(run.terms().prefix, prefix);
    }
}

#[test]
fn wrong_options_are_refused_with_the_remedy() {
    for (written, says) in [
        (&[][..], "RESOURCE is missing"),
        (&["job"], "COMMAND is missing"),
        (&["job", "--"], "COMMAND is missing"),
        (&["job", ""], "COMMAND is missing"),
        (&["", "x"], "RESOURCE is empty"),
        (&["--"], "RESOURCE is missing"),
        (&["-w", "1s", "-n", "job", "x"], "contradict"),
        (&["-q", "-v", "job", "x"], "contradict"),
        (&["-w", "10", "job", "x"], "--wait needs a unit"),
        (&["-w"], "--wait needs a value"),
        (&["--ttl"], "--ttl needs a value"),
        (&["--ttl", "0", "job", "x"], "--ttl must be"),
        (&["--max-hold", "0", "job", "x"], "--max-hold must be"),
        (&["--grace", "5s", "job", "x"], "--grace must be shorter"),
        (&["--ttl", "4s", "--grace", "2s", "job", "x"], "--grace must be shorter"),
        (&["-E", "256", "job", "x"], "0 to 255"),
        (&["-E", "-1", "job", "x"], "0 to 255"),
        (&["-E", "x", "job", "x"], "0 to 255"),
        (&["--json=redis://:hunter2@b", "job", "x"], "--json takes no value"),
        (&["--mater=redis://:hunter2@b", "job", "x"], "no option --mater; did you mean --master?"),
        (&["-x", "job", "x"], "no option -x;"),
        (&["--frob", "job", "--", "x"], "no option --frob;"),
        (&["-nredis://:hunter2@b", "job", "x"], "no option -r;"),
        (&["-m", "", "job", "x"], "--master is empty"),
        (&["--port", "1", "job", "x"], "--port is an option of master, not of run;"),
        (&["--heal", "--no-renew", "job", "x"], "--heal"),
        (&["--restart-guard", "0", "job", "x"], "--restart-guard must be"),
        (&["--allow-eviction", "allkeys-lru", "job", "x"], "--restart-guard is missing"),
        (&["--allow-eviction", "redis://:hunter2@b", "job", "x"], "volatile-ttl"),
    ] {
        let error = refusal(written);
        assert!(error.contains(says), "{written:?}: {error}");
    }
}

#[test]
fn help_version_and_unknown_arguments_are_answered_for_every_subcommand() {
    for (written, begins) in [
        (&["--help"][..], "Distributed locks"),
        (&["-h"], "Distributed locks"),
        (&["-V"], "quorlock 0.1.0\n"),
        (&["--version"], "quorlock 0.1.0\n"),
        (&["run", "--help"], "Run a command"),
        (&["run", "job", "-V"], "quorlock 0.1.0\n"),
        (&["master", "--port", "1", "--help"], "Serve masters"),
        (&["master", "-V"], "quorlock 0.1.0\n"),
    ] {
        let Err(Instead::Print(text)) = read(written, None) else { panic!("{written:?}") };
        assert!(text.starts_with(begins), "{written:?}: {text}");
    }
    for (written, says) in [
        (&[][..], "Nothing to do"),
        (&["redis://:hunter2@b"], "bootstrap, cluster-plan, master, demo, simulate, completions and man"),
        (&["-m", "redis://:hunter2@b", "run"], "after run"),
        (&["--port", "1", "master"], "after master: quorlock master --port"),
        (&["--frob"], "no option --frob"),
        (&["master", "--port", "1", "redis://:hunter2@b"], "--port <PORT>"),
        (&["master"], "--port is missing"),
        (&["master", "--bind", "redis://:hunter2@b"], "--bind"),
        (&["master", "--port", "redis://:hunter2@b"], "--port"),
        (&["simulate", "redis://:hunter2@b"], "restart-empty"),
        (&["simulate", "--fault", "redis://:hunter2@b"], "kinds"),
        (&["simulate", "--fault", "hang:redis//:hunter2@b"], "number"),
    ] {
        let error = refused(read(written, None));
        assert!(error.contains(says), "{written:?}: {error}");
    }
}

#[test]
fn bytes_that_are_not_text_are_accepted_where_they_make_sense() {
    let odd = || OsString::from_vec(vec![0xff, b'x']);
    let arguments = ["quorlock", "run", "-mredis://a"].map(OsString::from);
    let environment = Environment::default();
    let Ok(Subcommand::Run(run)) = parse(arguments.clone().into_iter().chain([odd(), odd()]), &environment)
    else {
        panic!()
    };
    assert_eq!((run.seek.claim.as_bytes(), run.command()), (&[0xff, b'x'][..], vec![odd().as_os_str()]));
    let odd_master =
        parse(arguments.into_iter().chain(["-m".into(), odd(), "job".into(), "x".into()]), &environment);
    assert!(refused(odd_master).contains("UTF-8"));
}

#[test]
fn clap_finds_nothing_wrong_with_the_declarations() {
    super::command().debug_assert();
    described().debug_assert();
}

#[test]
fn a_certificate_comes_with_its_key() {
    let with = |words: &[&str], tls: [Option<OsString>; 3]| {
        let environment = Environment { tls, ..Environment::default() };
        let all = ["quorlock", "run", "-m", "rediss://a"].iter().chain(words).chain(&["job", "--", "true"]);
        parse(all.map(OsString::from), &environment)
    };
    let file = |name: &str| Some(OsString::from(name));
    for half in ["--cert", "--key"] {
        let Err(Instead::Refuse(sentence)) = with(&[half, "/a.pem"], [None, None, None]) else {
            panic!("{half} alone is enough")
        };
        assert!(sentence.contains(if half == "--cert" { "--key" } else { "--cert" }), "{sentence}");
    }
    assert!(with(&["--cert", "/a.pem", "--key", "/a.key"], [None, file("/other.pem"), None]).is_ok());
    assert!(with(&[], [file("/ca.pem"), file("/a.pem"), file("/a.key")]).is_ok());
    assert!(with(&[], [None, file("/a.pem"), None]).is_err());
}

proptest! {
    #[test]
    fn nothing_panics(words in prop::collection::vec("(--?)?[a-zA-Z0-9=:/-]{0,12}|\\PC{0,6}", 0..8)) {
        for subcommand in described().get_subcommands() {
            let before = ["quorlock".to_owned(), subcommand.get_name().to_owned()];
            let all = before.into_iter().chain(words.iter().cloned()).map(OsString::from);
            let environment = Environment {
                masters: Some("redis://a".into()),
                prefix: Some("app:".into()),
                tls: [const { None }; 3],
                proofs: [("QUORLOCK_TOKEN".to_owned(), "ab".repeat(20).into())].into(),
            };
            let _ = parse(all, &environment);
        }
    }
}
