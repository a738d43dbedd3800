//! A client's program as a value.

use std::time::Duration;

use super::access::{Access, RESOURCES};
use super::program::RESUMED_WITHIN;

/// One step of a client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Step {
    /// Requests a lock. A lock that the client still holds is dropped first.
    Lock {
        /// The number of the resource.
        resource: u8,
        /// The TTL.
        ttl: Duration,
        /// The timeout of the request.
        timeout: Duration,
        /// Whether the lock is renewed in the background.
        renewed: bool,
        /// Whether the grant has a fencing token.
        fenced: bool,
        /// Whether the key is restored on masters that have lost it.
        healing: bool,
        /// When the future of the request is dropped, if it is.
        dropped_after: Option<Duration>,
    },
    /// Requests one lock of several resources, or of some that are shared, or a permit. A lock that
    /// the client still holds is dropped first.
    LockAll {
        /// How each resource is locked, by its number.
        accesses: [Access; RESOURCES],
        /// Whether there is a single attempt only.
        once: bool,
        /// The TTL.
        ttl: Duration,
        /// The timeout of the request.
        timeout: Duration,
        /// Whether the lock is renewed in the background.
        renewed: bool,
        /// Whether the grant has a fencing token.
        fenced: bool,
        /// Whether the keys are restored on masters that have lost them.
        healing: bool,
        /// When the future of the request is dropped, if it is.
        dropped_after: Option<Duration>,
    },
    /// Waits until the lock is lost, but no longer than this span.
    Hold(Duration),
    /// Extends the lock that the client holds.
    Extend {
        /// The TTL, counted from now.
        ttl: Duration,
        /// When the future of the extension is dropped, if it is.
        dropped_after: Option<Duration>,
    },
    /// Downgrades the lock to a shared one.
    Downgrade,
    /// Requests the lock that the client holds once more from its owner, in a client that [is
    /// one](super::ClientPlan::is_owner), and keeps both handles. Each [`Step::Release`] gives up
    /// one of them.
    Nest,
    /// Makes another handle of the lock.
    Share,
    /// Hands the lock over to any client that resumes it.
    HandOn,
    /// Gives a copy of the lock's resumption to any client that resumes it, and keeps the lock.
    Copy,
    /// The lock that was handed over first is delivered once more, after all others.
    Repeat,
    /// Deletes the keys of a lock, or of the first permit of a semaphore, whatever its holder.
    ForceRelease {
        /// The number of the resource.
        resource: u8,
        /// Whether it is a semaphore.
        is_permit: bool,
    },
    /// Resumes the lock that was handed over first. A lock that the client still holds is dropped
    /// first.
    Resume {
        /// The TTL, counted from now.
        ttl: Duration,
        /// Whether the lock is renewed in the background.
        renewed: bool,
        /// Whether the key is restored on masters that have lost it.
        healing: bool,
    },
    /// Releases the lock that was handed over first, if it is an exclusive one of one resource.
    ReleaseHanded,
    /// Stops the renewal of the lock.
    StopRenewal,
    /// In a plan that is [secured](super::Plan::secured), the masters get another password, and the
    /// client logs in with it on the connections that it has.
    Reauthenticate,
    /// Releases the lock, or one of its handles, and waits for the outcome.
    Release,
    /// Releases the lock, but keeps others out until this time since its grant has passed, and
    /// waits for the outcome.
    ReleaseAfter(Duration),
    /// Drops the guard.
    Drop,
    /// Declares to all masters that nothing can be locked yet ([`Locker::bootstrap`]), which
    /// nothing but the truth of that makes safe.
    ///
    /// [`Locker::bootstrap`]: quorlock_core::front::Locker::bootstrap
    Bootstrap,
    /// Waits.
    Rest(Duration),
}

impl Step {
    /// The simpler form of a step; `None` if it is the simplest.
    pub(super) fn plainer(&mut self) -> Option<(&mut Self, Self)> {
        let mut plain = *self;
        match &mut plain {
            Self::Lock { fenced, .. } | Self::LockAll { fenced, .. } if *fenced => *fenced = false,
            Self::Lock { healing, .. } | Self::LockAll { healing, .. } | Self::Resume { healing, .. }
                if *healing =>
            {
                *healing = false;
            }
            Self::Lock { renewed, .. } | Self::LockAll { renewed, .. } | Self::Resume { renewed, .. }
                if *renewed =>
            {
                *renewed = false;
            }
            Self::LockAll { once, .. } if *once => *once = false,
            Self::LockAll { accesses, .. } => {
                let mut locked = accesses.iter_mut().filter(|access| **access != Access::None);
                let (first, _) = (locked.next()?, locked.next()?);
                *first = Access::None;
            }
            _ => return None,
        }
        Some((self, plain))
    }
    /// The TTL that a step gives keys, or zero.
    pub(super) fn ttl(&self) -> Duration {
        match self {
            Self::Lock { ttl, .. }
            | Self::LockAll { ttl, .. }
            | Self::Extend { ttl, .. }
            | Self::Resume { ttl, .. }
            | Self::ReleaseAfter(ttl) => *ttl,
            _ => Duration::ZERO,
        }
    }

    /// How long it may take.
    pub(super) fn limit(&self) -> Duration {
        match self {
            Self::Lock { timeout, .. } | Self::LockAll { timeout, .. } => *timeout,
            Self::Hold(span) | Self::Rest(span) => *span,
            Self::Resume { .. } => RESUMED_WITHIN,
            Self::Extend { .. }
            | Self::Release
            | Self::ReleaseAfter(_)
            | Self::ReleaseHanded
            | Self::ForceRelease { .. }
            | Self::Bootstrap => Duration::from_secs(1),
            _ => Duration::ZERO,
        }
    }
}
