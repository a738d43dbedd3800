//! The extension of a held lock.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::guard::Guard;
use crate::protocol::{ConfigError, ExtendError, ExtensionId, LossCause, Ttl};

/// The future of [`Guard::extend`]. It returns the new remaining validity.
///
/// # Cancel safety
/// Nothing is sent before the first poll. If the future is dropped after it, the extension may
/// still happen.
#[must_use = "futures do nothing until they are polled"]
pub struct Extending<'a> {
    guard: &'a Guard,
    extension: Extension,
}

/// The state of an extension, kept apart from its guard.
pub(super) enum Extension {
    /// By this TTL. Nothing has been sent.
    Start(Result<Ttl, ConfigError>),
    Waiting(ExtensionId),
    Done,
}

impl<'a> Extending<'a> {
    /// An extension by this TTL. Nothing has been sent.
    pub(super) fn new(guard: &'a Guard, ttl: Result<Ttl, ConfigError>) -> Self {
        Self { guard, extension: Extension::Start(ttl) }
    }

    /// Blocks the calling thread until the extension has succeeded or failed, and returns the new
    /// remaining validity.
    ///
    /// # Errors
    /// [`ExtendError`].
    ///
    /// # Panics
    /// With quorlock-tokio, in async code: it would block a thread of the runtime. Await the future
    /// there, or wait in `spawn_blocking`.
    #[track_caller]
    pub fn wait(self) -> Result<Duration, ExtendError> {
        let handle = self.guard.watch.handle.clone();
        handle.wait(self).unwrap_or(Err(ExtendError::Lost(LossCause::DriverEnded)))
    }
}

impl Future for Extending<'_> {
    /// The new remaining validity.
    type Output = Result<Duration, ExtendError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let guard = self.guard;
        self.extension.poll(guard, cx)
    }
}

impl Drop for Extending<'_> {
    fn drop(&mut self) {
        self.extension.forget(self.guard);
    }
}

impl Extension {
    pub(super) fn poll(&mut self, guard: &Guard, cx: &Context<'_>) -> Poll<Result<Duration, ExtendError>> {
        let Guard { watch, id, .. } = guard;
        if watch.is_forked() {
            return Poll::Ready(Err(ExtendError::Lost(LossCause::Forked)));
        }
        if let Self::Start(ttl) = &self {
            let started = match ttl.clone() {
                Ok(ttl) => watch.handle.0.command(|engine, now| {
                    engine
                        .machine
                        .extend(*id, ttl, now)
                        .inspect(|extension| watch.slot.expect_extension(*extension))
                }),
                Err(error) => Err(error.into()),
            };
            match started {
                Ok(extension) => *self = Self::Waiting(extension),
                Err(error) => {
                    *self = Self::Done;
                    return Poll::Ready(Err(match error {
                        // The guard knows the cause.
                        ExtendError::Lost(_) => {
                            ExtendError::Lost(watch.slot.loss().unwrap_or(LossCause::Expired))
                        }
                        error => error,
                    }));
                }
            }
        }
        let Self::Waiting(extension) = *self else { return Poll::Pending };
        watch.slot.poll_extended(extension, cx).map(|result| {
            *self = Self::Done;
            result.map(|_| watch.remaining())
        })
    }

    /// Its caller no longer waits. The extension may still happen.
    pub(super) fn forget(&self, guard: &Guard) {
        if let (Self::Waiting(extension), false) = (self, guard.watch.is_forked()) {
            guard.watch.slot.forget_extension(*extension);
        }
    }
}

impl fmt::Debug for Extending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extending").finish_non_exhaustive()
    }
}
