//! `quorlock run`: take the lock, run the command, release the lock.
//!
//! One thread makes all decisions, which are in this file. It waits for nothing but its own queue,
//! and for the release of the lock, which takes a bounded time: another thread prints what it says.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use crate::arguments::{Environment, RunArguments};
use crate::child::{Ending, Step, Supervisor};
use crate::descendants::Descendants;
use crate::ending::{Finish, LOST};
use crate::output::{Level, Output};
use crate::reports::{Cause, Report};
use crate::signals::Signals;
use crate::terminal::Terminal;
use crate::waiting::{Changed, Hold, Lock, NAP, Released, Standing, wait_for};
use crate::work::Work;

/// How long what the command started may take to end by itself after it, before it is said to go
/// on: a `tee` that has read the last line, for example.
const SETTLES: Duration = Duration::from_millis(100);

/// How many walks over all descendants their end takes at most, as a rule: two to stop them, one to
/// kill them, and one to see that none is left.
const WALKS_TO_KILL: u32 = 4;

/// How often those that are waited for are named.
const NAMES_EACH: Duration = Duration::from_secs(60);

/// Acquires `lock`, runs the command under it and releases it. Without `descendants`, only the
/// command's process group is supervised.
pub(crate) fn run<L: Lock>(
    arguments: &RunArguments,
    lock: L,
    signals: &Signals<Changed>,
    terminal: Terminal,
    descendants: Option<Descendants>,
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
    let report = Report::new(arguments, output);
    report.before_start(&command, descendants.is_some());
    match Supervisor::start(&command, &additions, signals, terminal, descendants) {
        Ok(supervisor) => {
            report.started(supervisor.id());
            let work = Work::new(supervisor, report);
            let begun = Instant::now();
            Holding { arguments, hold, work, begun, cause: None, walk: None }.until_the_end()
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
    hold: H,
    work: Work<'a>,
    begun: Instant,
    /// Why all is being ended.
    cause: Option<Cause>,
    /// How long it takes to find all, once that is known.
    walk: Option<Duration>,
}

impl<H: Hold> Holding<'_, H> {
    fn until_the_end(mut self) -> Finish {
        let ending = loop {
            let nap = self.act();
            match self.work.supervisor.wait(Some(Instant::now() + nap)) {
                Step::Ended(ending) => break ending,
                Step::PassedOn { signal, refused } => self.work.report.passed_on(signal, refused),
                Step::Continued | Step::Message(Changed) | Step::Deadline => {}
            }
        };
        self.until_the_rest_has_ended();
        self.finish(ending)
    }

    /// The command has ended. Waits for what it started if it is to be waited for, and ends it if
    /// it must end.
    fn until_the_rest_has_ended(&mut self) {
        let waits_for_children = self.arguments.wait_for_children;
        let begun = Instant::now();
        let mut names_at = begun + NAMES_EACH;
        loop {
            let nap = self.act();
            if self.cause.is_some() && (self.work.is_killing() || !waits_for_children) {
                return self.work.end_rest(Instant::now() + self.hold.standing().remaining);
            }
            if self.work.supervisor.is_alone() {
                return;
            }
            let now = Instant::now();
            if !waits_for_children && now >= begun + SETTLES {
                return self.work.report.left_behind(&self.work.supervisor.living());
            }
            if now >= names_at {
                names_at = now + NAMES_EACH;
                self.work.report.waits_for(&self.work.supervisor.living());
            }
            let until = if waits_for_children { now + nap } else { begun + SETTLES.min(nap) };
            if let Step::PassedOn { signal, refused } = self.work.supervisor.wait_for_rest(Some(until)) {
                self.work.report.passed_on(signal, refused);
            }
        }
    }

    /// Does what the time and the state of the lock require. Returns how long the thread may sleep
    /// if nothing happens.
    fn act(&mut self) -> Duration {
        let standing = self.hold.standing();
        let is_late = !standing.remaining.is_zero() && standing.remaining <= self.late();
        if self.walk.is_none() && is_late {
            self.walk = Some(self.work.supervisor.time_to_find());
        }
        if self.cause.is_none() {
            self.cause = self.cause_to_end(standing);
            if let Some(cause) = self.cause {
                self.work.supervisor.terminate();
                self.hold.stop_renewal();
                self.work.report.cause(cause);
            }
        }
        if self.cause.is_some() && standing.remaining <= self.kill_margin() {
            self.work.kill();
        }
        self.nap(standing).min(self.work.look())
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

    /// How long before validity ends all are killed: time for the system to do it even if it is
    /// busy, and for the walks that find them.
    fn kill_margin(&self) -> Duration {
        let walks = self.walk.map_or(Duration::ZERO, |walk| WALKS_TO_KILL * walk);
        (self.arguments.seek.ttl / 20).min(Duration::from_millis(100)) + walks
    }

    /// What remains of the lock when it must be known how long a walk takes. While renewals
    /// succeed, it does not come to that, and there are no walks. Grace begins later.
    fn late(&self) -> Duration {
        self.arguments.seek.ttl / 2
    }

    /// How long the thread may sleep if nothing happens.
    fn nap(&self, standing: Standing) -> Duration {
        if self.work.is_killing() {
            return NAP;
        }
        let (mut remains, mut until) = (self.kill_margin(), NAP);
        if self.cause.is_none() {
            remains = remains.max(self.arguments.grace());
            until =
                self.arguments.max_hold.map_or(NAP, |longest| longest.saturating_sub(self.begun.elapsed()));
        }
        if self.walk.is_none() {
            remains = remains.max(self.late());
        }
        standing.remaining.saturating_sub(remains).min(until).min(NAP)
    }

    /// Releases the lock after the command has ended.
    fn finish(mut self, ending: Ending) -> Finish {
        let standing = self.hold.standing();
        if self.cause.is_none() && (standing.lost || standing.remaining.is_zero()) {
            self.cause = Some(Cause::Lost);
            self.work.report.cause(Cause::Lost);
            // Processes that the command left behind must not continue without the lock.
            self.work.end_rest(Instant::now());
        }
        self.work.report.ended(ending);
        let is_known = self.cause.is_some();
        let released = self.hold.release(self.arguments.at_least);
        let lost = is_known || matches!(released, Released::NotOurs(_));
        self.work.report.released(released, is_known);
        if lost && !is_known {
            self.work.end_rest(Instant::now());
        }
        if lost {
            Finish::Code(LOST)
        } else if self.work.supervisor.interrupted_at_terminal() {
            Finish::Interrupted { group: true }
        } else {
            Finish::Code(ending.exit_code())
        }
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
