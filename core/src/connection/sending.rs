//! Requests out: what is written now, what waits for a connection, and which releases are owed.

use super::wording::{Form, Wording};
use super::{Answers, Connection, Debt, Queued};
use crate::protocol::{Action, Answer, Cause, Fate, Request, Ttl};
use crate::time::Instant;

impl Connection {
    pub(super) fn has_room_for(&self, request: &Request) -> bool {
        // Releases find room where acquisitions do not, so that a full pipeline can still be cleared.
        let room = if request.action.clears() { 2 } else { 1 };
        self.flight.requests() < room * self.config.max_in_flight_requests
            && self.flight.bytes() < room * self.config.max_in_flight_bytes
    }

    pub(super) fn send(
        &mut self,
        request: &Request,
        wording: &mut Wording,
        now: Instant,
        answers: &mut Answers,
    ) {
        self.track(request.watch, now, answers);
        let script = request.script(self.config.fleet);
        let form = match self.native_release {
            Some(command) if request.action == Action::Release => Form::Native(command),
            // Scripts that few locks need are not part of the greeting: the first use brings the text along.
            _ if script.is_some_and(|script| self.known.insert(script)) => Form::ByText,
            _ => Form::BySha,
        };
        let bytes = wording.of(request, form, self.config.fleet);
        self.outbound.extend_from_slice(bytes);
        self.flight.push(request.clone(), form, now, bytes.len(), false);
    }

    /// Sends a request once more, whose answer is waited for since that instant.
    pub(super) fn repeat(&mut self, request: Request, since: Instant) {
        let before = self.outbound.len();
        request.encode(Form::ByText, self.config.fleet, &mut self.outbound);
        self.flight.push(request, Form::ByText, since, self.outbound.len() - before, true);
    }

    /// Keeps a request for the connection that is being opened.
    pub(super) fn queue(&mut self, request: &Request, now: Instant, answers: &mut Answers) {
        if request.action.clears() {
            let acquires = |other: &Queued| {
                other.request.action == Action::Acquire && other.request.claim.is_of(&request.claim)
            };
            if let Some(place) = self.queued.iter().position(acquires) {
                if request.action == Action::Undo {
                    if let Some(queued) = self.queued.get_mut(place) {
                        queued.undo = Some(request.clone());
                    }
                } else {
                    // Its acquisition has not left, so there is nothing to release.
                    let undo = self.queued.remove(place).and_then(|queued| queued.undo);
                    undo.iter().chain([request]).for_each(|it| answers.answer_to(self.id, it, Answer::No));
                }
                return;
            }
        }
        if self.queued.len() < self.config.max_in_flight_requests {
            self.queued.push_back(Queued { request: request.clone(), undo: None });
        } else {
            self.refuse(request, Cause::TooManyInFlight, now, answers);
        }
    }

    /// Answers a request that cannot be sent now. A release is sent later.
    pub(super) fn refuse(&mut self, request: &Request, cause: Cause, now: Instant, answers: &mut Answers) {
        answers.answer_to(self.id, request, Answer::Failed { cause, fate: Fate::NotSent, stale: false });
        if request.action.clears() {
            self.owe(request.clone(), now, now);
        }
    }

    /// Keeps a release to be sent again, not before `from`.
    pub(super) fn owe(&mut self, request: Request, from: Instant, now: Instant) {
        if request.action == Action::Keep && request.ttl == Ttl::SHORTEST {
            // Once more would be for ever, with a master that takes no writes. The key ends with its
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
            // A request that was reported as unanswered is reported again where its fate has changed since.
            if !was_reported || fate == Fate::Undone {
                answers.answer_to(self.id, &sent.request, Answer::Failed { cause, fate, stale });
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
                answers.answer_to(
                    self.id,
                    &undo,
                    Answer::Failed { cause, fate: Fate::NotSent, stale: false },
                );
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
