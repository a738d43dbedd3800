//! The driver's mailbox: its demands about connections, its next deadline, and its waker.

use std::collections::VecDeque;
use std::task::Waker;

use super::sync::{AtomicUsize, Mutex, Ordering, Woken, lock};
use crate::endpoint::Address;
use crate::protocol::MasterId;
use crate::time::Instant;

#[cfg(all(test, loom))]
mod loom_tests;

/// What a driver must do with its connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Demand {
    /// Open a connection, then call [`Port::opened`](super::Port::opened) or
    /// [`Port::closed`](super::Port::closed).
    Connect {
        /// The master to connect to.
        master: MasterId,
        /// The new connection's number.
        generation: u32,
        /// The address to connect to. It may differ from one demand to the next, and is not always
        /// the master's: if masters are discovered, there are also connections to the servers that
        /// are asked for their addresses.
        address: Address,
    },
    /// Close a connection, or give up opening it.
    Close {
        /// The master of the connection.
        master: MasterId,
        /// The connection's number.
        generation: u32,
    },
}

/// What the driver learns at its next look, and the waker that makes it look.
///
/// The driver registers its waker first, then looks at everything else, then sleeps. A thread that
/// changes something here takes the waker afterwards, so no change is missed between the driver's
/// look and its sleep.
#[derive(Default)]
pub(super) struct Mailbox {
    contents: Mutex<Contents>,
    /// The number of lockers, guards and futures; at zero the driver ends.
    users: AtomicUsize,
}

#[derive(Default)]
struct Contents {
    demands: VecDeque<Demand>,
    /// When the machine wants to be woken.
    deadline: Option<Instant>,
    /// The time for which the driver has set its timer, as far as is known.
    armed: Option<Instant>,
    waker: Option<Waker>,
    /// When the present turn began, before the sockets were read.
    turn_began: Instant,
}

impl Mailbox {
    // The front's side.

    /// Passes demands and the machine's deadline to the driver. It is woken if it would sleep past
    /// the deadline, or if a socket `became_full`.
    pub(super) fn post(
        &self,
        demands: &mut Vec<Demand>,
        deadline: Option<Instant>,
        became_full: bool,
        woken: &mut Woken,
    ) {
        let mut contents = lock(&self.contents);
        contents.deadline = deadline;
        let sooner = deadline.is_some_and(|at| contents.armed.is_none_or(|armed| at < armed));
        if became_full || sooner || !demands.is_empty() {
            contents.demands.extend(demands.drain(..));
            woken.push(contents.waker.take());
        }
    }

    pub(super) fn add_user(&self) {
        self.users.fetch_add(1, Ordering::Relaxed);
    }

    /// Wakes the driver if that was the last user.
    pub(super) fn remove_user(&self) {
        if self.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            let mut woken = Woken::default();
            woken.push(lock(&self.contents).waker.take());
            woken.wake();
        }
    }

    // The driver's side.

    /// Begins a turn.
    pub(super) fn register(&self, waker: &Waker, now: Instant) {
        let mut contents = lock(&self.contents);
        contents.turn_began = now;
        if contents.waker.as_ref().is_some_and(|registered| registered.will_wake(waker)) {
            return;
        }
        let replaced = contents.waker.replace(waker.clone());
        drop(contents);
        // Not under the mutex: the waker may be the last reference to a task, and the task may own
        // a locker.
        drop(replaced);
    }

    pub(super) fn turn_began(&self) -> Instant {
        lock(&self.contents).turn_began
    }

    /// Whether the machine wanted to be woken by the beginning of this turn.
    pub(super) fn is_due(&self) -> bool {
        let contents = lock(&self.contents);
        contents.deadline.is_some_and(|at| at <= contents.turn_began)
    }

    pub(super) fn has_users(&self) -> bool {
        self.users.load(Ordering::Acquire) > 0
    }

    pub(super) fn next_demand(&self) -> Option<Demand> {
        lock(&self.contents).demands.pop_front()
    }

    /// When the driver must look again: now if there are demands, else at the machine's deadline,
    /// or at an earlier time for which its timer is already set. From here on its timer counts as
    /// set for that time.
    ///
    /// The earlier time is kept even if it is obsolete. Otherwise the driver would be woken for
    /// each request, because the deadline of a request comes sooner than that of the lock that was
    /// granted last. One needless wake-up costs less.
    pub(super) fn arm(&self, now: Instant) -> Option<Instant> {
        let mut contents = lock(&self.contents);
        let ahead = contents.armed.filter(|armed| *armed > now);
        contents.armed = contents.deadline.into_iter().chain(ahead).min();
        if contents.demands.is_empty() { contents.armed } else { Some(now) }
    }
}
