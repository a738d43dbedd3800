//! Changes and inspections of a server by a test, without a connection.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::call::Role;
use super::cluster::Slot;
use super::keyspace::{Entry, Value, instant, millis};
use super::replicas::Replicas;
use super::{Dialect, Master, digest};

/// The faults that a test has set.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(super) struct Conditions {
    pub(super) role: Role,
    pub(super) replicas: Replicas,
    /// Quarantines begin even if replicas are missing.
    pub(super) early_quarantine: bool,
    pub(super) loading: bool,
    pub(super) out_of_memory: bool,
    pub(super) lacks_hello: bool,
    pub(super) dialect: Dialect,
    /// The version that it reports instead of its own.
    pub(super) version: Option<&'static str>,
    pub(super) slot: Slot,
    /// The caller of a script is notified of the keys that the script has read, not of those that
    /// it was given.
    pub(super) tracks_scripts: bool,
    /// Error replies by the upper-case name of a command or a script.
    pub(super) failures: BTreeMap<String, String>,
    /// How the clock advances while a script runs; `None`: it does not.
    pub(super) script_clock: Option<ScriptClock>,
}

/// The clock during a slow script.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(super) struct ScriptClock {
    /// It advances by a millisecond before each of these readings.
    pub(super) steps: Vec<usize>,
    /// How often the last script has read it.
    pub(super) readings: usize,
}

/// A key that exists. `Debug` shows only its expiry.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Held<'a> {
    /// The database.
    pub database: u32,
    /// The key.
    pub key: &'a [u8],
    /// Its string; `None` for another type.
    pub value: Option<&'a [u8]>,
    /// Its members with their scores, if it is a sorted set.
    pub scores: Option<&'a BTreeMap<Vec<u8>, i64>>,
    /// The last millisecond in which it exists, since the Unix epoch on the server's clock; `None`
    /// if it does not expire.
    pub expires_at: Option<Duration>,
}

impl Master {
    /// Sets the password of the default user, or removes it. Connections that were accepted before
    /// keep their permissions.
    pub fn set_password(&mut self, password: Option<&str>) {
        self.settings.password = password.map(|password| password.as_bytes().to_vec());
    }

    /// Adds a user with all permissions, besides the user `default`.
    pub fn add_user(&mut self, name: &str, password: &str) {
        self.settings.users.insert(name.into(), password.into());
    }

    /// Makes the server a replica, which refuses writes (`READONLY`), or promotes it: see
    /// [`Master::promote`].
    pub fn set_replica(&mut self, is_replica: bool) {
        if is_replica {
            self.conditions.role = Role::Replica;
        } else {
            self.promote();
        }
    }

    /// Makes the server a replica of another master, whose keys and replication id replace its own.
    ///
    /// Run id, scripts and connections stay. Connections that track keys are notified that all keys
    /// have changed. Keys expire at the same time on both clocks.
    pub fn resync_from(&mut self, other: &Self) {
        self.keyspace.resync_from(&other.keyspace);
        self.keep_backlog();
        self.replication_id.clone_from(&other.replication_id);
        self.former_replication_id.clone_from(&other.former_replication_id);
        self.conditions.role = Role::Replica;
    }

    /// Promotes a replica to a master, with another replication id; the former one is remembered.
    ///
    /// Run id, keys and connections stay. Nothing changes if the server is a master.
    pub fn promote(&mut self) {
        if self.conditions.role == Role::Replica {
            self.promotions += 1;
            let next = digest(&format!("promotion {} of {}", self.promotions, self.run_id));
            self.former_replication_id = Some(std::mem::replace(&mut self.replication_id, next));
            self.conditions.role = Role::Master;
        }
    }

    /// Returns the replication id: 40 hexadecimal digits, new at every start and promotion, and
    /// with the first replica.
    pub fn replication_id(&self) -> &str {
        &self.replication_id
    }

    /// Sets the replication id.
    pub fn set_replication_id(&mut self, id: &str) {
        id.clone_into(&mut self.replication_id);
    }

    /// Sets how the server's clock advances while a script runs: by a millisecond before each of
    /// these readings, of which the first is 0. A reading may be named more than once. A script
    /// reads the clock when it calls TIME, when it asks for the TTL of a key, and when it sets a
    /// key's expiry. With `None`, the default, the clock stops.
    pub fn set_script_steps(&mut self, steps: Option<Vec<usize>>) {
        self.conditions.script_clock = steps.map(|steps| ScriptClock { steps, readings: 0 });
    }

    /// Returns how often the last script has read the clock since [`Master::set_script_steps`] was
    /// called with steps.
    pub fn script_readings(&self) -> usize {
        self.conditions.script_clock.as_ref().map_or(0, |clock| clock.readings)
    }

    /// Makes the server answer as if it were loading its data after a start (`LOADING`).
    pub fn set_loading(&mut self, is_loading: bool) {
        self.conditions.loading = is_loading;
    }

    /// Makes the server refuse every command that needs memory (`OOM`), in scripts as well.
    pub fn set_out_of_memory(&mut self, is_out_of_memory: bool) {
        self.conditions.out_of_memory = is_out_of_memory;
    }

    /// Sets whether the server knows `HELLO`. Servers before Redis 6 do not.
    pub fn set_knows_hello(&mut self, knows_hello: bool) {
        self.conditions.lacks_hello = !knows_hello;
    }

    /// Sets which features of Redis 7.0 the server lacks.
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.conditions.dialect = dialect;
    }

    /// Sets the version of Redis that the server reports. Its behaviour stays the same.
    pub fn set_version(&mut self, version: &'static str) {
        self.conditions.version = Some(version);
    }

    /// Sets which keys are tracked for the caller of a script: those that the script has read, as
    /// on Redis 7.2 and later, or all keys that it was given, as on Redis 7.0.
    pub fn set_tracks_scripts(&mut self, tracks_scripts: bool) {
        self.conditions.tracks_scripts = tracks_scripts;
    }

    /// Empties the script cache, as `SCRIPT FLUSH` does.
    pub fn flush_scripts(&mut self) {
        self.scripts.clear();
    }

    /// Makes a command (`SET`, `INFO`, …) or a script (`RELEASE`, `ACQUIRE FENCED`, …) fail with
    /// this error, a code and a sentence without a leading `-`; `None` ends that.
    ///
    /// The error takes precedence over any other, but a script that is not in the cache still gives
    /// NOSCRIPT.
    pub fn fail(&mut self, name: &str, error: Option<&str>) {
        let name = name.to_ascii_uppercase();
        match error {
            Some(error) => self.conditions.failures.insert(name, error.to_owned()),
            None => self.conditions.failures.remove(&name),
        };
    }

    /// Ends everything that [`Master::fail`] has started.
    pub fn clear_failures(&mut self) {
        self.conditions.failures.clear();
    }

    /// Returns the string of a key, or `None` if the key does not exist or has another type.
    pub fn value(&self, database: u32, key: &[u8], now: Duration) -> Option<&[u8]> {
        self.keyspace.text(database, key, millis(now)).ok().flatten()
    }

    /// Returns the last millisecond in which a key exists, since the Unix epoch on the server's
    /// clock, or `None` if the key does not exist or does not expire.
    pub fn expires_at(&self, database: u32, key: &[u8], now: Duration) -> Option<Duration> {
        self.keyspace.get(database, key, millis(now))?.end.map(instant)
    }

    /// Returns all keys that exist, ordered by database and name.
    pub fn keys(&self, now: Duration) -> impl Iterator<Item = Held<'_>> {
        self.keyspace.databases().flat_map(move |database| {
            self.keyspace.live(database, millis(now)).map(move |(key, entry)| Held {
                database,
                key,
                value: entry.text().ok(),
                scores: entry.scores().ok(),
                expires_at: entry.end.map(instant),
            })
        })
    }

    /// Sets a key to this string, as another client would.
    pub fn hold(&mut self, database: u32, key: &[u8], value: &[u8], expires_at: Option<Duration>) {
        self.put(database, key, Value::Text(value.to_vec()), expires_at);
    }

    /// Sets a key to a list of one element: a type that no lock has.
    pub fn hold_list(&mut self, database: u32, key: &[u8], expires_at: Option<Duration>) {
        self.put(database, key, Value::List(1), expires_at);
    }

    /// Removes a key, as an eviction or an administrator would. Returns whether it existed.
    pub fn remove(&mut self, database: u32, key: &[u8], now: Duration) -> bool {
        self.keyspace.remove(database, key, millis(now))
    }

    /// Removes all keys of all databases.
    pub fn remove_all(&mut self) {
        self.keyspace.clear_all();
    }

    fn put(&mut self, database: u32, key: &[u8], value: Value, expires_at: Option<Duration>) {
        let entry = Entry { value, end: expires_at.map(millis) };
        // No key has expired at time zero, so this change deletes no other key.
        self.keyspace.put(database, key, entry, 0);
    }
}

impl fmt::Debug for Held<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("database", &self.database)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}
