//! All that the command started, on Linux: found through `/proc` and ended, whatever its process
//! group or session is.
//!
//! # How it works
//!
//! `quorlock` is a *child subreaper*: a process whose parent has ended becomes its child, not that
//! of process 1. So whatever the command starts stays below `quorlock` for as long as it lives, and
//! a process that is not below `quorlock` never comes there. The kernel lists the children of each
//! thread in `/proc`; a *walk* follows these lists.
//!
//! What may go wrong, and why it does not:
//!
//! - *A number is used again* between a list and a signal. Each process is opened (pidfd), and then
//!   its parent is looked at: it must be `quorlock` or a process of the same walk. The signal goes
//!   to what was opened. If that has ended, nothing gets the signal.
//! - *A process forks between two walks*, or while one is under way, into a part that was looked at
//!   already. Therefore a walk stops each process that it finds, and is repeated until it finds no
//!   process that runs, and none that has ended meanwhile. What is stopped does not fork. Only then
//!   does each get SIGKILL, which needs no continuation.
//! - *A process forks and ends* before it is stopped, and its child does the same, and so on. Each
//!   walk may miss it. It is missed rarely enough that a few walks find one that is still alive.
//! - *A child is missing in a list*, because another child ended while the kernel wrote it.
//!   Therefore a walk that finds nothing proves nothing. What proves that nothing lives is that
//!   `quorlock` has no child: everything below it would be below one. Walks with SIGKILL are
//!   repeated until then.
//! - *A daemon* (`setsid`, forked twice) loses its parent. It is then in `quorlock`'s own list. In
//!   between it is in its parent's: the kernel moves it before the end of the parent is seen.
//! - *Something else has put a process below `quorlock`.* Children that were there before the
//!   command, of a program that became `quorlock` by `exec`, are left alone. Their own orphans
//!   cannot be told from those of the command. As process 1, `quorlock` gets all orphans of its
//!   namespace.
//! - *`quorlock` itself is stopped.* Nothing can be done then. When it stops as a shell's job does,
//!   it stops all descendants before. When it is continued, it looks at the lock first.
//! - *A process runs as another user*, and the system refuses the signal. This is the one case in
//!   which work goes on, so it is said as soon as it is seen.
//!
//! What a service starts on the command's behalf (`systemd-run`, `docker run`, `at`) is not below
//! `quorlock`, and neither is an orphan of a process that has entered another PID namespace.
//!
//! Descriptors are closed after each process: there may be more processes than a process may have
//! files open.

mod proc;
mod process;

use std::collections::BTreeSet;

use rustix::process::{Pid, Signal, getpid, set_child_subreaper};

pub(crate) use self::proc::can_be_refused;
pub(crate) use self::process::Process;
use self::process::{Identity, Opened, Sent, is_refused};

/// How often a walk is repeated to stop what has been started since. A process that is not ours to
/// stop could start others forever.
const WALKS: usize = 16;

/// Processes that were stopped.
pub(crate) type Frozen = BTreeSet<Identity>;

/// The processes below `quorlock`.
#[derive(Debug)]
pub(crate) struct Descendants {
    own: Pid,
    /// Children that were there before the command.
    earlier: BTreeSet<Identity>,
    /// Those that have been reported as another user's.
    reported: BTreeSet<Identity>,
    /// At the last look for processes of other users.
    seen: Seen,
}

/// What was there at a look.
#[derive(Debug, Default)]
struct Seen {
    newest: Option<String>,
    all: Vec<Pid>,
}

impl Descendants {
    /// Makes `quorlock` a subreaper. `None` if the system does not allow it or has no usable
    /// `/proc`. Call it before the command is started.
    pub(crate) fn begin() -> Option<Self> {
        let own = getpid();
        if !proc::is_usable() || set_child_subreaper(Some(own)).is_err() {
            return None;
        }
        let mut descendants =
            Self { own, earlier: BTreeSet::new(), reported: BTreeSet::new(), seen: Seen::default() };
        let mut earlier = Vec::new();
        descendants.walk(|opened| earlier.push(opened.process.identity));
        descendants.earlier = earlier.into_iter().collect();
        Some(descendants)
    }

    /// Whether there were children before the command, so that `quorlock` need not be without any
    /// when nothing lives.
    pub(crate) fn has_earlier(&self) -> bool {
        !self.earlier.is_empty()
    }

    /// Those that a walk finds alive.
    pub(crate) fn living(&self) -> Vec<Process> {
        let mut living = Vec::new();
        self.walk(|opened| living.push(opened.process.clone()));
        living
    }

    /// Sends `signals` to all that are not in the process group `group`. Returns those that refused
    /// the first of them.
    pub(crate) fn send(&self, signals: &[Signal], group: Option<Pid>) -> Vec<Process> {
        let mut refused = Vec::new();
        self.walk(|opened| {
            if group.is_some_and(|group| group.as_raw_pid() == opened.process.group) {
                return;
            }
            let sent: Vec<_> = signals.iter().map(|signal| opened.send(*signal)).collect();
            if sent.first() == Some(&Sent::Refused) {
                refused.push(opened.process.clone());
            }
        });
        refused
    }

    /// Stops all that run. Returns those that this stopped.
    pub(crate) fn freeze(&self) -> Frozen {
        let (mut frozen, mut ended) = (Frozen::new(), BTreeSet::new());
        for _ in 0..WALKS {
            let mut runs = false;
            let missed = self.walk(|opened| {
                let Process { identity, is_stopped, .. } = opened.process;
                // It runs until it is seen to be stopped: it may be about to fork.
                if !is_stopped && opened.send(Signal::STOP) == Sent::Yes {
                    frozen.insert(identity);
                    runs = true;
                }
            });
            // Those that had ended before the first walk are among the missed each time.
            if !runs && missed.is_subset(&ended) {
                break;
            }
            ended.extend(missed);
        }
        frozen
    }

    /// Continues what [`Descendants::freeze`] stopped.
    pub(crate) fn thaw(&self, frozen: &Frozen) {
        self.walk(|opened| {
            if frozen.contains(&opened.process.identity) {
                opened.send(Signal::CONT);
            }
        });
    }

    /// Ends all. Returns those that refused. The others are about to end, unless something was
    /// started meanwhile: repeat this until nothing lives.
    pub(crate) fn kill(&self) -> Vec<Process> {
        self.freeze();
        self.send(&[Signal::KILL], None)
    }

    /// Returns those that run as another user and have not been reported yet.
    ///
    /// While nothing is started on the system, this is one system call for each descendant, else
    /// about five.
    pub(crate) fn refusing(&mut self) -> Vec<Process> {
        let newest = proc::newest();
        if newest.is_none() || newest != self.seen.newest {
            self.seen = Seen { newest, all: self.numbers() };
        }
        if !self.seen.all.iter().any(|id| is_refused(*id)) {
            return Vec::new();
        }
        // A number may be another process's by now, so look again.
        let mut refusing = Vec::new();
        self.walk(|opened| {
            let id = Pid::from_raw(opened.process.identity.id);
            if id.is_some_and(is_refused) {
                refusing.push(opened.process.clone());
            }
        });
        refusing.retain(|process| self.reported.insert(process.identity));
        refusing
    }

    /// Opens each living descendant in turn, parents before their children. Returns the numbers of
    /// those that were listed, but had ended or lost their parents when they were opened: what they
    /// had started may have been missed.
    fn walk(&self, mut visit: impl FnMut(&Opened)) -> BTreeSet<i32> {
        let mut missed = BTreeSet::new();
        let mut found = BTreeSet::from([self.own.as_raw_pid()]);
        let mut parents = vec![self.own];
        while let Some(parent) = parents.pop() {
            for child in proc::children(parent) {
                let opened = Opened::open(child, |parent| found.contains(&parent));
                let Some(opened) = opened else {
                    missed.insert(child.as_raw_pid());
                    continue;
                };
                // A process that lost its parent during the walk may be listed twice.
                if !self.earlier.contains(&opened.process.identity) && found.insert(child.as_raw_pid()) {
                    visit(&opened);
                    parents.push(child);
                }
            }
        }
        missed
    }

    /// The numbers of all, as the lists have them, without looking at each process.
    fn numbers(&self) -> Vec<Pid> {
        let mut numbers = Vec::new();
        let mut parents = vec![self.own];
        while let Some(parent) = parents.pop() {
            let children = proc::children(parent);
            let is_earlier = |id: &Pid| self.earlier.iter().any(|identity| identity.id == id.as_raw_pid());
            numbers.extend(children.iter().copied().filter(|id| !is_earlier(id)));
            parents.extend(children);
        }
        numbers
    }
}
