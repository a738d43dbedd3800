//! Where locks come from.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::request::Request;
use super::shared::Handle;
use crate::endpoint::Endpoint;
use crate::machine::MasterState;
use crate::protocol::{Config, Resource};

/// Locks over a set of masters. Cheap to clone; clones share connections and may be used from any thread and task.
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
        Request::new(self.handle.clone(), &self.config, Resource::new(resource))
    }

    /// Seeks a lock with one attempt.
    ///
    /// An attempt that found only connections which something in between had dropped while they were quiet is made once more, on
    /// fresh ones: it has not asked anybody yet.
    pub fn try_lock(&self, resource: impl AsRef<[u8]>) -> Request {
        self.lock(resource).attempts(1).within(None::<Duration>)
    }

    /// How each master stands.
    pub fn masters(&self) -> Vec<(Endpoint, MasterState)> {
        let core = self.handle.0.core();
        self.config.masters.iter().cloned().zip(core.machine.masters().map(|(_, state)| state)).collect()
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
