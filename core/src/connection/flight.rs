//! The requests on their way on one connection, in the order of their replies.

use std::collections::VecDeque;
use std::time::Duration;

use super::memory::free_if_empty;
use super::wording::Form;
use crate::protocol::{Action, Answer, Claim, LockId, Request};
use crate::time::Instant;

/// One request on its way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Sent {
    pub(crate) request: Request,
    /// When waiting for its answer began.
    pub(crate) at: Instant,
    pub(crate) form: Form,
    bytes: usize,
    /// Whether it has been reported as unanswered.
    is_overdue: bool,
}

/// Requests without a reply, oldest first.
///
/// Replies come strictly in order, so a late reply always finds its own request. Requests that were
/// reported as unanswered are kept only to be matched.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Flight {
    sent: VecDeque<Sent>,
    /// How many replies came before that of the first request in `sent`.
    answered: usize,
    /// The place of the first request that has not been reported as unanswered.
    next: usize,
    overdue: usize,
    /// Repeated requests that have not been reported as unanswered: for each, how many replies come
    /// before its own. They have waited for longer than the requests sent before them, and each of
    /// them at least as long as the next one.
    repeated: VecDeque<usize>,
    /// How many of the newest requests have bytes that the driver has not taken yet.
    unwritten: usize,
    /// The size of all requests in `sent`.
    pub(super) bytes: usize,
    /// Votes that the replicas have yet to confirm, oldest first: all those before the first
    /// outstanding confirmation.
    held: Vec<(Sent, Answer)>,
    /// How many `WAIT`s are in flight.
    confirmations: usize,
    /// When the newest vote without a `WAIT` was sent.
    pub(super) unconfirmed: Option<Instant>,
}

impl Flight {
    /// Adds a request; `is_repeated` if it was sent before, and has been waited for since then.
    #[inline]
    pub(crate) fn push(
        &mut self,
        request: &Request,
        form: Form,
        at: Instant,
        bytes: usize,
        is_repeated: bool,
    ) {
        if is_repeated {
            self.repeated.push_back(self.answered + self.sent.len());
        }
        self.bytes += bytes;
        self.unwritten += 1;
        self.confirmations += usize::from(request.action == Action::Confirm);
        self.sent.push_back(Sent { request: request.clone(), at, form, bytes, is_overdue: false });
    }

    /// The driver takes the bytes of all requests. The wait for answers to the new ones begins at
    /// `at`, or without `at` when they were made. The wait for a repeated one began earlier.
    #[inline]
    pub(crate) fn written(&mut self, at: Option<Instant>) {
        let unwritten = std::mem::take(&mut self.unwritten);
        let Some(at) = at else { return };
        let first = self.sent.len().saturating_sub(unwritten);
        for (number, sent) in (self.answered + first..).zip(self.sent.range_mut(first..)) {
            // There is nearly never a repeated request; then the search is skipped.
            if self.repeated.is_empty() || !self.repeated.contains(&number) {
                sent.at = sent.at.max(at);
            }
        }
    }

    /// Takes the request that the next reply belongs to.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Sent> {
        let sent = self.sent.pop_front()?;
        self.bytes -= sent.bytes;
        self.overdue -= usize::from(sent.is_overdue);
        self.confirmations -= usize::from(sent.request.action == Action::Confirm);
        if self.repeated.front() == Some(&self.answered) {
            self.repeated.pop_front();
        }
        self.answered += 1;
        free_if_empty(&mut self.sent);
        if self.next > 0 {
            self.next -= 1;
        } else {
            self.look_for_next();
        }
        Some(sent)
    }

    /// Keeps a request whose answer is a vote until that is confirmed. Returns whether a `WAIT` for
    /// it is in flight.
    pub(super) fn hold(&mut self, sent: Sent, answer: Answer) -> bool {
        self.held.push((sent, answer));
        self.confirmations > 0
    }

    /// Takes the votes that the next confirmation covers.
    pub(super) fn take_held(&mut self) -> impl Iterator<Item = (Request, Answer)> + use<> {
        std::mem::take(&mut self.held).into_iter().map(|(sent, answer)| (sent.request, answer))
    }

    /// Reports each vote that has waited too long for its confirmation, once.
    pub(super) fn overdue_votes(&mut self) -> impl Iterator<Item = &Request> {
        let held = self.held.iter_mut().map(|(sent, _)| sent);
        held.filter_map(|sent| (!std::mem::replace(&mut sent.is_overdue, true)).then_some(&sent.request))
    }

    pub(crate) fn requests(&self) -> usize {
        self.sent.len() + self.held.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// When the oldest wait for an answer reaches `limit`, or silence does.
    pub(crate) fn deadline(&self, limit: Duration, last_received: Instant) -> Option<Instant> {
        let awaited = self.sent.get(self.longest_awaited()).map(|sent| sent.at + limit);
        let silence = if self.overdue > 0 { Some(self.silent_since(last_received) + limit) } else { None };
        Instant::first_of(awaited, silence)
    }

    /// Since when the master has been silent although a request waited for an answer.
    pub(crate) fn silent_since(&self, last_received: Instant) -> Instant {
        self.oldest().map_or(last_received, |sent| sent.max(last_received))
    }

    /// When the oldest request of all was sent.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.sent.front().map(|sent| sent.at)
    }

    /// Reports the next request that has waited for `limit`, once.
    pub(crate) fn next_overdue(&mut self, limit: Duration, now: Instant) -> Option<&Sent> {
        let place = self.longest_awaited();
        self.sent.get_mut(place).filter(|sent| now >= sent.at + limit)?.is_overdue = true;
        self.overdue += 1;
        if self.repeated.front() == Some(&(self.answered + place)) {
            self.repeated.pop_front();
        }
        self.look_for_next();
        self.sent.get(place)
    }

    /// The place of the unreported request that has waited longest.
    fn longest_awaited(&self) -> usize {
        let repeated = self.repeated.front().map(|number| number - self.answered);
        let at = |place: usize| self.sent.get(place).map(|sent| sent.at);
        repeated.filter(|&place| at(place) < at(self.next)).unwrap_or(self.next)
    }

    fn look_for_next(&mut self) {
        while self.sent.get(self.next).is_some_and(|sent| sent.is_overdue) {
            self.next += 1;
        }
    }

    /// Whether a release of this claim is on its way, or of its token in another form: that of a
    /// downgraded lock.
    pub(crate) fn clears(&self, claim: &Claim) -> bool {
        self.sent.iter().any(|sent| sent.request.action.clears() && sent.request.claim.is_of_same(claim))
    }

    /// The unanswered acquisitions without a release behind them, each with the claim that its
    /// release must name. After a downgrade it is the reader's claim: releasing it also releases
    /// the writer.
    pub(crate) fn unreleased_acquisitions(&self) -> impl Iterator<Item = (&Request, &Claim)> {
        let released: std::collections::HashSet<_> = self
            .sent
            .iter()
            .filter(|sent| sent.request.action.clears())
            .filter_map(|sent| sent.request.ticket.map(|ticket| (ticket.lock, &sent.request.claim)))
            .collect();
        let extended = self.sent.iter().filter(|sent| sent.request.action == Action::Extend);
        let shared: std::collections::BTreeMap<_, _> = extended
            .filter(|sent| sent.request.claim.reads())
            .filter_map(|sent| Some((Self::attempt(&sent.request)?, &sent.request.claim)))
            .collect();
        let sent = self.held.iter().map(|(sent, _)| sent).chain(&self.sent);
        let created = sent.map(|sent| &sent.request).filter(|request| request.is_taken_back());
        created.filter_map(move |request| {
            let Some(lock) = request.ticket.map(|ticket| ticket.lock) else {
                return Some((request, &request.claim));
            };
            let claim = Self::attempt(request).and_then(|attempt| shared.get(&attempt)).copied();
            let claim = claim.unwrap_or(&request.claim);
            let is_released = [claim, &request.claim].iter().any(|claim| released.contains(&(lock, claim)));
            (!is_released).then_some((request, claim))
        })
    }

    /// The lock and the token of a request: each attempt has its own token.
    fn attempt(request: &Request) -> Option<(LockId, &[u8])> {
        Some((request.ticket?.lock, request.claim.token()?))
    }

    /// Ends the flight: returns every request, and whether it was already reported as unanswered.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (Sent, bool)> + use<> {
        let Self { held, sent, .. } = std::mem::take(self);
        held.into_iter().map(|(sent, _)| sent).chain(sent).map(|sent| {
            let was_reported = sent.is_overdue;
            (sent, was_reported)
        })
    }
}
