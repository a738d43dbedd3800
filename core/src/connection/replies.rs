//! Reads replies: splits bytes into frames, matches each frame with the request that it answers,
//! and passes the answer on to the machine.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Buf;

use super::flight::Sent;
use super::handshake::Progress;
use super::memory::free_if_empty;
use super::queues::Queues;
use super::tracking::{News, Tracking};
use super::wording::Form;
use super::{Connection, State, Warning};
use crate::protocol::{
    Action, Ahead, Answer, Cause, ClusterFault, Fate, FencingToken, Fleet, MasterId, Request, Said, Sentinel,
    Ticket, Ttl,
};
use crate::time::Instant;
use crate::wire::{self, Reply, Scanner, ServerError};

/// An input buffer larger than this is freed once it is empty.
const KEPT_BUFFER_BYTES: usize = 16 * 1024;

impl Connection {
    /// Takes every complete frame, and keeps the incomplete rest.
    pub(super) fn read(&mut self, bytes: &[u8], now: Instant, answers: &mut Answers) -> Result<(), Cause> {
        // Usually nothing was kept, and then nothing is copied.
        let mut inbound = std::mem::take(&mut self.inbound);
        let is_continued = !inbound.is_empty();
        if is_continued {
            inbound.extend_from_slice(bytes);
        }
        let mut rest = if is_continued { &*inbound } else { bytes };
        while !rest.is_empty() {
            if let Some((reply, length)) = wire::common_reply(rest) {
                if is_continued {
                    // The scanner may have seen the beginning of this reply.
                    self.scanner = Scanner::default();
                }
                self.reply(reply, now, answers)?;
                rest = rest.get(length..).unwrap_or_default();
                continue;
            }
            let Some(length) = self.scanner.advance(rest).map_err(Cause::Garbage)? else { break };
            let (frame, behind) = rest.split_at_checked(length).ok_or(Cause::UnexpectedReply)?;
            let reply = wire::decode(self.dialect, frame).map_err(Cause::Garbage)?;
            match &reply {
                Reply::Push(fields) => self.push(fields, now, answers)?,
                reply => self.reply(reply, now, answers)?,
            }
            rest = behind;
        }
        let left = rest.len();
        if is_continued {
            inbound.advance(inbound.len() - left);
        } else {
            inbound.extend_from_slice(bytes.get(bytes.len() - left..).unwrap_or_default());
        }
        if !inbound.is_empty() || inbound.capacity() <= KEPT_BUFFER_BYTES {
            self.inbound = inbound;
        }
        Ok(())
    }

    fn reply(&mut self, reply: &Reply<'_>, now: Instant, answers: &mut Answers) -> Result<(), Cause> {
        if !matches!(self.state, State::Ready | State::Draining { .. }) {
            return self.opening_replied(reply, now, answers);
        }
        let Some(sent) = self.flight.pop() else { return Err(Cause::UnexpectedReply) };
        let &Sent { ref request, at, form, .. } = &sent;
        self.heard_at = self.heard_at.max(at);
        let error = match reply {
            Reply::Error(text) => Some(ServerError::classify(text)),
            _ => None,
        };
        let is_evicted = error == Some(ServerError::NoScript) && form == Form::BySha;
        if is_evicted {
            // The cache was flushed (SCRIPT FLUSH). The text is sent behind later requests. Since
            // every script compares the token first, it may come late; only a request that sets the
            // key must not come after its release. The text is sent once: a server that refuses it,
            // too, would refuse it again. The wait for the answer counts from the first request.
            if !(request.action.creates() && self.flight.clears(&request.claim)) {
                self.repeat(&sent.request, at);
                return Ok(());
            }
        }
        if let (Form::Native(_), Some(error)) = (form, error) {
            // The native command fails for a key of another type, or for a refused write. Then the
            // script decides, so that the outcome is the same on every server.
            if matches!(error, ServerError::UnknownCommand | ServerError::NoPerm) {
                // A proxy in between does not know the command, or an ACL denies it.
                self.native_release = None;
            }
            self.repeat(&sent.request, at);
            return Ok(());
        }
        if error.is_some_and(|error| self.asks_without_place(request, error, at)) {
            return Ok(());
        }
        if matches!(self.queues, Queues::InDoubt(..)) {
            self.settle_queues(request, error, answers);
        }
        match request.action {
            Action::Track | Action::Untrack => {
                self.tracked(request.action == Action::Track, reply);
                return Ok(());
            }
            Action::Ping | Action::Login | Action::Forget => return self.own_answer(request.action, reply),
            Action::Confirm => return self.confirmed(reply, answers),
            Action::Inspect => return self.told(request, reply, now, answers),
            _ => {}
        }
        let answer = match self.interpret(request, form, reply) {
            Ok(answer) => answer,
            Err(cause) => {
                // This reply ends the connection. The request fails like the others in flight.
                answers.answer(self.id, request, Answer::Failed { cause, fate: Fate::Unknown, stale: false });
                if request.action.clears() {
                    self.owe(sent.request, now, now);
                }
                return Err(cause);
            }
        };
        self.prove();
        let is_held = self.must_be_confirmed(request, answer);
        if let Answer::Failed { cause, .. } = answer {
            self.failed(&sent, cause, answer, reply, now, answers);
            return Ok(());
        }
        if let Answer::OursInQuarantine { remaining } = answer {
            self.quarantined_until = Some(now + remaining);
        }
        if request.action.creates() && matches!(answer, Answer::Yes | Answer::Counted(_)) {
            // A bootstrap may have made the master vote.
            self.quarantined_until = None;
        }
        if !is_held {
            answers.answer(self.id, request, request.of_both_tries(answer));
        }
        if self.is_tracked() {
            self.tell_own_changes(request, answer, answers);
        }
        if is_held && !self.flight.hold(sent, answer) {
            self.have_votes_confirmed(at);
        }
        Ok(())
    }

    /// A reply on a connection that is not ready for requests yet.
    #[cold]
    fn opening_replied(
        &mut self,
        reply: &Reply<'_>,
        now: Instant,
        answers: &mut Answers,
    ) -> Result<(), Cause> {
        match self.state {
            // This node's other replies do not count.
            State::Greeting { .. } if self.is_elsewhere() => Ok(()),
            State::Greeting { .. } => self.greeted(reply, now, answers),
            State::Asking { .. } => self.sentinel_replied(reply),
            _ => Err(Cause::UnexpectedReply),
        }
    }

    /// A reachable master gave no usable answer to a request.
    #[cold]
    fn failed(
        &mut self,
        sent: &Sent,
        cause: Cause,
        answer: Answer,
        reply: &Reply<'_>,
        now: Instant,
        answers: &mut Answers,
    ) {
        if let Cause::Quarantined { remaining } = cause {
            self.quarantined_until = Some(now + remaining);
        }
        answers.answer(self.id, &sent.request, answer);
        let Reply::Error(text) = reply else { return };
        // A release may still succeed if the master is reachable but temporarily refuses writes
        // (BUSY, MISCONF, READONLY, …). A key of a foreign type is not ours.
        if sent.request.action.clears() && ServerError::classify(text) != ServerError::WrongType {
            // The owner that is connected next gets the release at once.
            let has_moved = cause == Cause::Cluster(ClusterFault::Moved);
            let pause = if has_moved { Duration::ZERO } else { *self.config.reconnect_delay.end() };
            self.owe(sent.request.clone(), now + pause, now);
        }
        if let Cause::Cluster(fault) = cause {
            self.misplaced(fault, text, now);
        }
    }

    /// An answer has come: the next failure counts as the first again.
    #[inline]
    pub(super) fn prove(&mut self) {
        if !self.proven {
            self.proven = true;
            self.backoff.reset();
        }
    }

    /// A reply of the handshake.
    fn greeted(&mut self, reply: &Reply<'_>, now: Instant, answers: &mut Answers) -> Result<(), Cause> {
        let State::Greeting { handshake, .. } = &mut self.state else { return Err(Cause::UnexpectedReply) };
        let endpoint = self.config.masters.get(self.id.index()).ok_or(Cause::UnexpectedReply)?;
        let progress = handshake.reply(reply, &self.config, endpoint, &mut self.outbound)?;
        self.dialect = handshake.dialect;
        match (progress, reply) {
            (Progress::Ready, _) => {}
            (Progress::Pending, _) => return Ok(()),
            (Progress::Elsewhere, Reply::Error(text)) if self.note_owner(text) => return Ok(()),
            (Progress::Elsewhere, _) => return Err(Cause::Cluster(ClusterFault::NoOwner)),
        }
        let State::Greeting { mut handshake, .. } = std::mem::replace(&mut self.state, State::Ready) else {
            return Err(Cause::UnexpectedReply);
        };
        self.identity = handshake.run_id;
        self.warnings = std::mem::take(&mut handshake.warnings);
        if self.warnings.contains(&Warning::TrackingEchoes) {
            self.tracking = Tracking::Denied;
        }
        self.known = handshake.loaded;
        self.lacking = handshake.lacking;
        self.native_release = handshake.native_release;
        self.queues = Queues::Kept;
        self.alone = handshake.alone;
        self.quarantined_until = handshake.quarantine.map(|remaining| now + remaining);
        self.served = true;
        self.fault = None;
        self.search_succeeded();
        self.look_for_other_server(&handshake, now);
        if let Some(login) = handshake.newer_login {
            self.reauthenticate(login, now);
        }
        self.pay_debts(now, answers);
        self.submit_queued(now, answers);
        Ok(())
    }

    /// The meaning of a reply to this request; an impossible reply ends the connection.
    #[inline]
    fn interpret(&self, request: &Request, form: Form, reply: &Reply<'_>) -> Result<Answer, Cause> {
        let is_plain = form == Form::Plain;
        match reply {
            Reply::Error(text) => self.interpret_error(request, text, is_plain),
            Reply::Simple(b"OK") if is_plain => Ok(Answer::Yes),
            Reply::Null if is_plain => Ok(Answer::No),
            _ if is_plain => Err(Cause::UnexpectedReply),
            Reply::Integer(0) => Ok(Answer::No),
            Reply::Integer(number) if request.is_counted() => {
                let number = u64::try_from(*number).ok().and_then(FencingToken::new);
                Ok(Answer::Counted(number.ok_or(Cause::UnexpectedReply)?))
            }
            Reply::Integer(1) => Ok(Answer::Yes),
            Reply::Array(fields) => self.interpret_fields(request.action, fields),
            _ => Err(Cause::UnexpectedReply),
        }
    }

    fn interpret_error(&self, request: &Request, text: &[u8], is_plain: bool) -> Result<Answer, Cause> {
        let error = ServerError::classify(text);
        if error == ServerError::ReadOnly {
            // The server has become a replica. A new connection may lead to the primary.
            return Err(Cause::Server(error));
        }
        // A missing script has done nothing, and neither has a node that redirects us.
        let is_missing = error == ServerError::NoScript && !is_plain;
        let cause = match error {
            ServerError::UnknownCommand => self.lacking.cause_of(text, request.script(self.fleet)),
            ServerError::WrongType => read_target(text).unwrap_or(Cause::Server(error)),
            error => self.cause_of(error),
        };
        let is_undone = is_missing || matches!(cause, Cause::Cluster(_));
        let fate = if is_undone { Fate::NotSent } else { Fate::Unknown };
        Ok(Answer::Failed { cause, fate, stale: false })
    }

    fn interpret_fields(&self, action: Action, fields: &[Reply<'_>]) -> Result<Answer, Cause> {
        let voting = self.fleet.filter(|fleet| match action {
            Action::Raise | Action::Open => fleet.replicas.is_some(),
            action => action.votes(),
        });
        let fate = if action.rests_on_key() { Fate::Unknown } else { Fate::NotSent };
        match (action, voting.and_then(|fleet| read_standing(fields, fleet))) {
            (_, Some(cause)) => Ok(Answer::Failed { cause, fate, stale: false }),
            (Action::Extend | Action::Heal | Action::Keep, None) if voting.is_some() => {
                read_ours(fields).ok_or(Cause::UnexpectedReply)
            }
            (Action::Acquire | Action::Undo | Action::ForceRelease, None) => {
                let seats = read_seats(fields).or_else(|| read_queued(fields, self.is_tracked()));
                seats.or_else(|| read_holder(fields, self.is_tracked())).ok_or(Cause::UnexpectedReply)
            }
            (Action::Stay, None) => read_queued(fields, self.is_tracked()).ok_or(Cause::UnexpectedReply),
            _ => Err(Cause::UnexpectedReply),
        }
    }
}

/// Why a master under the restart guard does not vote: `[quarantined, milliseconds]`, `[fleet,
/// longest TTL, the marker's last number]`, or `[alone, replicas that follow, replicas that are
/// connected]`.
pub(super) fn read_standing(fields: &[Reply<'_>], ours: Fleet) -> Option<Cause> {
    match fields {
        [Reply::Bulk(b"quarantined"), Reply::Integer(millis)] => {
            Some(Cause::Quarantined { remaining: Duration::from_millis(u64::try_from(*millis).ok()?) })
        }
        [Reply::Bulk(b"fleet"), Reply::Integer(millis), Reply::Integer(marked)] => {
            let longest_ttl = Ttl::new(Duration::from_millis(u64::try_from(*millis).ok()?)).ok()?;
            let theirs = Fleet::of_marker(longest_ttl, u32::try_from(*marked).ok()?);
            Some(Cause::OtherFleet { ours, theirs })
        }
        [Reply::Bulk(b"alone"), Reply::Integer(following), Reply::Integer(connected)] => {
            let [following, connected] =
                [following, connected].map(|number| u32::try_from(*number).unwrap_or(0));
            Some(Cause::Alone { following, connected, declared: ours.replicas?.into() })
        }
        _ => None,
    }
}

/// An error about one of several targets ends with its place, counted from one: `(target 2)`.
fn read_target(error: &[u8]) -> Option<Cause> {
    let text = std::str::from_utf8(error).ok()?;
    let (_, place) = text.strip_suffix(')')?.rsplit_once("(target ")?;
    Some(Cause::OtherType { target: place.parse::<u16>().ok()?.checked_sub(1)? })
}

/// `[ours, the milliseconds of the quarantine that are left]`.
fn read_ours(fields: &[Reply<'_>]) -> Option<Answer> {
    let [Reply::Bulk(b"ours"), Reply::Integer(millis)] = fields else { return None };
    Some(Answer::OursInQuarantine { remaining: Duration::from_millis(u64::try_from(*millis).ok()?) })
}

/// `[seats, their places in the window, the number of the grant or 0]`. Places are counted from
/// one, and separated by spaces.
fn read_seats(fields: &[Reply<'_>]) -> Option<Answer> {
    let [Reply::Bulk(b"seats"), Reply::Bulk(text), Reply::Integer(number)] = fields else { return None };
    let mut places = 0;
    for place in std::str::from_utf8(text).ok()?.split(' ') {
        places |= 1_u64.checked_shl(place.parse::<u32>().ok()?.checked_sub(1)?)?;
    }
    let number = u64::try_from(*number).ok()?;
    Some(Answer::Seats { places, number: FencingToken::new(number) })
}

/// `[SHA-1 of what is ahead, or "free", PTTL, number of the place, whether it is the first]`.
fn read_queued(fields: &[Reply<'_>], watched: bool) -> Option<Answer> {
    let [what, pttl, Reply::Integer(number), Reply::Integer(first)] = fields else { return None };
    let ahead = match what {
        Reply::Bulk(b"free") => None,
        Reply::Bulk(sha) => {
            let digits = std::str::from_utf8(sha.get(..16)?).ok()?;
            let Reply::Integer(pttl) = pttl else { return None };
            let remaining = u64::try_from(*pttl).ok().map(Duration::from_millis);
            Some(Ahead { holder: u64::from_str_radix(digits, 16).ok()?, remaining })
        }
        _ => return None,
    };
    let number = FencingToken::new(u64::try_from(*number).ok()?)?;
    Some(Answer::Queued { number, ahead, is_first: *first == 1, watched })
}

/// `[SHA-1 of the holder's token, PTTL]`, or `[wanted, PTTL]` if a writer waits.
fn read_holder(fields: &[Reply<'_>], watched: bool) -> Option<Answer> {
    let [Reply::Bulk(sha), Reply::Integer(pttl)] = fields else { return None };
    let holder = if *sha == b"wanted" {
        Sentinel::WANTED
    } else {
        let digits = std::str::from_utf8(sha.get(..16)?).ok()?;
        u64::from_str_radix(digits, 16).ok()?
    };
    // A negative PTTL is not a time: −1 never expires, −2 is gone (Redis command page of PTTL).
    let remaining = u64::try_from(*pttl).ok().map(Duration::from_millis);
    Some(Answer::Holder { holder, remaining, watched })
}

/// Messages of connections to the machine, in order of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers(VecDeque<(MasterId, Upward)>);

/// One message of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Upward {
    Answer(Ticket, Answer),
    /// A master's report about a lock and itself, for an inspection.
    Told(Ticket, Box<Said>),
    News(News),
}

impl Answers {
    /// The answer to a request, if a lock waits for it.
    #[inline]
    pub(super) fn answer(&mut self, master: MasterId, request: &Request, answer: Answer) {
        if let Some(ticket) = request.ticket {
            self.0.push_back((master, Upward::Answer(ticket, answer)));
        }
    }

    /// A master's answer to an inspection.
    pub(super) fn report(&mut self, master: MasterId, request: &Request, said: Said) {
        if let Some(ticket) = request.ticket {
            self.0.push_back((master, Upward::Told(ticket, Box::new(said))));
        }
    }

    pub(super) fn tell(&mut self, master: MasterId, news: News) {
        self.0.push_back((master, Upward::News(news)));
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<(MasterId, Upward)> {
        let next = self.0.pop_front();
        free_if_empty(&mut self.0);
        next
    }
}
