//! Nobody reads what `quorlock` prints, or it cannot be printed.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use quorlock_tests::supervision::full_pipe;
use quorlock_tests::{Fleet, RedisServer, eventually, masters};
use rustix::process::{Pid, Signal, kill_process};

use crate::running::{JOB, SHOW, SOON, assert_free, quorlock};

/// A process whose output nobody reads. Dropping it kills it.
struct Unread {
    child: Child,
    /// Open, so that writers wait.
    _pipe: OwnedFd,
}

impl Unread {
    /// Starts `quorlock` with these words over these masters. `stream` sets the stream that is a
    /// full pipe.
    fn start(masters: &Fleet, words: &[&str], stream: fn(&mut Command, Stdio) -> &mut Command) -> Self {
        let (reader, writer) = full_pipe();
        let mut command = quorlock(words);
        command.env("QUORLOCK_MASTERS", masters.urls().join(",")).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        stream(&mut command, Stdio::from(writer));
        Self { child: command.spawn().unwrap(), _pipe: reader }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The exit code, and how long it took to end.
    #[track_caller]
    fn end(mut self) -> (Option<i32>, Duration) {
        let begun = Instant::now();
        eventually(SOON, "it ends", || self.child.try_wait().unwrap().is_some());
        (self.child.wait().unwrap().code(), begun.elapsed())
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_command_runs_and_its_lock_is_released() {
    let masters = masters(3);
    let run =
        Unread::start(&masters, &["run", "-vv", "--ttl", "1m", JOB, "sh", "-c", "exit 7"], Command::stderr);
    assert_eq!(run.end().0, Some(7));
    assert_free(&masters);
}

#[test]
fn a_signal_ends_a_wait_for_masters_that_are_said_to_be_missing() {
    let masters = masters(3);
    masters.iter().for_each(RedisServer::stop);
    let wait = Unread::start(&masters, &["run", "-v", JOB, SHOW[0]], Command::stderr);
    // The first warning is due after five seconds.
    std::thread::sleep(Duration::from_secs(6));
    wait.signal(Signal::TERM);
    assert_eq!(wait.end().0, Some(143));
    masters.iter().for_each(RedisServer::cont);
    assert_free(&masters);
}

#[test]
fn a_wait_that_was_not_read_ends_with_the_command() {
    let masters = masters(3);
    masters.iter().for_each(RedisServer::stop);
    let wait = Unread::start(&masters, &["run", "-v", JOB, "sh", "-c", "exit 7"], Command::stderr);
    std::thread::sleep(Duration::from_secs(6));
    masters.iter().for_each(RedisServer::cont);
    assert_eq!(wait.end().0, Some(7));
    assert_free(&masters);
}

#[test]
fn a_lock_whose_lines_nobody_reads_is_released_when_a_signal_comes() {
    let masters = masters(3);
    let acquire = Unread::start(&masters, &["acquire", "--ttl", "1m", JOB], Command::stdout);
    eventually(SOON, "it has the lock", || masters.holding(JOB) == 3);
    acquire.signal(Signal::TERM);
    assert_eq!(acquire.end().0, Some(143));
    assert_free(&masters);
}

#[test]
fn a_lock_whose_lines_nobody_reads_is_over_with_its_ttl() {
    let masters = masters(3);
    let acquire = Unread::start(&masters, &["acquire", "--ttl", "1s", JOB], Command::stdout);
    assert_eq!(acquire.end().0, Some(75));
}

#[test]
fn a_lock_is_released_if_standard_output_is_closed() {
    let masters = masters(3);
    for (redirection, code, keys) in
        [(">&-", Some(74), 0), (">/dev/full", Some(74), 0), (">/dev/null", Some(0), 3)]
    {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec \"$@\" {redirection}"), "sh"]).arg(crate::binary::quorlock());
        shell.args(["acquire", "--ttl", "1m", JOB]).env("QUORLOCK_MASTERS", masters.urls().join(","));
        let status = shell.stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), code, "{redirection}");
        eventually(SOON, "the keys are as they must be", || masters.holding(JOB) == keys);
    }
}
