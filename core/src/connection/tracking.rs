//! Notifications: the master reports changes of keys that locks here wait for.
//!
//! `CLIENT TRACKING ON NOLOOP` (Redis command page of CLIENT TRACKING, and "Client-side caching"):
//! every key that the connection reads is remembered by the server, and its next change by another
//! client comes back as one message. A change by this connection consumes the registration without
//! a message (NOLOOP), so the connection itself reports the change when its answer comes. It does
//! the same when it leaves a resource's queue, because the next place may also be its own. The
//! first request of a waiter turns tracking on, and it is turned off when no lock has waited for a
//! while. It needs RESP3: with RESP2 the messages would need their own connection.

use std::time::Duration;

use bytes::Bytes;

use super::{Answers, Connection, Warning, Wording};
use crate::protocol::{Action, Answer, Cause, Request};
use crate::time::Instant;
use crate::wire::{Dialect, Reply};

/// A master's unsolicited message, or what the connection finds out about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// A watched key has changed. It may only have been renewed.
    Changed(Bytes),
    /// This connection itself has changed a key, so the server sends no message.
    ChangedByUs(Bytes),
    /// This connection itself has removed a place from the queue of the resource with this key. The
    /// server sends no message if the next place also belongs to this connection.
    LeftByUs(Bytes),
    /// All keys have changed: they were flushed.
    AllChanged,
    /// Watched keys are no longer reported.
    Deaf,
    /// From now on it keeps no places in queues.
    QueuesDenied,
}

/// Whether the present connection is notified of changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Tracking {
    #[default]
    Off,
    /// Tracking was requested; keys read before the confirmation are not watched. A lock last
    /// waited at `waited_at`.
    On { confirmed: bool, waited_at: Instant },
    /// The server does not support it, or denies it.
    Denied,
}

/// How long tracking stays on after the last wait: turning it on and off costs a request each.
const LINGERS: Duration = Duration::from_secs(5);

/// The warning if a Redis of this version also notifies of what the connection's own scripts
/// change, although NOLOOP is on. It sends that behind the script's reply, so a waiter would take
/// each of its own requests for a release, and ask again at once.
pub(super) fn echoes(redis_version: Option<&[u8]>) -> Option<Warning> {
    let number = |part: &str| part.parse::<u32>().ok();
    let mut parts = std::str::from_utf8(redis_version?).ok()?.split('.').map(number);
    let version = [(); 3].map(|()| parts.next().flatten());
    let echoes = matches!(version, [Some(6), Some(2), Some(..8)] | [Some(7), Some(0), Some(..5)]);
    echoes.then_some(Warning::TrackingEchoes)
}

impl Connection {
    /// Before a request is sent: a waiter's request needs tracking. Any other request matters only
    /// once tracking is not off.
    pub(super) fn track(&mut self, watch: bool, now: Instant, answers: &mut Answers) {
        match &mut self.tracking {
            Tracking::Off if self.dialect == Dialect::Resp3 && self.config.wake_ups => {
                self.tracking = Tracking::On { confirmed: false, waited_at: now };
                self.switch(true, now, answers);
            }
            Tracking::On { waited_at, .. } if watch => *waited_at = now,
            Tracking::On { waited_at, .. } if now.since(*waited_at) >= LINGERS => {
                // A lock may still wait for a notification: it asks again, which turns tracking on
                // again.
                self.track_no_more(answers);
                self.switch(false, now, answers);
            }
            _ => {}
        }
    }

    fn switch(&mut self, on: bool, now: Instant, answers: &mut Answers) {
        let action = if on { Action::Track } else { Action::Untrack };
        self.send(&Request::of_connection(action), &mut Wording::default(), now, answers);
    }

    pub(super) fn is_tracked(&self) -> bool {
        matches!(self.tracking, Tracking::On { confirmed: true, .. })
    }

    /// The server's reply about tracking.
    pub(super) fn tracked(&mut self, on: bool, reply: &Reply<'_>) {
        let Tracking::On { confirmed, .. } = &mut self.tracking else { return };
        if let (true, Reply::Error(error)) = (on, reply) {
            // After other errors it is tried again: the server was busy, or still loading.
            let is_final = error.starts_with(b"NOPERM") || error.starts_with(b"ERR");
            self.tracking = if is_final { Tracking::Denied } else { Tracking::Off };
            if is_final {
                self.warnings.push(Warning::TrackingDenied);
            }
        } else {
            // If it was turned off and on again, the answer to the first request does not count.
            *confirmed = on;
        }
    }

    /// A message that answers no command. Messages that are not about keys are ignored, and too
    /// many that nobody asked for end the connection.
    pub(super) fn push(
        &mut self,
        fields: &[Reply<'_>],
        now: Instant,
        answers: &mut Answers,
    ) -> Result<(), Cause> {
        match fields {
            [kind, Reply::Array(keys)] if kind.as_bytes() == Some(b"invalidate") => {
                self.pushes.take(keys.len(), now)?;
                for key in keys.iter().filter_map(|key| self.untagged(key.as_bytes()?)) {
                    answers.tell(self.id, News::Changed(Bytes::copy_from_slice(key)));
                }
            }
            [kind, Reply::Null] if kind.as_bytes() == Some(b"invalidate") => {
                self.pushes.take(1, now)?;
                answers.tell(self.id, News::AllChanged);
            }
            _ => self.pushes.take(1, now)?,
        }
        Ok(())
    }

    /// This connection has changed keys. With NOLOOP the server forgets the registration without a
    /// message.
    pub(super) fn tell_own_changes(&self, request: &Request, answer: Answer, answers: &mut Answers) {
        let copies = || request.claim.resources().map(Bytes::copy_from_slice);
        let is_change = match answer {
            // An undo matters only if other locks of this process may request the same keys
            // meanwhile: locks of several resources, and permits. Otherwise only the lock in front
            // makes requests.
            Answer::Yes if request.action == Action::Undo => request.claim.has_neighbours(),
            Answer::Yes | Answer::OursInQuarantine { .. } => request.action.changes_held_key(),
            // A release of several keys deletes those that are ours, even if others are not. So
            // does an undo, but two local waiters would wake each other with theirs without end.
            Answer::No | Answer::Holder { .. } => {
                request.action == Action::Release && request.claim.has_neighbours()
            }
            _ => false,
        };
        if is_change {
            copies().for_each(|key| answers.tell(self.id, News::ChangedByUs(key)));
        }
        // The place is removed whether or not the lock was held.
        let leaves =
            matches!(request.action, Action::Release | Action::Keep) && request.claim.as_queued().is_some();
        if leaves && matches!(answer, Answer::Yes | Answer::No) {
            copies().for_each(|key| answers.tell(self.id, News::LeftByUs(key)));
        }
    }

    /// The connection has ended, and tracking with it.
    pub(super) fn track_no_more(&mut self, answers: &mut Answers) {
        if self.is_tracked() {
            answers.tell(self.id, News::Deaf);
        }
        self.tracking = Tracking::Off;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_notify_of_own_scripts_are_recognized() {
        let warned = Some(Warning::TrackingEchoes);
        for (version, warning) in [
            ("6.0.16", None),
            ("6.2.0", warned),
            ("6.2.7", warned),
            ("6.2.8", None),
            ("7.0.0", warned),
            ("7.0.4", warned),
            ("7.0.5", None),
            ("7.2.4", None),
            ("7", None),
            ("8.0.0-rc1", None),
        ] {
            assert_eq!(Warning::of_version(version), warning, "{version}");
        }
        assert_eq!(echoes(None), None);
    }
}
