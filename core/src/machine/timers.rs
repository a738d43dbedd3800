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

    /// Drops the entries that are left behind once there are far more of them than owners: a lock with a long TTL that
    /// is released at once would otherwise leave one until the TTL has passed.
    pub(super) fn tidy(&mut self, owners: usize, is_armed: impl Fn(Instant, Owner) -> bool) {
        if self.heap.len() > 64 + 4 * owners {
            self.heap.retain(|Reverse((at, owner))| is_armed(*at, *owner));
        }
    }

    pub(super) fn drop_first(&mut self) {
        self.heap.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_are_left_behind_do_not_pile_up() {
        let mut timers = Timers::default();
        let master = MasterId::all(1).next().unwrap();
        for nanos in 0..10_000 {
            timers.arm(Owner::Master(master), Some(Instant::from_nanos(nanos)), &mut None);
            timers.tidy(1, |at, _| at == Instant::from_nanos(nanos));
        }
        assert!(timers.heap.len() <= 68);
    }
}
