//! Events for callers.

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
        /// The lock.
        lock: LockId,
        /// The instant from which it must be treated as lost.
        valid_until: Instant,
    },
    /// The lock has waited for a second for one that this process has held for as long. If the
    /// same code holds that one, it waits for itself: it needs an
    /// [`Owner`](crate::front::Owner). This is reported once, and the lock is still sought.
    WaitsForOwn {
        /// The lock.
        lock: LockId,
    },
    /// The lock was not acquired and is over.
    NotAcquired {
        /// The lock.
        lock: LockId,
        /// Why not.
        error: AcquireError,
    },
    /// The end of the lock's validity moved: by renewal, or by an extension that was confirmed
    /// after it had been reported as failed.
    Renewed {
        /// The lock.
        lock: LockId,
        /// The new end.
        valid_until: Instant,
    },
    /// An extension ended.
    Extended {
        /// The lock.
        lock: LockId,
        /// The extension.
        extension: ExtensionId,
        /// The new end of the lock's validity, or why it did not move.
        result: Result<Instant, ExtendError>,
    },
    /// The lock must be treated as lost. Its id stays valid until it is released or cancelled.
    Lost {
        /// The lock.
        lock: LockId,
        /// Why.
        cause: LossCause,
    },
    /// A release ended, and the lock is over.
    Released {
        /// The lock.
        lock: LockId,
        /// What the release found.
        outcome: ReleaseOutcome,
    },
    /// A bootstrap ended.
    Bootstrapped {
        /// The id of the request.
        lock: LockId,
        /// Whether all masters vote from now on.
        result: Result<(), BootstrapError>,
    },
    /// All masters were asked about a lock.
    Inspected {
        /// The id of the request.
        lock: LockId,
        /// Their answers.
        inspection: Box<Inspection>,
    },
    /// All masters were asked about the permits of a semaphore.
    SemaphoreInspected {
        /// The id of the request.
        lock: LockId,
        /// Their answers.
        inspection: Box<SemaphoreInspection>,
    },
    /// All masters were asked to delete a lock's key.
    ForceReleased {
        /// The id of the request.
        lock: LockId,
        /// What happened to the keys.
        outcome: Box<ForceReleased>,
    },
}

impl Event {
    /// Returns the id of the lock or request that the event is about.
    pub const fn lock(&self) -> LockId {
        match self {
            Self::Granted { lock, .. }
            | Self::WaitsForOwn { lock }
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

    /// Returns whether this is the last event of its id.
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
