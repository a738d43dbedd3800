//! Asking masters about a lock.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::observe::Subject;
use super::shared::Handle;
use super::slot::{Slot, Waiter};
use crate::protocol::{ConfigError, InspectError, Inspection, Resource, SemaphoreInspection, Targets, Token};

/// The future of [`Locker::inspect`](super::Locker::inspect), and of
/// [`Semaphore::inspect`](super::Semaphore::inspect).
///
/// # Cancel safety
/// Nothing is sent before the first poll, and no key is changed. It may be dropped at any time.
#[must_use = "futures do nothing until they are polled"]
pub struct Inspecting<T = Inspection> {
    handle: Handle,
    asked: Result<Asked, ConfigError>,
    token: Option<Token>,
    slot: Option<Arc<Slot>>,
    answer: fn(&Slot, &Context<'_>) -> Poll<Option<Box<T>>>,
}

/// What masters are asked about.
#[derive(Clone, Debug)]
enum Asked {
    Lock(Resource),
    /// All permits of a semaphore.
    Permits(Targets),
}

impl Inspecting {
    pub(super) fn of_lock(handle: Handle, resource: Result<Resource, ConfigError>) -> Self {
        let asked = resource.map(Asked::Lock);
        Self { handle, asked, token: None, slot: None, answer: Slot::poll_inspected }
    }
}

impl Inspecting<SemaphoreInspection> {
    pub(super) fn of_permits(handle: Handle, permit: Targets) -> Self {
        let asked = Ok(Asked::Permits(permit));
        Self { handle, asked, token: None, slot: None, answer: Slot::poll_semaphore_inspected }
    }
}

impl<T> Inspecting<T> {
    /// Also reports keys with this token as ours, like those of the locker's own guards: for a lock
    /// that was handed to another process. It has no effect after the first poll.
    pub fn token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// Blocks the calling thread until each master has answered or is known not to.
    ///
    /// # Errors
    /// [`InspectError`].
    ///
    /// # Panics
    /// With quorlock-tokio, in async code: it would block a thread of the runtime. Await the future
    /// there, or wait in `spawn_blocking`.
    #[track_caller]
    pub fn wait(self) -> Result<T, InspectError> {
        let handle = self.handle.clone();
        handle.wait(self).unwrap_or(Err(InspectError::DriverEnded))
    }

    fn begin(&self) -> Result<Arc<Slot>, InspectError> {
        let asked = self.asked.clone()?;
        let (_, slot) = self.handle.0.begin(Subject::none(), |engine, now| match &asked {
            Asked::Lock(resource) => engine.machine.inspect(resource, self.token, now),
            Asked::Permits(permit) => engine.machine.inspect_permits(permit, self.token, now),
        })?;
        Ok(slot)
    }
}

impl<T> Future for Inspecting<T> {
    type Output = Result<T, InspectError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.handle.0.is_forked() {
            return Poll::Ready(Err(InspectError::Forked));
        }
        if self.slot.is_none() {
            self.slot = Some(self.begin()?);
        }
        let Some(slot) = &self.slot else { return Poll::Pending };
        (self.answer)(slot, cx).map(|seen| seen.map(|seen| *seen).ok_or(InspectError::DriverEnded))
    }
}

impl<T> Drop for Inspecting<T> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.as_ref().filter(|_| !self.handle.0.is_forked()) {
            slot.forget(Waiter::Holder);
        }
    }
}

impl<T> fmt::Debug for Inspecting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspecting").field("asked", &self.asked).finish_non_exhaustive()
    }
}
