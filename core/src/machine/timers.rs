//! Deadlines in order, so that the next one is found without asking thousands of locks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::LockId;
use crate::protocol::MasterId;
use crate::time::Instant;

/// Whose deadline it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Owner {
    Master(MasterId),
    Lock(LockId),
}

/// A heap of deadlines. A deadline that moves later, or away, leaves its entry behind; the entry is dropped when it
/// comes up. So a lock that is taken and released costs one push, and nothing is searched.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, Owner)>>,
}

impl Timers {
    /// Makes sure that `owner` comes up no later than at `deadline`. `armed` is its earliest entry, kept with the owner.
    pub(super) fn arm(&mut self, owner: Owner, deadline: Option<Instant>, armed: &mut Option<Instant>) {
        let Some(deadline) = deadline else { return };
        if armed.is_none_or(|at| deadline < at) {
            *armed = Some(deadline);
            self.heap.push(Reverse((deadline, owner)));
        }
    }

    pub(super) fn first(&self) -> Option<(Instant, Owner)> {
        self.heap.peek().map(|Reverse(entry)| *entry)
    }

    pub(super) fn drop_first(&mut self) {
        self.heap.pop();
    }
}
