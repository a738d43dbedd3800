//! Keys that move from one node of a cluster to another.

use std::fmt;
use std::time::Duration;

use super::Master;
use super::keyspace::{Entry, Millis, millis};

/// A key that is being moved, with its value and its expiry. `Debug` shows neither.
#[derive(Clone)]
pub(crate) struct Migrant {
    key: Vec<u8>,
    entry: Entry,
    /// When it left, on the clock of its old node.
    left_at: Millis,
}

/// What happens to the expiry of a key that moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeyEnd {
    /// It stays the same point in time, on any clock: a slot that moves as a whole (Redis 8.4,
    /// Valkey 9).
    Same,
    /// The key keeps its remaining life: `MIGRATE`.
    Relative,
}

impl fmt::Debug for Migrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Migrant").finish_non_exhaustive()
    }
}

impl Master {
    /// Takes a key of database 0 out, for another node. `None` if it does not exist.
    pub(crate) fn send_key(&mut self, key: &[u8], now: Duration) -> Option<Migrant> {
        let left_at = millis(now);
        let entry = self.keyspace.get(0, key, left_at)?.clone();
        self.keyspace.remove(0, key, left_at);
        Some(Migrant { key: key.to_vec(), entry, left_at })
    }

    /// Whether a key of database 0 exists.
    pub(crate) fn has(&self, key: &[u8], now: Duration) -> bool {
        self.keyspace.get(0, key, millis(now)).is_some()
    }

    /// Receives a key from another node, and replaces a key of that name.
    pub(crate) fn receive_key(&mut self, migrant: Migrant, end: KeyEnd, now: Duration) {
        let Migrant { key, mut entry, left_at } = migrant;
        let now = millis(now);
        if end == KeyEnd::Relative {
            entry.end = entry.end.map(|end| end.saturating_sub(left_at).saturating_add(now));
        }
        self.keyspace.put(0, &key, entry, now);
    }
}
