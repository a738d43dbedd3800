//! How `quorlock` ends: exit codes, and messages about refusals.

use crate::output::{JsonValue, Level, Output};

/// Exit code: usage or configuration. `EX_USAGE` of sysexits.h.
pub(crate) const USAGE: u8 = 64;
/// Exit code: too few masters answered. `EX_UNAVAILABLE`.
pub(crate) const NO_QUORUM: u8 = 69;
/// Exit code: the system refused something that is needed. `EX_OSERR`.
pub(crate) const SYSTEM: u8 = 71;
/// Exit code: the output could not be written. `EX_IOERR`.
pub(crate) const UNWRITTEN: u8 = 74;
/// Exit code: the lock is not held any more. `EX_TEMPFAIL`.
pub(crate) const LOST: u8 = 75;
/// Exit code: a simulated world broke a promise.
pub(crate) const BROKEN: u8 = 1;
/// Exit code: some promise does not hold on these masters, or it is not known whether it holds.
pub(crate) const UNKEPT: u8 = 1;
/// Exit code: masters disagree about a lock, or have another type of key at its name.
pub(crate) const SPLIT: u8 = 1;
/// Exit code of `status`: no client holds the lock. As with `systemctl status` and the init scripts
/// before it, 3 is "not running" and 0 is "running".
pub(crate) const FREE: u8 = 3;
/// Exit code: locks may be held, so masters cannot be told that none is held.
const IN_USE: u8 = 1;

/// How `quorlock` must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// With this exit code.
    Code(u8),
    /// By SIGINT, since the user interrupted at the terminal; with `group`, the other processes of
    /// our group are to get it too.
    Interrupted { group: bool },
}

/// Why something failed, each with the sentence to print.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Another client holds the lock; with the exit code that was chosen for that.
    HeldByAnother(String, u8),
    /// Some masters vote already.
    InUse(String),
    /// Too few masters answered.
    NoQuorum(String),
    /// Too few masters answered a release.
    Unconfirmed(String),
    /// The lock is not held any more.
    Lost(String),
    /// The masters or the options are wrong.
    Configuration(String),
}

impl Refusal {
    /// Prints the refusal, about the lock `resource` if it is about one. Returns the exit code.
    pub(crate) fn tell(&self, resource: Option<&[u8]>, output: &Output) -> u8 {
        let name = resource.map(String::from_utf8_lossy);
        let field = name.as_deref().map(|name| ("resource", JsonValue::Text(name)));
        self.tell_about(field.as_slice(), output)
    }

    /// Prints the refusal, about the lock with these fields. Returns the exit code.
    pub(crate) fn tell_about(&self, fields: &[(&str, JsonValue<'_>)], output: &Output) -> u8 {
        let level = match self {
            // The exit code says that this is no failure. Without `-q` the message is still
            // printed, or a user would wonder why nothing ran.
            Self::HeldByAnother(_, 0) => Level::Warning,
            _ => Level::Error,
        };
        let (event, text, code) = match self {
            Self::HeldByAnother(text, code) => ("held_by_another", text, *code),
            Self::InUse(text) => ("in_use", text, IN_USE),
            Self::NoQuorum(text) => ("no_quorum", text, NO_QUORUM),
            Self::Unconfirmed(text) => ("release_unconfirmed", text, NO_QUORUM),
            Self::Lost(text) => ("lost", text, LOST),
            Self::Configuration(text) => ("configuration", text, USAGE),
        };
        output.record(level, event, text, fields);
        code
    }
}
