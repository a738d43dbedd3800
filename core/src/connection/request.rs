//! What goes down to a master and what comes up from it, in the protocol's words.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;

use crate::machine::LockId;
use crate::protocol::{Cause, Fleet, Resource, Token, Ttl};
use crate::wire::{
    self, ACQUIRE_FENCED, ACQUIRE_FENCED_GUARDED, ACQUIRE_GUARDED, ACQUIRE_READING, ATTEND, Decimal, EXTEND,
    EXTEND_FENCED, HEAL_FENCED, MAX_OVERHEAD_BYTES, OPEN, RAISE, RELEASE, Script, UNDO, put_argument,
};

/// A resource and one attempt's token, encoded once and shared by every request of that attempt to every master.
///
/// The bytes are RESP arguments as the commands carry them: the key, the counter's key if the lock is fenced, then the token.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    bytes: Arc<[u8]>,
    /// Where the key ends, and where all keys do: a resource's name has at most 16 KiB.
    key: u16,
    keys: u16,
}

impl Claim {
    /// Puts both into bytes, and the counter's key if grants are numbered.
    pub fn new(resource: &Resource, token: Token, fenced: bool) -> Self {
        let counter = if fenced { resource.counter_key() } else { Vec::new() };
        let arguments = [resource.key(), &counter, &token.to_hex()];
        let most: usize = arguments.iter().map(|argument| MAX_OVERHEAD_BYTES + argument.len()).sum();
        // What is kept has no byte more than it needs, so it is put together somewhere else: mostly on the stack.
        let (mut small, mut large) = ([0; 192], Vec::new());
        let whole = if most <= small.len() {
            small.as_mut_slice()
        } else {
            large.resize(most, 0);
            large.as_mut_slice()
        };
        let [key, counter, token] = arguments;
        let mut rest = &mut *whole;
        put_argument(&mut rest, key);
        let behind_key = rest.len();
        if fenced {
            put_argument(&mut rest, counter);
        }
        let behind_keys = rest.len();
        put_argument(&mut rest, token);
        let behind_all = rest.len();
        let [key, keys, end] = [behind_key, behind_keys, behind_all].map(|behind| whole.len() - behind);
        Self::of(whole.get(..end).unwrap_or_default(), key, keys)
    }

    fn of(bytes: &[u8], key: usize, keys: usize) -> Self {
        let [key, keys] = [key, keys].map(|end| u16::try_from(end).unwrap_or(u16::MAX));
        Self { bytes: Arc::from(bytes), key, keys }
    }

    /// Of a lock that has not asked anybody: nothing but whether it is fenced.
    pub(crate) fn none(fenced: bool) -> Self {
        Self { bytes: Arc::default(), key: 0, keys: fenced.into() }
    }

    /// Of the restart guard's marker, which has no token.
    pub(crate) fn marker() -> Self {
        let mut bytes = BytesMut::with_capacity(32);
        put_argument(&mut bytes, Fleet::MARKER.as_bytes());
        Self::of(&bytes, bytes.len(), bytes.len())
    }

    /// What is locked: the key without the length before it and the line's end behind it.
    pub(crate) fn resource(&self) -> &[u8] {
        let key = self.bytes.get(..self.key.into()).unwrap_or_default();
        let length = key.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        key.get(length..key.len().saturating_sub(2)).unwrap_or_default()
    }

    /// Whether both are about the same key and token.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        let [ours, theirs] = [self, other]
            .map(|claim| (claim.bytes.get(..claim.key.into()), claim.bytes.get(claim.keys.into()..)));
        ours == theirs
    }

    pub(crate) fn is_fenced(&self) -> bool {
        self.keys > self.key
    }

    /// Appends the keys, with `marker` as the last one, and the token.
    fn put(&self, with_counter: bool, marker: Option<&str>, out: &mut BytesMut) {
        if with_counter {
            out.extend_from_slice(self.bytes.get(..self.keys.into()).unwrap_or_default());
        } else {
            self.put_key(out);
        }
        if let Some(marker) = marker {
            put_argument(out, marker.as_bytes());
        }
        self.put_token(out);
    }

    fn put_key(&self, out: &mut BytesMut) {
        out.extend_from_slice(self.bytes.get(..self.key.into()).unwrap_or_default());
    }

    fn put_token(&self, out: &mut BytesMut) {
        out.extend_from_slice(self.bytes.get(self.keys.into()..).unwrap_or_default());
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claim(hidden)")
    }
}

/// What a request does with its claim on one master.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// `SET key token NX PX ttl`; with a number and a look at the marker where that is wanted.
    Acquire,
    /// Compare the token and raise the counter.
    Raise,
    /// Compare the token and move the end of the key's life, never towards now.
    Extend,
    /// Set the key of a lock that is held where no key stands, the counter raised first.
    Heal,
    /// Compare the token and delete.
    Release,
    /// Compare the token and delete; if another holds the key, say who and for how long.
    Undo,
    /// Say whether the master votes.
    Attend,
    /// Have it vote: nobody has locked anything yet.
    Open,
    /// Have the connection told when keys change that it has read, or told no more.
    Track {
        /// Whether it is to be told.
        on: bool,
    },
}

impl Action {
    /// Whether it takes the key away; such requests are kept for a master that cannot be reached.
    pub fn clears(self) -> bool {
        matches!(self, Self::Release | Self::Undo)
    }

    /// Whether it changes the key of a lock that is held, so that a waiter for that key on the same connection must read it again.
    pub(crate) fn changes_held_key(self) -> bool {
        matches!(self, Self::Extend | Self::Heal | Self::Release)
    }

    /// Whether it may set the key, so that a release must follow it.
    pub fn creates(self) -> bool {
        matches!(self, Self::Acquire | Self::Heal)
    }
}

/// Which lock asked, and in which of its rounds: the way home for the answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ticket {
    /// The lock.
    pub lock: LockId,
    /// Its round, by number.
    pub round: u32,
}

/// One request to one master.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// `None` for a release that nobody waits for.
    pub ticket: Option<Ticket>,
    /// What is asked for.
    pub action: Action,
    /// For which resource and token.
    pub claim: Claim,
    /// The life that the key is to have.
    pub ttl: Ttl,
    /// What the counter is to be raised to, for requests that raise it.
    pub fence: u64,
    /// Whether a refusal is to say who holds the key, and the master to tell when that changes.
    pub watch: bool,
}

/// A command of the server's own that compares a value and deletes its key: a quarter of the work of the script that does the same.
///
/// Its errors are not answers: the script is asked then.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum NativeRelease {
    /// Valkey 9 (Valkey command page of DELIFEQ).
    DelIfEq,
    /// Redis 8.4 (Redis command page of DELEX, option IFEQ).
    DelEx,
}

impl NativeRelease {
    /// What a server knows, by the versions that it tells (`INFO server`).
    pub(super) fn of(redis_version: Option<&[u8]>, valkey_version: Option<&[u8]>) -> Option<Self> {
        let number = |version: &[u8]| -> Option<(u32, u32)> {
            let mut parts = std::str::from_utf8(version).ok()?.split('.').map(|part| part.parse().ok());
            Some((parts.next()??, parts.next()??))
        };
        // Valkey says for the sake of old clients that it is a Redis 7.2, too.
        match (valkey_version.map(number), redis_version.map(number)) {
            (Some(valkey), _) => valkey.filter(|version| *version >= (9, 0)).map(|_| Self::DelIfEq),
            (None, Some(redis)) => redis.filter(|version| *version >= (8, 4)).map(|_| Self::DelEx),
            (None, None) => None,
        }
    }
}

/// How a request that a script carries out is put to the server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Form {
    /// By a command of the server's own.
    Native(NativeRelease),
    /// By its SHA-1, for a master that has it.
    BySha,
    /// By its text, for a master that may not have it.
    ByText,
}

impl Request {
    /// The script that carries it out; `None` is a plain `SET`.
    pub(crate) fn script(&self, fleet: Option<Fleet>) -> Option<&'static Script> {
        match (self.action, self.claim.is_fenced(), fleet) {
            (Action::Acquire, false, None) if self.watch => Some(&ACQUIRE_READING),
            (Action::Acquire, false, None) | (Action::Heal, false, _) | (Action::Track { .. }, ..) => None,
            (Action::Acquire, true, None) => Some(&ACQUIRE_FENCED),
            (Action::Acquire, false, Some(_)) => Some(&ACQUIRE_GUARDED),
            (Action::Acquire, true, Some(_)) => Some(&ACQUIRE_FENCED_GUARDED),
            (Action::Raise, ..) => Some(&RAISE),
            (Action::Extend, false, _) => Some(&EXTEND),
            (Action::Extend, true, _) => Some(&EXTEND_FENCED),
            (Action::Heal, true, _) => Some(&HEAL_FENCED),
            (Action::Release, ..) => Some(&RELEASE),
            (Action::Undo, ..) => Some(&UNDO),
            (Action::Attend, ..) => Some(&ATTEND),
            (Action::Open, ..) => Some(&OPEN),
        }
    }

    /// Appends the command.
    pub(crate) fn encode(&self, form: Form, fleet: Option<Fleet>, out: &mut BytesMut) {
        match self.script(fleet) {
            _ if self.action == (Action::Track { on: true }) => {
                wire::encode(out, &[b"CLIENT", b"TRACKING", b"ON", b"NOLOOP"]);
            }
            _ if self.action == (Action::Track { on: false }) => {
                wire::encode(out, &[b"CLIENT", b"TRACKING", b"OFF"]);
            }
            None => {
                out.extend_from_slice(b"*6\r\n$3\r\nSET\r\n");
                self.claim.put(false, None, out);
                out.extend_from_slice(b"$2\r\nNX\r\n$2\r\nPX\r\n");
                put_argument(out, Decimal::new(self.ttl.as_millis()).as_bytes());
            }
            Some(script) => match form {
                Form::Native(command) => self.encode_native(command, out),
                Form::BySha => self.encode_script(script, false, fleet, out),
                Form::ByText => self.encode_script(script, true, fleet, out),
            },
        }
    }

    fn encode_native(&self, command: NativeRelease, out: &mut BytesMut) {
        let (head, between): (&[u8], &[u8]) = match command {
            NativeRelease::DelIfEq => (b"*3\r\n$7\r\nDELIFEQ\r\n", b""),
            NativeRelease::DelEx => (b"*4\r\n$5\r\nDELEX\r\n", b"$4\r\nIFEQ\r\n"),
        };
        out.extend_from_slice(head);
        self.claim.put_key(out);
        out.extend_from_slice(between);
        self.claim.put_token(out);
    }

    fn encode_script(
        &self,
        script: &'static Script,
        by_text: bool,
        fleet: Option<Fleet>,
        out: &mut BytesMut,
    ) {
        let counts = self.claim.is_fenced() && !self.action.clears();
        let is_about_marker = matches!(self.action, Action::Attend | Action::Open);
        let guarded = fleet.filter(|_| is_about_marker || self.action == Action::Acquire);
        let marker = guarded.filter(|_| !is_about_marker).map(|_| Fleet::MARKER);
        let lives = matches!(self.action, Action::Acquire | Action::Extend | Action::Heal);
        let raises =
            self.claim.is_fenced() && matches!(self.action, Action::Raise | Action::Extend | Action::Heal);
        let keys = 1 + u64::from(counts) + u64::from(marker.is_some());
        let values = u64::from(!is_about_marker)
            + u64::from(lives)
            + u64::from(raises)
            + 2 * u64::from(guarded.is_some());
        out.extend_from_slice(b"*");
        out.extend_from_slice(Decimal::new(3 + keys + values).as_bytes());
        out.extend_from_slice(b"\r\n");
        if by_text {
            out.extend_from_slice(b"$4\r\nEVAL\r\n");
            put_argument(out, script.text.as_bytes());
        } else {
            out.extend_from_slice(b"$7\r\nEVALSHA\r\n$40\r\n");
            out.extend_from_slice(script.sha1_hex.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        put_argument(out, Decimal::new(keys).as_bytes());
        self.claim.put(counts, marker, out);
        if lives {
            put_argument(out, Decimal::new(self.ttl.as_millis()).as_bytes());
        }
        if raises {
            put_argument(out, Decimal::new(self.fence).as_bytes());
        }
        if let Some(fleet) = guarded {
            put_argument(out, Decimal::new(fleet.longest_ttl.as_millis()).as_bytes());
            put_argument(out, Decimal::new(fleet.masters.into()).as_bytes());
        }
    }
}

/// A request's command as bytes, encoded once for all masters that get it in the same form.
#[derive(Clone, Default)]
pub(crate) struct Wording {
    form: Option<Form>,
    bytes: BytesMut,
}

impl Wording {
    /// Another request is to be put into words.
    pub(crate) fn clear(&mut self) {
        self.form = None;
    }

    pub(super) fn of(&mut self, request: &Request, form: Form, fleet: Option<Fleet>) -> &[u8] {
        if self.form != Some(form) {
            self.bytes.clear();
            request.encode(form, fleet, &mut self.bytes);
            self.form = Some(form);
        }
        &self.bytes
    }
}

/// What a master said to a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    /// The key was set, extended or deleted: the token stood there.
    Yes,
    /// The token stands there, and the counter is at this number (acquire fenced, raise).
    Counted(u64),
    /// The key stands with another's token (acquire), or not with ours (extend, release, undo).
    No,
    /// Another holds the key (undo, acquire). If it is watched, the master tells when that changes.
    Holder {
        /// The fingerprint of its token.
        holder: u64,
        /// How long the key lives, if it ends.
        remaining: Option<Duration>,
        /// Whether the master tells when that changes.
        watched: bool,
    },
    /// No usable answer.
    Failed {
        /// Why there is none.
        cause: Cause,
        /// What may have become of the request.
        fate: Fate,
        /// Whether the connection had been quiet for so long that its end says little about the
        /// master.
        stale: bool,
    },
}

/// What may have become of a request without a usable answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fate {
    /// It never left, or was turned away before it did anything.
    NotSent,
    /// It may have been executed, or may yet be.
    Unknown,
    /// It may have been executed, or may yet be, and a release follows it on the same connection. Whatever this
    /// master says about the token from now on may be undone a moment later, so it must not be counted.
    Undone,
}
