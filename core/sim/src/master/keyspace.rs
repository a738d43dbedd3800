//! Keys with their values and expiry times, by database.
//!
//! No query finds an expired key. Its memory is freed later: when a command accesses the key, when
//! the periodic expiry finds that a client has read it, or when a growing database is swept.
//!
//! Every change of a key goes through here, and clients that have read it are notified from here.

use std::collections::BTreeMap;
use std::time::Duration;

use super::reply::{Failure, WRONG_TYPE};
use super::tracking::Tracking;

/// A point in time as servers store it: milliseconds since the Unix epoch.
pub(super) type Millis = i64;

/// What a key holds.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Value {
    /// Any bytes.
    Text(Vec<u8>),
    /// A list of this many elements: a type that no lock has.
    List(u64),
    /// A sorted set, never empty.
    Scores(Scores),
}

/// The members of a sorted set with their scores, which are whole numbers in this model.
pub(super) type Scores = BTreeMap<Vec<u8>, i64>;

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) value: Value,
    /// The last millisecond in which the key exists.
    pub(super) end: Option<Millis>,
}

impl Entry {
    /// As in Redis: in the millisecond of its expiry a key still exists, with a PTTL of 0.
    fn is_live(&self, now: Millis) -> bool {
        self.end.is_none_or(|end| now <= end)
    }

    pub(super) fn text(&self) -> Result<&[u8], Failure> {
        match &self.value {
            Value::Text(text) => Ok(text),
            Value::List(_) | Value::Scores(_) => Err(WRONG_TYPE),
        }
    }

    pub(super) fn scores(&self) -> Result<&Scores, Failure> {
        match &self.value {
            Value::Scores(scores) => Ok(scores),
            Value::Text(_) | Value::List(_) => Err(WRONG_TYPE),
        }
    }
}

type Database = BTreeMap<Vec<u8>, Entry>;

/// A change for replicas. Expiries are sent as points in time.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Change {
    Put(u32, Vec<u8>, Entry),
    Remove(u32, Vec<u8>),
    /// All keys of one database, or of all.
    Clear(Option<u32>),
}

/// The changes for the replicas.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Log {
    /// Whether there have been replicas: otherwise nothing is counted.
    is_on: bool,
    /// How many changes there have been.
    offset: u64,
    /// The changes that replicas have not taken yet, if there are replicas.
    kept: Option<Vec<Change>>,
}

impl Log {
    fn add(&mut self, change: impl FnOnce() -> Change) {
        self.offset += u64::from(self.is_on);
        if let Some(kept) = &mut self.kept {
            kept.push(change());
        }
    }
}

/// All databases of one server.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Keyspace {
    /// Databases that hold something.
    databases: BTreeMap<u32, Database>,
    bytes: usize,
    log: Log,
    pub(super) tracking: Tracking,
}

impl Keyspace {
    /// An estimate of the memory that keys and values take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn get(&self, database: u32, key: &[u8], now: Millis) -> Option<&Entry> {
        self.databases.get(&database)?.get(key).filter(|entry| entry.is_live(now))
    }

    /// The string at this key, if any.
    pub(super) fn text(&self, database: u32, key: &[u8], now: Millis) -> Result<Option<&[u8]>, Failure> {
        self.get(database, key, now).map(Entry::text).transpose()
    }

    /// The sorted set at this key, if any.
    pub(super) fn scores(&self, database: u32, key: &[u8], now: Millis) -> Result<Option<&Scores>, Failure> {
        self.get(database, key, now).map(Entry::scores).transpose()
    }

    /// Changes the sorted set at this key, which exists while it has members. `change` returns how
    /// much it has changed; without a change, no client is notified.
    pub(super) fn change_scores(
        &mut self,
        database: u32,
        key: &[u8],
        now: Millis,
        change: impl FnOnce(&mut Scores) -> usize,
    ) -> Result<usize, Failure> {
        let mut scores = self.scores(database, key, now)?.cloned().unwrap_or_default();
        let end = self.get(database, key, now).and_then(|entry| entry.end);
        let changes = change(&mut scores);
        if changes > 0 && scores.is_empty() {
            self.remove(database, key, now);
        } else if changes > 0 {
            self.put(database, key, Entry { value: Value::Scores(scores), end }, now);
        }
        Ok(changes)
    }

    /// The remaining life of a key: -1 without an expiry, -2 without the key.
    pub(super) fn pttl(&self, database: u32, key: &[u8], now: Millis) -> i64 {
        if self.get(database, key, now).is_some() { self.pttl_of(database, key, now) } else { -2 }
    }

    /// The same for a key that existed a moment ago, even if it has expired since.
    pub(super) fn pttl_of(&self, database: u32, key: &[u8], now: Millis) -> i64 {
        let entry = self.databases.get(&database).and_then(|keys| keys.get(key));
        match entry.map(|entry| entry.end) {
            None => -2,
            Some(None) => -1,
            Some(Some(end)) => end.saturating_sub(now).max(0),
        }
    }

    /// Stores a value in place of any other.
    pub(super) fn put(&mut self, database: u32, key: &[u8], entry: Entry, now: Millis) {
        self.take(database, key);
        let keys = self.databases.entry(database).or_default();
        // Expired keys that no client reads must not pile up.
        if keys.len() >= SWEEP_FROM && keys.len().is_power_of_two() {
            let mut freed = 0;
            keys.retain(|key, entry| {
                entry.is_live(now) || {
                    freed += cost(key, entry);
                    self.tracking.tell(key, None);
                    false
                }
            });
            self.bytes = self.bytes.saturating_sub(freed);
        }
        self.bytes += cost(key, &entry);
        self.log.add(|| Change::Put(database, key.to_vec(), entry.clone()));
        keys.insert(key.to_vec(), entry);
        self.tracking.changed(key);
    }

    /// Sets the expiry of an existing key, or removes it.
    pub(super) fn set_end(&mut self, database: u32, key: &[u8], end: Option<Millis>) {
        if let Some(entry) = self.databases.get_mut(&database).and_then(|keys| keys.get_mut(key)) {
            entry.end = end;
            self.log.add(|| Change::Put(database, key.to_vec(), entry.clone()));
            self.tracking.changed(key);
        }
    }

    /// Removes a key. Returns whether it existed.
    pub(super) fn remove(&mut self, database: u32, key: &[u8], now: Millis) -> bool {
        let Some(entry) = self.take(database, key) else { return false };
        self.log.add(|| Change::Remove(database, key.to_vec()));
        self.tracking.changed(key);
        entry.is_live(now)
    }

    /// Deletes a key if it has expired, as a server does when it accesses the key.
    pub(super) fn remove_ended(&mut self, database: u32, key: &[u8], now: Millis) {
        let entry = self.databases.get(&database).and_then(|keys| keys.get(key));
        if entry.is_some_and(|entry| !entry.is_live(now)) {
            self.remove(database, key, now);
        }
    }

    /// Deletes the expired keys that a client has read.
    pub(super) fn remove_all_ended(&mut self, now: Millis) {
        while let Some((_, key)) = self.tracking.first_end().filter(|(end, _)| *end < now) {
            let key = key.to_vec();
            for database in self.databases().collect::<Vec<_>>() {
                self.remove_ended(database, &key, now);
            }
        }
    }

    /// Records that this connection has read this key. It is notified when the key changes, if it
    /// tracks keys.
    pub(super) fn has_read(&mut self, session: u64, key: &[u8]) {
        if self.tracking.listens(session) {
            let ends = self.databases.values().filter_map(|keys| keys.get(key)?.end);
            let end = ends.min();
            self.tracking.remember(session, key, end);
        }
    }

    /// Removes a key, as the first half of a change.
    fn take(&mut self, database: u32, key: &[u8]) -> Option<Entry> {
        let keys = self.databases.get_mut(&database)?;
        let entry = keys.remove(key)?;
        if keys.is_empty() {
            self.databases.remove(&database);
        }
        self.bytes = self.bytes.saturating_sub(cost(key, &entry));
        Some(entry)
    }

    /// Restarts with only those keys for which `keep` is true, and without connections.
    pub(super) fn restart(&mut self, mut keep: impl FnMut(&[u8]) -> bool) {
        self.databases.retain(|_, keys| {
            keys.retain(|key, _| keep(key));
            !keys.is_empty()
        });
        let all = self.databases.values().flatten();
        self.bytes = all.map(|(key, entry)| cost(key, entry)).sum();
        self.log.kept = None;
        self.tracking = Tracking::default();
    }

    /// Replaces all keys by those of another server.
    pub(super) fn resync_from(&mut self, other: &Self) {
        self.databases.clone_from(&other.databases);
        self.bytes = other.bytes;
        self.tracking.flushed();
    }

    /// Removes all keys of all databases.
    pub(super) fn clear_all(&mut self) {
        self.databases.clear();
        self.bytes = 0;
        self.log.add(|| Change::Clear(None));
        self.tracking.flushed();
    }

    /// Removes all keys of one database.
    pub(super) fn clear(&mut self, database: u32) {
        let keys = self.databases.remove(&database).unwrap_or_default();
        let freed: usize = keys.iter().map(|(key, entry)| cost(key, entry)).sum();
        self.bytes = self.bytes.saturating_sub(freed);
        self.log.add(|| Change::Clear(Some(database)));
        self.tracking.flushed();
    }

    /// Starts to count changes.
    pub(super) fn count_changes(&mut self) {
        self.log.is_on = true;
    }

    /// Starts to keep changes until they are taken.
    pub(super) fn keep_changes(&mut self) {
        self.log.kept.get_or_insert_default();
    }

    /// Takes the changes since the last call.
    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        self.log.kept.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// How many changes there have been.
    pub(super) fn offset(&self) -> u64 {
        self.log.offset
    }

    /// Applies a change of another server.
    pub(super) fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                // No key has expired at time zero: its master decides which keys expire.
                Change::Put(database, key, entry) => self.put(*database, key, entry.clone(), 0),
                Change::Remove(database, key) => drop(self.remove(*database, key, 0)),
                Change::Clear(None) => self.clear_all(),
                Change::Clear(Some(database)) => self.clear(*database),
            }
        }
    }

    /// The databases with keys, which may all have expired.
    pub(super) fn databases(&self) -> impl Iterator<Item = u32> {
        self.databases.keys().copied()
    }

    /// The keys of one database that exist, in the order of their names.
    pub(super) fn live(&self, database: u32, now: Millis) -> impl Iterator<Item = (&[u8], &Entry)> {
        let keys = self.databases.get(&database).into_iter().flatten();
        keys.filter(move |(_, entry)| entry.is_live(now)).map(|(key, entry)| (key.as_slice(), entry))
    }
}

/// An instant as milliseconds, rounded down.
pub(super) fn millis(since_epoch: Duration) -> Millis {
    Millis::try_from(since_epoch.as_millis()).unwrap_or(Millis::MAX)
}

/// Milliseconds as an instant; before the epoch is the epoch.
pub(super) fn instant(millis: Millis) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}

fn cost(key: &[u8], entry: &Entry) -> usize {
    let value = match &entry.value {
        Value::Text(text) => text.len(),
        Value::List(_) => 0,
        Value::Scores(scores) => scores.keys().map(|member| BYTES_PER_MEMBER + member.len()).sum(),
    };
    BYTES_PER_KEY + key.len() + value
}

/// The approximate memory of the tables for a key.
const BYTES_PER_KEY: usize = 96;
/// The same for a member of a sorted set.
const BYTES_PER_MEMBER: usize = 48;
/// Smaller databases are not searched for expired keys.
const SWEEP_FROM: usize = 64;
