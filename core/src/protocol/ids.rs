//! Numbers for what a machine keeps: locks and extensions.

use std::fmt;

/// One lock of one machine, from [`Machine::acquire`](crate::Machine::acquire) until it is over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl LockId {
    /// A small number that no other lock of the machine has. It is used again once the lock is over and its last event has been taken.
    pub const fn index(self) -> usize {
        self.index as usize
    }
}

impl fmt::Debug for LockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lock{}.{}", self.index, self.generation)
    }
}

/// One extension that a caller asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ExtensionId(pub(crate) u64);
