//! What a test makes of a server, and what it sees of it without a connection.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::call::Role;
use super::keyspace::{Entry, Millis, Value, instant, millis};
use super::{Master, digest};

/// What was made to go wrong.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(super) struct Conditions {
    pub(super) role: Role,
    /// How many replicas are attached.
    pub(super) replicas: u16,
    pub(super) loading: bool,
    pub(super) out_of_memory: bool,
    pub(super) lacks_hello: bool,
    /// Who calls a script is told of the keys that it has read, not of those that it was given.
    pub(super) tracks_scripts: bool,
    /// Error replies by the upper-case name of a command or a script.
    pub(super) failures: BTreeMap<String, String>,
    /// How long after a script has begun it asks for the time, and gives a key its life.
    pub(super) script_pace: [Millis; 2],
}

/// A key as it stands. `Debug` shows only its end.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Held<'a> {
    /// The database.
    pub database: u32,
    /// The key.
    pub key: &'a [u8],
    /// The string that it holds; `None` for a foreign type.
    pub value: Option<&'a [u8]>,
    /// The last millisecond in which it exists, since the Unix epoch on the server's clock; `None` without an end.
    pub expires_at: Option<Duration>,
}

impl Master {
    /// Asks the default user for this password, or for none. Connections that were accepted before keep what they may.
    pub fn set_password(&mut self, password: Option<&str>) {
        self.settings.password = password.map(|password| password.as_bytes().to_vec());
    }

    /// Adds a user who may do everything, beside the user `default`.
    pub fn add_user(&mut self, name: &str, password: &str) {
        self.settings.users.insert(name.into(), password.into());
    }

    /// Makes it a replica, which refuses writes (`READONLY`), or promotes it to a master: see [`Master::promote`].
    pub fn set_replica(&mut self, is_replica: bool) {
        if is_replica {
            self.conditions.role = Role::Replica;
        } else {
            self.promote();
        }
    }

    /// Makes it a replica of that master: it has its keys and its replication id, and its own are gone. Run id, scripts and connections
    /// stay, and so does everything if it is already that master. Connections that track keys are told that all have changed.
    ///
    /// Keys end at the same time on both clocks.
    pub fn resync_from(&mut self, other: &Self) {
        self.keyspace.resync_from(&other.keyspace);
        self.replication_id.clone_from(&other.replication_id);
        self.former_replication_id.clone_from(&other.former_replication_id);
        self.conditions.role = Role::Replica;
    }

    /// Promotes it if it is a replica: under another replication id, the former one being kept. Run id, keys and connections stay.
    pub fn promote(&mut self) {
        if self.conditions.role == Role::Replica {
            self.promotions += 1;
            let next = digest(&format!("promotion {} of {}", self.promotions, self.run_id));
            self.former_replication_id = Some(std::mem::replace(&mut self.replication_id, next));
            self.conditions.role = Role::Master;
        }
    }

    /// Attaches so many replicas, as `INFO replication` tells them. They hold nothing. The first one gives the master another replication
    /// id and takes the former one away; for the id that comes when the last has been away for long see [`Master::set_replication_id`].
    pub fn set_replicas(&mut self, replicas: u16) {
        if self.conditions.replicas == 0 && replicas > 0 {
            self.replication_id = digest(&format!("first replica of {}", self.replication_id));
            self.former_replication_id = None;
        }
        self.conditions.replicas = replicas;
    }

    /// The replication id: 40 hexadecimal digits, new at every start and promotion, and with the first replica.
    pub fn replication_id(&self) -> &str {
        &self.replication_id
    }

    /// Gives it this replication id.
    pub fn set_replication_id(&mut self, id: &str) {
        id.clone_into(&mut self.replication_id);
    }

    /// How long after a script has begun it asks for the time, and how long after it gives a key its life. At once unless set.
    pub fn set_script_pace(&mut self, asks: Duration, gives: Duration) {
        self.conditions.script_pace = [millis(asks), millis(gives)];
    }

    /// Makes it answer as while it reads its data after a start (`LOADING`).
    pub fn set_loading(&mut self, is_loading: bool) {
        self.conditions.loading = is_loading;
    }

    /// Makes it refuse every command that needs memory (`OOM`), within scripts too.
    pub fn set_out_of_memory(&mut self, is_out_of_memory: bool) {
        self.conditions.out_of_memory = is_out_of_memory;
    }

    /// Whether it knows `HELLO`. Servers before Redis 6 do not.
    pub fn set_knows_hello(&mut self, knows_hello: bool) {
        self.conditions.lacks_hello = !knows_hello;
    }

    /// Whether a script has read for its caller what it has read, as on Redis 7.2 and later, or all keys that it was given, as on Redis 7.0.
    pub fn set_tracks_scripts(&mut self, tracks_scripts: bool) {
        self.conditions.tracks_scripts = tracks_scripts;
    }

    /// Empties the script cache, as `SCRIPT FLUSH` does.
    pub fn flush_scripts(&mut self) {
        self.scripts.clear();
    }

    /// Makes a command (`SET`, `INFO`, …) or a script (`RELEASE`, `ACQUIRE FENCED`, …) answer this error, a code and a sentence without
    /// a leading `-`; `None` puts it right. The error comes before any other, except that a script which is not in the cache stays
    /// NOSCRIPT.
    pub fn fail(&mut self, name: &str, error: Option<&str>) {
        let name = name.to_ascii_uppercase();
        match error {
            Some(error) => self.conditions.failures.insert(name, error.to_owned()),
            None => self.conditions.failures.remove(&name),
        };
    }

    /// Puts right everything that [`Master::fail`] made go wrong.
    pub fn mend(&mut self) {
        self.conditions.failures.clear();
    }

    /// The string at this key; `None` without one, and for a foreign type.
    pub fn value(&self, database: u32, key: &[u8], now: Duration) -> Option<&[u8]> {
        self.keyspace.text(database, key, millis(now)).ok().flatten()
    }

    /// The last millisecond in which this key exists, since the Unix epoch on the server's clock; `None` without an end or without the key.
    pub fn expires_at(&self, database: u32, key: &[u8], now: Duration) -> Option<Duration> {
        self.keyspace.get(database, key, millis(now))?.end.map(instant)
    }

    /// All keys that exist, by database and name.
    pub fn keys(&self, now: Duration) -> impl Iterator<Item = Held<'_>> {
        self.keyspace.databases().flat_map(move |database| {
            self.keyspace.live(database, millis(now)).map(move |(key, entry)| Held {
                database,
                key,
                value: entry.text().ok(),
                expires_at: entry.end.map(instant),
            })
        })
    }

    /// Puts this string there, as another client would.
    pub fn hold(&mut self, database: u32, key: &[u8], value: &[u8], expires_at: Option<Duration>) {
        self.put(database, key, Value::Text(value.to_vec()), expires_at);
    }

    /// Puts a list of one element there: a type that is no lock.
    pub fn hold_list(&mut self, database: u32, key: &[u8], expires_at: Option<Duration>) {
        self.put(database, key, Value::List(1), expires_at);
    }

    /// Removes a key, as an eviction or an administrator would: whether it was there.
    pub fn remove(&mut self, database: u32, key: &[u8], now: Duration) -> bool {
        self.keyspace.remove(database, key, millis(now))
    }

    /// Removes all keys of all databases.
    pub fn remove_all(&mut self) {
        self.keyspace.clear_all();
    }

    fn put(&mut self, database: u32, key: &[u8], value: Value, expires_at: Option<Duration>) {
        let entry = Entry { value, end: expires_at.map(millis) };
        // Nothing counts as ended at the beginning of time, so what another client did costs no other key.
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
