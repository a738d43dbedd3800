//! What a client's program holds, and what it hands over.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;
use std::time::Duration;

use quorlock_core::Resumption;
use quorlock_core::front::{Guard, Permit, ReadGuard, Release};

use super::access::{Access, RESOURCES};

/// A lock, and how each resource was asked for.
pub(super) struct Locked {
    pub(super) accesses: [Access; RESOURCES],
    guard: Held,
}

pub(super) enum Held {
    Guard(Guard),
    Reader(ReadGuard),
    Permit(Permit),
}

impl Held {
    pub(super) fn release(self) -> Release {
        match self {
            Self::Guard(guard) => guard.release(),
            Self::Reader(reader) => reader.release(),
            Self::Permit(permit) => permit.release(),
        }
    }
}

impl From<Guard> for Held {
    fn from(guard: Guard) -> Self {
        Self::Guard(guard)
    }
}

impl From<Permit> for Held {
    fn from(permit: Permit) -> Self {
        Self::Permit(permit)
    }
}

impl Deref for Held {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        match self {
            Self::Guard(guard) => guard,
            Self::Reader(reader) => reader,
            Self::Permit(permit) => permit,
        }
    }
}

impl Locked {
    pub(super) fn new(accesses: [Access; RESOURCES], guard: Held) -> Self {
        Self { accesses, guard }
    }

    /// Downgrades an exclusive lock to a shared one, if the library allows that. Other locks stay
    /// as they are.
    pub(super) fn downgrade(self) -> Self {
        let Held::Guard(guard) = self.guard else { return self };
        let reads = |access| if access == Access::Write { Access::Read } else { access };
        match guard.downgrade() {
            Ok(reader) => Self { accesses: self.accesses.map(reads), guard: Held::Reader(reader) },
            Err(guard) => Self { guard: Held::Guard(guard), ..self },
        }
    }

    pub(super) fn release(self) -> Release {
        self.guard.release()
    }

    /// Releases the lock, and keeps others out until this time since its grant has passed. A lock
    /// that cannot be kept, because it is not of one exclusive resource, is only released.
    pub(super) fn release_after(self, at_least: Duration) -> Release {
        match self.guard {
            Held::Guard(guard) if guard.resources().len() == 1 => guard.release_after(at_least),
            held => held.release(),
        }
    }

    /// A permit cannot be handed over, and is released.
    pub(super) fn hand_over(self) -> Option<Handed> {
        let proof = match self.guard {
            Held::Guard(guard) => guard.hand_over().ok()?,
            Held::Reader(reader) => reader.hand_over().ok()?,
            Held::Permit(_) => return None,
        };
        Some(Handed { accesses: self.accesses, proof })
    }
}

impl Deref for Locked {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.guard
    }
}

/// A lock that was handed over.
pub(super) struct Handed {
    pub(super) accesses: [Access; RESOURCES],
    pub(super) proof: Resumption,
}

impl Handed {
    /// The number of its resource, if there is only one and it is locked exclusively.
    pub(super) fn as_one(&self) -> Option<u8> {
        let mut locked = (0..).zip(self.accesses).filter(|(_, access)| *access != Access::None);
        match (locked.next(), locked.next()) {
            (Some((number, Access::Write)), None) => Some(number),
            _ => None,
        }
    }
}

/// Locks that were handed over, the first one first.
pub(super) type Letterbox = Rc<RefCell<VecDeque<Handed>>>;
