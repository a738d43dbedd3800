//! One process: how it is told apart from a later one with the same number, and how it gets a
//! signal that no other process can get.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal, test_kill_process,
};

use super::proc;

/// A process, by its number and by when it was started, in ticks since the system was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(super) id: i32,
    pub(super) started: u64,
}

/// What is known of a process.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(super) identity: Identity,
    pub(super) group: i32,
    pub(super) is_stopped: bool,
    name: String,
}

impl Process {
    /// Whether the process has this number.
    pub(crate) fn has_number(&self, id: u32) -> bool {
        u32::try_from(self.identity.id) == Ok(id)
    }
}

impl std::fmt::Display for Process {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({})", self.identity.id, self.name)
    }
}

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    Yes,
    /// The process has ended.
    Gone,
    /// The system does not allow it: the process runs as another user.
    Refused,
}

/// A process that was a descendant after it had been opened.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) process: Process,
    handle: Handle,
}

/// By what a process gets its signals.
#[derive(Debug)]
enum Handle {
    /// It is this process's forever, even if the number is used again.
    Pidfd(OwnedFd),
    /// On a system without the others (Linux before 5.3, some sandboxes). Between the look at the
    /// process and the signal, the number could be used again.
    Number(Pid),
}

impl Opened {
    /// Opens the process with the number `id` if its parent is one that `is_parent` accepts. `None`
    /// if it has another one, or has ended.
    ///
    /// The parent is looked at after the opening. So the handle is either that of the process that
    /// was looked at, or that of one that has ended and gets no signal.
    pub(super) fn open(id: Pid, is_parent: impl Fn(i32) -> bool) -> Option<Self> {
        let handle = match pidfd_open(id, PidfdFlags::empty()) {
            Ok(descriptor) => Handle::Pidfd(descriptor),
            Err(Errno::SRCH) => return None,
            Err(_) => Handle::Number(id),
        };
        let Some(found) = proc::stat(id) else {
            // `hidepid` hides other users' processes. One that can get signals is not hidden.
            let process = Process {
                identity: Identity { id: id.as_raw_pid(), started: 0 },
                group: 0,
                is_stopped: false,
                name: "of another user".to_owned(),
            };
            return is_refused(id).then_some(Self { process, handle });
        };
        if found.has_ended || !is_parent(found.parent) {
            return None;
        }
        let identity = Identity { id: id.as_raw_pid(), started: found.started };
        let proc::Stat { group, is_stopped, name, .. } = found;
        Some(Self { process: Process { identity, group, is_stopped, name }, handle })
    }

    pub(super) fn send(&self, signal: Signal) -> Sent {
        let sent = match &self.handle {
            Handle::Pidfd(descriptor) => pidfd_send_signal(descriptor, signal),
            Handle::Number(id) => kill_process(*id, signal),
        };
        match sent {
            Ok(()) => Sent::Yes,
            Err(Errno::PERM) => Sent::Refused,
            Err(_) => Sent::Gone,
        }
    }
}

/// Whether the system would refuse a signal to the process with this number.
pub(super) fn is_refused(id: Pid) -> bool {
    test_kill_process(id) == Err(Errno::PERM)
}
