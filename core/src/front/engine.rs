//! The engine: the machine behind its mutex, with the slots of the callers that wait for its
//! events, and the counts for reports.

use std::sync::Arc;

use super::figures::Figures;
use super::host::{Host, HostEntropy};
use super::mailbox::Demand;
use super::observe::{Grant, Notices, Told};
use super::outbox::queue::Queue;
use super::slot::Slot;
use super::sync::{Mutex, MutexGuard, lock};
use super::wake::Woken;
use crate::machine::{Machine, Output};
#[cfg(feature = "internals")]
use crate::protocol::Targets;
use crate::protocol::{Acquire, AcquireError, Config, Event, LockId, Resumption};
use crate::time::Instant;

/// The machine, shared by all threads of a locker.
pub(super) struct Engine {
    host: Arc<dyn Host>,
    running: Mutex<Running>,
}

/// The machine while the mutex is held: no system call is made but the one for random bytes, and no
/// code of others runs.
pub(super) struct Running {
    pub(super) machine: Machine<HostEntropy>,
    pub(super) figures: Figures,
    /// By [`LockId::index`], with the id, as an index is used again.
    slots: Vec<Option<(LockId, Arc<Slot>)>>,
    /// What has been told of the masters.
    told: Told,
    driver_ended: bool,
}

/// A granted lock that its caller has taken.
pub(super) struct Taken {
    pub(super) valid_until: Instant,
    pub(super) proof: Resumption,
    pub(super) grant: Grant,
}

impl Engine {
    pub(super) fn new(config: Arc<Config>, host: Arc<dyn Host>) -> Self {
        let masters = config.masters.len();
        let machine = Machine::new(config, HostEntropy(Arc::clone(&host)), host.now());
        let running = Running {
            machine,
            figures: Figures::new(masters),
            slots: Vec::new(),
            told: Told::nothing(),
            driver_ended: false,
        };
        Self { host, running: Mutex::new(running) }
    }

    /// Looks at the machine, or changes what brings about no outputs.
    pub(super) fn look(&self) -> MutexGuard<'_, Running> {
        lock(&self.running)
    }

    /// Changes the machine at this instant. What that brings about waits in it to be
    /// [collected](Self::collect).
    #[inline]
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Running, Instant) -> R) -> R {
        let mut running = self.look();
        let now = self.host.now();
        change(&mut running, now)
    }

    /// Takes every output of the machine: bytes go to the queue, events to the slots of their
    /// callers, demands to the driver. Returns when the machine wants to be woken.
    pub(super) fn collect(
        &self,
        queue: &mut Queue,
        demands: &mut Vec<Demand>,
        woken: &mut Woken,
        notices: &mut Notices,
    ) -> Option<Instant> {
        self.change(|running, now| {
            notices.masters(&running.machine, &mut running.told);
            running.machine.writes_begin(now);
            loop {
                match running.machine.poll_output() {
                    Output::Write { master, generation, bytes } => queue.append(master, generation, bytes),
                    Output::Connect { master, generation } => {
                        demands.push(Demand::Connect { master, generation });
                        running.figures.opening(master);
                    }
                    Output::Close { master, generation } => {
                        queue.close(master, generation);
                        demands.push(Demand::Close { master, generation });
                    }
                    Output::Event(event) => running.deliver(event, woken, notices),
                    Output::Wake(wake) => return wake.map(|wake| wake.at),
                }
            }
        })
    }
}

impl Running {
    /// Starts to seek a lock.
    pub(super) fn acquire(&mut self, wanted: &Acquire, now: Instant) -> Result<LockId, AcquireError> {
        if self.driver_ended {
            return Err(AcquireError::DriverEnded);
        }
        let id = self.machine.acquire(wanted, now)?;
        self.figures.sought();
        Ok(id)
    }

    /// The caller takes a granted lock, if it is still valid and the driver watches it.
    pub(super) fn take(&mut self, id: LockId, since: Instant, now: Instant) -> Option<Taken> {
        if self.driver_ended {
            return None;
        }
        let valid_until = self.machine.take(id, now)?;
        let proof = self.machine.resumption(id)?;
        self.figures.granted(self.machine.attempts(id), now.since(since));
        Some(Taken { valid_until, proof, grant: Grant::of(&self.machine, id, valid_until.since(now)) })
    }

    /// Leaves a lock to the process that is given its token.
    pub(super) fn hand_over(&mut self, id: LockId, now: Instant) -> Option<Resumption> {
        let handed = self.machine.hand_over(id, now)?;
        self.forget(id);
        self.figures.handed_over();
        Some(handed)
    }

    /// Gives a lock up without waiting for what the masters say. `count` is called if it has not
    /// ended before.
    pub(super) fn cancel(&mut self, id: LockId, count: impl FnOnce(&mut Figures), now: Instant) {
        self.machine.cancel(id, now);
        if self.forget(id) {
            count(&mut self.figures);
        }
    }

    /// Has a slot told what becomes of a lock.
    pub(super) fn insert(&mut self, id: LockId, slot: &Arc<Slot>) {
        if self.driver_ended {
            slot.driver_ended(&mut Woken::default());
        }
        if self.slots.len() <= id.index() {
            if self.slots.capacity() <= id.index() {
                // By a quarter: what tens of thousands of locks leave unused would be theirs to
                // pay.
                self.slots.reserve_exact(16 + self.slots.len() / 4);
            }
            self.slots.resize(id.index() + 1, None);
        }
        if let Some(place) = self.slots.get_mut(id.index()) {
            *place = Some((id, Arc::clone(slot)));
        }
    }

    /// From now on no slot is told of this lock. Returns whether one was to be told.
    pub(super) fn forget(&mut self, id: LockId) -> bool {
        let place = self.slots.get_mut(id.index());
        place.is_some_and(|place| place.take_if(|(other, _)| *other == id).is_some())
    }

    fn deliver(&mut self, event: Event, woken: &mut Woken, notices: &mut Notices) {
        let (lock, is_last) = (event.lock(), event.is_last());
        let place = self.slots.get_mut(lock.index());
        let place = place.filter(|place| place.as_ref().is_some_and(|(id, _)| *id == lock));
        self.figures.count(&event, place.is_some());
        let Some(place) = place else { return };
        if let Some((_, slot)) = place {
            notices.event(&slot.subject, &event);
            slot.deliver(event, woken);
        }
        if is_last {
            *place = None;
        }
    }

    pub(super) fn driver_ends(&mut self, woken: &mut Woken) {
        self.driver_ended = true;
        for (_, slot) in self.slots.iter().flatten() {
            slot.driver_ended(woken);
        }
    }

    #[cfg(feature = "internals")]
    pub(super) fn each_guard(&self, look: &mut dyn FnMut(LockId, &Targets, Resumption, Instant)) {
        for (id, slot) in self.slots.iter().flatten() {
            let valid_until = slot.valid_until();
            if valid_until > Instant::ORIGIN {
                if let Some((targets, proof)) = self.machine.claim(*id) {
                    look(*id, targets, proof, valid_until);
                }
            }
        }
    }
}
