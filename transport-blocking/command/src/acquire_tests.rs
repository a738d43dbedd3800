//! The flow of `acquire` with a scripted lock.

use std::io;
use std::time::Duration;

use super::*;
use crate::arguments::{Subcommand, parse};
use crate::ending::Refusal;
use crate::output::Verbosity;
use crate::scripted::{LONG, Refusing, Scripted};

fn finish<L: Lock>(resource: &str, lock: L, to: &mut impl Write) -> Finish {
    finish_all(&[resource], lock, to)
}

fn finish_all<L: Lock>(words: &[&str], lock: L, to: &mut impl Write) -> Finish {
    let all = ["quorlock", "acquire", "-q", "-mredis://a"].iter().chain(words).map(std::ffi::OsString::from);
    let Ok(Subcommand::Acquire(arguments)) = parse(all, &Environment::default()) else { panic!("{words:?}") };
    let signals = Signals::install().expect("signals");
    acquire(&arguments, lock, &signals, &Terminal::none(), &Output::new(Verbosity::Quiet, false), to)
}

#[test]
fn the_token_is_written_and_the_lock_left_held() {
    let lock = Scripted { fence: Some(7), ..Scripted::new(LONG) };
    let mut written = Vec::new();
    assert_eq!(finish("a job's", lock.clone(), &mut written), Finish::Code(0));
    let expected = "export QUORLOCK_RESOURCE='a job'\\''s';\n\
         export QUORLOCK_TOKEN=00ff;\nexport QUORLOCK_TOKEN_a_20job_27s=00ff;\n\
         export QUORLOCK_FENCE=7;\nexport QUORLOCK_FENCE_a_20job_27s=7;\n\
         unset QUORLOCK_PERMIT;\nunset QUORLOCK_PERMIT_a_20job_27s;\n";
    assert_eq!(String::from_utf8_lossy(&written), expected);
    assert!(lock.handed_over.get() && !lock.released.get());
}

#[test]
fn variables_without_a_value_are_unset() {
    for name in ["a\nb", "\u{1b}[2J", "\u{9b}2J"] {
        assert_eq!(quoted(name.as_bytes()), None);
    }
    assert_eq!(quoted(b"\xff"), None);
    assert_eq!(quoted("$(x) `y` \\ \" é".as_bytes()).as_deref(), Some("'$(x) `y` \\ \" é'"));
    let lines = "unset QUORLOCK_RESOURCE;\nexport QUORLOCK_TOKEN=00ff;\nunset QUORLOCK_FENCE;\n";
    let variables = [(Environment::TOKEN, Some("00ff")), (Environment::FENCE, None)];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
    assert_eq!(exports(b"\xff", &variables), lines);
}

#[test]
fn each_resource_of_a_lock_has_its_variables() {
    let mut written = Vec::new();
    let words = ["--also=order:7", "--also=stock", "stock"];
    assert_eq!(finish_all(&words, Scripted::new(LONG), &mut written), Finish::Code(0));
    let written = String::from_utf8_lossy(&written);
    let tokens = "export QUORLOCK_TOKEN=00ff;\nexport QUORLOCK_TOKEN_stock=00ff;\n\
         export QUORLOCK_TOKEN_order_3a7=00ff;\nunset QUORLOCK_FENCE;\n";
    assert!(
        written.starts_with("export QUORLOCK_RESOURCE='stock';\n") && written.contains(tokens),
        "{written}"
    );
}

/// A pipe whose reader has gone; it fails at the first byte, or at the flush.
struct Closed {
    at_once: bool,
}

impl Write for Closed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.at_once { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
}

#[test]
fn a_lock_whose_token_cannot_be_written_is_released() {
    for (at_once, still_ours) in [(true, Some(true)), (false, Some(true)), (true, Some(false)), (true, None)]
    {
        let lock = Scripted { still_ours, ..Scripted::new(LONG) };
        assert_eq!(finish("job", lock.clone(), &mut Closed { at_once }), Finish::Code(74));
        assert!(lock.released.get() && !lock.handed_over.get());
    }
}

#[test]
fn a_lock_that_is_lost_before_it_is_handed_over_is_reported() {
    let lock = Scripted { lost_after: Some(Duration::ZERO), ..Scripted::new(LONG) };
    assert_eq!(finish("job", lock.clone(), &mut Vec::new()), Finish::Code(75));
    assert!(!lock.handed_over.get());
}

#[test]
fn a_refusal_writes_nothing() {
    for (refusal, code) in [
        (Refusal::HeldByAnother(String::new(), 5), 5),
        (Refusal::NoQuorum(String::new()), 69),
        (Refusal::Configuration(String::new()), 64),
    ] {
        let mut written = Vec::new();
        assert_eq!(finish("job", Refusing(Some(refusal)), &mut written), Finish::Code(code));
        assert!(written.is_empty());
    }
}
