//! What a machine keeps of one lock or other task: itself, its timer, and where it waits.

use crate::bootstrap::Bootstrap;
use crate::inspection::{Clearance, Inquiry};
use crate::lock::{Lock, State};
use crate::time::Instant;
use crate::waiting::{Bid, Places};

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
    /// In no queue: no other lock waits for it. A single try that lost a round has a bid of its
    /// own.
    Outside(Option<Box<Bid>>),
    /// In front of its queue. It has a bid once it has lost a round, and where it began otherwise
    /// than by asking at once.
    Front(Option<Box<Bid>>),
    /// Behind others.
    Behind(Places),
    /// It has let go.
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

    /// The bid for it, if there is one.
    pub(super) fn bid(&self) -> Option<&Bid> {
        match &self.place {
            Place::Front(bid) | Place::Outside(bid) => bid.as_deref(),
            Place::Behind(_) | Place::Gone => None,
        }
    }

    /// When it has something to do, or its contender for it.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Instant> {
        // What is no lock has none: each of its requests is answered in the time that the
        // connection gives it.
        let ours = self.task.as_lock().and_then(Lock::deadline);
        let next_attempt = match &self.place {
            Place::Front(Some(bid)) | Place::Outside(Some(bid)) => bid.next_attempt(),
            Place::Front(None) | Place::Outside(None) | Place::Behind(_) | Place::Gone => None,
        };
        Instant::first_of(ours, next_attempt)
    }
}

/// Something that asks masters and ends with an event.
// Almost all of them are locks, so that their size is the right one.
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
