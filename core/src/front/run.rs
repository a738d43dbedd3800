//! Work under a lock: acquire, renew, run, release.

use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use super::guard::Watch;
use super::request::Request;
use crate::protocol::{AcquireError, ConfigError, LossCause};

impl<G> Request<G> {
    /// Acquires the lock, runs `body` while the lock is renewed, and releases it. Returns what
    /// `body` returns.
    ///
    /// The lock is renewed for at most the configuration's longest hold, unless
    /// [`Request::renew_for`] sets another limit. `body` gets a [`Watch`], which shows whether the
    /// lock is still valid. A body that cannot fail returns `Ok::<_, Infallible>(value)`.
    ///
    /// The release is awaited, but its outcome is not returned: it cannot change what was done
    /// under a valid lock.
    ///
    /// # Errors
    /// - [`RunError::Invalid`]: the request is invalid, and nothing was sent.
    /// - [`RunError::NotAcquired`]: the lock was not acquired, and `body` was not called.
    /// - [`RunError::Lost`]: the lock was lost before `body` ended. `body`'s future was dropped at
    ///   its current await point; if it ended at the same time, its result was dropped.
    /// - [`RunError::Body`]: `body` returned this error. The lock was valid until then, and was
    ///   released.
    ///
    /// # Cancel safety
    /// Dropping this future drops `body`'s future and releases the lock without waiting.
    pub async fn run<T, E, F>(self, body: impl FnOnce(Watch) -> F) -> Result<T, RunError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let guard = self.plain().renewed().await.map_err(RunError::of_acquiring)?;
        let mut lost = guard.lost();
        let mut body = pin!(body(guard.watch()));
        // The loss is checked first: the body must not continue after it.
        let outcome = poll_fn(|cx| match Pin::new(&mut lost).poll(cx) {
            Poll::Ready(cause) => Poll::Ready(Err(cause)),
            Poll::Pending => body.as_mut().poll(cx).map(Ok),
        })
        .await;
        let result = outcome.map_err(RunError::Lost)?;
        guard.check().map_err(RunError::Lost)?;
        // The masters' answers cannot change what was done under a valid lock.
        let _ = guard.release().await;
        result.map_err(RunError::Body)
    }

    /// Acquires the lock, runs `body` on this thread while the lock is renewed, and releases it.
    /// Returns what `body` returns.
    ///
    /// It is [`Request::run`] for code that is not async. `body` cannot be stopped from outside, so
    /// it must call [`Watch::check`] before anything that must not happen without the lock. A panic
    /// in `body` releases the lock.
    ///
    /// # Errors
    /// - [`RunError::Invalid`]: the request is invalid, and nothing was sent.
    /// - [`RunError::NotAcquired`]: the lock was not acquired, and `body` was not called.
    /// - [`RunError::Lost`]: the lock was lost before `body` ended, and its result is dropped.
    /// - [`RunError::Body`]: `body` returned this error. The lock was valid until then, and was
    ///   released.
    ///
    /// # Panics
    /// With quorlock-tokio, in async code: it would block a thread of the runtime. Await
    /// [`Request::run`] there, or call this in `spawn_blocking`.
    #[track_caller]
    pub fn run_wait<T, E>(self, body: impl FnOnce(Watch) -> Result<T, E>) -> Result<T, RunError<E>> {
        let guard = self.plain().renewed().wait().map_err(RunError::of_acquiring)?;
        let result = body(guard.watch());
        guard.check().map_err(RunError::Lost)?;
        let _ = guard.release().wait();
        result.map_err(RunError::Body)
    }
}

/// Why [`Request::run`] and [`Request::run_wait`] returned no value. `E` is the error of their
/// body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunError<E> {
    /// The request is invalid, for example its resource or its TTL. Nothing was sent, and the body
    /// was not called.
    Invalid(ConfigError),
    /// The lock was not acquired, and the body was not called. It is never
    /// [`AcquireError::Invalid`], which becomes [`RunError::Invalid`].
    NotAcquired(AcquireError),
    /// The lock was lost before the body ended.
    Lost(LossCause),
    /// The body failed, under a lock that was valid until then.
    Body(E),
}

impl<E> RunError<E> {
    fn of_acquiring(error: AcquireError) -> Self {
        match error {
            AcquireError::Invalid(error) => Self::Invalid(error),
            error => Self::NotAcquired(error),
        }
    }

    /// Returns a word for this kind of error, for the labels of metrics. It is the same in every
    /// version.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::NotAcquired(_) => "not_acquired",
            Self::Lost(_) => "lost",
            Self::Body(_) => "body",
        }
    }

    /// Converts this error into the body's own error type. That type must be convertible from
    /// [`AcquireError`] and [`LossCause`], as `anyhow::Error` and `Box<dyn Error + Send + Sync>`
    /// are.
    ///
    /// ```
    /// # use quorlock_core::front::{Locker, RunError};
    /// type Anything = Box<dyn std::error::Error + Send + Sync>;
    ///
    /// async fn pay(locker: &Locker) -> Result<(), Anything> {
    ///     let body = async |_| Err::<(), Anything>("no money left".into());
    ///     locker.lock("account:7").run(body).await.map_err(RunError::into_body)
    /// }
    /// ```
    pub fn into_body(self) -> E
    where
        E: From<AcquireError> + From<LossCause>,
    {
        match self {
            Self::Invalid(error) => AcquireError::Invalid(error).into(),
            Self::NotAcquired(error) => error.into(),
            Self::Lost(cause) => cause.into(),
            Self::Body(error) => error,
        }
    }
}

impl<E: fmt::Display> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => write!(f, "{error}"),
            Self::NotAcquired(error) => write!(f, "{error}"),
            Self::Lost(cause) => write!(f, "stopped: {cause}"),
            Self::Body(error) => write!(f, "{error}"),
        }
    }
}

impl<E: Error + 'static> Error for RunError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(match self {
            Self::Invalid(error) => error,
            Self::NotAcquired(error) => error,
            Self::Lost(cause) => cause,
            Self::Body(error) => error,
        })
    }
}
