//! The machine's table of locks and other tasks by number, and their deadlines in order, so that
//! the next one is found without asking thousands of locks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::bootstrap::Bootstrap;
use crate::inspection::{Clearance, Inquiry};
use crate::lock::{Lock, State};
use crate::protocol::LockId;
use crate::time::Instant;
use crate::waiting::{Bid, Places};

/// One lock or other task.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) task: Task,
    /// The earliest entry in the timers.
    pub(super) armed: Option<Instant>,
    pub(super) place: Place,
}

/// Where a lock waits.
#[derive(Clone)]
pub(super) enum Place {
    /// In no queue: no other lock waits for it. A single try that lost a round has its own bid.
    Outside(Option<Box<Bid>>),
    /// In front of its queue. It has a bid once it has lost a round, or if it did not ask at once.
    Front(Option<Box<Bid>>),
    /// Behind others; with the instant at which to report that this process holds the lock ahead,
    /// unless that is over.
    Behind(Places, Option<Instant>),
    /// The lock has ended.
    Gone,
}

impl Slot {
    pub(super) fn new(task: Task, place: Place) -> Self {
        Self { task, armed: None, place }
    }

    /// Whether it is a lock that is held.
    pub(super) fn is_held(&self) -> bool {
        self.task.as_lock().is_some_and(|lock| lock.state() == State::Held)
    }

    /// Whether it is a lock that its caller has.
    pub(super) fn is_taken(&self) -> bool {
        self.task.as_lock().is_some_and(Lock::is_taken)
    }

    /// The bid for it, if there is one.
    pub(super) fn bid(&self) -> Option<&Bid> {
        match &self.place {
            Place::Front(bid) | Place::Outside(bid) => bid.as_deref(),
            Place::Behind(..) | Place::Gone => None,
        }
    }

    /// The deadline of the task.
    pub(super) fn own_deadline(&self) -> Option<Instant> {
        self.task.as_lock().and_then(Lock::deadline)
    }

    /// The earliest deadline of the task and its contender.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Instant> {
        // Other tasks have none: each of their requests is answered within the connection's
        // timeout.
        let ours = self.own_deadline();
        let other = match &self.place {
            Place::Front(Some(bid)) | Place::Outside(Some(bid)) => bid.next_attempt(),
            Place::Behind(_, report_at) => *report_at,
            Place::Front(None) | Place::Outside(None) | Place::Gone => None,
        };
        Instant::first_of(ours, other)
    }
}

/// Something that asks masters and ends with an event.
// Almost all tasks are locks, the large variant: a smaller enum would save nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Clone)]
pub(super) enum Task {
    Lock(Lock),
    Bootstrap(Bootstrap),
    Inquiry(Inquiry),
    Clearance(Clearance),
}

impl Task {
    pub(super) fn as_lock(&self) -> Option<&Lock> {
        match self {
            Self::Lock(lock) => Some(lock),
            Self::Bootstrap(_) | Self::Inquiry(_) | Self::Clearance(_) => None,
        }
    }
}

/// Cells per allocation: growing moves nothing, and leaves little unused.
const CHUNK: usize = 64;

/// Values by number. A reused number has another generation, so that an answer to an earlier lock
/// finds nothing.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    chunks: Vec<Vec<Cell<T>>>,
    cells: u32,
    len: usize,
    /// The id of the next value: that of the last freed cell, or of a new one.
    next: LockId,
}

#[derive(Clone, Debug)]
struct Cell<T> {
    generation: u32,
    /// In a free cell: the index that is used after this one. It is that of a cell that was freed
    /// earlier, or of a new one. So a free list of tens of thousands takes no extra memory.
    next: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Self {
        Self { chunks: Vec::new(), cells: 0, len: 0, next: LockId { index: 0, generation: 0 } }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The id that the next [`Slab::insert`] will use.
    pub(super) fn next_id(&self) -> LockId {
        self.next
    }

    /// Fills the cell that [`Slab::next_id`] named.
    pub(super) fn insert(&mut self, value: T) {
        self.len += 1;
        if let Some(cell) = self.cell_mut(self.next.index()) {
            cell.value = Some(value);
            let index = cell.next;
            let generation = self.cell_mut(index as usize).map_or(0, |cell| cell.generation);
            self.next = LockId { index, generation };
            return;
        }
        if self.cells as usize % CHUNK == 0 {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(Cell { generation: 0, next: 0, value: Some(value) });
            self.cells += 1;
        }
        self.next = LockId { index: self.cells, generation: 0 };
    }

    pub(super) fn get(&self, id: LockId) -> Option<&T> {
        let cell = self.chunks.get(id.index() / CHUNK)?.get(id.index() % CHUNK)?;
        cell.value.as_ref().filter(|_| cell.generation == id.generation)
    }

    pub(super) fn get_mut(&mut self, id: LockId) -> Option<&mut T> {
        self.cell_mut(id.index()).filter(|cell| cell.generation == id.generation)?.value.as_mut()
    }

    /// All values, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten().filter_map(|cell| cell.value.as_ref())
    }

    pub(super) fn remove(&mut self, id: LockId) {
        let next = self.next.index;
        let Some(cell) = self.cell_mut(id.index()) else { return };
        if cell.generation == id.generation && cell.value.is_some() {
            // Dropped in place: taking it out would move it first.
            cell.value = None;
            cell.generation = cell.generation.wrapping_add(1);
            cell.next = next;
            self.next = LockId { generation: cell.generation, ..id };
            self.len -= 1;
        }
    }

    fn cell_mut(&mut self, index: usize) -> Option<&mut Cell<T>> {
        self.chunks.get_mut(index / CHUNK)?.get_mut(index % CHUNK)
    }
}

/// How many due entries are taken from the heap one by one, before it is rebuilt without the other
/// due ones: this number, plus the length of the heap divided by it. Smaller: heaps of a few
/// hundred entries are rebuilt more often, and from heaps of thousands more are taken one by one.
/// Larger: the reverse.
const SEPARATELY: usize = 32;

/// A heap of deadlines. A deadline that moves later, or away, leaves its entry behind; the entry is
/// dropped when it comes up. So a lock that is taken and released costs one push and no search.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, LockId)>>,
}

impl Timers {
    /// Makes sure that `lock` comes up no later than at `deadline`. `armed` is its earliest entry,
    /// kept with the owner.
    #[inline]
    pub(super) fn arm(&mut self, lock: LockId, deadline: Option<Instant>, armed: &mut Option<Instant>) {
        let Some(deadline) = deadline else { return };
        if armed.is_none_or(|at| deadline < at) {
            *armed = Some(deadline);
            if self.heap.len() == self.heap.capacity() {
                // Grow by a quarter: with tens of thousands of locks, doubling would leave much
                // memory unused.
                self.heap.reserve_exact(16 + self.heap.len() / 4);
            }
            self.heap.push(Reverse((deadline, lock)));
        }
    }

    pub(super) fn first(&self) -> Option<(Instant, LockId)> {
        self.heap.peek().map(|Reverse(entry)| *entry)
    }

    /// Takes the entries that are due, earliest first. If thousands are due at once they are sorted
    /// once, instead of being taken one by one from a heap that is too large for the processor's
    /// caches.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<(Instant, LockId)> {
        let mut due = Vec::new();
        let most = SEPARATELY + self.heap.len() / SEPARATELY;
        while let Some(entry) = self.first().filter(|(at, _)| *at <= now) {
            if due.len() < most {
                self.heap.pop();
                due.push(entry);
                continue;
            }
            let mut all = std::mem::take(&mut self.heap).into_vec();
            self.heap = all.iter().filter(|Reverse((at, _))| *at > now).copied().collect();
            all.retain(|Reverse((at, _))| *at <= now);
            all.extend(due.drain(..).map(Reverse));
            // In place: with tens of thousands due, allocating memory for them costs more than
            // sorting them.
            due = all.into_iter().map(|Reverse(entry)| entry).collect();
            due.sort_unstable();
        }
        due
    }

    /// Drops the entries that are left behind once there are far more of them than locks: a lock
    /// with a long TTL that is released at once would otherwise leave one until the TTL has passed.
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
    use crate::machine::Machine;
    use crate::protocol::{Acquire, Config, Entropy, EntropyFailed, MasterId, Resource, Ttl};

    #[test]
    fn a_place_that_is_used_again_has_another_id() {
        let mut slab = Slab::new();
        let first = slab.next_id();
        slab.insert("a");
        slab.remove(first);
        slab.remove(first);
        let second = slab.next_id();
        slab.insert("b");
        assert_eq!(first.index(), second.index());
        assert_ne!(first, second);
        slab.remove(first);
        assert_eq!((slab.get(first), slab.get(second), slab.len()), (None, Some(&"b"), 1));
    }

    #[test]
    fn freed_places_are_reused_last_one_first_and_before_new_ones() {
        let mut slab = Slab::new();
        let insert = |slab: &mut Slab<u32>, value| {
            let id = slab.next_id();
            slab.insert(value);
            id
        };
        let ids: Vec<_> = (0..200).map(|value| insert(&mut slab, value)).collect();
        for place in [3, 150, 70] {
            slab.remove(ids[place]);
        }
        assert_eq!(slab.len(), 197);
        let again: Vec<_> = (0..5).map(|value| insert(&mut slab, value)).collect();
        assert_eq!(again.iter().map(|id| id.index()).collect::<Vec<_>>(), [70, 150, 3, 200, 201]);
        assert_eq!(again.iter().map(|id| id.generation).collect::<Vec<_>>(), [1, 1, 1, 0, 0]);
        assert_eq!((slab.len(), slab.get(again[2]), slab.get(ids[3])), (202, Some(&2), None));
    }

    fn nanos(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn a_timer_gets_another_entry_only_for_an_earlier_deadline() {
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

    #[test]
    fn entries_that_are_due_are_taken_in_order_however_many_they_are() {
        for entries in [0, 1, 10, 100, 1_000, 5_000] {
            let mut timers = Timers::default();
            for number in 0..entries {
                let lock = LockId { index: number, generation: 0 };
                timers.arm(lock, Some(nanos(u64::from(number * 7_919 % 1_009))), &mut None);
            }
            for now in [0, 3, 500, 2_000] {
                let (mut one_by_one, mut expected) = (timers.clone(), Vec::new());
                while let Some(entry) = one_by_one.first().filter(|(at, _)| *at <= nanos(now)) {
                    expected.push(entry);
                    one_by_one.drop_first();
                }
                assert_eq!(timers.take_due(nanos(now)), expected, "{entries} entries at {now} ns");
                assert_eq!(timers.first(), one_by_one.first());
            }
        }
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
            let timeout = Some(Duration::from_secs(10));
            let wanted = Acquire { timeout, ..Acquire::new(resource.clone(), ttl) };
            let lock = machine.acquire(&wanted, now).unwrap();
            if number >= 100 {
                machine.cancel(lock, now);
            }
        }
        assert!(machine.timers.heap.len() <= 64 + 4 * (100 + 3), "{}", machine.timers.heap.len());
        // The live ones keep theirs.
        for slot in (0..100).map(|index| LockId { index, generation: 0 }) {
            let armed = machine.locks.get(slot).unwrap().armed;
            assert!(machine.timers.heap.iter().any(|entry| Some(entry.0.0) == armed && entry.0.1 == slot));
        }
    }

    #[test]
    fn a_master_with_tasks_is_in_the_queue_once_and_one_without_tasks_is_not() {
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
