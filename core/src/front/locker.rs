//! Where locks come from.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::bootstrap::Bootstrap;
use super::observe::Subject;
use super::release::{Release, ReleaseError};
use super::report::Report;
use super::request::Request;
use super::shared::Handle;
use super::slot::Slot;
use crate::endpoint::Endpoint;
use crate::machine::MasterState;
use crate::protocol::{Config, LockId, Resumption, Token};

/// Locks over a set of masters. Cheap to clone; clones share connections and may be used from any thread and task.
///
/// A locker works only in the process that opened it. In a forked child of that process every request ends at once with
/// [`AcquireError::Forked`](crate::AcquireError::Forked), guards are not valid, and dropping them releases nothing; the child opens a locker of its own. (`fork`
/// copies memory and sockets, but none of the other threads: so [`Locker::masters`] and [`Locker::report`] must not be called there.)
///
/// Locks are sought with [`Locker::lock`] and [`Locker::try_lock`]. The connections are closed when the last clone, guard and
/// future is gone.
#[derive(Clone)]
pub struct Locker {
    handle: Handle,
    config: Arc<Config>,
}

impl Locker {
    pub(super) fn new(handle: Handle, config: Arc<Config>) -> Self {
        Self { handle, config }
    }

    /// Seeks a lock, with attempts until it is ours or the time is over.
    ///
    /// The request does nothing until it is awaited, or waited for with [`Request::wait`].
    pub fn lock(&self, resource: impl AsRef<[u8]>) -> Request {
        Request::new(self.handle.clone(), &self.config, self.config.resource(resource), None)
    }

    /// Goes on with a lock that was handed over ([`Guard::hand_over`](super::Guard::hand_over)), in this process or another one.
    ///
    /// It is asked for once, as an extension by the request's TTL, and is valid as if it had been extended. Its number, if it has one, stays.
    /// [`AcquireError::NotHeld`](crate::AcquireError::NotHeld) says that it is too late. After
    /// [`AcquireError::NoQuorum`](crate::AcquireError::NoQuorum) it stands as it stood, and may be asked for again.
    pub fn resume(&self, resource: impl AsRef<[u8]>, lock: Resumption) -> Request {
        Request::new(self.handle.clone(), &self.config, self.config.resource(resource), Some(lock))
    }

    /// Releases a lock that was handed over, and tells whether a quorum of masters still held it.
    ///
    /// # Cancel safety
    /// The release is sent by this call itself. The future only waits for the answers.
    pub fn release(&self, resource: impl AsRef<[u8]>, token: Token) -> Release {
        match self.send_release(resource.as_ref(), token) {
            Ok((id, slot)) => Release::new(self.handle.clone(), slot, id, None),
            Err(error) => Release::refused(self.handle.clone(), error),
        }
    }

    fn send_release(&self, resource: &[u8], token: Token) -> Result<(LockId, Arc<Slot>), ReleaseError> {
        let resource = self.config.resource(resource)?;
        if self.handle.0.is_forked() {
            return Err(ReleaseError::Forked);
        }
        let sent = self.handle.0.begin(Subject::of(&resource), |running, now| {
            running.machine.release_token(&resource, token, now)
        })?;
        Ok(sent)
    }

    /// Seeks a lock with one attempt.
    ///
    /// It never goes ahead of callers of this process that wait for the lock: while there are some it ends with
    /// [`HeldByAnother`](crate::AcquireError::HeldByAnother), and nothing was sent.
    ///
    /// An attempt that found only connections which something in between had dropped while they were quiet is made once more, on
    /// fresh ones: it has not asked anybody yet.
    pub fn try_lock(&self, resource: impl AsRef<[u8]>) -> Request {
        self.lock(resource).attempts(1).timeout(None::<Duration>)
    }

    /// Tells all masters that nothing can be locked yet, so that they need not wait for the restart guard's longest TTL: for the first use of a
    /// new set of masters.
    ///
    /// Call it only if that is true. All masters must answer; if some of them vote already and others do not, nothing is changed, since
    /// locks may be held. If all vote already there is nothing to do.
    pub fn bootstrap(&self) -> Bootstrap {
        Bootstrap::new(self.handle.clone())
    }

    /// Runs any future on the calling thread, in the transport's way of waiting.
    ///
    /// For many locks at once on one thread: with the blocking transport the thread serves the sockets itself whenever the future waits, so that
    /// no other thread stands between a request and its answer, and what all tasks of an executor have asked for goes out in one write for each
    /// master.
    ///
    /// `None` if the transport's [`Host`](super::Host) stopped waiting before the future was ready, which those of this project never do, or if
    /// this process is a forked child and the future is not ready at once.
    ///
    /// # Panics
    /// With quorlock-tokio inside of async code, which it would block: await it, or wait in `spawn_blocking`.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> Option<F::Output> {
        self.handle.wait(pin!(future))
    }

    /// How each master stands.
    pub fn masters(&self) -> Vec<(Endpoint, MasterState)> {
        let running = self.handle.0.engine.look();
        self.config.masters.iter().cloned().zip(running.machine.masters().map(|(_, state)| state)).collect()
    }

    /// What this locker and its clones have done since it was opened, in numbers, and how it stands: for metrics.
    ///
    /// Counting costs next to nothing and is always on. A report allocates the list of the masters, and holds up other callers for as long as it takes to copy it.
    pub fn report(&self) -> Report {
        let shared = &self.handle.0;
        let running = shared.engine.look();
        running.figures.report(&self.config, &running.machine, shared.host.now())
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

impl fmt::Debug for Locker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locker").field("masters", &self.config.masters).finish_non_exhaustive()
    }
}

/// Why a transport could not open a locker.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no async runtime to run the driver on.
    NoRuntime,
    /// The operating system gave no thread, or no way to wait for sockets.
    System(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRuntime => f.write_str(
                "there is no async runtime here; call `open` inside of one, or use `open_with_driver`",
            ),
            Self::System(error) => {
                write!(f, "the system gave no thread, or no way to wait for sockets: {error}")
            }
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoRuntime => None,
            Self::System(error) => Some(error),
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
