//! Numbers for what a machine keeps: locks and extensions.

use std::fmt;

/// One lock of one machine, from [`Machine::acquire`](crate::Machine::acquire) until it is over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl LockId {
    /// A small number that no other lock of the machine has. It is used again once the lock is over
    /// and its last event has been taken.
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// The first lock of a machine, for a search that drives a lock without one.
    #[cfg(feature = "internals")]
    pub(crate) const FIRST: Self = Self { index: 0, generation: 0 };
}

impl fmt::Debug for LockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lock{}.{}", self.index, self.generation)
    }
}

/// One extension that a caller asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ExtensionId(pub(crate) u64);

#[cfg(feature = "internals")]
impl ExtensionId {
    /// The extension of this number, for a search that drives a lock without a machine.
    pub(crate) const fn numbered(number: u64) -> Self {
        Self(number)
    }
}
