//! One command as a server reads it, and its meaning for a lock.

use std::fmt;

use quorlock_core::internals::{
    ACQUIRE_ALL, ACQUIRE_FENCED, ACQUIRE_FENCED_GUARDED, ACQUIRE_GUARDED, ACQUIRE_READING, ALL, ATTEND,
    ENTER, EXTEND, EXTEND_ALL, EXTEND_FENCED, FORCE_RELEASE, GUARDED, HEAL_ALL, HEAL_FENCED, INSPECT, KEEP,
    KEEP_ALL, KEEP_LEAVING, LEAVE, OPEN, RAISE, RAISE_ALL, RELEASE, RELEASE_ALL, RELEASE_ANY, REPLICATED,
    Script, TAKE, UNDO,
};

use super::scripts::{before_look, behind_check};

/// A command with its arguments.
///
/// The arguments contain keys, tokens and passwords, so `Debug` shows only the kind of the command.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Command {
    arguments: Vec<Vec<u8>>,
}

/// The meaning of a command for a lock. Scripts are distinguished by what they do, whether they are
/// sent as text or by SHA-1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum CommandKind {
    /// `SET`: a request for a lock.
    Set,
    /// `GET`
    Get,
    /// The script that extends a lock.
    Extend,
    /// The script that releases a lock.
    Release,
    /// The script that undoes a request and reports which token holds the key.
    Undo,
    /// The script that requests a lock with a fencing token.
    AcquireFenced,
    /// The script that raises the fencing token of a grant.
    Raise,
    /// The script that extends a lock with a fencing token.
    ExtendFenced,
    /// The script that restores the key of a lock with a fencing token.
    HealFenced,
    /// The script that requests a lock under the restart guard.
    AcquireGuarded,
    /// The script that requests a lock with a fencing token under the restart guard.
    AcquireFencedGuarded,
    /// The script that asks whether the master votes under the restart guard.
    Attend,
    /// The script that lets the master vote at once.
    Open,
    /// The script that requests a lock and reports which other token holds the key.
    AcquireReading,
    /// The script that requests several or shared targets.
    AcquireAll,
    /// The script that raises the fencing token of a grant of several or shared targets.
    RaiseAll,
    /// The script that extends a lock of several or shared targets.
    ExtendAll,
    /// The script that restores the keys of a lock of several or shared targets.
    HealAll,
    /// The script that releases or undoes a lock of several or shared targets.
    ReleaseAll,
    /// The script that releases several targets, whose keys stay for a while.
    KeepAll,
    /// The script that requests any seat of a semaphore.
    Take,
    /// The script that releases a lock whose key stays for a while.
    Keep,
    /// The script that reports what is at a lock's key, and the state of the server.
    Inspect,
    /// The script that deletes the key of a named holder.
    ForceRelease,
    /// The script that releases a token whose kind of lock is not known.
    ReleaseAny,
    /// The script that enters the queue of a lock, stays there and requests the lock.
    Enter,
    /// The script that leaves the queue of a lock and releases the lock.
    Leave,
    /// The script that leaves the queue of a lock and releases the lock, whose key stays for a
    /// while.
    KeepLeaving,
    /// The script that restores the key of a lock on a master with replicas.
    Heal,
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
    /// `WAIT`: whether the replicas know what was done before.
    Wait,
    /// Anything else.
    Other,
}

impl Command {
    /// Creates a command from its arguments, of which the first is the name.
    pub fn new<A: Into<Vec<u8>>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self { arguments: arguments.into_iter().map(Into::into).collect() }
    }

    /// Returns all arguments, the name first.
    pub fn arguments(&self) -> &[Vec<u8>] {
        &self.arguments
    }

    /// Returns the name as it was sent, in upper or lower case; empty if there is none.
    pub fn name(&self) -> &[u8] {
        self.argument(0).unwrap_or_default()
    }

    /// Returns the meaning of the command for a lock.
    pub fn kind(&self) -> CommandKind {
        if let Some(script) = self.script() {
            let script = behind_check(script).unwrap_or(script);
            let script = match before_look(script) {
                Some(None) => return CommandKind::Heal,
                Some(Some(plain)) => plain,
                None => script,
            };
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

    /// Returns the key of a lock command, the first of several, or `None` for any other command.
    pub fn key(&self) -> Option<&[u8]> {
        match self.kind() {
            CommandKind::Set | CommandKind::Get => self.argument(1),
            CommandKind::Attend | CommandKind::Open => None,
            kind => self.argument(FIRST_KEY).filter(|_| kind.script().is_some()),
        }
    }

    /// Returns the token of a lock command, or `None` for any other command. Keep it out of logs.
    pub fn token(&self) -> Option<&[u8]> {
        match self.kind() {
            CommandKind::Set => self.argument(2),
            CommandKind::Attend | CommandKind::Open => None,
            CommandKind::Inspect | CommandKind::ForceRelease => None,
            _ => self.script_value(1),
        }
    }

    /// The keys that EVAL or EVALSHA names, of any script.
    pub(super) fn script_keys(&self) -> &[Vec<u8>] {
        let count = || std::str::from_utf8(self.argument(FIRST_KEY - 1)?).ok()?.parse::<usize>().ok();
        let end = FIRST_KEY.saturating_add(count().unwrap_or(0));
        self.arguments.get(FIRST_KEY..end).unwrap_or_default()
    }

    /// `KEYS[number + 1]` of one of Quorlock's scripts.
    #[cfg(feature = "worlds")]
    pub(crate) fn script_key(&self, number: usize) -> Option<&[u8]> {
        self.script()?;
        let keys: usize = std::str::from_utf8(self.argument(FIRST_KEY - 1)?).ok()?.parse().ok()?;
        self.argument(FIRST_KEY.checked_add(number)?).filter(|_| number < keys)
    }

    /// `ARGV[number]` of one of Quorlock's scripts.
    pub(crate) fn script_value(&self, number: usize) -> Option<&[u8]> {
        self.script()?;
        let keys: usize = std::str::from_utf8(self.argument(FIRST_KEY - 1)?).ok()?.parse().ok()?;
        self.argument(FIRST_KEY.checked_add(keys)?.checked_add(number)?.checked_sub(1)?)
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

/// Returns the script with exactly this text.
pub(super) fn script_by_text(text: &[u8]) -> Option<&'static Script> {
    scripts().find(|script| script.text.as_bytes() == text)
}

/// The script with this SHA-1, in any case.
pub(super) fn script_by_sha1(sha1: &[u8]) -> Option<&'static Script> {
    scripts().find(|script| script.sha1_hex.as_bytes().eq_ignore_ascii_case(sha1))
}

fn scripts() -> impl Iterator<Item = &'static Script> {
    let guarded = GUARDED.into_iter().map(|(_, guarded)| guarded);
    ALL.into_iter().chain(guarded).chain(REPLICATED.into_iter().map(|(_, replicated)| replicated))
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
            Self::AcquireFenced => "ACQUIRE FENCED",
            Self::Raise => "RAISE",
            Self::ExtendFenced => "EXTEND FENCED",
            Self::HealFenced => "HEAL FENCED",
            Self::AcquireGuarded => "ACQUIRE GUARDED",
            Self::AcquireFencedGuarded => "ACQUIRE FENCED GUARDED",
            Self::Attend => "ATTEND",
            Self::Open => "OPEN",
            Self::AcquireReading => "ACQUIRE READING",
            Self::AcquireAll => "ACQUIRE ALL",
            Self::RaiseAll => "RAISE ALL",
            Self::ExtendAll => "EXTEND ALL",
            Self::HealAll => "HEAL ALL",
            Self::ReleaseAll => "RELEASE ALL",
            Self::KeepAll => "KEEP ALL",
            Self::Take => "TAKE",
            Self::Keep => "KEEP",
            Self::Inspect => "INSPECT",
            Self::ForceRelease => "FORCE RELEASE",
            Self::ReleaseAny => "RELEASE ANY",
            Self::Enter => "ENTER",
            Self::Leave => "LEAVE",
            Self::KeepLeaving => "KEEP LEAVING",
            Self::Heal => "HEAL",
            Self::Hello => "HELLO",
            Self::Auth => "AUTH",
            Self::Select => "SELECT",
            Self::Client => "CLIENT",
            Self::Info => "INFO",
            Self::Script => "SCRIPT",
            Self::Wait => "WAIT",
            Self::Other => "other",
        }
    }

    /// The text and the SHA-1 of the script that replaces it on masters with replicas, if there is
    /// one.
    pub fn replicated_script(self) -> Option<(&'static str, &'static str)> {
        let plain = self.guarded().or_else(|| self.plain())?;
        let (_, script) = REPLICATED.iter().find(|(guarded, _)| *guarded == plain)?;
        Some((script.text, script.sha1_hex))
    }

    /// The text and the SHA-1 of the script that replaces it under the restart guard, if there is
    /// one.
    pub fn guarded_script(self) -> Option<(&'static str, &'static str)> {
        self.guarded().map(|script| (script.text, script.sha1_hex))
    }

    fn guarded(self) -> Option<&'static Script> {
        let is_own = |plain: &Script| SCRIPTS.contains(&(plain, self));
        let pair = GUARDED.iter().find(|(plain, _)| plain.map_or(self == Self::Heal, is_own));
        pair.map(|(_, guarded)| *guarded)
    }

    fn plain(self) -> Option<&'static Script> {
        SCRIPTS.iter().find(|(_, kind)| *kind == self).map(|(script, _)| *script)
    }

    /// The text and the SHA-1 of the script, if it is one.
    pub fn script(self) -> Option<(&'static str, &'static str)> {
        self.plain().map(|script| (script.text, script.sha1_hex))
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

/// What follows `EVAL script keys`.
pub(super) const FIRST_KEY: usize = 3;

const SCRIPTS: [(&Script, CommandKind); 26] = [
    (&RELEASE, CommandKind::Release),
    (&EXTEND, CommandKind::Extend),
    (&UNDO, CommandKind::Undo),
    (&ACQUIRE_FENCED, CommandKind::AcquireFenced),
    (&RAISE, CommandKind::Raise),
    (&EXTEND_FENCED, CommandKind::ExtendFenced),
    (&HEAL_FENCED, CommandKind::HealFenced),
    (&ACQUIRE_GUARDED, CommandKind::AcquireGuarded),
    (&ACQUIRE_FENCED_GUARDED, CommandKind::AcquireFencedGuarded),
    (&ATTEND, CommandKind::Attend),
    (&OPEN, CommandKind::Open),
    (&ACQUIRE_READING, CommandKind::AcquireReading),
    (&ACQUIRE_ALL, CommandKind::AcquireAll),
    (&RAISE_ALL, CommandKind::RaiseAll),
    (&EXTEND_ALL, CommandKind::ExtendAll),
    (&HEAL_ALL, CommandKind::HealAll),
    (&RELEASE_ALL, CommandKind::ReleaseAll),
    (&TAKE, CommandKind::Take),
    (&KEEP, CommandKind::Keep),
    (&INSPECT, CommandKind::Inspect),
    (&FORCE_RELEASE, CommandKind::ForceRelease),
    (&KEEP_ALL, CommandKind::KeepAll),
    (&RELEASE_ANY, CommandKind::ReleaseAny),
    (&ENTER, CommandKind::Enter),
    (&LEAVE, CommandKind::Leave),
    (&KEEP_LEAVING, CommandKind::KeepLeaving),
];

/// The kinds that are commands of the server.
const NAMES: [CommandKind; 9] = [
    CommandKind::Set,
    CommandKind::Get,
    CommandKind::Hello,
    CommandKind::Auth,
    CommandKind::Select,
    CommandKind::Client,
    CommandKind::Info,
    CommandKind::Script,
    CommandKind::Wait,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_known_by_text_and_by_sha_1() {
        assert_eq!(SCRIPTS.map(|(script, _)| script), ALL);
        for (script, kind) in SCRIPTS {
            let sent = [
                ["EVAL", script.text, "1", "invoice:42", "token"],
                ["evalsha", script.sha1_hex, "1", "invoice:42", "token"],
                ["EVALSHA", &script.sha1_hex.to_ascii_uppercase(), "1", "invoice:42", "token"],
            ];
            let is_lock = !matches!(kind, CommandKind::Attend | CommandKind::Open);
            let has_token = is_lock && !matches!(kind, CommandKind::Inspect | CommandKind::ForceRelease);
            for arguments in sent {
                let command = Command::new(arguments);
                assert_eq!(command.kind(), kind);
                assert_eq!(command.key(), is_lock.then_some(&b"invoice:42"[..]));
                assert_eq!(command.token(), has_token.then_some(&b"token"[..]));
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
