//! The command as a child process in its own process group, supervised by one thread that sleeps
//! until something happens.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::Instant;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGINT, SIGTSTP, SIGTTIN, SIGTTOU};

use crate::signals::{Happening, Signals};
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
    /// The command ended. Its process group keeps its number until the supervisor is dropped, so
    /// that [`Supervisor::kill`] reaches only processes that the command left behind.
    Ended(Ending),
    /// `quorlock` was stopped together with the command and has been continued. The command is
    /// continued by the next call of [`Supervisor::wait`], so that the caller can first see whether
    /// the lock is still held.
    Continued,
    /// This signal was received and passed on to the command.
    PassedOn(i32),
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

/// A running command.
#[derive(Debug)]
pub(crate) struct Supervisor<'a, M> {
    child: Child,
    /// The child's process id, which is its group's too.
    group: Pid,
    happenings: &'a Signals<M>,
    terminal: Terminal,
    ended: Option<Ending>,
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
    ///
    /// For an instant the command runs without having the foreground yet. If it reads from the
    /// terminal at that moment, the system stops it; the supervisor sees that and continues it.
    pub(crate) fn start(
        command: &[&OsStr],
        variables: &[(&str, Option<&OsStr>)],
        happenings: &'a Signals<M>,
        mut terminal: Terminal,
    ) -> Result<Self, StartError> {
        let mut parts = command.iter();
        let program = parts.next().copied().unwrap_or_default();
        let mut builder = Command::new(program);
        builder.args(parts).process_group(0);
        for (name, value) in variables {
            match value {
                Some(value) => builder.env(name, value),
                None => builder.env_remove(name),
            };
        }
        let spawned = happenings.with_inherited_mask(|| builder.spawn()).and_then(std::convert::identity);
        let child = spawned.map_err(|error| StartError { error })?;
        let group = Pid::from_child(&child);
        if terminal.lends_at_start() {
            terminal.lend(group);
        }
        Ok(Self {
            child,
            group,
            happenings,
            terminal,
            ended: None,
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
            match self.happenings.next(deadline) {
                None => return Step::Deadline,
                Some(Happening::Message(message)) => return Step::Message(message),
                Some(Happening::Signal(SIGCHLD)) => {}
                Some(Happening::Signal(SIGCONT)) => {
                    self.continue_first = true;
                    return Step::Continued;
                }
                Some(Happening::Signal(SIGTSTP)) if std::mem::take(&mut self.own_stop) => {}
                Some(Happening::Signal(signal)) => {
                    if let Some(signal) = Signal::from_named_raw(signal) {
                        self.signal(signal);
                    }
                    return Step::PassedOn(signal);
                }
            }
        }
    }

    /// Asks the command's group to terminate, and continues it, because a stopped group would not
    /// see the signal.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Kills the command's group.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Whether the command had the terminal and died of SIGINT: the user interrupted it there, and
    /// the process that started us should see it the way it would have seen it without us in
    /// between.
    pub(crate) fn interrupted_at_terminal(&self) -> bool {
        self.interrupted
    }

    /// The child is not reaped before the supervisor is dropped, so the group's number is not
    /// reused.
    fn signal(&self, signal: Signal) {
        // An empty group needs no signal.
        let _ = kill_process_group(self.group, signal);
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
        }
        self.ended
    }

    fn look_for_end(&self) -> Option<Ending> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.group), options) {
            Ok(None) | Err(rustix::io::Errno::INTR) => None,
            Ok(Some(status)) => Some(match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Ending::Exited(code),
                (None, Some(signal)) => Ending::Signalled(signal),
                (None, None) => return None,
            }),
            // The system knows no such child. This cannot happen, but waiting forever for its end
            // would be worse than an error.
            Err(_) => Some(Ending::Exited(i32::from(u8::MAX))),
        }
    }

    fn look_for_stop(&self) -> Option<i32> {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        waitid(WaitId::Pid(self.group), options).ok().flatten().and_then(|status| status.stopping_signal())
    }

    /// The command was stopped by `signal`. Its shell knows only `quorlock`, so `quorlock` gives
    /// back the terminal and stops too. The lock is not renewed until the job is continued.
    fn follow_stop(&mut self, signal: i32) {
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
