//! Outgoing requests: those that are written now, those that wait for a connection, and releases
//! that are owed.

use std::collections::VecDeque;

use super::cluster::tag_keys;
use super::tracking::Tracking;
use super::wording::Form;
use super::{Answers, Connection, Wording};
use crate::protocol::{Action, Answer, Cause, Claim, Fate, Request, Ttl};
use crate::time::Instant;

/// A release that the master has not confirmed, kept until its key must have expired.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Debt {
    pub(super) request: Request,
    /// The release must not be sent earlier.
    pub(super) from: Instant,
    pub(super) until: Instant,
}

/// A request for the connection that is being opened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Queued {
    pub(super) request: Request,
    /// The undo that follows an acquisition whose round is over. The answers to both still count
    /// for the caller's error.
    pub(super) undo: Option<Request>,
}

impl Connection {
    pub(super) fn has_room_for(&self, request: &Request) -> bool {
        // Releases have a higher limit than acquisitions, so that a full pipeline can still be
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
        // Only a waiter's request turns on notifications.
        if request.watch || !matches!(self.tracking, Tracking::Off) {
            self.track(request.watch, now, answers);
        }
        let (other, mut other_wording);
        let (request, wording) = if request.watch && request.claim.takes_some() && !self.is_tracked() {
            // Nobody will tell this waiter, so it must know which seat ends first.
            (other, other_wording) = (Request { watch: false, ..request.clone() }, Wording::default());
            (&other, &mut other_wording)
        } else if request.claim.as_queued().is_some() && self.denies_queues().is_some() {
            (other, other_wording) = (request.clone().without_place(), Wording::default());
            (&other, &mut other_wording)
        } else {
            (request, wording)
        };
        if matches!(request.action, Action::Acquire | Action::Extend | Action::Heal) {
            self.longest_asked = self.longest_asked.max(request.ttl);
        }
        let form = match (wording.script(request, self.fleet), self.native_release) {
            (None, _) => Form::Plain,
            (_, Some(command)) if request.action == Action::Release && request.claim.is_one() => {
                Form::Native(command)
            }
            // Scripts that few locks need are not part of the greeting: their first use sends the
            // text.
            (Some(script), _) if self.known.insert(script) => Form::ByText,
            _ => Form::BySha,
        };
        let before = self.outbound.len();
        self.outbound.extend_from_slice(wording.of(request, form));
        if let Some(tag) = &self.tag {
            tag_keys(tag, request, before, &mut self.outbound);
        }
        let bytes = self.outbound.len() - before;
        self.flight.push(request, form, now, bytes, false);
        if matches!(self.tracking, Tracking::On { .. }) {
            self.pushes.pay(bytes);
        }
        if self.has_replicas() {
            self.expect_vote(request.action, now);
        }
    }

    /// Repeats a request. The wait for its answer counts from `since`.
    pub(super) fn repeat(&mut self, request: &Request, since: Instant) {
        let before = self.outbound.len();
        let form = if request.script(self.fleet).is_some() { Form::ByText } else { Form::Plain };
        request.encode(form, self.fleet, &mut self.outbound);
        if let Some(tag) = &self.tag {
            tag_keys(tag, request, before, &mut self.outbound);
        }
        if self.has_replicas() {
            self.expect_vote(request.action, since);
        }
        self.flight.push(request, form, since, self.outbound.len() - before, true);
    }

    /// Keeps a request for the connection that is being opened.
    pub(super) fn queue(&mut self, request: &Request, now: Instant, answers: &mut Answers) {
        if request.action.clears() {
            let acquires = |other: &Queued| {
                other.request.action == Action::Acquire && other.request.claim.is_of_same(&request.claim)
            };
            let acquisition = self.queued.iter().position(acquires);
            // Nobody waits for the vote that an undo without a ticket takes back.
            if request.action != Action::Undo || request.ticket.is_none() {
                self.forget_queued(&request.claim, answers);
            } else if let Some(queued) = acquisition.and_then(|place| self.queued.get_mut(place)) {
                queued.undo = Some(request.clone());
                return;
            }
            if acquisition.is_some() && request.claim.as_queued().is_none() {
                // The acquisition was never sent, so there is nothing to release. A place in a
                // queue may be there since an earlier connection.
                return answers.answer(self.id, request, Answer::No);
            }
        }
        if self.queued.len() < self.config.max_in_flight_requests {
            self.queued.push_back(Queued { request: request.clone(), undo: None });
        } else {
            self.refuse(request, Cause::TooManyInFlight, now, answers);
        }
    }

    /// The connection is open: sends the requests that waited for it.
    pub(super) fn submit_queued(&mut self, now: Instant, answers: &mut Answers) {
        for Queued { request, undo } in std::mem::take(&mut self.queued) {
            for request in std::iter::once(request).chain(undo) {
                self.submit(&request, &mut Wording::default(), now, answers);
            }
        }
    }

    /// Drops requests that would acquire a claim, or enter its place into a queue: all attempts of
    /// a wait have the same place. An acquisition with another token may still be counted if it has
    /// not been taken back, and the place is removed behind it.
    fn forget_queued(&mut self, claim: &Claim, answers: &mut Answers) {
        let is_of = |queued: &Queued| {
            let enters = match queued.request.action {
                Action::Acquire => queued.undo.is_some() || queued.request.claim.token() == claim.token(),
                action => action == Action::Stay,
            };
            enters && queued.request.claim.is_of_same(claim)
        };
        while let Some(place) = self.queued.iter().position(is_of) {
            let undo = self.queued.remove(place).and_then(|queued| queued.undo);
            undo.iter().for_each(|undo| answers.answer(self.id, undo, Answer::No));
        }
    }

    /// Answers a request that cannot be sent now. A release is sent later.
    pub(super) fn refuse(&mut self, request: &Request, cause: Cause, now: Instant, answers: &mut Answers) {
        let fate = if request.is_second_try { Fate::Unknown } else { Fate::NotSent };
        answers.answer(self.id, request, Answer::Failed { cause, fate, stale: false });
        if request.action.clears() {
            self.owe(request.clone(), now, now);
        }
    }

    /// Keeps a release to be sent again, not before `from`.
    pub(super) fn owe(&mut self, request: Request, from: Instant, now: Instant) {
        if request.action == Action::Keep && request.ttl == Ttl::SHORTEST {
            // Repeating it would never end with a master that refuses writes. The key expires with
            // its TTL.
            return;
        }
        if self.debts.len() >= self.config.max_in_flight_requests {
            self.debts.pop_front();
        }
        let until = now + request.ttl.as_duration();
        // A key that must be kept for a while is not deleted before.
        let action = if request.action == Action::Keep { Action::Keep } else { Action::Release };
        let request = Request { ticket: None, action, ..request };
        // In the order in which they are due: one that was put off delays no other.
        let place = self.debts.partition_point(|debt| debt.from <= from);
        self.debts.insert(place, Debt { request, from, until });
    }

    /// Ends every request in flight without an answer. If the connection is stale, something in
    /// between may have forgotten it, which says little about the master: requests that may be
    /// executed twice wait for the next connection. They are not repeated again, as that one is
    /// fresh.
    pub(super) fn fail_flight(
        &mut self,
        cause: Cause,
        fate: Fate,
        stale: bool,
        now: Instant,
        answers: &mut Answers,
    ) {
        let mut again = VecDeque::new();
        for (sent, was_reported) in self.flight.drain() {
            if stale && !was_reported && sent.request.may_be_tried_again() {
                let request = Request { is_second_try: true, ..sent.request };
                again.push_back(Queued { request, undo: None });
                continue;
            }
            let cause = match cause {
                Cause::NoAnswer { .. } => Cause::NoAnswer { waited: now.since(sent.at) },
                cause => cause,
            };
            let is_left = sent.request.action.creates() && !sent.request.is_taken_back();
            let fate = if is_left && fate == Fate::Undone { Fate::Unknown } else { fate };
            // A request that was reported as unanswered is reported again if its fate has changed
            // since.
            if !was_reported || fate == Fate::Undone {
                answers.answer(self.id, &sent.request, Answer::Failed { cause, fate, stale });
            }
            if sent.request.action.clears() {
                self.owe(sent.request, now, now);
            }
        }
        if !again.is_empty() {
            again.append(&mut self.queued);
            self.queued = again;
        }
    }

    pub(super) fn fail_queued(&mut self, now: Instant, answers: &mut Answers) {
        let Some(cause) = self.fault else { return };
        for Queued { request, undo } in std::mem::take(&mut self.queued) {
            self.refuse(&request, cause, now, answers);
            if let Some(undo) = undo {
                // No request was sent that it could undo, so the release is not owed.
                let answer = Answer::Failed { cause, fate: Fate::NotSent, stale: false };
                answers.answer(self.id, &undo, answer);
            }
        }
    }

    /// When the next owed release may be sent, if there is room for it.
    pub(super) fn next_payment(&self) -> Option<Instant> {
        self.debts.front().filter(|debt| self.has_room_for(&debt.request)).map(|debt| debt.from)
    }

    /// Sends the owed releases that are due, as far as there is room.
    #[inline]
    pub(super) fn pay_debts(&mut self, now: Instant, answers: &mut Answers) {
        while self.is_ready() && self.next_payment().is_some_and(|from| from <= now) {
            let Some(Debt { request, until, .. }) = self.debts.pop_front() else { return };
            let left = Ttl::new(until.since(now)).ok();
            // The time to keep the key is over: it is deleted now.
            let left = left.or((request.action == Action::Keep).then_some(Ttl::SHORTEST));
            // If this connection ends, too, the release is owed again, but only for what remains.
            if let Some(ttl) = left {
                self.send(&Request { ttl, ..request }, &mut Wording::default(), now, answers);
            }
        }
    }
}
