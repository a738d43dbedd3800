//! The terminal: which process group has its foreground, and how a job stops and ends there as its
//! shell expects.

use std::fs::File;
use std::io::IsTerminal;

use nix::unistd::{getpgrp, getsid};
use rustix::process::{Pid, Signal, getpid, getppid, kill_current_process_group, kill_process};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use signal_hook::consts::SIGINT;

/// The controlling terminal, if there is one.
///
/// Changing its foreground group requires that SIGTTOU is blocked, which `Signals::install` does.
#[derive(Debug)]
pub(crate) struct Terminal {
    device: Option<File>,
    own: Option<Pid>,
    at_start: bool,
    lent: bool,
}

impl Terminal {
    /// Finds the terminal.
    ///
    /// The command gets its foreground at the start only if standard input is a terminal. In `ssh
    /// host | quorlock …`, `ssh` needs it to ask for a password; if our command asks too, it gets
    /// the foreground then.
    pub(crate) fn open() -> Self {
        let device = File::options().read(true).write(true).open("/dev/tty").ok();
        Self { device, own: own_group(), at_start: std::io::stdin().is_terminal(), lent: false }
    }

    /// As if there were no terminal.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { device: None, own: own_group(), at_start: false, lent: false }
    }

    /// Whether the command gets the foreground without requesting it.
    pub(crate) fn lends_at_start(&self) -> bool {
        self.at_start
    }

    /// Whether our own group has the foreground.
    pub(crate) fn is_ours(&self) -> bool {
        self.own.is_some() && self.foreground() == self.own
    }

    /// Gives the foreground to `group` if we have it. Returns whether `group` has it now.
    pub(crate) fn lend(&mut self, group: Pid) -> bool {
        let Some(device) = &self.device else { return false };
        let foreground = self.foreground();
        if self.is_ours() && tcsetpgrp(device, group).is_ok() {
            self.lent = true;
            return true;
        }
        self.lent && foreground == Some(group)
    }

    /// Takes the foreground back, also from a group to which the command has passed it. Returns
    /// whether it had been lent.
    pub(crate) fn take_back(&mut self) -> bool {
        if !self.lent {
            return false;
        }
        self.lent = false;
        if let (Some(device), Some(own)) = (&self.device, self.own) {
            // This fails only if the terminal is gone, and then its foreground does not matter.
            let _ = tcsetpgrp(device, own);
        }
        true
    }

    /// Whether there is a shell that could continue us after a stop. Without a terminal there is
    /// none, nor if we are the leader of the session or its direct child from elsewhere (`ssh -t
    /// host quorlock …`).
    pub(crate) fn has_job_control(&self) -> bool {
        let session = |process: Option<nix::unistd::Pid>| getsid(process).ok();
        let parent = getppid().map(|parent| nix::unistd::Pid::from_raw(parent.as_raw_pid()));
        self.device.is_some() && parent.is_some() && session(parent) == session(None)
    }

    fn foreground(&self) -> Option<Pid> {
        self.device.as_ref().and_then(|device| tcgetpgrp(device).ok())
    }
}

/// Our process group, unless its leader is outside our PID namespace: a container's first process
/// may be in the group, and in the session, of the process that started the container, and the
/// system then reports the number 0. `rustix` assumes that it is never 0.
pub(crate) fn own_group() -> Option<Pid> {
    Pid::from_raw(getpgrp().as_raw())
}

/// Stops this process until it is continued.
pub(crate) fn stop_self() {
    let _ = kill_process(getpid(), Signal::STOP);
}

/// Stops the other processes of our group, as the terminal's stop key would if we had the
/// foreground: the script that started us, and the other commands of a pipeline. We catch the
/// signal.
pub(crate) fn stop_group() {
    let _ = kill_current_process_group(Signal::TSTP);
}

/// Ends this process by SIGINT: a shell script continues after a command that exits with 130, and
/// ends after one that died of the signal. With `group`, the other processes of our group get the
/// signal too, as from the terminal's interrupt key if we had the foreground.
pub(crate) fn die_of_interrupt(group: bool) {
    if group {
        let _ = kill_current_process_group(Signal::INT);
    }
    let _ = signal_hook::low_level::emulate_default_handler(SIGINT);
}
