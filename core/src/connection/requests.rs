//! Requests out: in which words, what is written now, what waits for a connection, and which
//! releases are owed.

use super::cluster::tag_keys;
use super::tracking::Tracking;
use super::{Answers, Connection, Debt, Queued, Wording};
use crate::protocol::{Action, Answer, Cause, Claim, Fate, FencingToken, Fleet, Request, Terms, Ttl};
use crate::time::Instant;
use crate::wire::{
    self, ACQUIRE_ALL, ACQUIRE_FENCED, ACQUIRE_FENCED_GUARDED, ACQUIRE_GUARDED, ACQUIRE_READING, ATTEND,
    Decimal, ENTER, EXTEND, EXTEND_ALL, EXTEND_FENCED, FORCE_RELEASE, HEAL_ALL, HEAL_FENCED, INSPECT, KEEP,
    KEEP_ALL, LEAVE, OPEN, RAISE, RAISE_ALL, RELEASE, RELEASE_ALL, RELEASE_ANY, Script, TAKE, UNDO,
    put_argument,
};

impl Connection {
    pub(super) fn has_room_for(&self, request: &Request) -> bool {
        // Releases find room where acquisitions do not, so that a full pipeline can still be
        // cleared.
        let room = if request.action.clears() { 2 } else { 1 };
        self.flight.requests() < room * self.config.max_in_flight_requests
            && self.flight.bytes < room * self.config.max_in_flight_bytes
    }

    #[inline]
    pub(super) fn send(
        &mut self,
        request: &Request,
        wording: &mut Wording,
        now: Instant,
        answers: &mut Answers,
    ) {
        // Only a waiter's request has the master tell of changes.
        if request.watch || !matches!(self.tracking, Tracking::Off) {
            self.track(request.watch, now, answers);
        }
        if matches!(request.action, Action::Acquire | Action::Extend | Action::Heal) {
            self.longest_asked = self.longest_asked.max(request.ttl);
        }
        let form = match (wording.script(request, self.fleet), self.native_release) {
            (None, _) => Form::Plain,
            (_, Some(command)) if request.action == Action::Release && request.claim.is_one() => {
                Form::Native(command)
            }
            // Scripts that few locks need are not part of the greeting: the first use brings the
            // text along.
            (Some(script), _) if self.known.insert(script) => Form::ByText,
            _ => Form::BySha,
        };
        let before = self.outbound.len();
        self.outbound.extend_from_slice(wording.of(request, form));
        tag_keys(self.tag.as_deref(), request, before, &mut self.outbound);
        self.flight.push(request, form, now, self.outbound.len() - before, false);
        self.expect_vote(request.action, now);
    }

    /// Sends a request once more, whose answer is waited for since that instant.
    pub(super) fn repeat(&mut self, request: &Request, since: Instant) {
        let before = self.outbound.len();
        request.encode(Form::ByText, self.fleet, &mut self.outbound);
        tag_keys(self.tag.as_deref(), request, before, &mut self.outbound);
        self.expect_vote(request.action, since);
        self.flight.push(request, Form::ByText, since, self.outbound.len() - before, true);
    }

    /// Keeps a request for the connection that is being opened.
    pub(super) fn queue(&mut self, request: &Request, now: Instant, answers: &mut Answers) {
        if request.action.clears() {
            let acquires = |other: &Queued| {
                other.request.action == Action::Acquire && other.request.claim.is_of(&request.claim)
            };
            let acquisition = self.queued.iter().position(acquires);
            if request.action != Action::Undo {
                self.forget_queued(&request.claim, answers);
            } else if let Some(queued) = acquisition.and_then(|place| self.queued.get_mut(place)) {
                queued.undo = Some(request.clone());
                return;
            }
            if acquisition.is_some() {
                // It has not left, so there is nothing to release.
                return answers.answer(self.id, request, Answer::No);
            }
        }
        if self.queued.len() < self.config.max_in_flight_requests {
            self.queued.push_back(Queued { request: request.clone(), undo: None });
        } else {
            self.refuse(request, Cause::TooManyInFlight, now, answers);
        }
    }

    /// Drops what would acquire a claim, or put its place into a queue: all attempts of a lock have
    /// the same place.
    fn forget_queued(&mut self, claim: &Claim, answers: &mut Answers) {
        let is_of = |queued: &Queued| {
            let enters = matches!(queued.request.action, Action::Acquire | Action::Stay);
            enters && queued.request.claim.is_of(claim)
        };
        while let Some(place) = self.queued.iter().position(is_of) {
            let undo = self.queued.remove(place).and_then(|queued| queued.undo);
            undo.iter().for_each(|undo| answers.answer(self.id, undo, Answer::No));
        }
    }

    /// Answers a request that cannot be sent now. A release is sent later.
    pub(super) fn refuse(&mut self, request: &Request, cause: Cause, now: Instant, answers: &mut Answers) {
        answers.answer(self.id, request, Answer::Failed { cause, fate: Fate::NotSent, stale: false });
        if request.action.clears() {
            self.owe(request.clone(), now, now);
        }
    }

    /// Keeps a release to be sent again, not before `from`.
    pub(super) fn owe(&mut self, request: Request, from: Instant, now: Instant) {
        if request.action == Action::Keep && request.ttl == Ttl::SHORTEST {
            // Once more would never end, with a master that takes no writes. The key ends with its
            // TTL.
            return;
        }
        if self.debts.len() >= self.config.max_in_flight_requests {
            self.debts.pop_front();
        }
        let until = now + request.ttl.as_duration();
        // What is to be kept for a while is not deleted before.
        let action = if request.action == Action::Keep { Action::Keep } else { Action::Release };
        let request = Request { ticket: None, action, ..request };
        self.debts.push_back(Debt { request, from, until });
    }

    /// Ends every request in flight without an answer.
    pub(super) fn fail_flight(
        &mut self,
        cause: Cause,
        fate: Fate,
        stale: bool,
        now: Instant,
        answers: &mut Answers,
    ) {
        for (sent, was_reported) in self.flight.drain() {
            let cause = match cause {
                Cause::NoAnswer { .. } => Cause::NoAnswer { waited: now.since(sent.at) },
                cause => cause,
            };
            // A request that was reported as unanswered is reported again where its fate has
            // changed since.
            if !was_reported || fate == Fate::Undone {
                answers.answer(self.id, &sent.request, Answer::Failed { cause, fate, stale });
            }
            if sent.request.action.clears() {
                self.owe(sent.request, now, now);
            }
        }
    }

    pub(super) fn fail_queued(&mut self, now: Instant, answers: &mut Answers) {
        let Some(cause) = self.fault else { return };
        for Queued { request, undo } in std::mem::take(&mut self.queued) {
            self.refuse(&request, cause, now, answers);
            if let Some(undo) = undo {
                // Nothing has left that it could undo, so it is not owed.
                let answer = Answer::Failed { cause, fate: Fate::NotSent, stale: false };
                answers.answer(self.id, &undo, answer);
            }
        }
    }

    /// When the next release that is owed may be sent, if there is room for it.
    pub(super) fn next_payment(&self) -> Option<Instant> {
        self.debts.front().filter(|debt| self.has_room_for(&debt.request)).map(|debt| debt.from)
    }

    /// Sends the releases that are owed, as far as it is time and there is room.
    #[inline]
    pub(super) fn pay_debts(&mut self, now: Instant, answers: &mut Answers) {
        while self.is_ready() && self.next_payment().is_some_and(|from| from <= now) {
            let Some(Debt { request, until, .. }) = self.debts.pop_front() else { return };
            let left = Ttl::new(until.since(now)).ok();
            // A key that was to be kept until now is to end now.
            let left = left.or((request.action == Action::Keep).then_some(Ttl::SHORTEST));
            // Owed again if this connection ends too, but only for what remains.
            if let Some(ttl) = left {
                self.send(&Request { ttl, ..request }, &mut Wording::default(), now, answers);
            }
        }
    }
}

/// A command of the server's own that compares a value and deletes its key: a quarter of the work
/// of the script that does the same.
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

/// How a request is put to the server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Form {
    /// By a command that no script stands behind.
    Plain,
    /// By a command of the server's own that does what a script does for others.
    Native(NativeRelease),
    /// By its SHA-1, for a master that has it.
    BySha,
    /// By its text, for a master that may not have it.
    ByText,
}

impl Request {
    /// The script that carries it out; `None` is a plain `SET`.
    pub(crate) fn script(&self, fleet: Option<Fleet>) -> Option<&'static Script> {
        let script = self.script_without_replicas(fleet);
        let is_replicated = fleet.is_some_and(|fleet| fleet.replicas > 0) && self.action.votes();
        if is_replicated { wire::replicated(script) } else { script }
    }

    fn script_without_replicas(&self, fleet: Option<Fleet>) -> Option<&'static Script> {
        // Most claims are, so that the others are not looked for.
        if self.claim.is_one() {
            return self.script_of_one(fleet);
        }
        if let Some(all) = self.claim.as_all() {
            return match self.action {
                Action::Acquire if all.takes_some() => Some(&TAKE),
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
            };
        }
        let is_queued = self.claim.as_queued().is_some();
        match self.action {
            Action::Acquire | Action::Stay if is_queued => Some(&ENTER),
            Action::Release if is_queued => Some(&LEAVE),
            Action::Release => Some(&RELEASE_ANY),
            _ => self.script_of_one(fleet),
        }
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

    /// Appends the command, where its script is known.
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
                self.claim.put(false, None, out);
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
