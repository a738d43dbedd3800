//! The command as a child process, with all that it starts, supervised by one thread that sleeps
//! until something happens.
//!
//! The command is the leader of a process group of its own, so that a terminal's keys reach it and
//! not `quorlock`, and so that a signal reaches the pipeline that a shell makes of it. On Linux,
//! what leaves the group is found too: see [`descendants`](crate::descendants). Nothing is polled
//! for: the kernel reports the end of a child by SIGCHLD, and on Linux every descendant without a
//! parent is a child.
//!
//! While `quorlock` itself is stopped, nothing supervises. If it stops as a shell's job does, it
//! first stops all descendants. If it is stopped by SIGSTOP, they go on, and when it is continued,
//! the caller looks at the lock before anything else.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGINT, SIGTSTP, SIGTTIN, SIGTTOU};

use crate::descendants::{Descendants, Frozen, Process};
use crate::launch::launch;
use crate::reaping::{Reaped, reap};
use crate::signals::{self, Happening, Signals};
use crate::terminal::{self, Terminal};

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
}

impl Ending {
    /// The exit code as a shell reports it: the command's own, or 128 and the signal.
    pub(crate) fn exit_code(self) -> u8 {
        let code = match self {
            Self::Exited(code) => code,
            Self::Signalled(signal) => signal.saturating_add(128),
        };
        u8::try_from(code).unwrap_or(u8::MAX)
    }
}

/// What [`Supervisor::wait`] waited for.
#[derive(Debug)]
pub(crate) enum Step<M> {
    /// The command ended. What it started may go on.
    Ended(Ending),
    /// `quorlock` was stopped together with the command and has been continued. The command is
    /// continued by the next call of [`Supervisor::wait`], so that the caller can first see whether
    /// the lock is still held.
    Continued,
    /// This signal was received and passed on to the command, if the system allowed that.
    PassedOn { signal: i32, refused: bool },
    /// Another thread sent this.
    Message(M),
    /// The deadline has passed.
    Deadline,
}

/// Why the command could not be started.
#[derive(Debug)]
pub(crate) struct StartError {
    error: io::Error,
}

impl StartError {
    /// 127 if the command was not found, 126 if it cannot be run, as in a shell.
    pub(crate) fn exit_code(&self) -> u8 {
        if self.error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
    }
}

impl std::fmt::Display for StartError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(formatter)
    }
}

/// The end of a command that the system does not know. It cannot happen, but ends the wait.
const UNKNOWN: Ending = Ending::Exited(u8::MAX as i32);

/// How often what lives is looked for, if a walk finds nothing.
const LOOKS: usize = 16;

/// A running command.
#[derive(Debug)]
pub(crate) struct Supervisor<'a, M> {
    child: Child,
    /// The child's process id, which is its group's too.
    group: Pid,
    happenings: &'a Signals<M>,
    terminal: Terminal,
    /// What the command starts; without this, only its process group is known.
    descendants: Option<Descendants>,
    ended: Option<Ending>,
    /// Whether all are being killed, so that a stop is no one else's.
    is_killing: bool,
    /// What has been stopped together with `quorlock`.
    frozen: Frozen,
    /// Whether the command had the terminal when it stopped, so that it gets it again.
    had_terminal: bool,
    interrupted: bool,
    /// Whether the next SIGTSTP is the one that we sent to our own group.
    own_stop: bool,
    continue_first: bool,
}

impl<'a, M: Send + 'static> Supervisor<'a, M> {
    /// Starts `command` in its own process group, with our standard streams and environment, except
    /// for `variables`, and gives it the terminal's foreground if we have it.
    pub(crate) fn start(
        command: &[&OsStr],
        variables: &[(&str, Option<&OsStr>)],
        happenings: &'a Signals<M>,
        mut terminal: Terminal,
        descendants: Option<Descendants>,
    ) -> Result<Self, StartError> {
        let prepare = |builder: &mut Command| {
            builder.process_group(0);
            for (name, value) in variables {
                match value {
                    Some(value) => builder.env(name, value),
                    None => builder.env_remove(name),
                };
            }
        };
        let started = happenings.with_inherited_mask(|| launch(command, prepare, descendants.is_some()));
        let launched = started.and_then(std::convert::identity).map_err(|error| StartError { error })?;
        let group = launched.id();
        if terminal.lends_at_start() {
            terminal.lend(group);
        }
        let child = launched.go().map_err(|error| {
            terminal.take_back();
            StartError { error }
        })?;
        Ok(Self {
            child,
            group,
            happenings,
            terminal,
            descendants,
            ended: None,
            is_killing: false,
            frozen: Frozen::default(),
            had_terminal: false,
            interrupted: false,
            own_stop: false,
            continue_first: false,
        })
    }

    /// The command's process id, which is its group's too.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the command has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Waits until something happens, at most until `deadline`. This passes on signals and follows
    /// stops. Once the command has ended, every call returns that.
    pub(crate) fn wait(&mut self, deadline: Option<Instant>) -> Step<M> {
        if std::mem::take(&mut self.continue_first) {
            self.go_on();
        }
        loop {
            if let Some(ending) = self.look() {
                return Step::Ended(ending);
            }
            if let Some(step) = self.next(deadline) {
                return step;
            }
        }
    }

    /// The same after the command has ended, until something happens to what it started: then this
    /// returns [`Step::Deadline`], too. Signals are passed on to all of it.
    pub(crate) fn wait_for_rest(&mut self, deadline: Option<Instant>) -> Step<M> {
        if std::mem::take(&mut self.continue_first) {
            self.thaw();
        }
        self.look();
        self.next(deadline).unwrap_or(Step::Deadline)
    }

    /// Handles what happens next. `None` if it concerns no caller.
    fn next(&mut self, deadline: Option<Instant>) -> Option<Step<M>> {
        Some(match self.happenings.next(deadline) {
            None => Step::Deadline,
            Some(Happening::Message(message)) => Step::Message(message),
            Some(Happening::Signal(SIGCHLD)) => return None,
            Some(Happening::Signal(SIGCONT)) => {
                self.continue_first = true;
                Step::Continued
            }
            Some(Happening::Signal(SIGTSTP)) if std::mem::take(&mut self.own_stop) => return None,
            Some(Happening::Signal(SIGTSTP)) if self.ended.is_some() => {
                // Our own group has the foreground again, and the shell waits for us to stop.
                if self.terminal.has_job_control() {
                    self.freeze();
                    terminal::stop_self();
                }
                return None;
            }
            Some(Happening::Signal(signal)) => {
                let refused = signals::numbered(signal).is_some_and(|signal| self.signal(signal));
                Step::PassedOn { signal, refused }
            }
        })
    }

    /// Whether nothing that the command started lives after its end, as far as that is known.
    pub(crate) fn is_alone(&self) -> bool {
        self.descendants.as_ref().is_none_or(|descendants| {
            reap(self.group).is_alone || (descendants.has_earlier() && self.living().is_empty())
        })
    }

    /// What the command started and lives now. What starts other processes and ends at once, again
    /// and again, may be missing.
    pub(crate) fn living(&self) -> Vec<Process> {
        let find = || self.descendants.as_ref().map(Descendants::living).unwrap_or_default();
        std::iter::repeat_with(find).take(LOOKS).find(|living| !living.is_empty()).unwrap_or_default()
    }

    /// How long it takes to find all, without the time in which this thread does not run.
    pub(crate) fn time_to_find(&self) -> Duration {
        let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
        let begun = used();
        let _ = self.descendants.as_ref().map(Descendants::living);
        used().saturating_sub(begun)
    }

    /// Those that run as another user now, so that they cannot be ended. Each is returned once.
    pub(crate) fn refusing(&mut self) -> Vec<Process> {
        self.descendants.as_mut().map(Descendants::refusing).unwrap_or_default()
    }

    /// Asks all to terminate, and continues them, because a stopped process would not see the
    /// signal.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
        match &self.descendants {
            Some(descendants) if self.ended.is_none() => {
                descendants.send(&[Signal::TERM, Signal::CONT], Some(self.group));
            }
            // All have got them.
            _ => {}
        }
    }

    /// Kills all. Returns those for which the system refused it.
    pub(crate) fn kill(&mut self) -> Vec<Process> {
        self.is_killing = true;
        match &self.descendants {
            Some(descendants) => descendants.kill(),
            None => {
                self.signal(Signal::KILL);
                Vec::new()
            }
        }
    }

    /// Whether the command had the terminal and died of SIGINT: the user interrupted it there, and
    /// the process that started us should see it the way it would have seen it without us in
    /// between.
    pub(crate) fn interrupted_at_terminal(&self) -> bool {
        self.interrupted
    }

    /// Sends a signal to the command's group. Once the command has ended and been reaped, the
    /// group's number may be another's, so all get it. Returns whether the system refused it.
    fn signal(&self, signal: Signal) -> bool {
        match &self.descendants {
            Some(descendants) if self.ended.is_some() => !descendants.send(&[signal], None).is_empty(),
            // An empty group needs no signal.
            _ => kill_process_group(self.group, signal) == Err(Errno::PERM),
        }
    }

    /// Checks the state of the command.
    fn look(&mut self) -> Option<Ending> {
        if self.ended.is_none() {
            self.ended = self.look_for_end();
            if let Some(ending) = self.ended {
                let lent = self.terminal.take_back();
                self.interrupted = lent && ending == Ending::Signalled(SIGINT);
            } else if let Some(signal) = self.look_for_stop() {
                self.follow_stop(signal);
            }
        } else if self.descendants.is_some() {
            reap(self.group);
        }
        self.ended
    }

    fn look_for_end(&self) -> Option<Ending> {
        if self.descendants.is_some() {
            let Reaped { ending, is_alone } = reap(self.group);
            return ending.or_else(|| is_alone.then_some(UNKNOWN));
        }
        // The child is not reaped before the supervisor is dropped, so the group's number is not
        // reused.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.group), options) {
            Ok(None) | Err(Errno::INTR) => None,
            Ok(Some(status)) => Some(match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Ending::Exited(code),
                (None, Some(signal)) => Ending::Signalled(signal),
                (None, None) => return None,
            }),
            Err(_) => Some(UNKNOWN),
        }
    }

    fn look_for_stop(&self) -> Option<i32> {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        waitid(WaitId::Pid(self.group), options).ok().flatten().and_then(|status| status.stopping_signal())
    }

    /// The command was stopped by `signal`. Its shell knows only `quorlock`, so `quorlock` gives
    /// back the terminal and stops too. The lock is not renewed until the job is continued.
    fn follow_stop(&mut self, signal: i32) {
        if self.is_killing {
            return;
        }
        // The command stopped because it needs the terminal, and now it may have it: it asked too
        // early, or the job has been brought to the foreground since.
        if matches!(signal, SIGTTIN | SIGTTOU) && self.terminal.lend(self.group) {
            self.signal(Signal::CONT);
            return;
        }
        self.had_terminal = self.terminal.take_back();
        if !self.terminal.has_job_control() {
            // No shell would continue us. The stop key is ignored, as the system does for such
            // jobs. After another stop request, the command stays stopped and the lock stays held.
            if signal == SIGTSTP {
                self.go_on();
            }
            return;
        }
        self.freeze();
        if signal == SIGTSTP {
            self.own_stop = true;
            terminal::stop_group();
        }
        terminal::stop_self();
    }

    /// Continues the stopped command, with the terminal if it should have it.
    fn go_on(&mut self) {
        if self.terminal.lends_at_start() || self.had_terminal {
            self.terminal.lend(self.group);
        }
        self.signal(Signal::CONT);
        self.thaw();
    }

    /// Stops all: what is not in the command's group would go on while nothing watches the lock.
    fn freeze(&mut self) {
        if let Some(descendants) = &self.descendants {
            self.frozen = descendants.freeze();
        }
    }

    /// Continues what has been stopped with [`Supervisor::freeze`].
    fn thaw(&mut self) {
        if let Some(descendants) = &self.descendants {
            descendants.thaw(&std::mem::take(&mut self.frozen));
        }
    }
}

impl<M> Drop for Supervisor<'_, M> {
    fn drop(&mut self) {
        let _ = self.child.try_wait();
    }
}

#[cfg(test)]
#[path = "child_tests.rs"]
mod tests;
