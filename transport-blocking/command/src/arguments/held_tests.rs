//! `acquire`, `extend`, `release` and `bootstrap`.

use std::time::Duration;

use quorlock_blocking::FencingToken;

use super::tests::refused;
use super::*;

const TOKEN: &str = "00112233445566778899aabbccddeeff00112233";

/// Parses `arguments` with one master.
fn read(arguments: &[&str]) -> Result<Subcommand, Instead> {
    let environment = Environment { masters: Some("redis://:hunter2@a".into()), ..Environment::default() };
    parse(std::iter::once("quorlock").chain(arguments.iter().copied()).map(OsString::from), &environment)
}

#[track_caller]
fn refusal(arguments: &[&str]) -> String {
    let error = refused(read(arguments));
    assert!(!error.contains(TOKEN), "{error}");
    error
}

/// An environment with these proofs.
fn holding(token: Option<&str>, fence: Option<&str>) -> Environment {
    let proofs = [("QUORLOCK_TOKEN", token), ("QUORLOCK_FENCE", fence)];
    let proofs = proofs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    Environment { proofs: proofs.collect(), ..Environment::default() }
}

#[test]
fn acquire_has_the_same_options_for_the_acquisition_as_run() {
    let words = ["acquire", "-n", "-E7", "--ttl=1m", "--fenced", "--restart-guard=2m", "-v", "--json", "job"];
    let Ok(Subcommand::Acquire(acquire)) = read(&words) else { panic!() };
    assert_eq!((acquire.seek.claim.as_bytes(), acquire.seek.wait()), (&b"job"[..], Wait::OneTry));
    assert_eq!((acquire.seek.conflict_exit_code, acquire.seek.fenced), (7, true));
    assert_eq!(acquire.seek.ttl, Duration::from_secs(60));
    assert_eq!(acquire.terms().restart_guard, Some(Duration::from_secs(120)));
    assert!(acquire.speech.is_json());
}

#[test]
fn token_and_fencing_number_of_a_held_lock_come_from_variables() {
    let Ok(Subcommand::Extend(extend)) = read(&["extend", "--ttl", "1m", "--", "-job"]) else { panic!() };
    assert_eq!((extend.claim.as_bytes(), extend.ttl), (&b"-job"[..], Duration::from_secs(60)));
    let lock = holding(Some(TOKEN), Some("7")).resumption(b"-job").expect("a proof");
    assert_eq!(lock.token.expose(), TOKEN);
    assert_eq!(lock.fencing_token.map(FencingToken::get), Some(7));
    let lock = holding(Some(TOKEN), None).resumption(b"job").expect("a proof");
    assert_eq!(lock.fencing_token, None);
    // A release needs no number, so none can be wrong.
    let token = holding(Some(TOKEN), Some("x")).token(b"job").expect("a token");
    assert_eq!(token.expose(), TOKEN);
}

#[test]
fn debug_shows_neither_tokens_nor_passwords_nor_commands() {
    for words in [&["run", "job", "login", TOKEN][..], &["extend", "job"], &["release", "job"]] {
        let shown = format!("{:?}", read(words).expect("read"));
        assert!(shown.contains("hidden") && !shown.contains(TOKEN) && !shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn without_a_token_there_is_nothing_to_extend_or_to_release() {
    let cut = TOKEN.get(1..).expect("digits");
    assert!(
        holding(None, None).resumption(b"job").is_err_and(|said| said.contains("QUORLOCK_TOKEN is not set"))
    );
    assert!(holding(None, None).token(b"job").is_err_and(|said| said.contains("QUORLOCK_TOKEN is not set")));
    for malformed in [cut, "x", "redis://:hunter2@a"] {
        let said = holding(Some(malformed), None).token(b"job").expect_err("refused");
        assert!(
            said.contains("40 hexadecimal digits") && !said.contains(cut) && !said.contains("hunter2"),
            "{said}"
        );
    }
    for malformed in ["0", "-1", "x", "9007199254740992"] {
        let said = holding(Some(TOKEN), Some(malformed)).resumption(b"job").expect_err("refused");
        assert!(said.contains("QUORLOCK_FENCE") && said.ends_with('.'), "{said}");
    }
    for subcommand in ["extend", "release"] {
        let said = refusal(&[subcommand, "job", TOKEN]);
        assert!(said.contains("too many") && said.contains("QUORLOCK_TOKEN"), "{said}");
        assert!(refusal(&[subcommand]).contains("RESOURCE is missing"));
        assert!(refusal(&[subcommand, ""]).contains("RESOURCE is empty"));
    }
}

#[test]
fn a_bootstrap_needs_the_guard_and_nothing_else() {
    let words = ["bootstrap", "--restart-guard", "5s"];
    let Ok(Subcommand::Bootstrap(bootstrap)) = read(&words) else { panic!() };
    assert_eq!(bootstrap.terms().restart_guard, Some(Duration::from_secs(5)));
    assert!(bootstrap.terms().ttl <= Duration::from_secs(5));
    for (written, says) in [
        (&["bootstrap"][..], "--restart-guard is missing"),
        (&["bootstrap", "--restart-guard", "1m", "job"], "too many"),
        (&["bootstrap", "--restart-guard", "0"], "must be longer"),
    ] {
        assert!(refusal(written).contains(says), "{written:?}");
    }
}

#[test]
fn an_option_of_another_subcommand_is_refused_with_its_name() {
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
        (&["acquire", "--mater=redis://:hunter2@a", "job"], "no option --mater; did you mean --master?"),
        (&["acquire", "job", "true"], "use quorlock run"),
        (&["acquire"], "RESOURCE is missing"),
        (&["extend", "job", "--", "--hunter2"], "too many"),
        (&["acquire", "-n", "-w1s", "job"], "contradict"),
        (&["acquire", "-q", "-v", "job"], "contradict"),
    ] {
        let said = refusal(written);
        assert!(said.contains(says), "{written:?}: {said}");
    }
}

#[test]
fn every_subcommand_has_its_help_and_the_version() {
    for subcommand in described().get_subcommands() {
        let name = subcommand.get_name();
        let [short, long] = ["-h", "--help"].map(|help| read(&[name, help]));
        let Err(Instead::Print(text)) = &short else { panic!("{name}: {short:?}") };
        assert!(text.contains(&format!("Usage: quorlock {name}")), "{text}");
        assert_eq!(short, long);
        for version in ["-V", "--version"] {
            assert_eq!(read(&[name, version]), Err(Instead::Print("quorlock 0.1.0\n".to_owned())));
        }
    }
}
