//! Client tracking: which client has read which key, and the pushes that report its change.
//!
//! As in Redis, a key is identified by its name, in any database. Each client that has read it is
//! notified once. A client that reads it through a script counts as a reader of all keys that the
//! script was given, unless the model is set to behave like later servers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::keyspace::Millis;
use super::reply::Reply;

/// Bytes for a connection that are not a reply to a command.
///
/// `Debug` shows the number of bytes, not the bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Push {
    /// The connection's [`Session::id`](super::Session::id).
    pub session: u64,
    /// Bytes to write to the connection, after everything that was written before.
    pub bytes: Vec<u8>,
}

/// The table of one server.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Tracking {
    /// Connections that have ever enabled tracking.
    listeners: BTreeMap<u64, Listener>,
    /// By the names of keys.
    readers: BTreeMap<Vec<u8>, Readers>,
    /// The ends of keys that a client has read.
    ends: BTreeSet<(Millis, Vec<u8>)>,
    /// The approximate memory of all readers.
    bytes: usize,
    /// The connection whose command is being executed.
    current: Option<u64>,
    pushes: Vec<Push>,
    pushed_bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Listener {
    is_on: bool,
    /// It is not notified of its own changes.
    no_loop: bool,
    /// RESP 2 has no pushes, so nothing is sent.
    resp3: bool,
}

/// The clients that have read a key since it last changed.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Readers {
    sessions: BTreeSet<u64>,
    /// When it expires, in the database where it expires first. That does not change while this
    /// entry exists, because another expiry is a change of the key.
    end: Option<Millis>,
}

impl Readers {
    fn bytes(&self, key: &[u8]) -> usize {
        // The index of expiries contains the key once more.
        BYTES_PER_KEY + 2 * key.len() + BYTES_PER_READER * self.sessions.len()
    }
}

impl Tracking {
    /// A connection enables tracking.
    pub(super) fn listen(&mut self, session: u64, no_loop: bool, resp3: bool) {
        self.listeners.insert(session, Listener { is_on: true, no_loop, resp3 });
    }

    /// A connection disables tracking. As in Redis, the keys that it has read are remembered in
    /// case it enables tracking again.
    pub(super) fn pause(&mut self, session: u64) {
        if let Some(listener) = self.listeners.get_mut(&session) {
            listener.is_on = false;
        }
    }

    /// A connection switches to another protocol.
    pub(super) fn speak(&mut self, session: u64, resp3: bool) {
        if let Some(listener) = self.listeners.get_mut(&session) {
            listener.resp3 = resp3;
        }
    }

    /// A connection has ended.
    pub(super) fn leave(&mut self, session: u64) {
        if self.listeners.remove(&session).is_none() {
            return;
        }
        let Self { readers, ends, bytes, .. } = self;
        readers.retain(|key, readers| {
            if readers.sessions.remove(&session) {
                *bytes -= BYTES_PER_READER;
            }
            let is_read = !readers.sessions.is_empty();
            if !is_read {
                *bytes -= readers.bytes(key);
                forget_end(ends, readers, key);
            }
            is_read
        });
        self.retain_pushes(|push| push.session != session);
    }

    /// The connection whose command is executed from now on; `None` if the server acts by itself.
    pub(super) fn set_current(&mut self, session: Option<u64>) {
        self.current = session;
    }

    /// Whether this connection's reads are remembered.
    pub(super) fn listens(&self, session: u64) -> bool {
        self.listeners.get(&session).is_some_and(|listener| listener.is_on)
    }

    /// A tracking connection has read a key, which expires at `end`.
    pub(super) fn remember(&mut self, session: u64, key: &[u8], end: Option<Millis>) {
        if !self.readers.contains_key(key) {
            self.ends.extend(end.map(|end| (end, key.to_vec())));
            let readers = Readers { end, ..Readers::default() };
            self.bytes += readers.bytes(key);
            self.readers.insert(key.to_vec(), readers);
        }
        if self.readers.get_mut(key).is_some_and(|readers| readers.sessions.insert(session)) {
            self.bytes += BYTES_PER_READER;
        }
        // Redis forgets an arbitrary key when there are too many, and notifies its readers that it
        // has changed.
        while self.bytes > MAX_BYTES {
            let Some(first) = self.readers.keys().next().cloned() else { return };
            self.tell(&first, None);
        }
    }

    /// A key has changed or is gone: every client that has read it is notified once, and must read
    /// it again to be notified again.
    pub(super) fn changed(&mut self, key: &[u8]) {
        self.tell(key, self.current);
    }

    /// The same for a key that this connection has changed, or, without a connection, that the
    /// server has deleted.
    pub(super) fn tell(&mut self, key: &[u8], changed_by: Option<u64>) {
        let Some(readers) = self.readers.remove(key) else { return };
        self.bytes -= readers.bytes(key);
        forget_end(&mut self.ends, &readers, key);
        for session in readers.sessions {
            let Some(listener) = self.listeners.get(&session).filter(|listener| listener.is_on) else {
                continue;
            };
            if !(listener.no_loop && changed_by == Some(session)) {
                self.push(session, Some(key));
            }
        }
    }

    /// A database was flushed: as in Redis, every connection is notified, including the one that
    /// flushed it.
    pub(super) fn flushed(&mut self) {
        self.readers.clear();
        self.ends.clear();
        self.bytes = 0;
        let listening = self.listeners.iter().filter(|(_, listener)| listener.is_on);
        for session in listening.map(|(session, _)| *session).collect::<Vec<_>>() {
            self.push(session, None);
        }
    }

    /// The earliest expiry of a key that a client has read.
    pub(super) fn first_end(&self) -> Option<(Millis, &[u8])> {
        self.ends.first().map(|(end, key)| (*end, key.as_slice()))
    }

    /// Takes all pushes that wait to be sent, in order.
    pub(super) fn take(&mut self) -> Vec<Push> {
        self.pushed_bytes = 0;
        std::mem::take(&mut self.pushes)
    }

    /// Appends the pushes for one connection, and leaves those for others.
    pub(super) fn move_to(&mut self, session: u64, replies: &mut Vec<u8>) {
        self.retain_pushes(|push| {
            let is_own = push.session == session;
            if is_own {
                replies.extend_from_slice(&push.bytes);
            }
            !is_own
        });
    }

    fn retain_pushes(&mut self, keep: impl FnMut(&Push) -> bool) {
        self.pushes.retain(keep);
        self.pushed_bytes = self.pushes.iter().map(|push| push.bytes.len()).sum();
    }

    /// Adds a push about this key, or, without a key, about all keys.
    fn push(&mut self, session: u64, key: Option<&[u8]>) {
        if !self.listeners.get(&session).is_some_and(|listener| listener.resp3) {
            return;
        }
        let mut bytes = Vec::new();
        let mut reply = Reply::new(&mut bytes, true);
        reply.push(2);
        reply.bulk(b"invalidate");
        match key {
            Some(key) => {
                reply.array(1);
                reply.bulk(key);
            }
            None => reply.null(),
        }
        // Pushes that a client never reads must not fill the memory.
        if self.pushed_bytes + bytes.len() <= MAX_PUSHED_BYTES {
            self.pushed_bytes += bytes.len();
            self.pushes.push(Push { session, bytes });
        }
    }
}

fn forget_end(ends: &mut BTreeSet<(Millis, Vec<u8>)>, readers: &Readers, key: &[u8]) {
    if let Some(end) = readers.end {
        ends.remove(&(end, key.to_vec()));
    }
}

impl fmt::Debug for Push {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Push").field("session", &self.session).field("bytes", &self.bytes.len()).finish()
    }
}

const BYTES_PER_KEY: usize = 128;
const BYTES_PER_READER: usize = 16;
/// The most memory of the table, in bytes. If it is exceeded, keys are forgotten. A real server
/// limits the number of keys instead, to a million.
const MAX_BYTES: usize = 16 << 20;
/// How many bytes of pushes may wait.
const MAX_PUSHED_BYTES: usize = 4 << 20;
