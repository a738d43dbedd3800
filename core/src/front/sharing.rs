//! Readers and writers: the guards of shared locks, and how a writer becomes a reader.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use super::guard::Guard;
use super::handles::HandOverError;
use super::release::Release;
use crate::protocol::Resumption;

/// The guard of a lock that [`Locker::write`](super::Locker::write) requested: an exclusive lock
/// like any other.
pub type WriteGuard = Guard;

/// A lock that is shared with readers, or within one group.
///
/// It offers what a [`Guard`] offers, and ends in the same ways: [`Guard`] describes validity and
/// dropping. As long as it is valid, it keeps out all clients that do not share the lock in the
/// same group.
///
/// Each reader's lock expires on its own. Live readers do not keep a dead reader's lock alive.
#[must_use = "dropping a guard releases its lock"]
pub struct ReadGuard(Guard);

impl ReadGuard {
    /// Releases the lock; the other holders that share it keep theirs. See [`Guard::release`].
    pub fn release(self) -> Release {
        self.0.release()
    }

    /// Releases the lock, but keeps writers out until `at_least` has passed since the grant.
    /// Clients that share it can still join. See [`Guard::release_after`].
    pub fn release_after(self, at_least: Duration) -> Release {
        self.0.release_after(at_least)
    }

    /// Hands the lock over to another process or another locker. The receiver resumes it with
    /// [`Request::resuming`](super::Request::resuming), by a request for the same resource, shared
    /// in the same way. See [`Guard::hand_over`].
    ///
    /// # Errors
    /// - [`HandOverError::Shared`] if the lock has other handles. The error returns the lock's
    ///   guard, and the lock stays held.
    /// - [`HandOverError::Lost`] if the lock is no longer held.
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
    /// Turns this exclusive lock into a reader's, without waiting: the lock is as valid as before,
    /// and its token and fencing token stay. An extension informs the masters, so the lock is
    /// renewed once.
    ///
    /// Waiting readers are let in as the masters learn of it. No writer gets the lock in between.
    ///
    /// # Errors
    /// Returns the guard, with the lock unchanged, if anything else can act for the lock as a
    /// writer ([`Guard::ties`]): another handle, a process that knows its
    /// [`resumption`](Guard::resumption), or, if it was resumed, the one that handed it over.
    /// Returns the guard, too, if the lock was lost.
    pub fn downgrade(self) -> Result<ReadGuard, WriteGuard> {
        if self.watch.is_forked() {
            return Err(self);
        }
        let (id, handles) = (self.id, &self.watch.slot.handles);
        // Both under the machine's mutex: an owner's reader may join as soon as the handles are
        // closed, and must not read a writer's resumption.
        let is_done =
            self.watch.handle.0.command(|engine, now| handles.close() && engine.machine.downgrade(id, now));
        if is_done { Ok(ReadGuard(self)) } else { Err(self) }
    }
}

/// The guard that a request returns when it is granted.
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
