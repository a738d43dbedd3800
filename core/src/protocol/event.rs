//! What a caller is told.

use super::{
    AcquireError, BootstrapError, ExtendError, ExtensionId, ForceReleased, Inspection, LockId, LossCause,
    ReleaseOutcome, SemaphoreInspection,
};
use crate::time::Instant;

/// Something that a caller waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A quorum granted the lock. Call [`Machine::take`](crate::Machine::take) when the caller
    /// takes it.
    Granted {
        /// Which.
        lock: LockId,
        /// The instant from which it must be taken for lost.
        valid_until: Instant,
    },
    /// The lock was not acquired and is over.
    NotAcquired {
        /// Which.
        lock: LockId,
        /// Why not.
        error: AcquireError,
    },
    /// Renewal moved the end of the lock's validity.
    Renewed {
        /// Which.
        lock: LockId,
        /// The end now.
        valid_until: Instant,
    },
    /// An extension ended.
    Extended {
        /// Of which lock.
        lock: LockId,
        /// Which extension.
        extension: ExtensionId,
        /// The end of the lock's validity now, or why it is where it was.
        result: Result<Instant, ExtendError>,
    },
    /// The lock must be taken for lost. It stays known until it is released or cancelled.
    Lost {
        /// Which.
        lock: LockId,
        /// Why.
        cause: LossCause,
    },
    /// A release ended, and the lock is over.
    Released {
        /// Which.
        lock: LockId,
        /// What it found.
        outcome: ReleaseOutcome,
    },
    /// A bootstrap ended.
    Bootstrapped {
        /// Which.
        lock: LockId,
        /// Whether all masters vote from now on.
        result: Result<(), BootstrapError>,
    },
    /// All masters were asked about a lock.
    Inspected {
        /// Which request.
        lock: LockId,
        /// What they said.
        inspection: Box<Inspection>,
    },
    /// All masters were asked about the permits of a semaphore.
    SemaphoreInspected {
        /// Which request.
        lock: LockId,
        /// What they said.
        inspection: Box<SemaphoreInspection>,
    },
    /// All masters were asked to delete a lock's key.
    ForceReleased {
        /// Which request.
        lock: LockId,
        /// What became of the keys.
        outcome: Box<ForceReleased>,
    },
}

impl Event {
    /// What it is about.
    pub const fn lock(&self) -> LockId {
        match self {
            Self::Granted { lock, .. }
            | Self::NotAcquired { lock, .. }
            | Self::Renewed { lock, .. }
            | Self::Extended { lock, .. }
            | Self::Lost { lock, .. }
            | Self::Released { lock, .. }
            | Self::Bootstrapped { lock, .. }
            | Self::Inspected { lock, .. }
            | Self::SemaphoreInspected { lock, .. }
            | Self::ForceReleased { lock, .. } => *lock,
        }
    }

    /// Whether it is the last one: what it is about is over.
    pub const fn is_last(&self) -> bool {
        matches!(
            self,
            Self::NotAcquired { .. }
                | Self::Released { .. }
                | Self::Bootstrapped { .. }
                | Self::Inspected { .. }
                | Self::SemaphoreInspected { .. }
                | Self::ForceReleased { .. }
        )
    }
}
