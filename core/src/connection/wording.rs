//! The encoding of requests: the script for each, and the bytes of its command.

use crate::protocol::{Action, FencingToken, Fleet, Request, Terms};
use crate::wire::{
    self, ACQUIRE_ALL, ACQUIRE_FENCED, ACQUIRE_FENCED_GUARDED, ACQUIRE_GUARDED, ACQUIRE_READING, ATTEND,
    Decimal, ENTER, EXTEND, EXTEND_ALL, EXTEND_FENCED, FORCE_RELEASE, HEAL_ALL, HEAL_FENCED, INSPECT, KEEP,
    KEEP_ALL, KEEP_LEAVING, LEAVE, OPEN, RAISE, RAISE_ALL, RELEASE, RELEASE_ALL, RELEASE_ANY, Script, TAKE,
    UNDO, put_argument,
};

/// A request's script and its encoded command, computed once for all masters that get it in the
/// same form.
#[derive(Clone, Default)]
pub(crate) struct Wording {
    /// The fleet of the masters that get this script and command.
    fleet: Option<Fleet>,
    script: Option<Option<&'static Script>>,
    form: Option<Form>,
    bytes: Vec<u8>,
}

impl Wording {
    /// Prepares for another request.
    pub(crate) fn clear(&mut self) {
        self.script = None;
    }

    /// The script for the request; see [`Request::script`].
    pub(super) fn script(&mut self, request: &Request, fleet: Option<Fleet>) -> Option<&'static Script> {
        match self.script {
            Some(script) if self.fleet == fleet => script,
            _ => {
                (self.fleet, self.form) = (fleet, None);
                *self.script.insert(request.script(fleet))
            }
        }
    }

    /// The command for the master that [`Self::script`] was last called for.
    pub(super) fn of(&mut self, request: &Request, form: Form) -> &[u8] {
        if self.form != Some(form) {
            self.bytes.clear();
            request.encode_with(self.script.flatten(), form, self.fleet, &mut self.bytes);
            self.form = Some(form);
        }
        &self.bytes
    }
}

/// The server's own command that compares a value and deletes its key: a quarter of the work of the
/// equivalent script.
///
/// An error of this command is not taken as the answer: the script is used instead.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum NativeRelease {
    /// Valkey 9 (Valkey command page of DELIFEQ).
    DelIfEq,
    /// Redis 8.4 (Redis command page of DELEX, option IFEQ).
    DelEx,
}

impl NativeRelease {
    /// The command that a server has, according to its versions (`INFO server`).
    pub(super) fn of(redis_version: Option<&[u8]>, valkey_version: Option<&[u8]>) -> Option<Self> {
        let number = |version: &[u8]| -> Option<(u32, u32)> {
            let mut parts = std::str::from_utf8(version).ok()?.split('.').map(|part| part.parse().ok());
            Some((parts.next()??, parts.next()??))
        };
        // For the sake of old clients, Valkey also reports that it is Redis 7.2.
        match (valkey_version.map(number), redis_version.map(number)) {
            (Some(valkey), _) => valkey.filter(|version| *version >= (9, 0)).map(|_| Self::DelIfEq),
            (None, Some(redis)) => redis.filter(|version| *version >= (8, 4)).map(|_| Self::DelEx),
            (None, None) => None,
        }
    }
}

/// The form of a request to the server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Form {
    /// A command without a script.
    Plain,
    /// The server's own command in place of a script.
    Native(NativeRelease),
    /// A script by its SHA-1, for a master that has it.
    BySha,
    /// A script by its text, for a master that may not have it.
    ByText,
}

impl Request {
    /// The script for the request; `None` for a plain command, such as `SET`.
    pub(crate) fn script(&self, fleet: Option<Fleet>) -> Option<&'static Script> {
        let script = if self.claim.is_one() {
            // Most claims are of one resource, so other kinds are not checked first.
            self.script_of_one(fleet)
        } else if let Some(all) = self.claim.as_all() {
            script_of_all(self.action, all.takes_some())
        } else {
            match self.action {
                Action::Acquire | Action::Stay => Some(&ENTER),
                Action::Release if self.claim.as_queued().is_some() => Some(&LEAVE),
                Action::Keep if self.claim.as_queued().is_some() => Some(&KEEP_LEAVING),
                Action::Release => Some(&RELEASE_ANY),
                _ => self.script_of_one(fleet),
            }
        };
        let Some(fleet) = fleet else { return script };
        let script = if self.action.rests_on_key() { wire::guarded(script) } else { script };
        if fleet.replicas.is_some() && self.action.votes() { script.map(wire::replicated) } else { script }
    }

    fn script_of_one(&self, fleet: Option<Fleet>) -> Option<&'static Script> {
        match (self.action, self.claim.is_fenced(), fleet) {
            (Action::Acquire, false, None) if self.watch => Some(&ACQUIRE_READING),
            (Action::Acquire, false, None) | (Action::Heal, false, _) => None,
            (Action::Track | Action::Untrack | Action::Ping | Action::Login, ..) => None,
            (Action::Confirm | Action::Forget | Action::Stay, ..) => None,
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
    pub(crate) fn encode(&self, form: Form, fleet: Option<Fleet>, out: &mut Vec<u8>) {
        self.encode_with(self.script(fleet), form, fleet, out);
    }

    /// Appends the command with a known script.
    pub(super) fn encode_with(
        &self,
        script: Option<&'static Script>,
        form: Form,
        fleet: Option<Fleet>,
        out: &mut Vec<u8>,
    ) {
        match (form, script) {
            (Form::Native(command), _) => self.encode_native(command, out),
            (_, Some(script)) => self.encode_script(script, form == Form::ByText, fleet, out),
            (_, None) => self.encode_plain(out),
        }
    }

    fn encode_plain(&self, out: &mut Vec<u8>) {
        match self.action {
            Action::Track => wire::encode(out, &[b"CLIENT", b"TRACKING", b"ON", b"NOLOOP"]),
            Action::Untrack => wire::encode(out, &[b"CLIENT", b"TRACKING", b"OFF"]),
            _ => {
                out.extend_from_slice(b"*6\r\n$3\r\nSET\r\n");
                self.claim.put_key(out);
                self.claim.put_token(out);
                out.extend_from_slice(b"$2\r\nNX\r\n$2\r\nPX\r\n");
                put_argument(out, Decimal::new(self.ttl.as_millis()).as_bytes());
            }
        }
    }

    fn encode_native(&self, command: NativeRelease, out: &mut Vec<u8>) {
        let (head, between): (&[u8], &[u8]) = match command {
            NativeRelease::DelIfEq => (b"*3\r\n$7\r\nDELIFEQ\r\n", b""),
            NativeRelease::DelEx => (b"*4\r\n$5\r\nDELEX\r\n", b"$4\r\nIFEQ\r\n"),
        };
        out.extend_from_slice(head);
        self.claim.put_key(out);
        out.extend_from_slice(between);
        self.claim.put_token(out);
    }

    fn encode_script(&self, script: &'static Script, by_text: bool, fleet: Option<Fleet>, out: &mut Vec<u8>) {
        if let Some(all) = self.claim.as_all() {
            let arguments = all.arguments(self, fleet);
            put_head(script, by_text, arguments.keys(), arguments.values(), out);
            let number = self.fence.map_or(0, FencingToken::get);
            return arguments.put(self.ttl.as_millis(), number, out);
        }
        if let Some(literal) = self.claim.as_literal() {
            put_head(script, by_text, literal.keys(), literal.values(), out);
            return literal.put(out);
        }
        if let Some(arguments) = self.claim.as_queued().and_then(|claim| claim.arguments(self, fleet)) {
            put_head(script, by_text, arguments.keys(), arguments.values(), out);
            return arguments.put(out);
        }
        let counts = self.claim.is_fenced() && !self.action.clears();
        let is_about_marker = matches!(self.action, Action::Attend | Action::Open);
        let terms = Terms::of(self.action, fleet);
        let marker = (terms.are_of_marker() && !is_about_marker).then_some(Fleet::MARKER);
        let lives = matches!(self.action, Action::Acquire | Action::Extend | Action::Heal | Action::Keep);
        let raises =
            self.claim.is_fenced() && matches!(self.action, Action::Raise | Action::Extend | Action::Heal);
        let keys = 1 + u64::from(counts) + u64::from(marker.is_some());
        let values = u64::from(!is_about_marker) + u64::from(lives) + u64::from(raises) + terms.values();
        put_head(script, by_text, keys, values, out);
        self.claim.put(counts, marker, out);
        if lives {
            put_argument(out, Decimal::new(self.ttl.as_millis()).as_bytes());
        }
        if raises {
            put_argument(out, Decimal::new(self.fence.map_or(0, FencingToken::get)).as_bytes());
        }
        terms.put(out);
    }
}

/// The script for several or shared resources.
fn script_of_all(action: Action, takes_some: bool) -> Option<&'static Script> {
    match action {
        Action::Acquire if takes_some => Some(&TAKE),
        Action::Acquire => Some(&ACQUIRE_ALL),
        Action::Raise => Some(&RAISE_ALL),
        Action::Extend => Some(&EXTEND_ALL),
        Action::Heal => Some(&HEAL_ALL),
        Action::Release | Action::Undo => Some(&RELEASE_ALL),
        Action::Keep => Some(&KEEP_ALL),
        Action::Inspect
        | Action::ForceRelease
        | Action::Attend
        | Action::Open
        | Action::Track
        | Action::Untrack
        | Action::Ping
        | Action::Login
        | Action::Confirm
        | Action::Stay
        | Action::Forget => None,
    }
}

/// Appends what comes before the keys and values of a script.
fn put_head(script: &Script, by_text: bool, keys: u64, values: u64, out: &mut Vec<u8>) {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Claim, Resource, Token, Ttl};

    #[test]
    fn each_script_has_the_keys_and_values_that_its_action_needs() {
        let targets = Resource::new("r").unwrap().into();
        for (action, is_fenced, keys, values) in [
            // The key, and the counter. The token, the TTL, and the number to raise the counter to.
            (Action::Acquire, true, 2, 2),
            (Action::Raise, true, 2, 2),
            (Action::Extend, true, 2, 3),
            (Action::Extend, false, 1, 2),
            (Action::Heal, true, 2, 3),
            (Action::Keep, true, 1, 2),
            (Action::Keep, false, 1, 2),
            (Action::Release, true, 1, 1),
            (Action::Undo, false, 1, 1),
        ] {
            let claim = Claim::new(&targets, Token::from_bytes([1; Token::BYTES]), is_fenced, None);
            let mut bytes = Vec::new();
            Request::new(None, action, claim, Ttl::SHORTEST).encode(Form::BySha, None, &mut bytes);
            let text = String::from_utf8(bytes).unwrap();
            let lines: Vec<_> = text.lines().collect();
            // The command, the SHA-1 and the number of keys come first.
            assert_eq!((lines[0], lines[6]), (&*format!("*{}", 3 + keys + values), &*keys.to_string()));
        }
    }
    #[test]
    fn only_a_watched_search_for_seats_is_content_with_any_holder() {
        let name = Resource::new("r").unwrap();
        let seats = [name.seat(0), name.seat(1)];
        let claim = Claim::of_seats(&name, &seats, 1, Token::from_bytes([1; Token::BYTES]), false, None);
        for (action, watch, flags) in [
            (Action::Acquire, true, "w"),
            (Action::Acquire, false, "-"),
            (Action::Release, true, "-"),
            (Action::Undo, true, "t"),
        ] {
            let request = Request::new(None, action, claim.clone(), Ttl::SHORTEST);
            let mut bytes = Vec::new();
            Request { watch, ..request }.encode(Form::BySha, None, &mut bytes);
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains(&format!("\r\n${}\r\n{flags}\r\n", flags.len())), "{action:?}: {text}");
        }
    }
}
