//! The flow of `acquire` with a scripted lock.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::arguments::{Subcommand, parse};
use crate::ending::Refusal;
use crate::output::Verbosity;
use crate::scripted::{LONG, Refusing, Scripted};

/// What was written.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("no writer panics")).into_owned()
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn finish<L: Lock>(resource: &str, lock: L, to: impl Write + Send + 'static) -> Finish {
    finish_all(&[resource], lock, to)
}

fn finish_all<L: Lock>(words: &[&str], lock: L, to: impl Write + Send + 'static) -> Finish {
    let all = ["quorlock", "acquire", "-q", "-mredis://a"].iter().chain(words).map(std::ffi::OsString::from);
    let Ok(Subcommand::Acquire(arguments)) = parse(all, &Environment::default()) else { panic!("{words:?}") };
    let signals = Signals::install().expect("signals");
    acquire(&arguments, lock, &signals, &Terminal::none(), &Output::new(Verbosity::Quiet, false), to)
}

#[test]
fn the_token_is_written_and_the_lock_left_held() {
    let lock = Scripted { fence: Some(7), ..Scripted::new(LONG) };
    let written = Paper::default();
    assert_eq!(finish("a job's", lock.clone(), written.clone()), Finish::Code(0));
    let expected = "export QUORLOCK_RESOURCE='a job'\\''s';\n\
         export QUORLOCK_TOKEN=00ff;\nexport QUORLOCK_TOKEN_a_20job_27s=00ff;\n\
         export QUORLOCK_FENCE=7;\nexport QUORLOCK_FENCE_a_20job_27s=7;\n\
         unset QUORLOCK_PERMIT;\nunset QUORLOCK_PERMIT_a_20job_27s;\n";
    assert_eq!(written.text(), expected);
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
    let written = Paper::default();
    let words = ["--also=order:7", "--also=stock", "stock"];
    assert_eq!(finish_all(&words, Scripted::new(LONG), written.clone()), Finish::Code(0));
    let written = written.text();
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
        assert_eq!(finish("job", lock.clone(), Closed { at_once }), Finish::Code(74));
        assert!(lock.released.get() && !lock.handed_over.get());
    }
}

/// A pipe that is full and that nobody reads.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        loop {
            thread::park();
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_lock_whose_token_nobody_reads_is_given_up_when_it_ends() {
    let lock = Scripted::new(Duration::from_millis(300));
    assert_eq!(finish("job", lock.clone(), Full), Finish::Code(75));
    assert!(lock.released.get() && !lock.handed_over.get());
}

#[test]
fn a_lock_that_is_lost_before_it_is_handed_over_is_reported() {
    let lock = Scripted { lost_after: Some(Duration::ZERO), ..Scripted::new(LONG) };
    assert_eq!(finish("job", lock.clone(), Paper::default()), Finish::Code(75));
    assert!(!lock.handed_over.get());
}

#[test]
fn a_refusal_writes_nothing() {
    for (refusal, code) in [
        (Refusal::HeldByAnother(String::new(), 5), 5),
        (Refusal::NoQuorum(String::new()), 69),
        (Refusal::Configuration(String::new()), 64),
    ] {
        let written = Paper::default();
        assert_eq!(finish("job", Refusing(Some(refusal)), written.clone()), Finish::Code(code));
        assert!(written.text().is_empty());
    }
}
