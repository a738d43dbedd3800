//! Semaphores: a number of permits, each of which has one holder.

use std::fmt;
use std::ops::Deref;

use super::force_releasing::ForceReleasing;
use super::guard::Guard;
use super::inspecting::Inspecting;
use super::locker::Locker;
use super::release::Release;
use super::request::Request;
use super::sharing::{Granted, sealed};
use crate::protocol::{SemaphoreInspection, Targets};

/// A number of permits under one name. At most that many holders are let in at once.
///
/// Each permit is a lock of its own on a majority of the masters. So no more permits are held than
/// there are, whatever masters fail: counting holders on each master does not promise that, because
/// holders may have different majorities.
///
/// Permits are not reentrant: two requests of one caller are two permits.
#[derive(Clone)]
pub struct Semaphore {
    locker: Locker,
    targets: Targets,
}

impl Semaphore {
    pub(super) fn new(locker: Locker, targets: Targets) -> Self {
        Self { locker, targets }
    }

    /// Requests a permit, as [`Locker::lock`] requests a lock: with the same settings, the same
    /// timeout, and waiting for a permit that becomes free.
    ///
    /// A [fenced](Request::fenced) permit's number is larger than every earlier one of the same
    /// [index](Permit::index).
    pub fn acquire(&self) -> Request<Permit> {
        self.locker.permit(self.targets.clone())
    }

    /// Asks all masters which permits are held, by whom and for how long. It changes nothing.
    ///
    /// It is for people, for tests and for metrics, as [`Locker::inspect`] is, and says in the same
    /// way what is ours. One request asks each master for all permits, which takes it about 3 ms
    /// if 1,024 are held.
    ///
    /// ```
    /// # async fn look(locker: quorlock_core::front::Locker) -> Result<(), Box<dyn std::error::Error>> {
    /// let seen = locker.semaphore("gpu", 4)?.inspect().await?;
    /// println!("{}: {seen}", seen.name()); // gpu: permits 0 and 2 of 4 held
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The future's errors are [`InspectError`](crate::InspectError)'s. That masters do not answer
    /// is none of them.
    pub fn inspect(&self) -> Inspecting<SemaphoreInspection> {
        self.locker.inspect_permits(self.targets.clone())
    }

    /// Deletes the keys of the permit with this index on all masters, for any holder, as
    /// [`Locker::force_release`] deletes a lock's. To clear all permits, call it for each of those
    /// that an [inspection](Self::inspect) shows as held.
    ///
    /// An index above those of this semaphore is that of a client with more permits. The outcome
    /// names the permit by its key.
    ///
    /// The future's errors are [`ForceReleaseError`](crate::ForceReleaseError)'s, also for an index
    /// that no permit has: from 1,024 on.
    pub fn force_release(&self, index: u32) -> ForceReleasing {
        self.locker.force_release_permit(&self.targets, index)
    }

    /// Returns how many permits there are.
    pub fn permits(&self) -> u32 {
        self.targets.as_permit().map_or(0, |(_, permits)| permits.into())
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").field("targets", &self.targets).finish_non_exhaustive()
    }
}

/// A permit that is held. It tells what a [`Guard`] tells, and has the same ends.
#[must_use = "dropping a permit releases it"]
pub struct Permit(Guard);

impl Permit {
    /// Returns which of the permits it is, counted from zero. No two holders have the same one at
    /// the same time, so it can name a shard, a port or a worker.
    pub fn index(&self) -> u32 {
        self.0.targets.seat().unwrap_or(0).into()
    }

    /// Releases the permit. See [`Guard::release`].
    pub fn release(self) -> Release {
        self.0.release()
    }
}

impl Deref for Permit {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.0
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("index", &self.index()).field("guard", &self.0).finish()
    }
}

impl Granted for Permit {}

impl sealed::OfGuard for Permit {
    fn of(guard: Guard) -> Self {
        Self(guard)
    }
}
