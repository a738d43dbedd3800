//! The first use of a set of masters under the restart guard.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::observe::Subject;
use super::shared::Handle;
use super::slot::{Slot, Waiter};
use crate::protocol::BootstrapError;

/// The future of [`Locker::bootstrap`](super::Locker::bootstrap).
///
/// # Cancel safety
/// Nothing is sent before the first poll. If the future is dropped after it, masters may still have
/// been bootstrapped.
#[must_use = "futures do nothing until they are polled"]
pub struct Bootstrap {
    handle: Handle,
    slot: Option<Arc<Slot>>,
}

impl Bootstrap {
    pub(super) fn new(handle: Handle) -> Self {
        Self { handle, slot: None }
    }

    /// Blocks the calling thread until all masters have answered or are known not to.
    ///
    /// # Errors
    /// [`BootstrapError`].
    ///
    /// # Panics
    /// With quorlock-tokio, in async code: it would block a thread of the runtime. Await the future
    /// there, or wait in `spawn_blocking`.
    #[track_caller]
    pub fn wait(self) -> Result<(), BootstrapError> {
        let handle = self.handle.clone();
        handle.wait(self).unwrap_or(Err(BootstrapError::DriverEnded))
    }
}

impl Future for Bootstrap {
    type Output = Result<(), BootstrapError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.handle.0.is_forked() {
            return Poll::Ready(Err(BootstrapError::Forked));
        }
        if self.slot.is_none() {
            match self.handle.0.begin(Subject::none(), |engine, now| engine.machine.bootstrap(now)) {
                Ok((_, slot)) => self.slot = Some(slot),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        self.slot.as_ref().map_or(Poll::Pending, |slot| slot.poll_bootstrapped(cx))
    }
}

impl Drop for Bootstrap {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.as_ref().filter(|_| !self.handle.0.is_forked()) {
            slot.forget(Waiter::Holder);
        }
    }
}

impl fmt::Debug for Bootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bootstrap").finish_non_exhaustive()
    }
}
