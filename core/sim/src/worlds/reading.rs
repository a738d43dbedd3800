//! What commands and replies mean to whoever looks on.

use std::fmt;
use std::time::Duration;

use quorlock_core::Resource;

use super::observer::Observer;
use super::random::nanos;
use super::state::State;
use super::timeline::Key;
use crate::master::{Command, CommandKind};
use crate::picture::Outcome;

impl State {
    /// Has the timeline know the keys that masters keep now.
    pub(super) fn look_at_keys(&mut self) {
        if !self.timeline.is_kept() {
            return;
        }
        let now = self.now;
        for (master, node) in self.masters.iter().enumerate() {
            let server_now = Duration::from_nanos(node.clock.read(now));
            let present = node.model.keys(server_now).filter_map(|held| {
                let known = self.observer.known.get(held.value?)?;
                let resource = Resource::new(held.key).ok()?;
                let end = node.model.expires_at(0, resource.key(), server_now);
                let until = end.map_or(u64::MAX, |end| node.clock.when(nanos(end)));
                Some(Key { master, client: known.client, resource, token: known.number, from: now, until })
            });
            self.timeline.keys_are(master, now, present.collect());
        }
    }
}

/// A command, as timelines show it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Named {
    pub(super) kind: CommandKind,
    /// The command's own name, for those that go by no other.
    name: String,
    pub(super) key: String,
    /// The number of its token, if somebody has asked for a lock with it.
    pub(super) token: Option<usize>,
    /// The life that it asks for, or the number to raise to.
    value: String,
}

/// What a command came to, as timelines show it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) outcome: Outcome,
}

impl Observer {
    /// A command as the timeline shows it.
    pub(super) fn name(&self, command: &Command) -> Named {
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        let kind = command.kind();
        let value = match kind {
            CommandKind::Raise => text(command.script_value(2)),
            _ => ttl_millis(command).unwrap_or_default().to_string(),
        };
        let token = command.token().and_then(|token| self.known.get(token)).map(|known| known.number);
        Named { kind, name: text(Some(command.name())), key: text(command.key()), token, value }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, key, token, value } = self;
        let token = token.map_or_else(|| "a token".to_owned(), |number| format!("token {number}"));
        match kind {
            CommandKind::Raise => write!(f, "RAISE {key} {token} to {value}"),
            CommandKind::ExtendFenced => write!(f, "{kind} {key} {token} by {value}"),
            _ if is_request(*kind) && *kind != CommandKind::Set || *kind == CommandKind::HealFenced => {
                write!(f, "{kind} {key} {token} PX {value}")
            }
            CommandKind::Attend => write!(f, "{kind}"),
            CommandKind::Set => write!(f, "SET {key} {token} NX PX {value}"),
            CommandKind::Extend => write!(f, "EXTEND {key} {token} by {value}"),
            CommandKind::Release => write!(f, "RELEASE {key} {token}"),
            CommandKind::Undo => write!(f, "UNDO {key} {token}"),
            CommandKind::Keep => write!(f, "KEEP {key} {token} PX {value}"),
            _ => f.write_str(name),
        }
    }
}

/// What a command came to.
pub(super) fn answer(command: &Command, reply: &[u8]) -> Answer {
    let kind = command.kind();
    let is_vote = matches!(
        kind,
        CommandKind::Extend | CommandKind::ExtendFenced | CommandKind::HealFenced | CommandKind::Raise
    );
    let outcome = match () {
        () if reply.starts_with(b"-") => Outcome::Failed,
        () if is_grant(command, reply) => Outcome::Granted,
        () if is_vote && reply.starts_with(b":") && reply != b":0\r\n" => Outcome::Granted,
        () if is_vote || is_request(kind) => Outcome::Refused,
        () => Outcome::Done,
    };
    Answer { text: summary(reply), outcome }
}

/// Whether it asks for a lock.
pub(super) fn is_request(kind: CommandKind) -> bool {
    matches!(
        kind,
        CommandKind::Set
            | CommandKind::AcquireFenced
            | CommandKind::AcquireGuarded
            | CommandKind::AcquireFencedGuarded
            | CommandKind::AcquireReading
    )
}

/// Whether it asked for a lock, and this answer grants it.
pub(super) fn is_grant(command: &Command, answer: &[u8]) -> bool {
    let is_number = answer.starts_with(b":") && answer != b":0\r\n";
    is_request(command.kind()) && (answer.starts_with(b"+") || is_number)
}

/// The life that a command asks for its key: the argument behind `PX`, or behind the token.
pub(super) fn ttl_millis(command: &Command) -> Option<u64> {
    let set = || command.arguments().get(5).map(Vec::as_slice);
    std::str::from_utf8(command.script_value(2).or_else(set)?).ok()?.parse().ok()
}

/// A reply in a few words.
fn summary(reply: &[u8]) -> String {
    let first = reply.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let text = String::from_utf8_lossy(first);
    match reply.first() {
        Some(b'+' | b':') => text.trim_start_matches(['+', ':']).to_owned(),
        Some(b'-') => text.split(' ').next().unwrap_or_default().to_owned(),
        Some(b'_') => "nil".to_owned(),
        Some(b'$') if reply.starts_with(b"$-1") => "nil".to_owned(),
        Some(_) => "answered".to_owned(),
        None => "no answer".to_owned(),
    }
}
