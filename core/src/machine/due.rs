//! What becomes due as time passes: connections, then locks.

use std::vec::IntoIter;

use super::Machine;
use crate::protocol::{Entropy, LockId, MasterId};
use crate::time::Instant;

/// How many events may wait to be taken before processing of due locks pauses. Tens of thousands of
/// locks may be due at one instant. Larger: their events take megabytes, and a lock has left the
/// processor's caches when its event is taken and its memory is freed. Smaller: more pauses.
const PORTION: usize = 64;

/// Due locks that have yet to be processed, earliest first.
#[derive(Clone)]
pub(super) struct Due {
    locks: IntoIter<(Instant, LockId)>,
    /// Everything that the sockets had at this instant has been received.
    looked: Instant,
    /// The latest time that was passed to the machine.
    pub(super) now: Instant,
}

impl Due {
    pub(super) fn nothing(now: Instant) -> Self {
        Self { locks: Vec::new().into_iter(), looked: now, now }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.locks.as_slice().is_empty()
    }
}

impl<E: Entropy> Machine<E> {
    /// The time is `now`: everything due until then happens. If this notifies hundreds of callers,
    /// the rest happens as their events are taken with [`poll_output`](Self::poll_output).
    pub fn time_passed(&mut self, now: Instant) {
        self.time_passed_since_look(now, now);
    }

    /// The time is `now`, and everything that the sockets had at the instant `looked` has been
    /// received. Silence after `looked` counts against no master.
    pub(crate) fn time_passed_since_look(&mut self, looked: Instant, now: Instant) {
        (self.due.looked, self.due.now) = (looked, now);
        self.go_on_with_due();
    }

    /// Processes everything due, until the limit of waiting events is reached. The rest follows
    /// when those have been taken.
    pub(super) fn go_on_with_due(&mut self) {
        let Due { looked, now, .. } = self.due;
        loop {
            // All connections first: masters that have been silent for equally long are detected
            // together, and a lock that tries again does not ask one of them.
            for master in MasterId::all(self.connections.len()) {
                self.connection_due(master, looked, now);
            }
            if self.due.is_empty() {
                self.due.locks = self.timers.take_due(now).into_iter();
            }
            self.settle(now);
            if self.due.is_empty() {
                self.told_behind = None;
                return;
            }
            while self.events.len() < PORTION {
                let Some((at, lock)) = self.due.locks.next() else { break };
                let Some(slot) = self.locks.get_mut(lock).filter(|slot| slot.armed == Some(at)) else {
                    continue;
                };
                slot.armed = None;
                self.fired(lock, now);
                self.settle(now);
            }
            if !self.due.is_empty() {
                return;
            }
        }
    }

    fn connection_due(&mut self, master: MasterId, looked: Instant, now: Instant) {
        while let Some(link) = self.connections.get_mut(master.index()) {
            let Some(at) = link.deadline().filter(|at| *at <= now) else { return };
            link.connection.time_passed(looked, now, &mut self.answers);
            self.touched(master);
            // A connection that is due at the same instant again has had its turn.
            if self.connections.get_mut(master.index()).is_some_and(|link| link.deadline() == Some(at)) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::machine::Output;
    use crate::protocol::{Acquire, Config, EntropyFailed, Event, Resource, Ttl};

    struct Zeros;

    impl Entropy for Zeros {
        fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
            bytes.fill(0);
            Ok(())
        }
    }

    /// The next locks whose events say that they were not acquired, up to this many.
    fn told(machine: &mut Machine<Zeros>, most: usize) -> Vec<LockId> {
        let mut told = Vec::new();
        while told.len() < most {
            match machine.poll_output() {
                Output::Event(Event::NotAcquired { lock, .. }) => told.push(lock),
                Output::Wake(_) => break,
                _ => {}
            }
            assert!(machine.events.len() <= PORTION);
        }
        told
    }

    #[test]
    fn waiters_that_time_out_together_are_reported_in_order_in_small_portions() {
        let config = Config::new(["redis://a", "redis://b", "redis://c"]).unwrap();
        let mut machine = Machine::new(config, Zeros, Instant::ORIGIN);
        let (resource, ttl) = (Resource::new("r").unwrap(), Ttl::new(Duration::from_secs(10)).unwrap());
        machine.acquire(&Acquire::new(resource.clone(), ttl), Instant::ORIGIN).unwrap();
        let timeout = Duration::from_secs(1);
        let wanted = Acquire { timeout: Some(timeout), ..Acquire::new(resource, ttl) };
        let mut waiters: Vec<_> =
            (0..5 * PORTION).map(|_| machine.acquire(&wanted, Instant::ORIGIN).unwrap()).collect();
        assert_eq!(told(&mut machine, usize::MAX), []);

        machine.time_passed(Instant::ORIGIN + timeout);
        assert_eq!(told(&mut machine, 10), waiters[..10]);
        // Between two outputs a caller may leave, and time may pass again.
        let left = waiters.remove(3 * PORTION);
        machine.cancel(left, Instant::ORIGIN + timeout);
        machine.time_passed(Instant::ORIGIN + 2 * timeout);
        assert_eq!(told(&mut machine, usize::MAX), waiters[10..]);
        assert_eq!(machine.locks.len(), 1);
    }
}
