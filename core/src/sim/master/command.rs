//! One command as a server reads it, and what it means to a lock.

use std::fmt;

use crate::wire::{EXTEND, RELEASE, Script, UNDO};

/// A command with its arguments.
///
/// Arguments hold keys, tokens and passwords, so `Debug` shows only what kind of command it is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Command {
    arguments: Vec<Vec<u8>>,
}

/// What a command is to a lock. A script goes by what it does, whether it was sent as text or by its SHA-1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum CommandKind {
    /// `SET`: a request for a lock.
    Set,
    /// `GET`
    Get,
    /// The script that lengthens a lock's life.
    Extend,
    /// The script that releases a lock.
    Release,
    /// The script that takes back a request and tells who holds the key.
    Undo,
    /// `HELLO`
    Hello,
    /// `AUTH`
    Auth,
    /// `SELECT`
    Select,
    /// `CLIENT` with any subcommand.
    Client,
    /// `INFO`
    Info,
    /// `SCRIPT` with any subcommand.
    Script,
    /// Anything else.
    Other,
}

impl Command {
    /// A command with these arguments, of which the first is its name.
    pub fn new<A: Into<Vec<u8>>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self { arguments: arguments.into_iter().map(Into::into).collect() }
    }

    /// All arguments, the name first.
    pub fn arguments(&self) -> &[Vec<u8>] {
        &self.arguments
    }

    /// The name as it was sent, in any case; empty if there is none.
    pub fn name(&self) -> &[u8] {
        self.argument(0).unwrap_or_default()
    }

    /// What it is to a lock.
    pub fn kind(&self) -> CommandKind {
        if let Some(script) = self.script() {
            return SCRIPTS
                .iter()
                .find(|(known, _)| *known == script)
                .map_or(CommandKind::Other, |(_, kind)| *kind);
        }
        NAMES
            .iter()
            .find(|kind| self.name().eq_ignore_ascii_case(kind.name().as_bytes()))
            .copied()
            .unwrap_or(CommandKind::Other)
    }

    /// The key of a lock command; none of any other command.
    pub fn key(&self) -> Option<&[u8]> {
        match self.kind() {
            CommandKind::Set | CommandKind::Get => self.argument(1),
            CommandKind::Extend | CommandKind::Release | CommandKind::Undo => self.argument(3),
            _ => None,
        }
    }

    /// The token of a lock command; none of any other command. Keep it out of logs.
    pub fn token(&self) -> Option<&[u8]> {
        match self.kind() {
            CommandKind::Set => self.argument(2),
            CommandKind::Extend | CommandKind::Release | CommandKind::Undo => self.argument(4),
            _ => None,
        }
    }

    pub(super) fn argument(&self, place: usize) -> Option<&[u8]> {
        self.arguments.get(place).map(Vec::as_slice)
    }

    /// The script that an EVAL or EVALSHA names.
    pub(super) fn script(&self) -> Option<&'static Script> {
        let named = self.argument(1)?;
        if self.name().eq_ignore_ascii_case(b"EVAL") {
            script_by_text(named)
        } else if self.name().eq_ignore_ascii_case(b"EVALSHA") {
            script_by_sha1(named)
        } else {
            None
        }
    }
}

/// The script with exactly this text.
pub(super) fn script_by_text(text: &[u8]) -> Option<&'static Script> {
    SCRIPTS.iter().map(|(script, _)| *script).find(|script| script.text.as_bytes() == text)
}

/// The script with this SHA-1, in any case.
pub(super) fn script_by_sha1(sha1: &[u8]) -> Option<&'static Script> {
    SCRIPTS
        .iter()
        .map(|(script, _)| *script)
        .find(|script| script.sha1_hex.as_bytes().eq_ignore_ascii_case(sha1))
}

impl CommandKind {
    /// Its name in capitals.
    pub fn name(self) -> &'static str {
        match self {
            Self::Set => "SET",
            Self::Get => "GET",
            Self::Extend => "EXTEND",
            Self::Release => "RELEASE",
            Self::Undo => "UNDO",
            Self::Hello => "HELLO",
            Self::Auth => "AUTH",
            Self::Select => "SELECT",
            Self::Client => "CLIENT",
            Self::Info => "INFO",
            Self::Script => "SCRIPT",
            Self::Other => "other",
        }
    }

    /// The text and the SHA-1 of the script, if it is one.
    pub fn script(self) -> Option<(&'static str, &'static str)> {
        SCRIPTS.iter().find(|(_, kind)| *kind == self).map(|(script, _)| (script.text, script.sha1_hex))
    }
}

impl fmt::Display for CommandKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Command({}, {} arguments)", self.kind(), self.arguments.len())
    }
}

const SCRIPTS: [(&Script, CommandKind); 3] =
    [(&RELEASE, CommandKind::Release), (&EXTEND, CommandKind::Extend), (&UNDO, CommandKind::Undo)];

/// The kinds that are commands of the server.
const NAMES: [CommandKind; 8] = [
    CommandKind::Set,
    CommandKind::Get,
    CommandKind::Hello,
    CommandKind::Auth,
    CommandKind::Select,
    CommandKind::Client,
    CommandKind::Info,
    CommandKind::Script,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_known_by_text_and_by_sha_1() {
        for (script, kind) in SCRIPTS {
            let sent = [
                ["EVAL", script.text, "1", "invoice:42", "token"],
                ["evalsha", script.sha1_hex, "1", "invoice:42", "token"],
                ["EVALSHA", &script.sha1_hex.to_ascii_uppercase(), "1", "invoice:42", "token"],
            ];
            for arguments in sent {
                let command = Command::new(arguments);
                assert_eq!(command.kind(), kind);
                assert_eq!(command.key(), Some(&b"invoice:42"[..]));
                assert_eq!(command.token(), Some(&b"token"[..]));
            }
        }
        assert_eq!(Command::new(["EVAL", "return 1", "0"]).kind(), CommandKind::Other);
    }

    #[test]
    fn debug_shows_no_argument() {
        let command = Command::new(["set", "invoice:42", "secret", "NX", "PX", "100"]);
        assert_eq!(format!("{command:?}"), "Command(SET, 6 arguments)");
        assert_eq!((command.key(), command.token()), (Some(&b"invoice:42"[..]), Some(&b"secret"[..])));
    }
}
