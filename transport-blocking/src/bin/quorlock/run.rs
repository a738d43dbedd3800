//! `quorlock run`: take the lock, run the command, give the lock back.
//!
//! One thread decides; this file says what. It knows of a lock only what [`Lock`] and [`Hold`] say, so that its
//! behaviour can be tested without masters.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::task::Poll;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTSTP};

use crate::arguments::RunArguments;
use crate::child::{Ending, Step, Supervisor};
use crate::output::{JsonValue, Level, Output};
use crate::signals::{self, Happening, Signals};
use crate::terminal::{self, Terminal};

/// Exit code: too few masters answered. `EX_UNAVAILABLE` of sysexits.h.
const NO_QUORUM: u8 = 69;
/// Exit code: the lock was lost while the command ran. `EX_TEMPFAIL`.
const LOST: u8 = 75;
/// Exit code: usage or configuration. `EX_USAGE`.
pub(crate) const USAGE: u8 = 64;

/// The longest sleep while the lock is held. [`Instant`] does not count the time in which the machine is suspended, so
/// no single sleep may be long: after a resume the lock's own clock has to be asked soon.
const NAP: Duration = Duration::from_secs(1);

/// What the lock's threads tell the deciding thread: something changed, ask again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Changed;

/// A lock that is being acquired.
pub(crate) trait Lock {
    /// What one holds once it is acquired.
    type Hold: Hold;

    /// Asks whether it is acquired. Never blocks; whenever asking again is worthwhile, [`Changed`] is sent. Not called
    /// again after it was ready.
    fn poll(&mut self) -> Poll<Result<Self::Hold, Refusal>>;

    /// Gives up and leaves no key behind on masters that answer soon.
    fn cancel(self);
}

/// A lock that is held.
pub(crate) trait Hold {
    /// The token, as hex.
    fn token(&self) -> String;

    /// Whether it is still held, and for how long, now. When it is lost, and when it gains time, [`Changed`] is sent.
    fn standing(&self) -> Standing;

    /// Renews it no more; it stays valid for what remains.
    fn stop_renewal(&self);

    /// Gives it back, within a bounded time.
    fn release(self) -> Released;
}

/// How well a lock is held.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    /// Whether the masters said that it is not ours any more.
    pub(crate) lost: bool,
    /// How long nobody else can hold it; zero once that is over.
    pub(crate) remaining: Duration,
}

/// Why a lock was not acquired, each with the sentence to say.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Another holds it.
    HeldByAnother(String),
    /// Too few masters answered.
    NoQuorum(String),
    /// The masters or the options are not right.
    Configuration(String),
}

/// What came of giving a lock back.
#[derive(Debug)]
pub(crate) enum Released {
    /// A quorum of masters had it as ours until then.
    Ours,
    /// It was not ours any more, with the sentence to say.
    NotOurs(String),
    /// Too few masters answered to tell, with the sentence to say.
    Unknown(String),
}

/// How `quorlock` is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// With this exit code.
    Code(u8),
    /// By SIGINT, since the user interrupted at the terminal; with `group`, the others of our group are to get it too.
    Interrupted { group: bool },
}

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
    let hold = match acquire(arguments, lock, signals, &terminal, output) {
        Ok(hold) => hold,
        Err(finish) => return finish,
    };
    let name = String::from_utf8_lossy(&arguments.resource);
    let valid_ms = u64::try_from(hold.standing().remaining.as_millis()).unwrap_or(u64::MAX);
    let fields = [("resource", JsonValue::Text(&name)), ("valid_ms", JsonValue::Number(valid_ms))];
    output.record(Level::Info, "acquired", &format!("acquired {name}"), &fields);
    let token = OsString::from(hold.token());
    let additions = [
        ("QUORLOCK_RESOURCE", OsStr::from_bytes(&arguments.resource)),
        ("QUORLOCK_TOKEN", token.as_os_str()),
    ];
    match Supervisor::start(&arguments.command, &additions, signals, terminal) {
        Ok(supervisor) => {
            Holding { arguments, hold, supervisor, output, begun: Instant::now() }.until_the_end()
        }
        Err(error) => {
            let program =
                arguments.command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
            output.message(Level::Error, &format!("{program} cannot be run: {error}"));
            let _ = hold.release();
            Finish::Code(error.exit_code())
        }
    }
}

/// Waits for `lock`, while signals are heard.
fn acquire<L: Lock>(
    arguments: &RunArguments,
    mut lock: L,
    signals: &Signals<Changed>,
    terminal: &Terminal,
    output: &Output,
) -> Result<L::Hold, Finish> {
    let name = String::from_utf8_lossy(&arguments.resource);
    let begun = Instant::now();
    loop {
        if let Poll::Ready(outcome) = lock.poll() {
            output.clear_progress();
            return outcome.map_err(|refusal| refuse(arguments, &refusal, output));
        }
        let waited = begun.elapsed().as_secs();
        if waited >= 1 {
            output.progress(&format!("waiting for {name} ({waited} s)"));
        }
        let tick = output.shows_progress().then(|| begun + Duration::from_secs(waited + 1));
        match signals.next(tick) {
            Some(Happening::Signal(SIGTSTP)) => {
                output.clear_progress();
                if terminal.has_job_control() {
                    terminal::stop_self();
                }
            }
            Some(Happening::Signal(signal)) if signals::asks_to_end(signal) => {
                output.clear_progress();
                lock.cancel();
                let text = format!("{} while waiting for {name}", signals::name(signal));
                output.record(Level::Info, "interrupted", &text, &[("resource", JsonValue::Text(&name))]);
                // The terminal sent it to our whole group, so nobody else needs to get it from us.
                return Err(if signal == SIGINT && terminal.is_ours() {
                    Finish::Interrupted { group: false }
                } else {
                    Finish::Code(Ending::Signalled(signal).exit_code())
                });
            }
            _ => {}
        }
    }
}

/// Says why there is no lock.
pub(crate) fn refuse(arguments: &RunArguments, refusal: &Refusal, output: &Output) -> Finish {
    let (event, text, code) = match refusal {
        Refusal::HeldByAnother(text) => ("held_by_another", text, arguments.conflict_exit_code),
        Refusal::NoQuorum(text) => ("no_quorum", text, NO_QUORUM),
        Refusal::Configuration(text) => ("configuration", text, USAGE),
    };
    let name = String::from_utf8_lossy(&arguments.resource);
    output.record(Level::Error, event, text, &[("resource", JsonValue::Text(&name))]);
    Finish::Code(code)
}

/// The command is running and the lock is held.
struct Holding<'a, H> {
    arguments: &'a RunArguments,
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
                    // First act, then speak: a full pipe may hold up whoever writes to it.
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

    /// Whether the command has to end now, and why.
    fn cause_to_end(&self, standing: Standing) -> Option<Cause> {
        if standing.lost || standing.remaining.is_zero() {
            Some(Cause::Lost)
        } else if standing.remaining <= self.arguments.grace.max(self.kill_margin()) {
            Some(Cause::RunsOut)
        } else if self.arguments.max_hold.is_some_and(|longest| self.begun.elapsed() >= longest) {
            Some(Cause::MaxHold)
        } else {
            None
        }
    }

    /// How long before validity ends the command is killed: time for the system to do it even if it is busy.
    fn kill_margin(&self) -> Duration {
        (self.arguments.ttl / 20).min(Duration::from_millis(100))
    }

    /// How long nothing needs to be decided, if nothing happens.
    fn nap(&self, standing: Standing, cause: Option<Cause>, killed: bool) -> Duration {
        let until = if killed {
            NAP
        } else if cause.is_some() {
            standing.remaining.saturating_sub(self.kill_margin())
        } else {
            let until_grace = standing.remaining.saturating_sub(self.arguments.grace.max(self.kill_margin()));
            let until_max_hold =
                self.arguments.max_hold.map_or(NAP, |longest| longest.saturating_sub(self.begun.elapsed()));
            until_grace.min(until_max_hold)
        };
        until.min(NAP)
    }

    /// The command has ended; gives the lock back.
    fn finish(self, ending: Ending, cause: Option<Cause>) -> Finish {
        let standing = self.hold.standing();
        let mut lost = cause.is_some();
        if cause.is_none() && (standing.lost || standing.remaining.is_zero()) {
            lost = true;
            self.tell_cause(Cause::Lost);
        }
        if lost {
            // What the command left behind must not go on without the lock that it believes to hold.
            self.supervisor.kill();
        }
        let code = ending.exit_code();
        let ended = match ending {
            Ending::Exited(_) => format!("the command exited with code {code}"),
            Ending::Signalled(signal) => format!("{} ended the command", signals::name(signal)),
        };
        self.tell(Level::Info, "ended", &ended);
        let interrupted = self.supervisor.interrupted_at_terminal();
        let name = String::from_utf8_lossy(&self.arguments.resource);
        let fields = [("resource", JsonValue::Text(&name))];
        match self.hold.release() {
            Released::Ours => {
                self.output.record(Level::Info, "released", &format!("released {name}"), &fields);
            }
            // If it is known to be lost already, the masters only confirm it.
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
        let name = String::from_utf8_lossy(&self.arguments.resource);
        let (event, text) = match cause {
            Cause::Lost => ("lost", format!("{name} was lost, so the command is ended")),
            Cause::RunsOut if !self.arguments.renew => {
                ("runs_out", format!("{name} runs out, for --no-renew was given, so the command is ended"))
            }
            Cause::RunsOut => {
                ("runs_out", format!("{name} could not be renewed and runs out, so the command is ended"))
            }
            Cause::MaxHold => (
                "max_hold",
                format!("{name} has been held for as long as --max-hold allows, so the command is ended"),
            ),
        };
        self.tell(Level::Error, event, &text);
    }

    fn tell(&self, level: Level, event: &str, text: &str) {
        let name = String::from_utf8_lossy(&self.arguments.resource);
        self.output.record(level, event, text, &[("resource", JsonValue::Text(&name))]);
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
