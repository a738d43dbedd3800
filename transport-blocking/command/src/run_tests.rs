//! The flow of `run` with a scripted lock and a real command.

use std::ffi::OsString;

use super::*;
use crate::arguments::{Environment, Subcommand, parse};
use crate::ending::Refusal;
use crate::output::Verbosity;
use crate::scripted::{LONG, Refusing, Scripted};

fn finish<L: Lock>(options: &[&str], script: &str, lock: L) -> (Finish, Duration) {
    let words = ["quorlock", "run", "-q", "-mredis://a"].into_iter().chain(options.iter().copied());
    let words = words.chain(["job", "sh", "-c", script]).map(OsString::from);
    let Ok(Subcommand::Run(arguments)) = parse(words, &Environment::default()) else { panic!("{options:?}") };
    let signals = Signals::install().expect("signals");
    let begun = Instant::now();
    let output = Output::new(Verbosity::Quiet, false);
    (run(&arguments, lock, &signals, Terminal::none(), None, &output), begun.elapsed())
}

#[test]
fn the_command_gets_the_variables_of_its_lock_and_its_exit_code_is_returned() {
    let lock = Scripted::new(LONG);
    let script = "[ $QUORLOCK_RESOURCE = job ] && [ $QUORLOCK_TOKEN = 00ff ] && exit 9";
    assert_eq!(finish(&[], script, lock.clone()).0, Finish::Code(9));
    assert!(lock.released.get());
    let numbered = Scripted { fence: Some(7), ..Scripted::new(LONG) };
    assert_eq!(finish(&["--fenced"], "exit $QUORLOCK_FENCE", numbered).0, Finish::Code(7));
    let permit = Scripted { permit: Some(3), ..Scripted::new(LONG) };
    let script = "[ $QUORLOCK_PERMIT = $QUORLOCK_PERMIT_job ] && exit $QUORLOCK_PERMIT";
    assert_eq!(finish(&["--permits=4"], script, permit).0, Finish::Code(3));
    let script = "[ $QUORLOCK_TOKEN_job = 00ff ] && [ $QUORLOCK_TOKEN_b_2fc = 00ff ] && exit 8";
    assert_eq!(finish(&["--also=b/c"], script, Scripted::new(LONG)).0, Finish::Code(8));
    // No process can have been started with this signal ignored.
    assert_eq!(finish(&[], "kill -KILL $$", Scripted::new(LONG)).0, Finish::Code(137));
}

#[test]
fn a_command_that_does_not_exist_leaves_no_lock() {
    let words = ["quorlock", "run", "-q", "-mredis://a", "job", "/nonexistent"].map(OsString::from);
    let Ok(Subcommand::Run(arguments)) = parse(words, &Environment::default()) else { panic!() };
    let signals = Signals::install().expect("signals");
    let lock = Scripted::new(LONG);
    let output = Output::new(Verbosity::Quiet, false);
    assert_eq!(run(&arguments, lock.clone(), &signals, Terminal::none(), None, &output), Finish::Code(127));
    assert!(lock.released.get());
}

#[test]
fn refusals_have_their_exit_codes() {
    for (refusal, code) in [
        (Refusal::HeldByAnother(String::new(), 5), 5),
        (Refusal::NoQuorum(String::new()), 69),
        (Refusal::Configuration(String::new()), 64),
    ] {
        assert_eq!(finish(&["-E5"], "exit 0", Refusing(Some(refusal))).0, Finish::Code(code));
    }
}

#[test]
fn a_lost_lock_ends_the_command_at_once() {
    let lock = Scripted { lost_after: Some(Duration::ZERO), ..Scripted::new(LONG) };
    let (finish, took) = finish(&[], "sleep 60", lock.clone());
    assert_eq!(finish, Finish::Code(75));
    assert!(took < Duration::from_secs(10) && lock.released.get() && !lock.renewing.get());
}

#[test]
fn a_command_gets_sigterm_and_then_sigkill_before_its_lock_runs_out() {
    for script in ["sleep 60", "trap '' TERM; while :; do sleep 0.02; done"] {
        let lock = Scripted::new(Duration::from_millis(1500));
        let (finish, took) = finish(&["--ttl=2s", "--grace=900ms"], script, lock.clone());
        assert_eq!(finish, Finish::Code(75), "{script}");
        assert!(took >= Duration::from_millis(600), "{script}: {took:?}");
        assert!(lock.released.get());
    }
}

#[test]
fn the_longest_hold_ends_the_command_and_the_renewal() {
    let lock = Scripted::new(LONG);
    let (finish, took) =
        finish(&["--max-hold=300ms"], "trap 'exit 0' TERM; while :; do sleep 0.02; done", lock.clone());
    assert_eq!(finish, Finish::Code(75));
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(20) && !lock.renewing.get());
}

#[test]
fn a_loss_that_only_the_release_finds_is_reported() {
    let lock = Scripted { still_ours: Some(false), ..Scripted::new(LONG) };
    assert_eq!(finish(&[], "exit 0", lock).0, Finish::Code(75));
}

#[test]
fn a_release_without_a_confirmation_does_not_change_the_exit_code() {
    let lock = Scripted { still_ours: None, ..Scripted::new(LONG) };
    assert_eq!(finish(&[], "exit 4", lock).0, Finish::Code(4));
}

#[test]
fn a_minimum_hold_time_is_passed_to_the_release_however_the_command_ends() {
    for (options, at_least) in [(&["--at-least=1m"][..], Some(Duration::from_secs(60))), (&[], None)] {
        let lock = Scripted::new(LONG);
        assert_eq!(finish(options, "exit 3", lock.clone()).0, Finish::Code(3));
        assert_eq!(lock.at_least.get(), at_least);
    }
}
