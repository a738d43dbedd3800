//! Readers and writers: what a shared lock is held by, and how a writer becomes a reader.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use super::guard::Guard;
use super::handles::HandOverError;
use super::release::Release;
use crate::protocol::Resumption;

/// The guard of a lock that [`Locker::write`](super::Locker::write) requested: an exclusive lock as
/// any other.
pub type WriteGuard = Guard;

/// A lock that is shared: with readers, or with others of one group.
///
/// It tells what a [`Guard`] tells, and has the same ends: [`Guard`] describes validity, dropping
/// and the other ends. It keeps those out that do not share with it, as long as it is valid.
///
/// Each reader's lock ends by itself. Readers that live on do not keep a dead one's lock alive.
#[must_use = "dropping a guard releases its lock"]
pub struct ReadGuard(Guard);

impl ReadGuard {
    /// Releases the lock; those that share it keep it. See [`Guard::release`].
    pub fn release(self) -> Release {
        self.0.release()
    }

    /// Releases the lock, but keeps writers out until `at_least` has passed since the grant. Those
    /// who share it come in. See [`Guard::release_after`].
    pub fn release_after(self, at_least: Duration) -> Release {
        self.0.release_after(at_least)
    }

    /// Hands the lock over to another process or another locker, which resumes it by the same
    /// request with [`Request::resuming`](super::Request::resuming). See [`Guard::hand_over`].
    ///
    /// # Errors
    /// As [`Guard::hand_over`]. The guard that [`HandOverError::Shared`] gives back is of the
    /// shared lock.
    pub fn hand_over(self) -> Result<Resumption, HandOverError> {
        self.0.hand_over()
    }

    /// Returns another handle of this lock. See [`Guard::share`].
    pub fn share(&self) -> Self {
        Self(self.0.share())
    }
}

impl Deref for ReadGuard {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.0
    }
}

impl fmt::Debug for ReadGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadGuard").field(&self.0).finish()
    }
}

impl Guard {
    /// Shares with readers from now on what this guard locks exclusively. Nothing is awaited: the
    /// lock is as valid as it was, and its token and fencing token stay. The masters are told by an
    /// extension, so the lock is renewed once.
    ///
    /// Readers that wait come in as the masters hear of it. No writer comes between.
    ///
    /// # Errors
    /// The guard is given back, and the lock is as it was, if anything else may act for the lock as
    /// a writer ([`Guard::ties`]): another handle, a process that knows its
    /// [`resumption`](Guard::resumption), or, where it was resumed, the one that handed it over. So
    /// is the guard of a lock that was lost.
    pub fn downgrade(self) -> Result<ReadGuard, WriteGuard> {
        let handles = &self.watch.slot.handles;
        if self.watch.is_forked() || !self.ties().is_none() || !handles.close() {
            return Err(self);
        }
        let id = self.id;
        if self.watch.handle.0.command(|engine, now| engine.machine.downgrade(id, now)) {
            Ok(ReadGuard(self))
        } else {
            Err(self)
        }
    }
}

/// What a request is granted.
pub trait Granted: sealed::OfGuard {}

impl Granted for Guard {}
impl Granted for ReadGuard {}

pub(super) mod sealed {
    use super::{Guard, ReadGuard};

    pub trait OfGuard: Sized {
        fn of(guard: Guard) -> Self;
    }

    impl OfGuard for Guard {
        fn of(guard: Guard) -> Self {
            guard
        }
    }

    impl OfGuard for ReadGuard {
        fn of(guard: Guard) -> Self {
            Self(guard)
        }
    }
}
