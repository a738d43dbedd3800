//! Deletes a lock's keys, whatever its holder.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::observe::Subject;
use super::shared::Handle;
use super::slot::{Slot, Waiter};
use crate::protocol::{ConfigError, ForceReleaseError, ForceReleased, Resource};

/// The future of [`Locker::force_release`](super::Locker::force_release), and of
/// [`Semaphore::force_release`](super::Semaphore::force_release).
///
/// # Cancel safety
/// Nothing is sent before the first poll. If the future is dropped after it, keys may still be
/// deleted.
#[must_use = "futures do nothing until they are polled"]
pub struct ForceReleasing {
    handle: Handle,
    resource: Result<Resource, ConfigError>,
    slot: Option<Arc<Slot>>,
}

impl ForceReleasing {
    pub(super) fn new(handle: Handle, resource: Result<Resource, ConfigError>) -> Self {
        Self { handle, resource, slot: None }
    }

    /// Blocks the calling thread until each master has answered or is known not to.
    ///
    /// # Errors
    /// [`ForceReleaseError`].
    ///
    /// # Panics
    /// With quorlock-tokio, in async code: it would block a thread of the runtime. Await the future
    /// there, or wait in `spawn_blocking`.
    #[track_caller]
    pub fn wait(self) -> Result<ForceReleased, ForceReleaseError> {
        let handle = self.handle.clone();
        handle.wait(self).unwrap_or(Err(ForceReleaseError::DriverEnded))
    }

    fn begin(&self) -> Result<Arc<Slot>, ForceReleaseError> {
        let resource = self.resource.clone()?;
        let (_, slot) = self
            .handle
            .0
            .begin(Subject::none(), |engine, now| engine.machine.force_release(&resource, now))?;
        Ok(slot)
    }
}

impl Future for ForceReleasing {
    type Output = Result<ForceReleased, ForceReleaseError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.handle.0.is_forked() {
            return Poll::Ready(Err(ForceReleaseError::Forked));
        }
        if self.slot.is_none() {
            self.slot = Some(self.begin()?);
        }
        let Some(slot) = &self.slot else { return Poll::Pending };
        slot.poll_force_released(cx).map(|outcome| match outcome {
            Some(outcome) if outcome.is_enough() => Ok(*outcome),
            Some(outcome) => Err(ForceReleaseError::TooFew(outcome)),
            None => Err(ForceReleaseError::DriverEnded),
        })
    }
}

impl Drop for ForceReleasing {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.as_ref().filter(|_| !self.handle.0.is_forked()) {
            slot.forget(Waiter::Holder);
        }
    }
}

impl fmt::Debug for ForceReleasing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForceReleasing").field("resource", &self.resource).finish_non_exhaustive()
    }
}
