//! Owners of locks, which make locks reentrant.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::joint::Joint;
use super::locker::Locker;
use super::request::Request;
use super::sharing::ReadGuard;
use crate::protocol::Target;

/// An owner of locks, for reentrancy: it gets a lock that it holds again at once.
///
/// [`Locker::owner`] makes one. An owner is a value, and a clone is the same owner. It is not tied
/// to a thread or a task, because futures move between threads, and a task may be split into
/// several. To have an owner for each task, keep one in a task-local variable of the runtime.
///
/// ```
/// # use quorlock_core::front::{Locker, Released};
/// # async fn nested(locker: Locker) -> Result<(), Box<dyn std::error::Error>> {
/// let owner = locker.owner();
/// let outer = owner.lock("invoice:42").fenced().await?;
/// let inner = owner.lock("invoice:42").await?;
/// assert_eq!(inner.fencing_token(), outer.fencing_token());
/// assert_eq!(inner.release().await?, Released::Kept { others: 1 });
/// assert_eq!(outer.release().await?, Released::Freed);
/// # Ok(())
/// # }
/// ```
///
/// # What it holds
/// A request for a lock that the owner holds validly is granted without a request to any master.
/// The guard is another handle of the same lock: same token, fencing token and validity. The last
/// handle to be released or dropped releases the lock. The owner itself keeps no lock alive.
///
/// A write lock covers a reader's request, and a lock of several resources covers a request for a
/// part of them. The new handle is one of the whole lock:
/// [`Guard::resources`](super::Guard::resources) lists all of its resources.
///
/// A request that would wait for a lock of the same owner ends with
/// [`AcquireError::WouldDeadlock`](crate::AcquireError::WouldDeadlock) at once. It is a request for
/// several resources of which the owner holds some, or for a write lock on what the owner reads. A
/// request that only two locks of the owner together would cover ends in the same way. Request
/// everything in the outermost request.
///
/// The settings of the outermost request apply. An inner request that sets a longer TTL extends the
/// lock. An inner request may ask for something that the lock lacks: a fencing token, renewal
/// ([`Request::run`] asks for it), a longer renewal ([`Request::renew_for`]) or healing. It then
/// ends with [`AcquireError::HeldWithout`](crate::AcquireError::HeldWithout).
///
/// If the lock was lost while a handle of it lives, an inner request ends with
/// [`AcquireError::Lost`](crate::AcquireError::Lost), because the outer scope believes that it
/// still holds the lock. After the last handle has gone, the owner may acquire the lock again.
///
/// # Several tasks at once
/// Requests of one owner for the same resource wait together, each within its own timeout and
/// number of attempts. Only the first one asks the masters, but every reader asks. The first grant
/// serves every request that it covers: each gets a handle. If the first caller's future is
/// dropped, its request continues for the others. A request that names a part of what was granted,
/// and also something else, then ends with [`WouldDeadlock`](crate::AcquireError::WouldDeadlock).
///
/// # Not guaranteed
/// There is no exclusion among the handles of one owner: two tasks that use the same owner can both
/// have the lock. Requests of the [`Locker`] itself belong to no owner. If such a request is made
/// while an owner holds a lock of the same resource, it waits for that lock, until its timeout.
#[derive(Clone)]
pub struct Owner {
    locker: Locker,
    joint: Arc<Joint>,
}

impl Owner {
    pub(super) fn new(locker: Locker) -> Self {
        Self { locker, joint: Arc::new(Joint::new()) }
    }

    /// Requests a lock as [`Locker::lock`] does, or returns another handle of it if this owner
    /// holds it.
    pub fn lock(&self, resource: impl AsRef<[u8]>) -> Request {
        self.locker.lock(resource).owned_by(&self.joint)
    }

    /// Requests a lock with a single attempt as [`Locker::try_lock`] does, or returns another
    /// handle of it if this owner holds it.
    ///
    /// While another request of this owner waits for the lock, this one ends with
    /// [`HeldByAnother`](crate::AcquireError::HeldByAnother), and nothing is sent.
    pub fn try_lock(&self, resource: impl AsRef<[u8]>) -> Request {
        self.lock(resource).attempts(1).timeout(None::<Duration>)
    }

    /// Requests all these targets under one lock as [`Locker::lock_all`] does, or returns another
    /// handle of a lock of this owner that covers all of them.
    ///
    /// If this owner holds only some of them, the request ends with
    /// [`WouldDeadlock`](crate::AcquireError::WouldDeadlock), and nothing is sent.
    pub fn lock_all<T: Into<Target>>(&self, targets: impl IntoIterator<Item = T>) -> Request {
        self.locker.lock_all(targets).owned_by(&self.joint)
    }

    /// Requests a lock that is shared with other readers as [`Locker::read`] does, or returns
    /// another handle of a lock of this owner that reads or writes the resource.
    pub fn read(&self, resource: impl AsRef<[u8]>) -> Request<ReadGuard> {
        self.locker.read(resource).owned_by(&self.joint)
    }

    /// Requests the lock that [`Owner::lock`] requests.
    ///
    /// If this owner only reads the resource, the request ends with
    /// [`WouldDeadlock`](crate::AcquireError::WouldDeadlock), and nothing is sent.
    pub fn write(&self, resource: impl AsRef<[u8]>) -> Request {
        self.lock(resource)
    }

    /// Returns the locker that this owner requests its locks from.
    pub fn locker(&self) -> &Locker {
        &self.locker
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner").field("locker", &self.locker).finish_non_exhaustive()
    }
}
