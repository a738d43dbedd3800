//! Semaphores: a number of permits, each with one holder.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use super::force_releasing::ForceReleasing;
use super::guard::Guard;
use super::handles::HandOverError;
use super::inspecting::Inspecting;
use super::locker::Locker;
use super::release::Release;
use super::request::Request;
use super::sharing::{Granted, sealed};
use crate::protocol::{Resumption, SemaphoreInspection, Targets};

/// A number of permits under one name: at most that many holders at once.
///
/// Each permit is its own lock on a majority of the masters, so no more permits are held than
/// exist, whichever masters fail. Counting the holders on each master would not guarantee that,
/// because two holders may have different majorities.
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

    /// Requests a permit, as [`Locker::lock`] requests a lock: the settings and the timeout are the
    /// same, and the request waits until a permit becomes free.
    ///
    /// A [fenced](Request::fenced) permit's fencing token is larger than every earlier one of the
    /// same [index](Permit::index).
    pub fn acquire(&self) -> Request<Permit> {
        self.locker.permit(Ok(self.targets.clone()))
    }

    /// Requests a permit with a single attempt, as [`Locker::try_lock`] requests a lock: it does
    /// not wait for a holder to release one.
    ///
    /// While callers of this process wait for permits, it ends with
    /// [`HeldByAnother`](crate::AcquireError::HeldByAnother), and nothing is sent. For several
    /// permits use `acquire_many(n).timeout(Duration::ZERO)`.
    ///
    /// ```
    /// # use quorlock_core::AcquireError;
    /// # async fn one(semaphore: quorlock_core::front::Semaphore) -> Result<(), AcquireError> {
    /// match semaphore.try_acquire().await {
    ///     Ok(permit) => println!("device {}", permit.index()),
    ///     Err(AcquireError::HeldByAnother(_)) => println!("all devices are in use"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_acquire(&self) -> Request<Permit> {
        self.acquire().attempts(1).timeout(None::<Duration>)
    }

    /// Requests several permits at once: either all of them are granted or none. The settings and
    /// the waiting are those of [`Semaphore::acquire`].
    ///
    /// One request asks each master for all of them, and an attempt that gets too few gives back
    /// what it got. So two requests never block each other by holding a part each of what both
    /// need. All of them share one validity, one renewal and one release; a
    /// [fenced](Request::fenced) request has one fencing token, which is larger than every earlier
    /// one of each index.
    ///
    /// A request takes 1 to 64 permits ([`Targets::MAX_PERMITS_AT_ONCE`]). Other numbers, and more
    /// than the semaphore has, end it with
    /// [`ConfigError::UnusablePermitsAtOnce`](crate::ConfigError::UnusablePermitsAtOnce). In a
    /// semaphore of more than 64 permits, the granted ones lie within 64 consecutive indexes, where
    /// the first index follows the last. There, an attempt is sure to find up to 49 free permits if
    /// their indexes are consecutive, and a waiter finds more with a later attempt.
    ///
    /// ```
    /// # async fn two(semaphore: quorlock_core::front::Semaphore) -> Result<(), Box<dyn std::error::Error>> {
    /// let permits = semaphore.acquire_many(2).renew().await?;
    /// for index in permits.indexes() {
    ///     println!("device {index}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Not guaranteed
    /// A request for many permits may never be granted while other processes request few, because
    /// it needs all of its permits free at one moment. In this process, later requests wait behind
    /// it.
    pub fn acquire_many(&self, permits: u32) -> Request<Permits> {
        self.locker.permit(self.targets.permits(permits))
    }

    /// Asks all masters which permits are held, by which holders and for how long. It changes
    /// nothing.
    ///
    /// It is for people, for tests and for metrics, like [`Locker::inspect`], and reports in the
    /// same way which permits are ours. One request asks each master for all permits. If 1,024 are
    /// held, a master takes about 3 ms to answer it.
    ///
    /// ```
    /// # async fn look(locker: quorlock_core::front::Locker) -> Result<(), Box<dyn std::error::Error>> {
    /// let seen = locker.semaphore("gpu", 4)?.inspect().await?;
    /// println!("{}: {seen}", seen.name()); // gpu: permits 0 and 2 of 4 held
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The future's errors are [`InspectError`](crate::InspectError)'s. Masters that do not answer
    /// are no error.
    pub fn inspect(&self) -> Inspecting<SemaphoreInspection> {
        self.locker.inspect_permits(self.targets.clone())
    }

    /// Deletes the keys of the permit with this index on all masters, whatever its holder, as
    /// [`Locker::force_release`] deletes a lock's. To clear all permits, call it for each of those
    /// that an [inspection](Self::inspect) shows as held.
    ///
    /// An index that this semaphore does not have may be that of a permit of a client with more
    /// permits. The outcome names the permit by its key.
    ///
    /// The future's errors are [`ForceReleaseError`](crate::ForceReleaseError)'s, also for an index
    /// that no permit can have: from 1,024 on.
    pub fn force_release(&self, index: u32) -> ForceReleasing {
        self.locker.force_release_permit(&self.targets, index)
    }

    /// Releases permits that were handed over; `lock` is what [`hand_over`](Permit::hand_over)
    /// returned. The future waits for the masters' answers and returns whether a quorum still held
    /// all of them.
    ///
    /// The semaphore must have the permits' name; its number of permits does not matter. Otherwise
    /// the future ends with
    /// [`ConfigError::ResumedAsAnother`](crate::ConfigError::ResumedAsAnother), and nothing is
    /// sent. Its other errors are [`ReleaseError`](super::ReleaseError)'s.
    ///
    /// # Cancel safety
    /// The release is sent by this call itself. Dropping the future only forgoes the outcome.
    pub fn release(&self, lock: Resumption) -> Release {
        self.locker.release_permits(&self.targets, lock)
    }

    /// Returns how many permits there are.
    pub fn permits(&self) -> u32 {
        self.targets.as_permit().map_or(0, |(_, permits, _)| permits.into())
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").field("targets", &self.targets).finish_non_exhaustive()
    }
}

/// A permit that is held. It offers what a [`Guard`] offers, and ends in the same ways.
#[must_use = "dropping a permit releases it"]
pub struct Permit(Guard);

impl Permit {
    /// Returns the permit's index, counted from zero. No two holders have the same one at the same
    /// time, so it can name a shard, a port or a worker.
    pub fn index(&self) -> u32 {
        self.0.targets.seats().numbers().next().unwrap_or(0).into()
    }

    /// Releases the permit. See [`Guard::release`].
    pub fn release(self) -> Release {
        self.0.release()
    }

    /// Releases the permit, but keeps its index taken until `at_least` has passed since the grant.
    /// See [`Guard::release_after`].
    pub fn release_after(self, at_least: Duration) -> Release {
        self.0.release_after(at_least)
    }

    /// Hands the permit over to another process or another locker. The receiver resumes it with
    /// [`Request::resuming`], by a request for one permit of a semaphore with the same name, and
    /// gets the same index. See [`Guard::hand_over`].
    ///
    /// ```
    /// # use quorlock_core::front::{Permit, Semaphore};
    /// # async fn pass_on(permit: Permit, theirs: Semaphore) -> Result<(), Box<dyn std::error::Error>> {
    /// let index = permit.index();
    /// let handed_over = permit.hand_over()?;
    /// let permit = theirs.acquire().resuming(handed_over).await?; // there
    /// assert_eq!(permit.index(), index);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`HandOverError::Shared`] if the permit has other handles. The error returns the permit's
    ///   guard, and the permit stays held.
    /// - [`HandOverError::Lost`] if the permit is no longer held.
    pub fn hand_over(self) -> Result<Resumption, HandOverError> {
        self.0.hand_over()
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

/// Several permits that are held together. It offers what a [`Guard`] offers, and ends in the same
/// ways.
#[must_use = "dropping permits releases them"]
pub struct Permits(Guard);

impl Permits {
    /// Returns the permits' indexes, counted from zero. No other holder has any of them at the same
    /// time.
    pub fn indexes(&self) -> impl Iterator<Item = u32> + use<> {
        self.0.targets.seats().numbers().map(u32::from)
    }

    /// Releases all of them. See [`Guard::release`].
    pub fn release(self) -> Release {
        self.0.release()
    }

    /// Releases all of them, but keeps their indexes taken until `at_least` has passed since the
    /// grant. See [`Guard::release_after`].
    pub fn release_after(self, at_least: Duration) -> Release {
        self.0.release_after(at_least)
    }

    /// Hands all of them over to another process or another locker. The receiver resumes them with
    /// [`Request::resuming`], by a request for the same number of permits of a semaphore with the
    /// same name, and gets the same indexes. See [`Guard::hand_over`].
    ///
    /// # Errors
    /// - [`HandOverError::Shared`] if the permits have other handles. The error returns their
    ///   guard, and the permits stay held.
    /// - [`HandOverError::Lost`] if the permits are no longer held.
    pub fn hand_over(self) -> Result<Resumption, HandOverError> {
        self.0.hand_over()
    }
}

impl Deref for Permits {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.0
    }
}

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indexes: Vec<_> = self.indexes().collect();
        f.debug_struct("Permits").field("indexes", &indexes).field("guard", &self.0).finish()
    }
}

impl Granted for Permit {}
impl Granted for Permits {}

impl sealed::OfGuard for Permit {
    fn of(guard: Guard) -> Self {
        Self(guard)
    }
}

impl sealed::OfGuard for Permits {
    fn of(guard: Guard) -> Self {
        Self(guard)
    }
}
