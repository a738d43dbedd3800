//! Notifications: the master says when a key changes that a lock here waits for.
//!
//! `CLIENT TRACKING ON NOLOOP` (Redis command page of CLIENT TRACKING, and "Client-side caching"):
//! every key that the connection reads is remembered by the server, and its next change by another
//! client comes back as one message. A change by this connection uses the registration up without a
//! message (NOLOOP), so the connection tells of it itself when its answer comes. So it does when it
//! leaves the queue of a resource, whose next place may be one of its own, too. Tracking is asked
//! for by the first request of a waiter and ended when nobody has waited for a while. It needs
//! RESP3: with RESP2 the messages would need a connection of their own.

use std::time::Duration;

use bytes::Bytes;

use super::{Answers, Connection, Warning, Wording};
use crate::protocol::{Action, Answer, Request};
use crate::time::Instant;
use crate::wire::{Dialect, Reply};

/// What a master says without being asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// A key that was watched has changed: which says nothing more, it may have been renewed.
    Changed(Bytes),
    /// This connection itself has changed a key, of which the server says nothing.
    ChangedByUs(Bytes),
    /// This connection itself has taken a place out of the queue of the resource with this key. The
    /// server says nothing of it if the next place is one of this connection, too.
    LeftByUs(Bytes),
    /// All keys have: they were flushed.
    AllChanged,
    /// Nothing will be told any more of what was watched.
    Deaf,
}

/// Whether the present connection is told of changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Tracking {
    #[default]
    Off,
    /// It was asked for; what the server read before it said yes is not watched. A lock last waited
    /// at that instant.
    On { confirmed: bool, waited_at: Instant },
    /// The server does not do it, or not for us.
    Denied,
}

/// Two waits within this time are one: to ask for it and to end it costs a request each.
const LINGERS: Duration = Duration::from_secs(5);

impl Connection {
    /// Before a request is sent: a waiter's has tracking on.
    pub(super) fn track(&mut self, watch: bool, now: Instant, answers: &mut Answers) {
        match &mut self.tracking {
            Tracking::Off if watch && self.dialect == Dialect::Resp3 && self.config.wake_ups => {
                self.tracking = Tracking::On { confirmed: false, waited_at: now };
                self.switch(true, now, answers);
            }
            Tracking::On { waited_at, .. } if watch => *waited_at = now,
            Tracking::On { waited_at, .. } if now.since(*waited_at) >= LINGERS => {
                // A lock may still wait for a notification: it asks again, which switches tracking
                // on again.
                self.track_no_more(answers);
                self.switch(false, now, answers);
            }
            _ => {}
        }
    }

    fn switch(&mut self, on: bool, now: Instant, answers: &mut Answers) {
        let action = if on { Action::Track } else { Action::Untrack };
        let request = Request { watch: on, ..Request::of_connection(action) };
        self.send(&request, &mut Wording::default(), now, answers);
    }

    pub(super) fn is_tracked(&self) -> bool {
        matches!(self.tracking, Tracking::On { confirmed: true, .. })
    }

    /// The server's word on it.
    pub(super) fn tracked(&mut self, on: bool, reply: &Reply<'_>) {
        let Tracking::On { confirmed, .. } = &mut self.tracking else { return };
        if let (true, Reply::Error(error)) = (on, reply) {
            // Others are asked again: the server was busy, or still loading.
            let is_final = error.starts_with(b"NOPERM") || error.starts_with(b"ERR");
            self.tracking = if is_final { Tracking::Denied } else { Tracking::Off };
            if is_final {
                self.warnings.push(Warning::TrackingDenied);
            }
        } else {
            // Where it was ended and asked for again, the answer to the first of them counts for
            // nothing.
            *confirmed = on;
        }
    }

    /// A message that answers no command. Whatever is not about a key means nothing here.
    pub(super) fn push(&self, fields: &[Reply<'_>], answers: &mut Answers) {
        match fields {
            [kind, Reply::Array(keys)] if kind.as_bytes() == Some(b"invalidate") => {
                for key in keys.iter().filter_map(|key| self.untagged(key.as_bytes()?)) {
                    answers.tell(self.id, News::Changed(Bytes::copy_from_slice(key)));
                }
            }
            [kind, Reply::Null] if kind.as_bytes() == Some(b"invalidate") => {
                answers.tell(self.id, News::AllChanged);
            }
            _ => {}
        }
    }

    /// This connection has changed keys. With NOLOOP the server forgets that it waits for them, and
    /// says nothing.
    pub(super) fn tell_own_changes(&self, request: &Request, answer: Answer, answers: &mut Answers) {
        let copies = || request.claim.resources().map(Bytes::copy_from_slice);
        // Others of this process wait beside one that takes its attempt back only where several may
        // be in front.
        let is_change = request.action.changes_held_key()
            || request.action == Action::Undo && request.claim.has_neighbours();
        if is_change && answer == Answer::Yes {
            copies().for_each(|key| answers.tell(self.id, News::ChangedByUs(key)));
        }
        // The place goes whether or not the lock was held.
        let leaves = request.action == Action::Release && request.claim.as_queued().is_some();
        if leaves && matches!(answer, Answer::Yes | Answer::No) {
            copies().for_each(|key| answers.tell(self.id, News::LeftByUs(key)));
        }
    }

    /// The connection has ended, and what it watched with it.
    pub(super) fn track_no_more(&mut self, answers: &mut Answers) {
        if self.is_tracked() {
            answers.tell(self.id, News::Deaf);
        }
        self.tracking = Tracking::Off;
    }
}
