//! `quorlock run`: take the lock, run the command, release the lock.
//!
//! One thread makes all decisions, which are in this file.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use crate::arguments::{Environment, RunArguments};
use crate::child::{Ending, Step, Supervisor};
use crate::duration::spoken;
use crate::ending::{Finish, LOST};
use crate::output::{Level, Output};
use crate::signals::{self, Signals};
use crate::subject::Subject;
use crate::terminal::Terminal;
use crate::waiting::{Changed, Hold, Lock, NAP, Released, Standing, milliseconds, wait_for};

/// Why the command is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Lost,
    RunsOut,
    MaxHold,
}

/// Acquires `lock`, runs the command under it and releases it.
pub(crate) fn run<L: Lock>(
    arguments: &RunArguments,
    lock: L,
    signals: &Signals<Changed>,
    terminal: Terminal,
    output: &Output,
) -> Finish {
    let hold = match wait_for(&arguments.seek, lock, signals, &terminal, output) {
        Ok(hold) => hold,
        Err(finish) => return finish,
    };
    let claim = &arguments.seek.claim;
    let variables = Environment::of_lock(claim, &hold, hold.token());
    let mut additions = vec![(Environment::RESOURCE, Some(OsStr::from_bytes(claim.as_bytes())))];
    additions.extend(variables.iter().map(|(name, value)| (name.as_str(), value.as_deref().map(OsStr::new))));
    let command = arguments.command();
    match Supervisor::start(&command, &additions, signals, terminal) {
        Ok(supervisor) => {
            let subject = claim.subject();
            Holding { arguments, subject, hold, supervisor, output, begun: Instant::now() }.until_the_end()
        }
        Err(error) => {
            let program = command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
            output.message(Level::Error, &format!("{program} cannot be run: {error}"));
            let _ = hold.release(None);
            Finish::Code(error.exit_code())
        }
    }
}

/// The command is running and the lock is held.
struct Holding<'a, H> {
    arguments: &'a RunArguments,
    subject: Subject,
    hold: H,
    supervisor: Supervisor<'a, Changed>,
    output: &'a Output,
    begun: Instant,
}

impl<H: Hold> Holding<'_, H> {
    fn until_the_end(mut self) -> Finish {
        self.tell(Level::Info, "started", &format!("the command runs as process {}", self.supervisor.id()));
        let mut cause = None;
        let mut killed = false;
        let ending = loop {
            let standing = self.hold.standing();
            if cause.is_none() {
                cause = self.cause_to_end(standing);
                if let Some(cause) = cause {
                    // Act first and print later: a write to a full pipe may block.
                    self.supervisor.terminate();
                    self.hold.stop_renewal();
                    self.tell_cause(cause);
                }
            }
            if cause.is_some() && !killed && standing.remaining <= self.kill_margin() {
                self.supervisor.kill();
                killed = true;
                self.tell(Level::Warning, "killed", "the command got SIGKILL, because the lock runs out");
            }
            match self.supervisor.wait(Some(Instant::now() + self.nap(standing, cause, killed))) {
                Step::Ended(ending) => break ending,
                Step::PassedOn(signal) => {
                    let text = format!("passed {} on to the command", signals::name(signal));
                    self.tell(Level::Debug, "signal", &text);
                }
                Step::Continued | Step::Message(Changed) | Step::Deadline => {}
            }
        };
        self.finish(ending, cause)
    }

    /// Whether the command must end now, and why.
    fn cause_to_end(&self, standing: Standing) -> Option<Cause> {
        if standing.lost || standing.remaining.is_zero() {
            Some(Cause::Lost)
        } else if standing.remaining <= self.arguments.grace().max(self.kill_margin()) {
            Some(Cause::RunsOut)
        } else if self.arguments.max_hold.is_some_and(|longest| self.begun.elapsed() >= longest) {
            Some(Cause::MaxHold)
        } else {
            None
        }
    }

    /// How long before validity ends the command is killed: time for the system to do it even if it
    /// is busy.
    fn kill_margin(&self) -> Duration {
        (self.arguments.seek.ttl / 20).min(Duration::from_millis(100))
    }

    /// How long the thread may sleep if nothing happens.
    fn nap(&self, standing: Standing, cause: Option<Cause>, killed: bool) -> Duration {
        let until = if killed {
            NAP
        } else if cause.is_some() {
            standing.remaining.saturating_sub(self.kill_margin())
        } else {
            let until_grace =
                standing.remaining.saturating_sub(self.arguments.grace().max(self.kill_margin()));
            let until_max_hold =
                self.arguments.max_hold.map_or(NAP, |longest| longest.saturating_sub(self.begun.elapsed()));
            until_grace.min(until_max_hold)
        };
        until.min(NAP)
    }

    /// Releases the lock after the command has ended.
    fn finish(mut self, ending: Ending, cause: Option<Cause>) -> Finish {
        let standing = self.hold.standing();
        let mut lost = cause.is_some();
        if cause.is_none() && (standing.lost || standing.remaining.is_zero()) {
            lost = true;
            self.tell_cause(Cause::Lost);
        }
        if lost {
            // Processes that the command left behind must not continue without the lock.
            self.supervisor.kill();
        }
        let code = ending.exit_code();
        let ended = match ending {
            Ending::Exited(_) => format!("the command exited with code {code}"),
            Ending::Signalled(signal) => format!("{} ended the command", signals::name(signal)),
        };
        self.tell(Level::Info, "ended", &ended);
        let interrupted = self.supervisor.interrupted_at_terminal();
        let (name, fields) = (&self.subject.name, self.subject.fields([]));
        match self.hold.release(self.arguments.at_least) {
            Released::Ours => {
                self.output.record(Level::Info, "released", &format!("released {name}"), &fields);
            }
            Released::Kept(left) => {
                let text = format!("released {name}, and others are kept out for {} more", spoken(left));
                let fields = self.subject.fields([("kept_ms", milliseconds(left))]);
                self.output.record(Level::Info, "released", &text, &fields);
            }
            // If the lock is known to be lost already, the masters only confirm it.
            Released::NotOurs(text) if lost => self.output.record(Level::Info, "released", &text, &fields),
            Released::NotOurs(text) => {
                lost = true;
                self.output.record(Level::Error, "lost", &text, &fields);
            }
            Released::Unknown(text) => {
                self.output.record(Level::Warning, "release_unconfirmed", &text, &fields);
            }
        }
        if lost {
            Finish::Code(LOST)
        } else if interrupted {
            Finish::Interrupted { group: true }
        } else {
            Finish::Code(code)
        }
    }

    fn tell_cause(&self, cause: Cause) {
        let name = &self.subject.name;
        let (event, text) = match cause {
            Cause::Lost => ("lost", format!("{name} was lost, so the command is ended")),
            Cause::RunsOut if self.arguments.no_renew => (
                "runs_out",
                format!("{name} is about to expire and is not renewed (--no-renew), so the command is ended"),
            ),
            Cause::RunsOut => (
                "runs_out",
                format!("{name} could not be renewed and is about to expire, so the command is ended"),
            ),
            Cause::MaxHold => (
                "max_hold",
                format!("{name} has been held for as long as --max-hold allows, so the command is ended"),
            ),
        };
        self.tell(Level::Error, event, &text);
    }

    fn tell(&self, level: Level, event: &str, text: &str) {
        self.output.record(level, event, text, &self.subject.fields([]));
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
