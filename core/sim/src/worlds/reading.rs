//! The meaning of commands and replies for the observer.

use std::fmt;
use std::time::Duration;

use quorlock_core::Resource;

use super::groups::untagged;
use super::observer::Observer;
use super::random::nanos;
use super::state::State;
use super::timeline::Key;
use crate::master::{Command, CommandKind, Held, sharers};
use crate::picture::Outcome;

impl State {
    /// Records the keys that masters have now in the timeline.
    pub(super) fn look_at_keys(&mut self) {
        if !self.timeline.is_kept() {
            return;
        }
        let now = self.now;
        for (master, node) in self.masters.iter().enumerate() {
            let server_now = Duration::from_nanos(node.clock.read(now));
            let entries = node.model.keys(server_now).flat_map(|held| entries(held, server_now));
            let present = entries.filter_map(|(resource, token, end)| {
                let known = self.observer.known.get(token)?;
                let until = end.map_or(u64::MAX, |end| node.clock.when(nanos(end)));
                Some(Key { master, client: known.client, resource, token: known.number, from: now, until })
            });
            self.timeline.keys_are(master, now, present.collect());
        }
    }
}

/// The tokens that a master's key keeps, each with its resource and its end: the token that is the
/// key's value, or those of the sharers that have not ended.
pub(super) fn entries(
    held: Held<'_>,
    now: Duration,
) -> impl Iterator<Item = (Resource, &[u8], Option<Duration>)> {
    let key = untagged(held.key);
    let resource = Resource::new(key).ok().or_else(|| semaphore(key));
    let sharers = held.value.and_then(sharers::read).map(|(_, entries)| entries);
    let alone = held.value.filter(|_| sharers.is_none()).map(|token| (token, held.expires_at));
    let ends = sharers::each(sharers.unwrap_or_default())
        .map(|(end, token)| (token, Duration::from_millis(end.unsigned_abs())));
    let present = ends.filter(move |(_, end)| *end > now).map(|(token, end)| (token, Some(end)));
    let tokens = alone.into_iter().chain(present);
    tokens.filter_map(move |(token, end)| Some((resource.clone()?, token, end)))
}

/// The semaphore of which this is the key of a permit.
fn semaphore(key: &[u8]) -> Option<Resource> {
    let rest = key.strip_prefix(b"quorlock:seat:")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    beside(rest.get(digits..)?)
}

/// The resource of an auxiliary key, from the text after the key's own prefix.
fn beside(rest: &[u8]) -> Option<Resource> {
    Resource::new(rest.strip_prefix(b":").or_else(|| rest.strip_prefix(b"/{")?.strip_suffix(b"}"))?).ok()
}

/// The keys of the resources that a command is about.
fn lock_keys(command: &Command) -> Vec<&[u8]> {
    let Some(shape) = Shape::of(command) else { return command.key().into_iter().collect() };
    let written = 0..shape.written;
    let shared = (0..shape.read).map(|target| shape.written + 2 * target);
    written.chain(shared).filter_map(|key| command.script_key(key)).collect()
}

/// The keys that count the grants of a command that numbers them.
pub(super) fn counters(command: &Command) -> Vec<&[u8]> {
    match (command.kind(), Shape::of(command)) {
        (_, Some(shape)) if shape.counts => {
            let first = shape.written * if shape.marks { 2 } else { 1 } + 2 * shape.read;
            let counters = first..first + shape.written + shape.read;
            counters.filter_map(|key| command.script_key(key)).collect()
        }
        (
            CommandKind::AcquireFenced
            | CommandKind::AcquireFencedGuarded
            | CommandKind::Raise
            | CommandKind::ExtendFenced
            | CommandKind::HealFenced,
            None,
        ) => command.script_key(1).into_iter().collect(),
        (CommandKind::Enter, None) if command.script_value(6).is_some_and(|flags| flags.contains(&b'f')) => {
            command.script_key(4).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The numbers of targets and the options with which a script of several targets was called,
/// according to its arguments.
struct Shape {
    written: usize,
    read: usize,
    marks: bool,
    counts: bool,
}

impl Shape {
    fn of(command: &Command) -> Option<Self> {
        let is_all = matches!(
            command.kind(),
            CommandKind::AcquireAll
                | CommandKind::RaiseAll
                | CommandKind::ExtendAll
                | CommandKind::HealAll
                | CommandKind::ReleaseAll
                | CommandKind::KeepAll
        );
        let takes_seat = command.kind() == CommandKind::Take;
        let number = |value| std::str::from_utf8(command.script_value(value)?).ok()?.parse().ok();
        let flags = command.script_value(4).filter(|_| is_all || takes_seat)?;
        let has = |flag| flags.contains(&flag);
        let read = if takes_seat { 0 } else { number(6)? };
        Some(Self { written: number(5)?, read, marks: is_all && has(b'm'), counts: has(b'f') })
    }
}

/// A command as timelines show it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Named {
    pub(super) kind: CommandKind,
    /// The command's own name, for commands without a name here.
    name: String,
    pub(super) key: String,
    /// The number of its token, if a client has asked for a lock with it.
    pub(super) token: Option<usize>,
    /// The requested TTL, or the number to raise to.
    value: String,
}

/// The result of a command as timelines show it.
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
            CommandKind::RaiseAll => text(command.script_value(3)),
            _ => ttl_millis(command).unwrap_or_default().to_string(),
        };
        let token = command.token().and_then(|token| self.known.get(token)).map(|known| known.number);
        let keys: Vec<&[u8]> = lock_keys(command).into_iter().map(untagged).collect();
        let key = text(Some(&keys.join(&b' ')));
        Named { kind, name: text(Some(command.name())), key, token, value }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, key, token, value } = self;
        let token = token.map_or_else(|| "a token".to_owned(), |number| format!("token {number}"));
        match kind {
            CommandKind::Raise => write!(f, "RAISE {key} {token} to {value}"),
            CommandKind::RaiseAll => write!(f, "{kind} {key} {token} to {value}"),
            CommandKind::ExtendFenced | CommandKind::ExtendAll => {
                write!(f, "{kind} {key} {token} by {value}")
            }
            _ if is_request(*kind) && *kind != CommandKind::Set || is_heal(*kind) => {
                write!(f, "{kind} {key} {token} PX {value}")
            }
            CommandKind::Attend => write!(f, "{kind}"),
            CommandKind::Set => write!(f, "SET {key} {token} NX PX {value}"),
            CommandKind::Extend => write!(f, "EXTEND {key} {token} by {value}"),
            CommandKind::Release => write!(f, "RELEASE {key} {token}"),
            CommandKind::Undo => write!(f, "UNDO {key} {token}"),
            CommandKind::Keep | CommandKind::KeepLeaving => write!(f, "{kind} {key} {token} PX {value}"),
            CommandKind::ReleaseAll | CommandKind::Leave => write!(f, "{kind} {key} {token}"),
            _ => f.write_str(name),
        }
    }
}

/// The result of a command.
pub(super) fn answer(command: &Command, reply: &[u8]) -> Answer {
    let kind = command.kind();
    let is_vote = is_extension(kind) || is_heal(kind) || is_raise(kind);
    let outcome = match () {
        () if reply.starts_with(b"-") => Outcome::Failed,
        () if is_grant(command, reply) => Outcome::Granted,
        () if is_vote && reply.starts_with(b":") && reply != b":0\r\n" => Outcome::Granted,
        () if is_vote || is_request(kind) => Outcome::Refused,
        () => Outcome::Done,
    };
    Answer { text: summary(reply), outcome }
}

/// Whether the command requests a lock.
pub(super) fn is_request(kind: CommandKind) -> bool {
    matches!(
        kind,
        CommandKind::Set
            | CommandKind::AcquireFenced
            | CommandKind::AcquireGuarded
            | CommandKind::AcquireFencedGuarded
            | CommandKind::AcquireReading
            | CommandKind::AcquireAll
            | CommandKind::Take
            | CommandKind::Enter
    )
}

pub(super) fn is_extension(kind: CommandKind) -> bool {
    matches!(kind, CommandKind::Extend | CommandKind::ExtendFenced | CommandKind::ExtendAll)
}

pub(super) fn is_raise(kind: CommandKind) -> bool {
    matches!(kind, CommandKind::Raise | CommandKind::RaiseAll)
}

/// Whether the command restores keys.
pub(super) fn is_heal(kind: CommandKind) -> bool {
    matches!(kind, CommandKind::Heal | CommandKind::HealFenced | CommandKind::HealAll)
}

/// Whether the command removes keys.
pub(super) fn is_parting(kind: CommandKind) -> bool {
    matches!(
        kind,
        CommandKind::Release
            | CommandKind::ReleaseAny
            | CommandKind::Undo
            | CommandKind::ReleaseAll
            | CommandKind::Leave
    )
}

/// Whether the command ends a lock, but lets its keys keep others out.
pub(super) fn is_keeping(kind: CommandKind) -> bool {
    matches!(kind, CommandKind::Keep | CommandKind::KeepAll | CommandKind::KeepLeaving)
}

/// Whether the command requested a lock that this answer grants.
pub(super) fn is_grant(command: &Command, answer: &[u8]) -> bool {
    let is_number = answer.starts_with(b":") && answer != b":0\r\n";
    let has_seats = command.kind() == CommandKind::Take && answer.starts_with(b"*3\r\n$5\r\nseats\r\n");
    is_request(command.kind()) && (answer.starts_with(b"+") || is_number || has_seats)
}

/// The TTL that a command requests for its key: the argument after `PX`, or after the token.
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
