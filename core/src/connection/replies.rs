//! Replies in: bytes to frames, each frame to the request that it answers.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use super::handshake::Progress;
use super::tracking::News;
use super::wording::{Form, Wording};
use super::{Answers, Connection, Queued, State};
use crate::protocol::{Action, Answer, Cause, Fate, FencingToken, Fleet, Request, Ttl};
use crate::time::Instant;
use crate::wire::{self, Reply, ServerError};

/// An input buffer larger than this is given back once it is empty.
const KEPT_BUFFER_BYTES: usize = 16 * 1024;

impl Connection {
    pub(super) fn read(&mut self, bytes: &[u8], now: Instant, answers: &mut Answers) -> Result<(), Cause> {
        if self.inbound.is_empty() {
            let rest = self.frames(bytes, now, answers)?;
            self.inbound.extend_from_slice(rest);
            return Ok(());
        }
        let mut inbound = std::mem::take(&mut self.inbound);
        inbound.extend_from_slice(bytes);
        let rest = self.frames(&inbound, now, answers)?.len();
        inbound.advance(inbound.len() - rest);
        if rest > 0 || inbound.capacity() <= KEPT_BUFFER_BYTES {
            self.inbound = inbound;
        } else {
            self.inbound = BytesMut::new();
        }
        Ok(())
    }

    /// Takes every complete frame and returns the incomplete rest.
    fn frames<'a>(
        &mut self,
        bytes: &'a [u8],
        now: Instant,
        answers: &mut Answers,
    ) -> Result<&'a [u8], Cause> {
        let mut rest = bytes;
        loop {
            let common = if self.scanner.is_at_start() { wire::common_reply(rest) } else { None };
            if let Some((reply, length)) = common {
                self.reply(&reply, now, answers)?;
                rest = rest.get(length..).unwrap_or_default();
                continue;
            }
            let Some(length) = self.scanner.advance(rest).map_err(Cause::Garbage)? else { return Ok(rest) };
            let (frame, behind) = rest.split_at_checked(length).ok_or(Cause::UnexpectedReply)?;
            let reply = wire::decode(self.dialect, frame).map_err(Cause::Garbage)?;
            match &reply {
                Reply::Push(fields) => self.push(fields, answers),
                reply => self.reply(reply, now, answers)?,
            }
            rest = behind;
        }
    }

    fn reply(&mut self, reply: &Reply<'_>, now: Instant, answers: &mut Answers) -> Result<(), Cause> {
        if let State::Greeting { handshake, .. } = &mut self.state {
            let endpoint = self.config.masters.get(self.id.index()).ok_or(Cause::UnexpectedReply)?;
            let progress = handshake.reply(reply, &self.config, endpoint, &mut self.outbound)?;
            self.dialect = handshake.dialect();
            if progress == Progress::Ready {
                self.identity = handshake.run_id();
                self.warnings = handshake.take_warnings();
                self.known = handshake.loaded();
                self.native_release = handshake.native_release();
                self.quarantined_until = handshake.quarantine().map(|remaining| now + remaining);
                self.become_ready(now, answers);
            }
            return Ok(());
        }
        let sent = self.flight.pop().ok_or(Cause::UnexpectedReply)?;
        let request = sent.request;
        if is_no_script(reply) && request.script(self.config.fleet).is_some() && sent.form == Form::BySha {
            // The cache was flushed (SCRIPT FLUSH). The text goes behind what has been sent meanwhile; every
            // script compares the token first, so that it may come later than it was meant to. Only what sets the key must not
            // come behind its release. Once: whoever does not know the text either will not learn it. Who asked has waited since then.
            if !(request.action.creates() && self.flight.clears(&request.claim)) {
                self.repeat(request, sent.at);
                return Ok(());
            }
        }
        if let (Form::Native(_), Reply::Error(text)) = (sent.form, reply) {
            // The native command fails where the script has an answer: for a key of another type, or for a write that the server
            // refuses although the key is not ours. The script decides, so that the outcome is the same on every server.
            if is_missing_command(text) {
                // A proxy in between does not know it, or an ACL does not allow it.
                self.native_release = None;
            }
            self.repeat(request, sent.at);
            return Ok(());
        }
        if let Action::Track { on } = request.action {
            self.tracked(on, reply);
            return Ok(());
        }
        if request.action == Action::Inspect {
            return self.told(&request, reply, answers);
        }
        let meaning = match interpret(&request, self.config.fleet, self.is_tracked(), reply) {
            Ok(meaning) => meaning,
            Err(cause) => {
                // The connection ends with it; whoever asked is answered like all others that wait there.
                answers.answer_to(
                    self.id,
                    &request,
                    Answer::Failed { cause, fate: Fate::Unknown, stale: false },
                );
                if request.action.clears() {
                    self.owe(request, now, now);
                }
                return Err(cause);
            }
        };
        self.proven = true;
        self.backoff.reset();
        match meaning {
            Answer::Failed { cause: Cause::Quarantined { remaining }, .. } => {
                self.quarantined_until = Some(now + remaining);
            }
            // It may have been told that nothing is locked yet.
            Answer::Yes | Answer::Counted(_) if request.action.creates() => self.quarantined_until = None,
            _ => {}
        }
        answers.answer_to(self.id, &request, meaning);
        if request.action.changes_held_key() && meaning == Answer::Yes && self.is_tracked() {
            // With NOLOOP the server forgets who waits for the key when this connection changes it, and says nothing.
            answers.tell(self.id, News::ChangedByUs(Bytes::copy_from_slice(request.claim.resource())));
        }
        if request.action.clears() && is_put_off(meaning) {
            // The master is there, but does not write for the time being (BUSY, MISCONF, READONLY, …).
            self.owe(request, now + *self.config.reconnect_delay.end(), now);
        }
        Ok(())
    }

    fn become_ready(&mut self, now: Instant, answers: &mut Answers) {
        self.state = State::Ready;
        self.served = true;
        self.fault = None;
        self.pay_debts(now, answers);
        for Queued { request, undo } in std::mem::take(&mut self.queued) {
            for request in std::iter::once(request).chain(undo) {
                self.submit(&request, &mut Wording::default(), now, answers);
            }
        }
    }
}

fn is_no_script(reply: &Reply<'_>) -> bool {
    matches!(reply, Reply::Error(text) if ServerError::classify(text) == ServerError::NoScript)
}

fn is_missing_command(text: &[u8]) -> bool {
    matches!(ServerError::classify(text), ServerError::UnknownCommand | ServerError::NoPerm)
}

/// Whether a release may yet succeed that a master answered with an error. A key of a foreign type is none of ours.
fn is_put_off(meaning: Answer) -> bool {
    matches!(meaning, Answer::Failed { cause: Cause::Server(error), .. } if error != ServerError::WrongType)
}

/// What a reply means for such a request; anything that it never gets ends the connection.
fn interpret(
    request: &Request,
    fleet: Option<Fleet>,
    watched: bool,
    reply: &Reply<'_>,
) -> Result<Answer, Cause> {
    let is_plain = request.script(fleet).is_none();
    let counts =
        request.claim.is_fenced() && request.action == Action::Acquire || request.action == Action::Raise;
    match (request.action, reply) {
        (_, Reply::Error(text)) => {
            let error = ServerError::classify(text);
            // A script that is not there has done nothing.
            let is_missing = error == ServerError::NoScript && !is_plain;
            let fate = if is_missing { Fate::NotSent } else { Fate::Unknown };
            Ok(Answer::Failed { cause: Cause::Server(error), fate, stale: false })
        }
        (_, Reply::Simple(b"OK")) if is_plain => Ok(Answer::Yes),
        (_, Reply::Null) if is_plain => Ok(Answer::No),
        (_, _) if is_plain => Err(Cause::UnexpectedReply),
        (_, Reply::Integer(0)) => Ok(Answer::No),
        (_, Reply::Integer(number)) if counts => {
            let number = u64::try_from(*number).ok().and_then(FencingToken::new);
            Ok(Answer::Counted(number.ok_or(Cause::UnexpectedReply)?))
        }
        (_, Reply::Integer(1)) => Ok(Answer::Yes),
        (Action::Acquire | Action::Attend | Action::Undo | Action::ForceRelease, Reply::Array(fields)) => {
            let quarantine = fleet.and_then(|fleet| read_quarantine(fields, fleet));
            match (request.action, quarantine) {
                (Action::Acquire | Action::Attend, Some(cause)) => {
                    Ok(Answer::Failed { cause, fate: Fate::NotSent, stale: false })
                }
                (Action::Acquire | Action::Undo | Action::ForceRelease, None) => {
                    read_holder(fields, watched).ok_or(Cause::UnexpectedReply)
                }
                _ => Err(Cause::UnexpectedReply),
            }
        }
        _ => Err(Cause::UnexpectedReply),
    }
}

/// Why a master under the restart guard does not vote: `[quarantined, milliseconds]` or `[fleet, longest TTL, masters]`.
pub(super) fn read_quarantine(fields: &[Reply<'_>], ours: Fleet) -> Option<Cause> {
    match fields {
        [Reply::Bulk(b"quarantined"), Reply::Integer(millis)] => {
            Some(Cause::Quarantined { remaining: Duration::from_millis(u64::try_from(*millis).ok()?) })
        }
        [Reply::Bulk(b"fleet"), Reply::Integer(millis), Reply::Integer(masters)] => {
            let longest_ttl = Ttl::new(Duration::from_millis(u64::try_from(*millis).ok()?)).ok()?;
            let theirs = Fleet { longest_ttl, masters: u32::try_from(*masters).ok()? };
            Some(Cause::OtherFleet { ours, theirs })
        }
        _ => None,
    }
}

/// `[SHA-1 of the other's token, PTTL]`.
fn read_holder(fields: &[Reply<'_>], watched: bool) -> Option<Answer> {
    let [Reply::Bulk(sha), Reply::Integer(pttl)] = fields else { return None };
    let digits = std::str::from_utf8(sha.get(..16)?).ok()?;
    let holder = u64::from_str_radix(digits, 16).ok()?;
    // A negative PTTL is no time left to tell: −1 never expires, −2 is gone by now (Redis command page of PTTL).
    let remaining = u64::try_from(*pttl).ok().map(Duration::from_millis);
    Some(Answer::Holder { holder, remaining, watched })
}
