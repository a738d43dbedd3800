//! `acquire`, `extend`, `release` and `bootstrap`.

use std::time::Duration;

use quorlock_blocking::FencingToken;

use super::*;
use crate::output::Verbosity;

const TOKEN: &str = "00112233445566778899aabbccddeeff00112233";

/// What `arguments` mean over one master, with these variables set.
fn read(arguments: &[&str], token: Option<&str>, fence: Option<&str>) -> Result<Request, String> {
    let proofs = [("QUORLOCK_TOKEN", token), ("QUORLOCK_FENCE", fence)];
    let proofs = proofs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    let environment = Environment { masters: Some("redis://:hunter2@a".into()), proofs: proofs.collect() };
    parse(std::iter::once("quorlock").chain(arguments.iter().copied()).map(OsString::from), environment)
}

#[track_caller]
fn refusal(arguments: &[&str], token: Option<&str>, fence: Option<&str>) -> String {
    let error = read(arguments, token, fence).expect_err("refused");
    assert!(error.ends_with('.') && !error.contains("hunter2") && !error.contains(TOKEN), "{error}");
    error
}

#[test]
fn acquire_has_what_run_has_for_the_acquisition() {
    let words = ["acquire", "-n", "-E7", "--ttl=1m", "--fenced", "--restart-guard=2m", "-v", "--json", "job"];
    let Ok(Request::Acquire(acquire)) = read(&words, None, None) else { panic!() };
    let Seek { resource, wait, conflict_exit_code, fenced } = &acquire.seek;
    assert_eq!((resource.as_slice(), *wait), (&b"job"[..], Wait::OneTry));
    assert_eq!((*conflict_exit_code, *fenced), (7, true));
    assert_eq!(acquire.common.ttl, Duration::from_secs(60));
    assert_eq!(acquire.common.restart_guard, Some(Duration::from_secs(120)));
    assert_eq!((acquire.common.verbosity, acquire.common.json), (Verbosity::Normal(1), true));
}

#[test]
fn the_proof_of_a_lock_comes_in_variables() {
    let words = ["extend", "--ttl", "1m", "--", "-job"];
    let Ok(Request::Extend(extend)) = read(&words, Some(TOKEN), Some("7")) else { panic!() };
    assert_eq!((extend.resource.as_slice(), extend.common.ttl), (&b"-job"[..], Duration::from_secs(60)));
    assert_eq!(extend.lock.token.expose(), TOKEN);
    assert_eq!(extend.lock.fencing_token.map(FencingToken::get), Some(7));

    let Ok(Request::Extend(extend)) = read(&["extend", "job"], Some(TOKEN), None) else { panic!() };
    assert_eq!(extend.lock.fencing_token, None);
    // A release needs no number, so none can be wrong.
    let Ok(Request::Release(release)) = read(&["release", "job"], Some(TOKEN), Some("x")) else { panic!() };
    assert_eq!((release.resource.as_slice(), release.token.expose().as_str()), (&b"job"[..], TOKEN));
}

#[test]
fn debug_shows_neither_tokens_nor_passwords_nor_commands() {
    let run = read(&["run", "job", "login", TOKEN], None, None).expect("read");
    let extend = read(&["extend", "job"], Some(TOKEN), Some("7")).expect("read");
    let release = read(&["release", "job"], Some(TOKEN), None).expect("read");
    for request in [run, extend, release] {
        let shown = format!("{request:?}");
        assert!(shown.contains("hidden") && !shown.contains(TOKEN) && !shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn without_a_token_there_is_nothing_to_extend_or_to_release() {
    let cut = TOKEN.get(1..).expect("digits");
    for subcommand in ["extend", "release"] {
        let words = [subcommand, "job"];
        assert!(refusal(&words, None, None).contains("QUORLOCK_TOKEN is not set"));
        for malformed in [cut, "x", "redis://:hunter2@a"] {
            let said = refusal(&words, Some(malformed), None);
            assert!(said.contains("40 hexadecimal digits") && !said.contains(cut), "{said}");
        }
        let said = refusal(&[subcommand, "job", TOKEN], None, None);
        assert!(said.contains("RESOURCE alone") && said.contains("QUORLOCK_TOKEN"), "{said}");
        assert!(refusal(&[subcommand], Some(TOKEN), None).contains("Name the lock"));
        assert!(refusal(&[subcommand, ""], Some(TOKEN), None).contains("RESOURCE is empty"));
    }
    for malformed in ["0", "-1", "x", "9007199254740992"] {
        assert!(refusal(&["extend", "job"], Some(TOKEN), Some(malformed)).contains("QUORLOCK_FENCE"));
    }
}

#[test]
fn a_bootstrap_needs_the_guard_and_nothing_else() {
    let words = ["bootstrap", "--restart-guard", "5s"];
    let Ok(Request::Bootstrap(bootstrap)) = read(&words, None, None) else { panic!() };
    assert_eq!(bootstrap.common.restart_guard, Some(Duration::from_secs(5)));
    assert!(bootstrap.common.ttl <= Duration::from_secs(5));
    for (written, says) in [
        (&["bootstrap"][..], "--restart-guard"),
        (&["bootstrap", "--restart-guard", "1m", "job"], "options only"),
        (&["bootstrap", "--restart-guard", "0"], "must be longer"),
    ] {
        assert!(refusal(written, None, None).contains(says), "{written:?}");
    }
}

#[test]
fn an_option_of_another_subcommand_is_told_whose_it_is() {
    for (written, says) in [
        (
            &["extend", "--fenced", "job"][..],
            "--fenced is an option of run, acquire and simulate, not of extend",
        ),
        (&["acquire", "--heal", "job"], "--heal is an option of run, not of acquire"),
        (
            &["release", "--ttl", "1s", "job"],
            "--ttl is an option of run, acquire, extend and simulate, not of release",
        ),
        (&["master", "-m", "redis://:hunter2@a"], "-m is an option of run,"),
        (&["acquire", "--mastr=redis://:hunter2@a", "job"], "no option --mastr; quorlock acquire --help"),
        (&["acquire", "job", "true"], "acquire runs no command"),
        (&["acquire"], "Name the lock"),
        (&["acquire", "-n", "-w1s", "job"], "contradict"),
        (&["acquire", "-q", "-v", "job"], "contradict"),
    ] {
        let said = refusal(written, Some(TOKEN), None);
        assert!(said.contains(says), "{written:?}: {said}");
    }
}

#[test]
fn every_subcommand_has_its_help_and_the_version() {
    for subcommand in Subcommand::ALL {
        let name = subcommand.name();
        for help in ["-h", "--help"] {
            assert_eq!(read(&[name, help], None, None), Ok(Request::Help(Some(subcommand))));
        }
        for version in ["-V", "--version"] {
            assert_eq!(read(&[name, version], None, None), Ok(Request::Version));
        }
    }
}
