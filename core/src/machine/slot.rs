//! What a machine keeps of one lock or bootstrap: itself, its timer, and where it waits.

use super::task::Task;
use crate::time::Instant;
use crate::waiting::{self, Bid};

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
    /// In no queue: no other lock waits for it. A single try that lost a round has a bid of its own.
    Outside(Option<Box<Bid>>),
    /// In front of its queue, with the instant of its next attempt while it waits for that.
    Front { next_attempt: Option<Instant> },
    /// Behind others.
    Behind(waiting::Place),
    /// It has let go.
    Gone,
}

impl Slot {
    pub(super) fn new(task: Task, place: Place) -> Self {
        Self { task, armed: None, place }
    }

    /// When it has something to do, or its contender for it.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let next_attempt = match &self.place {
            Place::Outside(bid) => bid.as_ref().and_then(|bid| bid.next_attempt()),
            Place::Front { next_attempt } => *next_attempt,
            Place::Behind(_) | Place::Gone => None,
        };
        self.task.deadline().into_iter().chain(next_attempt).min()
    }
}
