//! Releasing a lock, and learning whether it was still ours.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::shared::Handle;
use super::slot::{Slot, Waiter};
use crate::protocol::{Ballot, ConfigError, DRIVER_ENDED, LockId, LossCause, ReleaseOutcome, TooManyLocks};

/// The future of [`Guard::release`](super::Guard::release),
/// [`Guard::release_after`](super::Guard::release_after),
/// [`Locker::release`](super::Locker::release),
/// [`Locker::release_all`](super::Locker::release_all) and
/// [`Semaphore::release`](super::Semaphore::release).
///
/// # Cancel safety
/// The release was requested before this future existed, and is sent at once or together with other
/// requests when the present poll or turn ends. Dropping the future sends it and forgoes the
/// outcome.
#[must_use = "the release is on its way; await it to learn whether the lock was still ours"]
pub struct Release {
    handle: Handle,
    state: State,
    keeps_for: Option<Duration>,
}

enum State {
    /// Nothing was sent.
    Refused(ReleaseError),
    /// Other handles keep the lock. Nothing was sent.
    Kept(usize),
    Sent {
        id: LockId,
        slot: Arc<Slot>,
        /// How the lock was lost before it was released.
        loss: Option<LossCause>,
    },
    Done,
}

impl Release {
    /// A release that has been sent; `loss` is how the lock was lost before, if it was.
    pub(super) fn new(handle: Handle, slot: Arc<Slot>, id: LockId, loss: Option<LossCause>) -> Self {
        Self { handle, state: State::Sent { id, slot, loss }, keeps_for: None }
    }

    /// The release of a handle that was not the last one; `loss` is how the lock was lost before,
    /// if it was.
    pub(super) fn kept(handle: Handle, others: usize, loss: Option<LossCause>) -> Self {
        let state = match loss {
            None => State::Kept(others),
            Some(_) => State::Refused(ReleaseError::NotOurs(loss)),
        };
        Self { handle, state, keeps_for: None }
    }

    /// A release that could not be sent.
    pub(super) fn refused(handle: Handle, error: ReleaseError) -> Self {
        Self { handle, state: State::Refused(error), keeps_for: None }
    }

    /// The same release, whose keys stay for this long.
    pub(super) fn keeping(mut self, keeps_for: Option<Duration>) -> Self {
        self.keeps_for = keeps_for;
        self
    }

    /// Returns how long the keys stay after the release was sent, if this is a
    /// [`Guard::release_after`](super::Guard::release_after) whose time was not over. Returns
    /// `None` for an ordinary release.
    pub fn keeps_for(&self) -> Option<Duration> {
        self.keeps_for
    }

    /// Blocks the calling thread until the masters have answered.
    ///
    /// # Errors
    /// [`ReleaseError`].
    ///
    /// # Panics
    /// With quorlock-tokio, in async code: it would block a thread of the runtime. Await the future
    /// there, or wait in `spawn_blocking`.
    #[track_caller]
    pub fn wait(self) -> Result<Released, ReleaseError> {
        let handle = self.handle.clone();
        handle.wait(self).unwrap_or(Err(ReleaseError::DriverEnded))
    }
}

impl Future for Release {
    type Output = Result<Released, ReleaseError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.handle.0.is_forked() {
            return Poll::Ready(Err(ReleaseError::Forked));
        }
        let result = match &this.state {
            State::Refused(error) => Err(error.clone()),
            State::Kept(others) => Ok(Released::Kept { others: *others }),
            State::Sent { slot, loss, .. } => match slot.poll_released(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(ReleaseOutcome::StillOurs)) => Ok(Released::Freed),
                Poll::Ready(Some(ReleaseOutcome::NotOurs)) => Err(ReleaseError::NotOurs(*loss)),
                Poll::Ready(Some(ReleaseOutcome::Unknown(ballot))) => Err(ReleaseError::Unknown(ballot)),
                Poll::Ready(None) => Err(ReleaseError::DriverEnded),
            },
            State::Done => return Poll::Pending,
        };
        this.state = State::Done;
        Poll::Ready(result)
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        if let (State::Sent { id, slot, .. }, false) = (&self.state, self.handle.0.is_forked()) {
            self.handle.0.engine().forget(*id);
            slot.forget(Waiter::Holder);
            // The process may end with this.
            self.handle.0.outbox.flush_now(&*self.handle.0);
        }
    }
}

impl fmt::Debug for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Release").finish_non_exhaustive()
    }
}

/// What a release did. The guard is given up in every case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Released {
    /// No handle is left. A quorum of masters held the lock for us until now. It is free, unless
    /// [`Release::keeps_for`] says that its keys stay for a while.
    Freed,
    /// Other handles keep the lock, and the last of them releases it. Nothing was sent, and the
    /// lock was valid when this handle was given up.
    Kept {
        /// How many other handles there were.
        others: usize,
    },
}

/// Why a release cannot confirm that the lock was ours until now. The guard is given up in every
/// case.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReleaseError {
    /// A quorum of masters no longer held the lock for us: another client may have held it
    /// meanwhile. The cause says how the lock was lost, if that was known before the release. A
    /// handle that is not the last one returns the cause without asking a master.
    NotOurs(Option<LossCause>),
    /// Too few masters answered. Keys that could not be deleted expire with the TTL.
    Unknown(Arc<Ballot>),
    /// Nothing was sent, because a resource, a target or the time to keep the keys is invalid, or
    /// because the targets or the semaphore do not match the lock that was handed over
    /// ([`ConfigError::ResumedAsAnother`]). A time is invalid if it is longer than any key may
    /// live.
    Invalid(ConfigError),
    /// As many locks are held or waited for as the configuration allows, so the release of a lock
    /// that was handed over was not sent.
    TooManyLocks {
        /// The limit.
        limit: usize,
    },
    /// The transport's I/O loop has ended, so no answer can arrive. The release was sent as far as
    /// the sockets took it.
    DriverEnded,
    /// This process is a forked child of the one that holds the lock. Nothing was sent, and the
    /// parent's guard is unchanged.
    Forked,
}

impl ReleaseError {
    /// Returns every master's answer, if too few of them answered.
    pub fn ballot(&self) -> Option<&Ballot> {
        match self {
            Self::Unknown(ballot) => Some(ballot),
            _ => None,
        }
    }

    /// Returns a word for this kind of error, for the labels of metrics. It is the same in every
    /// version.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotOurs(_) => "not_ours",
            Self::Unknown(_) => "unknown",
            Self::Invalid(_) => "invalid",
            Self::TooManyLocks { .. } => "too_many_locks",
            Self::DriverEnded => "driver_ended",
            Self::Forked => "forked",
        }
    }
}

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOurs(Some(cause)) => write!(f, "the lock was not ours any more: {cause}"),
            Self::NotOurs(None) => {
                f.write_str("the lock was not ours any more: a quorum of masters did not hold it")
            }
            Self::Unknown(ballot) => write!(
                f,
                "the release of {} is not confirmed, because too few masters answered: {ballot}",
                ballot.targets()
            ),
            Self::Invalid(error) => write!(f, "not released: {error}"),
            Self::TooManyLocks { limit } => write!(f, "not released: {}", TooManyLocks { limit: *limit }),
            Self::DriverEnded => f.write_str(DRIVER_ENDED),
            Self::Forked => LossCause::Forked.fmt(f),
        }
    }
}

impl Error for ReleaseError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotOurs(Some(cause)) => Some(cause),
            Self::Invalid(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ConfigError> for ReleaseError {
    fn from(error: ConfigError) -> Self {
        Self::Invalid(error)
    }
}

impl From<TooManyLocks> for ReleaseError {
    fn from(TooManyLocks { limit }: TooManyLocks) -> Self {
        Self::TooManyLocks { limit }
    }
}
