//! Asking masters about a lock.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::observe::Subject;
use super::shared::Handle;
use super::slot::{Slot, Waiter};
use crate::protocol::{ConfigError, InspectError, Inspection, Resource, Token};

/// The future of [`Locker::inspect`](super::Locker::inspect).
///
/// # Cancel safety
/// Nothing is sent before the first poll, and nothing is changed. It may be dropped at any time.
#[must_use = "futures do nothing until they are polled"]
pub struct Inspecting {
    handle: Handle,
    resource: Result<Resource, ConfigError>,
    token: Option<Token>,
    slot: Option<Arc<Slot>>,
}

impl Inspecting {
    pub(super) fn new(handle: Handle, resource: Result<Resource, ConfigError>) -> Self {
        Self { handle, resource, token: None, slot: None }
    }

    /// Calls keys with this token ours, beside those of the locker's own guards: for a lock that
    /// another process was handed. It has no effect after the first poll.
    pub fn token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// Blocks the calling thread until each master has answered, or cannot.
    ///
    /// # Errors
    /// [`InspectError`].
    ///
    /// # Panics
    /// With quorlock-tokio inside of async code, which it would block: await it, or wait in
    /// `spawn_blocking`.
    #[track_caller]
    pub fn wait(self) -> Result<Inspection, InspectError> {
        let handle = self.handle.clone();
        handle.wait(self).unwrap_or(Err(InspectError::DriverEnded))
    }

    fn begin(&self) -> Result<Arc<Slot>, InspectError> {
        let resource = self.resource.clone()?;
        let (_, slot) = self
            .handle
            .0
            .begin(Subject::none(), |engine, now| engine.machine.inspect(&resource, self.token, now))?;
        Ok(slot)
    }
}

impl Future for Inspecting {
    type Output = Result<Inspection, InspectError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.handle.0.is_forked() {
            return Poll::Ready(Err(InspectError::Forked));
        }
        if self.slot.is_none() {
            self.slot = Some(self.begin()?);
        }
        let Some(slot) = &self.slot else { return Poll::Pending };
        slot.poll_inspected(cx).map(|seen| seen.map(|seen| *seen).ok_or(InspectError::DriverEnded))
    }
}

impl Drop for Inspecting {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.as_ref().filter(|_| !self.handle.0.is_forked()) {
            slot.forget(Waiter::Holder);
        }
    }
}

impl fmt::Debug for Inspecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspecting").field("resource", &self.resource).finish_non_exhaustive()
    }
}
