//! What a connection does for itself: it stays open, logs in anew, and notices another server.
//!
//! `PING` where nothing has come for `keep_alive`, and `AUTH` with a new login on a connection that
//! is in use. Both are in the flight with the requests of locks, so their answers find them;
//! neither answer is a vote.

use std::time::Duration;

use super::handshake::{Handshake, encode_auth};
use super::wording::Form;
use super::{Connection, RunId, State, Warning};
use crate::endpoint::Login;
use crate::protocol::{Action, Cause, Claim, Request, Ttl};
use crate::time::Instant;
use crate::wire::{self, Reply, ServerError};

/// `INFO` tells the uptime in whole seconds, of clocks that count whole seconds.
const UPTIME_GRAIN: Duration = Duration::from_secs(1);

/// The server of an earlier connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Former {
    run_id: RunId,
    /// It was still there at this instant.
    heard_at: Instant,
}

impl Request {
    /// What the connection asks for itself: for no lock, and no one waits for the answer.
    pub(super) fn of_connection(action: Action) -> Self {
        Self {
            ticket: None,
            action,
            claim: Claim::none(),
            ttl: Ttl::LONGEST,
            fence: None,
            watch: false,
            insists: false,
            waited: None,
        }
    }
}

impl Connection {
    // Quiet connections.

    /// When a `PING` is due. While an answer is awaited, that tells as much.
    #[inline]
    pub(super) fn next_ping(&self) -> Option<Instant> {
        let quiet = self.config.keep_alive.filter(|_| self.flight.is_empty())?;
        Some(self.last_received + quiet)
    }

    pub(super) fn ping_if_due(&mut self, now: Instant) {
        if self.is_ready() && self.next_ping().is_some_and(|at| at <= now) {
            let before = self.outbound.len();
            wire::encode(&mut self.outbound, &[b"PING"]);
            self.await_own(Action::Ping, before, now);
        }
    }

    // Logins.

    /// Logs in anew without a pause in the service. A connection that is still greeting has used an
    /// earlier login, and does it once it is ready; one that is not there yet asks when it is.
    pub(crate) fn reauthenticate(&mut self, login: Login, now: Instant) {
        match &mut self.state {
            State::Ready => {
                let before = self.outbound.len();
                encode_auth(&login, self.dialect, &mut self.outbound);
                self.await_own(Action::Login, before, now);
            }
            State::Greeting { handshake, .. } => handshake.newer_login = Some(login),
            State::Resting { .. } | State::Opening { .. } | State::Asking { .. } | State::Draining => {}
        }
    }

    pub(super) fn await_own(&mut self, action: Action, before: usize, now: Instant) {
        let bytes = self.outbound.len() - before;
        self.flight.push(&Request::of_connection(action), Form::Plain, now, bytes, false);
    }

    /// The answer to what the connection asked for itself.
    #[cold]
    pub(super) fn own_answer(&mut self, action: Action, reply: &Reply<'_>) -> Result<(), Cause> {
        match (action, reply) {
            // The server keeps the old login, but not for long: the next greeting has a new one.
            (Action::Login, Reply::Error(text)) => Err(self.login_refused(ServerError::classify(text))),
            // An error to a PING is a sign of life too.
            _ => {
                self.prove();
                Ok(())
            }
        }
    }

    pub(super) fn login_refused(&self, error: ServerError) -> Cause {
        match self.config.masters.get(self.id.index()) {
            Some(endpoint) => self.config.refused_login(endpoint, error),
            None => Cause::Server(error),
        }
    }

    // One name, several servers.

    /// The connection ends: what is known of its server is kept for the next one.
    pub(super) fn leave_server(&mut self) {
        if let Some(run_id) = self.identity.take() {
            self.former = Some(Former { run_id, heard_at: self.heard_at });
        }
    }

    /// Looks whether another server answers than before, although that was not restarted: the new
    /// one was up already when the old one answered last. Locks may be held on the old one, and
    /// other clients may reach it still, so this one has no vote until they must have expired.
    pub(super) fn look_for_other_server(&mut self, handshake: &Handshake, now: Instant) {
        // A server that was found by asking is expected to change. What becomes of locks then is
        // for the restart guard and the replicas, or is said by the URL.
        let former = self.former.filter(|_| self.search.is_none());
        if let (Some(former), Some(run_id), Some(uptime)) = (former, handshake.run_id, handshake.uptime) {
            let since = now.since(former.heard_at);
            if run_id != former.run_id && uptime.saturating_sub(UPTIME_GRAIN) > since {
                let longest = self.fleet.map_or(self.longest_asked, |fleet| fleet.longest_ttl);
                self.other_server_until = Some(now + longest.as_duration());
            }
        }
        if self.other_server_for(now).is_some() {
            self.warnings.push(Warning::OtherServer);
        }
    }

    /// For how long the server has no vote yet, because another one had its address before.
    fn other_server_for(&self, now: Instant) -> Option<Duration> {
        let left = self.other_server_until?.since(now);
        (!left.is_zero()).then_some(left)
    }
}
