//! What a machine keeps of one lock or bootstrap: itself, its timer, and its place in a line.

use std::collections::VecDeque;

use super::line::{Freed, Place};
use super::queue;
use super::slab::Slab;
use super::task::Task;
use crate::protocol::{LockId, Resource};
use crate::time::Instant;

#[derive(Clone)]
pub(super) struct Slot {
    pub(super) task: Task,
    /// The earliest entry in the timers.
    pub(super) armed: Option<Instant>,
    pub(super) place: Place,
}

impl Slot {
    pub(super) fn new(task: Task, place: Place) -> Self {
        Self { task, armed: None, place }
    }

    /// Looks whether the lock has left its place: the front of its line, or one behind others, of which it then tells what the line is for.
    pub(super) fn leave_place(&mut self, freed: &mut VecDeque<Freed>) -> Option<(Resource, queue::Place)> {
        let Self { task: Task::Lock(lock), place, .. } = self else { return None };
        match place {
            Place::Ahead { was_granted } if lock.is_held() => *was_granted = true,
            Place::Ahead { was_granted } if lock.has_let_go() => {
                freed.push_back(Freed {
                    resource: lock.resource().clone(),
                    granted_at: was_granted.then(|| lock.granted_at()),
                    met_others: lock.met_others(),
                    took: lock.took(),
                    waited: lock.waited(),
                    passed_over: lock.passed_over(),
                    knowledge: lock.take_knowledge(),
                });
                *place = Place::Gone;
            }
            Place::Behind(left) if !lock.is_queued() => {
                let left = *left;
                *place = Place::Gone;
                return Some((lock.resource().clone(), left));
            }
            _ => {}
        }
        None
    }
}

/// The queue has given a waiter another place.
pub(super) fn move_to(locks: &mut Slab<Slot>, id: LockId, place: queue::Place) {
    if let Some(slot) = locks.get_mut(id) {
        slot.place = Place::Behind(place);
    }
}
