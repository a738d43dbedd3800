//! The life of a connection: opening it, giving it up as silent, losing it, and the pause before
//! the next one.

use std::ops::RangeInclusive;
use std::time::Duration;

use bytes::BytesMut;

use super::cluster::tag_keys;
use super::pushes::Pushes;
use super::wording::Form;
use super::{Answers, Connection, State, Warning};
use crate::jitter::Jitter;
use crate::protocol::{Action, Answer, Cause, Fate, Request};
use crate::time::Instant;
use crate::wire::{Scanner, ScriptSet};

/// After this time without a byte, something in between may have dropped the connection silently;
/// then silence on its next request says little about the master.
const QUIET_AFTER: Duration = Duration::from_secs(5);

impl Connection {
    /// The connection that is being greeted is encrypted with earlier contents of files.
    pub(crate) fn note_outdated_files(&mut self, generation: u32) {
        if let State::Greeting { handshake, .. } = &mut self.state {
            if generation == self.generation {
                handshake.warnings.push(Warning::OutdatedFiles);
            }
        }
    }

    pub(super) fn open(&mut self, now: Instant) {
        self.search_anew(now);
        self.connect(now);
    }

    pub(super) fn connect(&mut self, now: Instant) {
        self.generation = self.generation.wrapping_add(1);
        self.to_open = Some(self.generation);
        self.state = State::Opening { since: now, securing: false };
        self.proven = false;
        self.late_look = None;
    }

    /// How long an opening may take. Until it has failed once, requests wait for it, so the limit
    /// is short. After that it is longer, since a stopped server answers what is in its buffers
    /// when it resumes.
    pub(super) fn opening_limit(&self) -> Duration {
        if self.fault.is_none() {
            self.config.connect_timeout
        } else {
            (*self.config.reconnect_delay.end()).max(4 * self.config.connect_timeout)
        }
    }

    pub(super) fn opening_takes_long(&mut self, since: Instant, now: Instant, answers: &mut Answers) {
        if self.search.is_some() {
            self.search_takes_long(since, now, answers);
        } else if self.fault.is_some() {
            self.abandon(answers);
            self.open(now);
        } else {
            self.fault = Some(self.opening_fault(now.since(since)));
            self.fail_queued(now, answers);
        }
    }

    pub(super) fn opening_fault(&self, waited: Duration) -> Cause {
        let is_secured = matches!(self.state, State::Opening { securing: true, .. });
        if is_secured { Cause::NoHandshake { waited } } else { Cause::NoConnection { waited } }
    }

    /// A connection without outstanding answers can be lost without harm.
    #[cold]
    pub(super) fn renew_if_drained(&mut self, now: Instant, answers: &mut Answers) {
        if matches!(self.state, State::Draining { .. }) && self.flight.is_empty() {
            self.abandon(answers);
            self.open(now);
        }
    }

    /// Since when a draining connection has waited for its last answers. It sends nothing more, so
    /// all of them are overdue after the limit. If the process paused, it may have written the last
    /// requests after the connection began to drain.
    pub(super) fn drains_since(&self) -> Option<Instant> {
        let State::Draining { since } = self.state else { return None };
        Some(self.flight.oldest().map_or(since, |written| written.max(since)))
    }

    /// How long a master has after a late look: long enough for an answer to a request that has
    /// just been written, and far shorter than the limit of silence.
    pub(super) fn grace(&self) -> Duration {
        self.config.request_timeout / 8
    }

    /// Whether silence, which was over the limit at `overdue`, is looked at again before the
    /// verdict. A driver that looks late was not woken in time, so its process may have been
    /// stopped, and may have written the requests only now. This happens once for a silence, so a
    /// process that is always late gives masters up as well: the next one must have begun later.
    pub(super) fn looks_again(&mut self, overdue: Instant, looked: Instant) -> bool {
        let is_late = looked.since(overdue) > self.grace() / 4;
        let limit = self.config.request_timeout;
        let looks_again = is_late && self.late_look.is_none_or(|last| overdue > last + limit);
        if looks_again {
            self.late_look = Some(looked);
        }
        looks_again
    }

    /// Silence counts until `looked`, when the socket was last known to be empty.
    pub(super) fn answers_take_long(&mut self, looked: Instant, now: Instant, answers: &mut Answers) {
        let limit = self.config.request_timeout;
        let silent_since = self.flight.silent_since(self.last_received);
        let since = self.drains_since().map_or(silent_since, |since| since.min(silent_since));
        if looked >= since + limit {
            let waited = looked.since(since);
            self.give_up(Cause::NoAnswer { waited }, now, answers);
            return;
        }
        while let Some(sent) = self.flight.next_overdue(limit, looked) {
            let cause = Cause::NoAnswer { waited: looked.since(sent.at) };
            let failed = Answer::Failed { cause, fate: Fate::Unknown, stale: false };
            if sent.request.action == Action::Confirm {
                self.flight.overdue_votes().for_each(|request| answers.answer(self.id, request, failed));
            } else {
                answers.answer(self.id, &sent.request, failed);
            }
        }
    }

    /// Leaves a silent connection. Its unanswered requests may still be executed when a stopped
    /// server resumes and reads its buffers, so the releases are first written behind them.
    fn give_up(&mut self, cause: Cause, now: Instant, answers: &mut Answers) {
        let mut brought = ScriptSet::default();
        for (acquisition, claim) in self.flight.unreleased_acquisitions() {
            let claim = claim.clone();
            let release = Request { action: Action::Release, claim, ..acquisition.clone() };
            // The first release with each script carries its text, in case the cache was flushed
            // meanwhile.
            let is_first = release.script(None).is_some_and(|script| brought.insert(script));
            let form = if is_first { Form::ByText } else { Form::BySha };
            let before = self.outbound.len();
            release.encode(form, None, &mut self.outbound);
            if let Some(tag) = &self.tag {
                tag_keys(tag, &release, before, &mut self.outbound);
            }
        }
        let stale = self.has_been_quiet();
        self.fail_flight(cause, Fate::Undone, stale, now, answers);
        let parting = std::mem::take(&mut self.outbound);
        self.abandon(answers);
        self.outbound = parting;
        self.fault = (!stale).then_some(cause);
        // Requests that waited for the next connection.
        self.fail_queued(now, answers);
        self.open(now);
    }

    /// The connection is lost, or must be closed.
    pub(crate) fn lose(&mut self, cause: Cause, now: Instant, answers: &mut Answers) {
        let cause = if cause == Cause::Closed && self.is_unanswered() { Cause::HungUp } else { cause };
        // If a server closes idle connections, or a network forgets them, the next one may still
        // work.
        let stood = self.is_ready() && now.since(self.last_received) >= *self.config.reconnect_delay.end();
        let come_again = (self.proven || stood) && matches!(cause, Cause::Closed | Cause::Connect(_));
        let stale = self.has_been_quiet();
        self.fail_flight(cause, Fate::Unknown, stale, now, answers);
        self.abandon(answers);
        if come_again {
            self.fault = None;
            self.open(now);
            return;
        }
        if self.search_goes_on(cause, now) {
            return;
        }
        let cause = self.search_fault(cause);
        self.fault = Some(cause);
        self.fail_queued(now, answers);
        // A discovered replica is not the primary yet, or no longer.
        let is_misplaced = cause == Cause::Replica && self.search.is_none();
        let for_a_person = cause.is_configuration() || is_misplaced;
        let pause = if for_a_person { self.backoff.longest_pause() } else { self.backoff.pause() };
        self.state = State::Resting { until: now + pause };
    }

    /// Forgets everything that belongs to the present connection, and has the driver close it.
    pub(super) fn abandon(&mut self, answers: &mut Answers) {
        self.track_no_more(answers);
        self.to_close = Some(self.generation);
        self.to_open = None;
        self.inbound = BytesMut::new();
        self.scanner = Scanner::default();
        self.pushes = Pushes::default();
        self.outbound.clear();
        self.leave_server();
        self.warnings.clear();
    }

    /// Whether this plain connection is open and no byte has come.
    fn is_unanswered(&self) -> bool {
        let is_plain = self.config.masters.get(self.id.index()).is_some_and(|master| master.tls().is_none());
        is_plain
            && matches!(&self.state, State::Greeting { handshake, .. } if handshake.is_unanswered())
            && self.inbound.is_empty()
    }

    fn has_been_quiet(&self) -> bool {
        self.flight.oldest().is_some_and(|sent| sent.since(self.last_received) >= QUIET_AFTER)
    }
}

/// The pause before the next attempt to connect. It doubles from the lower to the upper bound, plus
/// up to a quarter at random so that many clients do not return at once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Backoff {
    shortest: Duration,
    longest: Duration,
    next: Duration,
    jitter: Jitter,
}

impl Backoff {
    pub(super) fn new(bounds: &RangeInclusive<Duration>, jitter: Jitter) -> Self {
        Self { shortest: *bounds.start(), longest: *bounds.end(), next: *bounds.start(), jitter }
    }

    /// The pause before the next attempt.
    pub(super) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (self.next * 2).min(self.longest);
        self.jitter.within(&(pause..=pause + pause / 4))
    }

    /// Goes to the longest pause at once, for a fault that only an operator can fix.
    pub(super) fn longest_pause(&mut self) -> Duration {
        self.next = self.longest;
        self.pause()
    }

    /// The next failure counts as the first again.
    pub(super) fn reset(&mut self) {
        self.next = self.shortest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_cap_and_start_again_after_a_reset() {
        let milli = Duration::from_millis;
        let mut backoff = Backoff::new(&(milli(10)..=milli(50)), Jitter::new(3));
        let near = |pause: Duration, wanted| pause >= milli(wanted) && pause <= milli(wanted) * 5 / 4;
        for wanted in [10, 20, 40, 50, 50] {
            assert!(near(backoff.pause(), wanted));
        }
        backoff.reset();
        assert!(near(backoff.pause(), 10));
        assert!(near(backoff.longest_pause(), 50));
        assert!(near(backoff.pause(), 50));
    }

    #[test]
    fn pauses_differ_from_client_to_client() {
        let bounds = Duration::from_millis(10)..=Duration::from_millis(50);
        let pauses = (0..10).map(|seed| Backoff::new(&bounds, Jitter::new(seed)).pause());
        assert!(pauses.collect::<std::collections::BTreeSet<_>>().len() > 5);
    }
}
