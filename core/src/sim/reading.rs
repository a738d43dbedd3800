//! What commands and replies mean to whoever looks on.

use super::master::{Command, CommandKind};
use super::observer::Observer;

impl Observer {
    /// A command as the timeline shows it.
    pub(super) fn name(&self, command: &Command) -> String {
        let token = || match command.token().and_then(|token| self.known.get(token)) {
            Some(known) => format!("token {}", known.number),
            None => "a token".to_owned(),
        };
        let key = || String::from_utf8_lossy(command.key().unwrap_or_default()).into_owned();
        let ttl = || ttl_millis(command).unwrap_or_default();
        let kind = command.kind();
        match kind {
            CommandKind::Raise => {
                let number = String::from_utf8_lossy(command.script_value(2).unwrap_or_default());
                format!("RAISE {} {} to {number}", key(), token())
            }
            CommandKind::ExtendFenced => format!("{kind} {} {} by {}", key(), token(), ttl()),
            _ if is_request(kind) && kind != CommandKind::Set || kind == CommandKind::HealFenced => {
                format!("{kind} {} {} PX {}", key(), token(), ttl())
            }
            CommandKind::Attend => kind.to_string(),
            CommandKind::Set => format!("SET {} {} NX PX {}", key(), token(), ttl()),
            CommandKind::Extend => format!("EXTEND {} {} by {}", key(), token(), ttl()),
            CommandKind::Release => format!("RELEASE {} {}", key(), token()),
            CommandKind::Undo => format!("UNDO {} {}", key(), token()),
            _ => String::from_utf8_lossy(command.name()).into_owned(),
        }
    }
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
pub(super) fn summary(reply: &[u8]) -> String {
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
