//! Giving a lock back, and learning whether it was still ours.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::shared::Handle;
use super::slot::{Slot, Waiter};
use crate::protocol::{Ballot, LockId, LossCause, ReleaseOutcome};

/// The future of [`Guard::release`](super::Guard::release) and [`Locker::release`](super::Locker::release).
#[must_use = "the release is on its way; await it to learn whether the lock was still ours"]
pub struct Release {
    handle: Handle,
    slot: Arc<Slot>,
    id: LockId,
    /// How the lock was lost before it was released.
    loss: Option<LossCause>,
    is_done: bool,
}

impl Release {
    /// A release that has been sent; `loss` is how the lock was lost before.
    pub(super) fn new(handle: Handle, slot: Arc<Slot>, id: LockId, loss: Option<LossCause>) -> Self {
        Self { handle, slot, id, loss, is_done: false }
    }

    /// Keeps the calling thread until the masters have answered.
    ///
    /// # Errors
    /// [`ReleaseError`].
    ///
    /// # Panics
    /// With quorlock-tokio inside of async code, which it would block: await it, or wait in `spawn_blocking`.
    #[track_caller]
    pub fn wait(self) -> Result<(), ReleaseError> {
        let handle = self.handle.clone();
        handle.wait(self).unwrap_or(Err(ReleaseError::DriverEnded))
    }
}

impl Future for Release {
    type Output = Result<(), ReleaseError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.handle.0.is_forked() {
            return Poll::Ready(Err(ReleaseError::Forked));
        }
        let outcome = match self.slot.poll_released(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(outcome) => outcome,
        };
        self.is_done = true;
        Poll::Ready(match outcome {
            Some(ReleaseOutcome::StillOurs) => Ok(()),
            Some(ReleaseOutcome::NotOurs) => Err(ReleaseError::NotOurs(self.loss)),
            Some(ReleaseOutcome::Unknown(ballot)) => Err(ReleaseError::Unknown(ballot)),
            None => Err(ReleaseError::DriverEnded),
        })
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        if !self.is_done && !self.handle.0.is_forked() {
            self.handle.0.engine.look().forget(self.id);
            self.slot.forget(Waiter::Holder);
            // The process may end with this.
            self.handle.0.flush_now();
        }
    }
}

impl fmt::Debug for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Release").finish_non_exhaustive()
    }
}

/// Why a release cannot say that the lock was ours until now. The lock is given up in every case.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReleaseError {
    /// A quorum of masters no longer held it for us; somebody else may have held it meanwhile. Holds how it was lost, if that was
    /// known before.
    NotOurs(Option<LossCause>),
    /// Too few masters answered. Keys that could not be deleted expire with the TTL.
    Unknown(Box<Ballot>),
    /// The I/O loop of the locker has ended; what the sockets took was sent.
    DriverEnded,
    /// This process is a forked child of the one that holds the lock. Nothing was sent, and the parent's guard is as it was.
    Forked,
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
                "{} released, but too few masters answered to say whether it was still ours: {ballot}",
                ballot.resource()
            ),
            Self::DriverEnded => f.write_str("the I/O loop of this locker has ended"),
            Self::Forked => LossCause::Forked.fmt(f),
        }
    }
}

impl Error for ReleaseError {}
