//! Deadlines in order, so that the next one is found without asking thousands of locks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::LockId;
use crate::time::Instant;

/// A heap of deadlines. A deadline that moves later, or away, leaves its entry behind; the entry is dropped when it
/// comes up. So a lock that is taken and released costs one push, and nothing is searched.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, LockId)>>,
}

impl Timers {
    /// Makes sure that `lock` comes up no later than at `deadline`. `armed` is its earliest entry, kept with the owner.
    pub(super) fn arm(&mut self, lock: LockId, deadline: Option<Instant>, armed: &mut Option<Instant>) {
        let Some(deadline) = deadline else { return };
        if armed.is_none_or(|at| deadline < at) {
            *armed = Some(deadline);
            if self.heap.len() == self.heap.capacity() {
                // By a quarter: what tens of thousands of locks leave unused would be theirs to pay.
                self.heap.reserve_exact(16 + self.heap.len() / 4);
            }
            self.heap.push(Reverse((deadline, lock)));
        }
    }

    pub(super) fn first(&self) -> Option<(Instant, LockId)> {
        self.heap.peek().map(|Reverse(entry)| *entry)
    }

    /// Drops the entries that are left behind once there are far more of them than locks: a lock with a long TTL that
    /// is released at once would otherwise leave one until the TTL has passed.
    pub(super) fn tidy(&mut self, locks: usize, is_armed: impl Fn(Instant, LockId) -> bool) {
        if self.heap.len() > 64 + 4 * locks {
            self.heap.retain(|Reverse((at, lock))| is_armed(*at, *lock));
        }
    }

    pub(super) fn drop_first(&mut self) {
        self.heap.pop();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::machine::{Acquire, Entropy, EntropyFailed, Machine};
    use crate::protocol::{Config, MasterId, Resource, Ttl};

    fn nanos(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn an_owner_has_one_entry_as_long_as_its_deadline_does_not_come_nearer() {
        let (mut timers, mut armed) = (Timers::default(), None);
        let owner = LockId { index: 0, generation: 0 };
        for deadline in [Some(nanos(5)), Some(nanos(5)), Some(nanos(6)), None] {
            timers.arm(owner, deadline, &mut armed);
            assert_eq!((timers.heap.len(), armed), (1, Some(nanos(5))));
        }
        timers.arm(owner, Some(nanos(4)), &mut armed);
        assert_eq!((timers.heap.len(), armed, timers.first()), (2, Some(nanos(4)), Some((nanos(4), owner))));
    }

    #[test]
    fn entries_that_are_left_behind_are_dropped_when_there_are_far_more_than_owners() {
        let mut timers = Timers::default();
        let owner = LockId { index: 0, generation: 0 };
        for at in 1..=104 {
            timers.arm(owner, Some(nanos(at)), &mut None);
            timers.tidy(10, |_, _| false);
        }
        assert_eq!(timers.heap.len(), 64 + 4 * 10);
        timers.arm(owner, Some(nanos(105)), &mut None);
        timers.tidy(10, |at, _| at == nanos(7));
        assert_eq!((timers.heap.len(), timers.first()), (1, Some((nanos(7), owner))));
    }

    struct Zeros;

    impl Entropy for Zeros {
        fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
            bytes.fill(0);
            Ok(())
        }
    }

    #[test]
    fn locks_that_come_and_go_leave_a_bounded_number_of_entries() {
        let config = Config::new(["redis://a", "redis://b", "redis://c"]).unwrap();
        let mut machine = Machine::new(config, Zeros, Instant::ORIGIN);
        let (resource, ttl) = (Resource::new("r").unwrap(), Ttl::new(Duration::from_secs(10)).unwrap());
        for number in 0..3_000 {
            let now = nanos(number);
            let within = Some(Duration::from_secs(10));
            let wanted = Acquire { within, ..Acquire::new(resource.clone(), ttl) };
            let lock = machine.acquire(&wanted, now).unwrap();
            if number >= 100 {
                machine.cancel(lock, now);
            }
        }
        assert!(machine.timers.heap.len() <= 64 + 4 * (100 + 3), "{}", machine.timers.heap.len());
        // And those that are alive have theirs.
        for slot in (0..100).map(|index| LockId { index, generation: 0 }) {
            let armed = machine.locks.get(slot).unwrap().armed;
            assert!(machine.timers.heap.iter().any(|entry| Some(entry.0.0) == armed && entry.0.1 == slot));
        }
    }

    #[test]
    fn a_master_with_tasks_stands_in_the_queue_once_and_one_without_does_not() {
        let config = Config::new(["redis://a", "redis://b", "redis://c"]).unwrap();
        let mut machine = Machine::new(config, Zeros, Instant::ORIGIN);
        let masters: Vec<_> = MasterId::all(3).collect();
        for master in &masters {
            machine.touched(*master);
        }
        assert_eq!(machine.busy, masters);
        while !matches!(machine.poll_output(), crate::machine::Output::Wake(_)) {}
        machine.touched(masters[0]);
        assert!(machine.busy.is_empty());
    }
}
