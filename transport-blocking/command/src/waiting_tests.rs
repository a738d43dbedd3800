//! Waiting, with a scripted lock.

use std::ffi::OsString;
use std::process::Command;

use signal_hook::consts::SIGTERM;
use signal_hook::low_level::raise;

use super::*;
use crate::arguments::{Environment, Subcommand, parse};
use crate::output::Verbosity;
use crate::scripted::{LONG, Scripted};

/// A lock that is granted just after a signal has come.
struct LateFor(Scripted);

impl Lock for LateFor {
    type Hold = Scripted;

    fn poll(&mut self) -> Poll<Result<Scripted, Refusal>> {
        raise(SIGTERM).expect("a signal");
        self.0.poll()
    }

    fn give_up(self) {}
}

/// Whether a signal that came before the grant ends the wait. Run in a process of its own, because
/// the signal reaches all tests of a process.
#[test]
#[ignore = "the next test runs it"]
fn a_signal_comes_just_before_the_grant() {
    let words = ["quorlock", "run", "-q", "-mredis://a", "job", "true"].map(OsString::from);
    let Ok(Subcommand::Run(arguments)) = parse(words, &Environment::default()) else { panic!() };
    let signals = Signals::install().expect("signals");
    let output = Output::new(Verbosity::Quiet, false);
    let lock = Scripted::new(LONG);
    let waited = wait_for(&arguments.seek, LateFor(lock.clone()), &signals, &Terminal::none(), &output);
    assert_eq!(waited.map(drop), Err(Finish::Code(143)));
    assert!(lock.released.get());
}

#[test]
fn a_signal_that_came_before_the_grant_ends_the_wait_and_the_lock_is_released() {
    let ourselves = std::env::current_exe().expect("the system knows what runs");
    let inner = "waiting::tests::a_signal_comes_just_before_the_grant";
    let output = Command::new(ourselves).args(["--exact", "--ignored", inner]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
