//! A Redis master as a value, without a socket, clock, randomness or thread.
//!
//! Bytes and the server's own time go in, replies come out, byte for byte as Redis 7.0 writes them:
//! a test sends the same random commands to this model and to real servers. The model knows the
//! commands that locks need and those that tests need around them. Scripts are not interpreted:
//! those that Quorlock sends are recognised by text or SHA-1, and a Rust function replaces each.
//!
//! Each command is a small function that is listed in `table.rs`.

mod call;
mod cluster;
mod command;
mod conditions;
mod configuration;
mod connection;
mod dialect;
mod expiry;
mod info;
mod inline;
mod keep;
mod keys;
mod keyspace;
#[cfg(feature = "worlds")]
mod migration;
mod number;
mod replicas;
mod reply;
mod scores;
mod scripts;
mod session;
pub(crate) mod sharers;
#[cfg(feature = "worlds")]
mod snapshot;
mod strings;
mod table;
mod tracking;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

pub use cluster::Slot;
pub use command::{Command, CommandKind};
pub use conditions::Held;
pub use dialect::Dialect;
pub use keep::Keep;
#[cfg(feature = "worlds")]
pub(crate) use migration::{KeyEnd, Migrant};
pub use replicas::Changes;
pub use session::{ProtocolError, Session};
#[cfg(feature = "worlds")]
pub(crate) use snapshot::Snapshot;
pub use tracking::Push;

use call::Call;
use conditions::Conditions;
use configuration::Settings;
use keyspace::{Keyspace, Millis, instant, millis};
use reply::{Failure, Reply};

/// A model of a Redis master.
///
/// Every `now` is the time since the Unix epoch on the server's own clock, of which a server sees
/// whole milliseconds. `Debug` shows no keys, values or passwords.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Master {
    run_id: String,
    replication_id: String,
    /// Its replication id while it was a replica.
    former_replication_id: Option<String>,
    /// The instant of its first command.
    started: Option<Millis>,
    keyspace: Keyspace,
    /// The SHA-1 of each script in the cache, with its text.
    scripts: BTreeMap<&'static str, &'static str>,
    settings: Settings,
    conditions: Conditions,
    last_session: u64,
    promotions: u64,
    executed: u64,
}

/// What happens to a connection after a command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[must_use]
pub enum Flow {
    /// It stays open.
    Open,
    /// The server closes it after the replies. It does not read what follows the command.
    Close,
}

impl Master {
    /// Creates a master that has just started.
    ///
    /// Run id and replication id follow from the identity: masters with the same identity are one
    /// server behind two addresses.
    pub fn new(identity: u64) -> Self {
        Self {
            run_id: digest(&format!("run id {identity}")),
            replication_id: digest(&format!("replication id {identity}")),
            former_replication_id: None,
            started: None,
            keyspace: Keyspace::default(),
            scripts: BTreeMap::new(),
            settings: Settings::default(),
            conditions: Conditions::default(),
            last_session: 0,
            promotions: 0,
            executed: 0,
        }
    }

    /// Accepts a connection. A [`Session::new`] is accepted at its first command.
    pub fn accept(&mut self) -> Session {
        let mut session = Session::new();
        self.meet(&mut session);
        session
    }

    /// Reads bytes from a connection, split in any way, and executes every complete command.
    ///
    /// The replies are appended to `replies`, each followed by its pushes to the same connection.
    /// [`Master::take_pushes`] returns those for other connections.
    pub fn serve(
        &mut self,
        session: &mut Session,
        bytes: &[u8],
        now: Duration,
        replies: &mut Vec<u8>,
    ) -> Flow {
        session.feed(bytes);
        loop {
            match self.next_command(session) {
                Ok(None) => return Flow::Open,
                Ok(Some(command)) => {
                    let flow = self.execute(session, &command, now, replies);
                    self.keyspace.tracking.move_to(session.id, replies);
                    if flow == Flow::Close {
                        return flow;
                    }
                }
                Err(error) => {
                    error.write(replies);
                    self.leave(session);
                    return Flow::Close;
                }
            }
        }
    }

    /// Returns the next complete command, as [`Session::next_command`] does, but with the smaller
    /// limits that a server has for clients without a password.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a command. The connection can no longer be used then.
    pub fn next_command(&mut self, session: &mut Session) -> Result<Option<Command>, ProtocolError> {
        self.meet(session);
        session.next_command()
    }

    /// Executes one command and appends its reply to `replies`.
    ///
    /// What [`Master::take_pushes`] returns for this connection belongs after the reply, before the
    /// next command.
    pub fn execute(
        &mut self,
        session: &mut Session,
        command: &Command,
        now: Duration,
        replies: &mut Vec<u8>,
    ) -> Flow {
        self.meet(session);
        let now = millis(now);
        self.started.get_or_insert(now);
        self.executed += 1;
        self.keyspace.tracking.set_current(Some(session.id));
        let reply = Reply::new(replies, session.resp3);
        let before = self.offset();
        let flow = Call { master: &mut *self, session: &mut *session, command, now, reply }.run();
        if self.offset() > before {
            session.written = self.offset();
        }
        self.keyspace.tracking.set_current(None);
        if flow == Flow::Close {
            self.leave(session);
        }
        flow
    }

    /// Takes the pushes for connections, in order: notifications that a key which the connection
    /// has read has changed (`CLIENT TRACKING`).
    ///
    /// Each push belongs after everything that was written to its connection before. Call this
    /// after each command, and after anything else that changes keys. Pushes that wait for too long
    /// are lost.
    pub fn take_pushes(&mut self) -> impl Iterator<Item = Push> + use<> {
        self.keyspace.tracking.take().into_iter()
    }

    /// Forgets what a connection has read, after it was closed.
    ///
    /// This is not needed after [`Flow::Close`], only if the caller closes the connection, also
    /// because of a [`ProtocolError`] that [`Session::next_command`] returned.
    pub fn leave(&mut self, session: &Session) {
        self.keyspace.tracking.leave(session.id);
    }

    /// Returns when to call [`Master::remove_ended`]: the first instant at which a key has expired
    /// that a connection tracks. A replica waits for its master to delete the key.
    pub fn next_end(&self) -> Option<Duration> {
        let (end, _) = self.keyspace.tracking.first_end().filter(|_| self.removes_ended())?;
        // It still exists in the millisecond of its expiry.
        Some(instant(end.saturating_add(1)))
    }

    /// Deletes the expired keys that a connection tracks, as a server does about ten times a
    /// second.
    ///
    /// A command that touches such a key deletes it at once. Other expired keys are never seen
    /// anyway.
    pub fn remove_ended(&mut self, now: Duration) {
        if self.removes_ended() {
            self.keyspace.remove_all_ended(millis(now));
        }
    }

    /// Restarts the server with another run id and replication id, an empty script cache, and only
    /// those keys for which `keep` returns true.
    ///
    /// Its configuration and the faults that were set stay. Its connections are gone: drop
    /// their sessions.
    pub fn restart(&mut self, identity: u64, keep: impl FnMut(&[u8]) -> bool) {
        self.keyspace.restart(keep);
        let fresh = Self::new(identity);
        let old = std::mem::replace(self, fresh);
        self.keyspace = old.keyspace;
        self.settings = old.settings;
        self.conditions = old.conditions;
        self.conditions.replicas.start_again();
        self.executed = old.executed;
    }

    /// Returns the run id: 40 hexadecimal digits, new at every start.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Returns the number of commands that it has executed, including those that failed.
    pub fn executed(&self) -> u64 {
        self.executed
    }

    /// Numbers a new connection, and decides whether it needs a password.
    fn meet(&mut self, session: &mut Session) {
        if session.id == 0 {
            self.last_session += 1;
            session.id = self.last_session;
        }
        let asks = self.settings.password.is_some();
        session.is_limited = !*session.trusted.get_or_insert(!asks) && asks;
    }

    /// Whether it deletes expired keys, or leaves that to its own master.
    fn removes_ended(&self) -> bool {
        self.conditions.role == call::Role::Master
    }

    /// Whether writes that need memory are refused. A replica does not enforce the limit.
    fn is_out_of_memory(&self) -> bool {
        if self.conditions.role == call::Role::Replica {
            return false;
        }
        let (limit, used) = (self.settings.max_memory, self.used_memory());
        self.conditions.out_of_memory || (limit > 0 && used > limit) || used > MAX_MEMORY
    }

    /// An estimate of the memory of a server of this size, in bytes.
    fn used_memory(&self) -> u64 {
        // No platform of Rust has addresses of more than 64 bits.
        EMPTY_BYTES + self.keyspace.bytes() as u64
    }
}

impl ProtocolError {
    /// Appends the error reply with which a server ends the connection.
    pub fn write(self, replies: &mut Vec<u8>) {
        // A byte outside ASCII is returned unchanged.
        let failure = match self {
            Self::NotBulk(byte) => {
                Failure::raw([&b"ERR Protocol error: expected '$', got '"[..], &[byte], b"'"].concat())
            }
            _ => Failure::raw(format!("ERR Protocol error: {self}").into_bytes()),
        };
        Reply::new(replies, false).error(&failure);
    }
}

impl fmt::Debug for Master {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Master")
            .field("run_id", &self.run_id)
            .field("executed", &self.executed)
            .field("conditions", &self.conditions)
            .finish_non_exhaustive()
    }
}

/// An id of 40 digits.
fn digest(what: &str) -> String {
    sha1_smol::Sha1::from(what).digest().to_string()
}

/// The memory of Redis 7.0 without keys.
const EMPTY_BYTES: u64 = 900_000;
/// A model that uses more than this is out of memory, whatever its configuration.
const MAX_MEMORY: u64 = 256 << 20;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tracking_tests;
