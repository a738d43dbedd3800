//! How a request is put to one server: by a command of its own, by a script, or by a plain `SET`.

use bytes::BytesMut;

use crate::protocol::{Action, FencingToken, Fleet, Request};
use crate::wire::{
    self, ACQUIRE_FENCED, ACQUIRE_FENCED_GUARDED, ACQUIRE_GUARDED, ACQUIRE_READING, ATTEND, Decimal, EXTEND,
    EXTEND_FENCED, FORCE_RELEASE, HEAL_FENCED, INSPECT, KEEP, OPEN, RAISE, RELEASE, Script, UNDO,
    put_argument,
};

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
            (Action::Keep, ..) => Some(&KEEP),
            (Action::Inspect, ..) => Some(&INSPECT),
            (Action::ForceRelease, ..) => Some(&FORCE_RELEASE),
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
        let lives = matches!(self.action, Action::Acquire | Action::Extend | Action::Heal | Action::Keep);
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
            put_argument(out, Decimal::new(self.fence.map_or(0, FencingToken::get)).as_bytes());
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
