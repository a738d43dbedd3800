//! Snapshots of a server's keys, and restarts from one.

use std::fmt;

use super::Master;
use super::keyspace::Keyspace;

/// A server's keys at some time. `Debug` shows none of them.
#[derive(Clone)]
pub(crate) struct Snapshot(Keyspace);

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

impl Master {
    /// Returns the keys that it has now, the restart guard's marker among them.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot(self.keyspace.clone())
    }

    /// Restarts the server as [`Master::restart`] does, with the keys of a snapshot. Keys that have
    /// expired since do not exist any more.
    pub(crate) fn restore(&mut self, identity: u64, snapshot: &Snapshot) {
        self.restart(identity, |_| false);
        self.keyspace.resync_from(&snapshot.0);
    }
}
