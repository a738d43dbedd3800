//! The machine, with who waits for what in it, and the count of what has come of it.

use std::sync::Arc;

use super::figures::Figures;
use super::host::HostEntropy;
use super::observe::{Grant, Notices, Told};
use super::slot::Slot;
use super::wake::Woken;
use crate::machine::Machine;
#[cfg(feature = "internals")]
use crate::protocol::Resource;
use crate::protocol::{Acquire, AcquireError, Event, LockId, Resumption};
use crate::time::Instant;

pub(super) struct Core {
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

impl Core {
    pub(super) fn new(machine: Machine<HostEntropy>, masters: usize) -> Self {
        Self {
            machine,
            figures: Figures::new(masters),
            slots: Vec::new(),
            told: Told::nothing(),
            driver_ended: false,
        }
    }

    /// Starts to seek a lock.
    pub(super) fn acquire(&mut self, wanted: &Acquire, now: Instant) -> Result<LockId, AcquireError> {
        if self.driver_ended {
            return Err(AcquireError::DriverEnded);
        }
        let id = self.machine.acquire(wanted, now).map_err(AcquireError::Request)?;
        self.figures.sought();
        Ok(id)
    }

    /// The caller takes a granted lock, if it is still valid and the driver watches it.
    pub(super) fn take(&mut self, id: LockId, since: Instant, now: Instant) -> Option<Taken> {
        if self.driver_ended {
            return None;
        }
        let valid_until = self.machine.hand_over(id, now)?;
        let proof = self.machine.resumption(id)?;
        self.figures.granted(self.machine.attempts(id), now.since(since));
        Some(Taken { valid_until, proof, grant: Grant::of(&self.machine, id, valid_until.since(now)) })
    }

    /// Has a slot told what becomes of a lock.
    pub(super) fn insert(&mut self, id: LockId, slot: &Arc<Slot>) {
        if self.driver_ended {
            slot.driver_ended(&mut Woken::default());
        }
        if self.slots.len() <= id.index() {
            if self.slots.capacity() <= id.index() {
                // By a quarter: what tens of thousands of locks leave unused would be theirs to pay.
                self.slots.reserve_exact(16 + self.slots.len() / 4);
            }
            self.slots.resize(id.index() + 1, None);
        }
        if let Some(place) = self.slots.get_mut(id.index()) {
            *place = Some((id, Arc::clone(slot)));
        }
    }

    /// Nobody is told what becomes of a lock any more. Says whether somebody was to be told.
    pub(super) fn forget(&mut self, id: LockId) -> bool {
        let place = self.slots.get_mut(id.index());
        place.is_some_and(|place| place.take_if(|(other, _)| *other == id).is_some())
    }

    pub(super) fn deliver(&mut self, event: Event, woken: &mut Woken, notices: &mut Notices) {
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

    /// Looks how the masters stand, for whoever is told of changes.
    pub(super) fn observe(&mut self, notices: &mut Notices) {
        notices.masters(&self.machine, &mut self.told);
    }

    pub(super) fn driver_ends(&mut self, woken: &mut Woken) {
        self.driver_ended = true;
        for (_, slot) in self.slots.iter().flatten() {
            slot.driver_ended(woken);
        }
    }

    #[cfg(feature = "internals")]
    pub(super) fn each_guard(&self, look: &mut dyn FnMut(LockId, &Resource, Resumption, Instant)) {
        for (id, slot) in self.slots.iter().flatten() {
            let valid_until = slot.valid_until();
            if valid_until > Instant::ORIGIN {
                if let Some((resource, proof)) = self.machine.claim(*id) {
                    look(*id, resource, proof, valid_until);
                }
            }
        }
    }
}
