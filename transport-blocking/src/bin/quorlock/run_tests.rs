//! The flow of `run` with a lock that does what the test says and a real command.

use std::cell::Cell;
use std::rc::Rc;

use super::*;
use crate::arguments::{Request, parse};
use crate::output::Verbosity;

/// A lock that is granted at once, and what was done with it.
#[derive(Clone)]
struct Scripted {
    acquired: Instant,
    validity: Duration,
    lost_after: Option<Duration>,
    still_ours: Option<bool>,
    renewing: Rc<Cell<bool>>,
    released: Rc<Cell<bool>>,
}

impl Scripted {
    fn new(validity: Duration) -> Self {
        Self {
            acquired: Instant::now(),
            validity,
            lost_after: None,
            still_ours: Some(true),
            renewing: Rc::new(Cell::new(true)),
            released: Rc::new(Cell::new(false)),
        }
    }
}

impl Lock for Scripted {
    type Hold = Self;

    fn poll(&mut self) -> Poll<Result<Self, Refusal>> {
        self.acquired = Instant::now();
        Poll::Ready(Ok(self.clone()))
    }

    fn cancel(self) {}
}

impl Hold for Scripted {
    fn token(&self) -> String {
        "00ff".to_owned()
    }

    fn standing(&self) -> Standing {
        let age = self.acquired.elapsed();
        Standing {
            lost: self.lost_after.is_some_and(|after| age >= after),
            remaining: self.validity.saturating_sub(age),
        }
    }

    fn stop_renewal(&self) {
        self.renewing.set(false);
    }

    fn release(self) -> Released {
        self.released.set(true);
        match self.still_ours {
            Some(true) => Released::Ours,
            Some(false) => Released::NotOurs("not ours".to_owned()),
            None => Released::Unknown("unknown".to_owned()),
        }
    }
}

/// Refuses as it is told.
struct Refusing(Option<Refusal>);

impl Lock for Refusing {
    type Hold = Scripted;

    fn poll(&mut self) -> Poll<Result<Scripted, Refusal>> {
        self.0.take().map_or(Poll::Pending, |refusal| Poll::Ready(Err(refusal)))
    }

    fn cancel(self) {}
}

fn finish<L: Lock>(options: &[&str], script: &str, lock: L) -> (Finish, Duration) {
    let words = ["quorlock", "run", "-q", "-mredis://a"].into_iter().chain(options.iter().copied());
    let words = words.chain(["job", "sh", "-c", script]).map(OsString::from);
    let Ok(Request::Run(arguments)) = parse(words, None) else { panic!("{options:?}") };
    let signals = Signals::install().expect("signals");
    let begun = Instant::now();
    let output = Output::new(Verbosity::Quiet, false);
    (run(&arguments, lock, &signals, Terminal::none(), &output), begun.elapsed())
}

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn the_command_knows_its_lock_and_gives_its_exit_code() {
    let lock = Scripted::new(LONG);
    let script = "[ $QUORLOCK_RESOURCE = job ] && [ $QUORLOCK_TOKEN = 00ff ] && exit 9";
    assert_eq!(finish(&[], script, lock.clone()).0, Finish::Code(9));
    assert!(lock.released.get());
    // No process can have inherited a deaf ear for this one.
    assert_eq!(finish(&[], "kill -KILL $$", Scripted::new(LONG)).0, Finish::Code(137));
}

#[test]
fn a_command_that_does_not_exist_leaves_no_lock() {
    let words = ["quorlock", "run", "-q", "-mredis://a", "job", "/nonexistent"].map(OsString::from);
    let Ok(Request::Run(arguments)) = parse(words, None) else { panic!() };
    let signals = Signals::install().expect("signals");
    let lock = Scripted::new(LONG);
    let output = Output::new(Verbosity::Quiet, false);
    assert_eq!(run(&arguments, lock.clone(), &signals, Terminal::none(), &output), Finish::Code(127));
    assert!(lock.released.get());
}

#[test]
fn refusals_have_their_exit_codes() {
    for (refusal, code) in [
        (Refusal::HeldByAnother(String::new()), 5),
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
fn a_lock_that_runs_out_means_term_and_then_kill_before_its_end() {
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
fn a_loss_that_only_the_release_finds_is_told() {
    let lock = Scripted { still_ours: Some(false), ..Scripted::new(LONG) };
    assert_eq!(finish(&[], "exit 0", lock).0, Finish::Code(75));
}

#[test]
fn a_release_that_nobody_confirms_takes_nothing_from_the_command() {
    let lock = Scripted { still_ours: None, ..Scripted::new(LONG) };
    assert_eq!(finish(&[], "exit 4", lock).0, Finish::Code(4));
}
