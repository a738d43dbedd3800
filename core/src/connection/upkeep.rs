//! What a connection does for itself: it stays open, logs in again, and notices another server.
//!
//! `PING` after `keep_alive` without a byte, and `AUTH` with a new login on a connection in use.
//! Both are in the flight with the requests of locks, so that each reply is matched with its own
//! request. Neither answer is a vote.

use std::time::Duration;

use super::handshake::{Handshake, encode_auth};
use super::wording::Form;
use super::{Connection, RunId, State, Warning};
use crate::endpoint::Login;
use crate::protocol::{Action, Cause, Claim, Request, Ttl};
use crate::time::Instant;
use crate::wire::{self, Reply, ServerError};

/// `INFO` reports the uptime in whole seconds, computed from clocks in whole seconds.
const UPTIME_GRAIN: Duration = Duration::from_secs(1);

/// The server of an earlier connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Former {
    run_id: RunId,
    /// The server was still up at this instant.
    heard_at: Instant,
}

impl Request {
    /// A request of the connection itself: it belongs to no lock, and none waits for the answer.
    pub(super) fn of_connection(action: Action) -> Self {
        Self::new(None, action, Claim::none(), Ttl::LONGEST)
    }
}

impl Connection {
    // Quiet connections.

    /// When a `PING` is due. While an answer is outstanding, no `PING` is needed.
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

    /// Logs in again without interrupting service. A connection that is still greeting has used an
    /// earlier login, and logs in again when it is ready. One that is not open yet gets a login
    /// when it is.
    pub(crate) fn reauthenticate(&mut self, login: Login, now: Instant) {
        match &mut self.state {
            State::Ready => {
                let before = self.outbound.len();
                encode_auth(&login, self.dialect, &mut self.outbound);
                self.await_own(Action::Login, before, now);
            }
            State::Greeting { handshake, .. } => handshake.newer_login = Some(login),
            State::Resting { .. } | State::Opening { .. } | State::Asking { .. } | State::Draining { .. } => {
            }
        }
    }

    pub(super) fn await_own(&mut self, action: Action, before: usize, now: Instant) {
        let bytes = self.outbound.len() - before;
        self.flight.push(&Request::of_connection(action), Form::Plain, now, bytes, false);
    }

    /// The answer to a request of the connection itself.
    #[cold]
    pub(super) fn own_answer(&mut self, action: Action, reply: &Reply<'_>) -> Result<(), Cause> {
        match (action, reply) {
            // The server keeps the old login, but this ends the connection, and the next greeting
            // has a new login.
            (Action::Login, Reply::Error(text)) => Err(self.login_refused(ServerError::classify(text))),
            // An error in answer to a PING is also a sign of life.
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

    /// The connection ends: keeps its server's identity for the next one.
    pub(super) fn leave_server(&mut self) {
        if let Some(run_id) = self.identity.take() {
            self.former = Some(Former { run_id, heard_at: self.heard_at });
        }
    }

    /// Checks whether another server answers now, although the former one did not restart: the new
    /// one was already up when the old one last answered. Locks may be held on the old one, and
    /// other clients may still reach it, so this one has no vote until those locks must have
    /// expired.
    pub(super) fn look_for_other_server(&mut self, handshake: &Handshake, now: Instant) {
        // A discovered server is expected to change. Then the restart guard and the replicas
        // protect locks, or the URL accepts their loss.
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

    /// How long the server has no vote yet because another one had its address before.
    fn other_server_for(&self, now: Instant) -> Option<Duration> {
        let left = self.other_server_until?.since(now);
        (!left.is_zero()).then_some(left)
    }
}
