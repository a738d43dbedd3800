//! Keys that move from one node of a cluster to another.

use std::fmt;
use std::time::Duration;

use super::Master;
use super::keyspace::{Entry, Millis, millis};

/// A key on its way, with its value and its end. `Debug` shows neither.
#[derive(Clone)]
pub(crate) struct Migrant {
    key: Vec<u8>,
    entry: Entry,
    /// When it left, on the clock of the node that it comes from.
    left_at: Millis,
}

/// What becomes of the end of a key that moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeyEnd {
    /// It stays the same point in time, on whatever clock: a slot that moves as a whole (Redis 8.4,
    /// Valkey 9).
    Same,
    /// The key goes on to live for as long as it would have: `MIGRATE`.
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

    /// Takes a key over from another node, in place of the one that it may have under that name.
    pub(crate) fn receive_key(&mut self, migrant: Migrant, end: KeyEnd, now: Duration) {
        let Migrant { key, mut entry, left_at } = migrant;
        let now = millis(now);
        if end == KeyEnd::Relative {
            entry.end = entry.end.map(|end| end.saturating_sub(left_at).saturating_add(now));
        }
        self.keyspace.put(0, &key, entry, now);
    }
}
