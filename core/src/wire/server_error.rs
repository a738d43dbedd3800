//! The meaning of a server's error.
//!
//! A server's text may echo arguments, a password among them. It is read here once, only its code
//! is kept, and the text is never shown. The rooms above decide what follows from a cause.

use std::fmt;

/// The cause of an error reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerError {
    /// `OOM`: the memory limit is reached and nothing can be evicted.
    Oom,
    /// `MISCONF`: writes are refused because the last snapshot or append failed.
    Misconf,
    /// `NOREPLICAS`: too few replicas are connected for writes.
    NoReplicas,
    /// `READONLY`: the server is a replica.
    ReadOnly,
    /// `LOADING`: the server is reading its data from disk.
    Loading,
    /// `BUSY` or `UNKILLABLE`: a script of another client keeps the server busy.
    Busy,
    /// `MASTERDOWN`: the server is a replica that has lost its master.
    MasterDown,
    /// `NOAUTH`: the server requires a password and got none.
    NoAuth,
    /// `WRONGPASS`, and `ERR invalid password` of Redis 5.
    WrongPass,
    /// `ERR AUTH … without any password configured`: a password for a server that has none.
    PasswordNotSet,
    /// `NOPERM`, and the errors of scripts when the user may not run a command in them.
    NoPerm,
    /// `ERR DB index is out of range`, or a SELECT on a cluster.
    NoDatabase,
    /// `DENIED`: protected mode refuses connections from other machines.
    Denied,
    /// `ERR max number of clients reached`.
    MaxClients,
    /// `WRONGTYPE`: the key holds something that is not a string.
    WrongType,
    /// `MOVED`: the server is part of a cluster.
    Moved,
    /// `ASK`: the server is part of a cluster.
    Ask,
    /// `CROSSSLOT`: the server is part of a cluster.
    CrossSlot,
    /// `CLUSTERDOWN`: the server is part of a cluster that does not serve requests now.
    ClusterDown,
    /// `NOSCRIPT`: the server does not know the script, for example after a restart.
    NoScript,
    /// `ERR unknown command`.
    UnknownCommand,
    /// `ERR INFO tells no master_replid`, an answer of the restart guard's scripts.
    NoReplicationId,
    /// Any other error, with its code.
    Other(Code),
}

/// The code at the start of an error: 1 to 24 capital letters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code {
    letters: [u8; MAX_CODE_BYTES],
    length: u8,
}

impl ServerError {
    /// Reads the text of an error reply, without its leading `-`.
    pub fn classify(text: &[u8]) -> Self {
        let text = unwrap_script_error(text);
        let (code, rest) = match text.iter().position(|byte| *byte == b' ') {
            Some(space) => (text.get(..space).unwrap_or_default(), text.get(space + 1..).unwrap_or_default()),
            None => (text, &[][..]),
        };
        match code {
            b"OOM" => Self::Oom,
            b"MISCONF" => Self::Misconf,
            b"NOREPLICAS" => Self::NoReplicas,
            b"READONLY" => Self::ReadOnly,
            b"LOADING" => Self::Loading,
            b"BUSY" | b"UNKILLABLE" => Self::Busy,
            b"MASTERDOWN" => Self::MasterDown,
            b"NOAUTH" => Self::NoAuth,
            b"WRONGPASS" => Self::WrongPass,
            b"NOPERM" => Self::NoPerm,
            b"DENIED" => Self::Denied,
            b"WRONGTYPE" => Self::WrongType,
            b"MOVED" => Self::Moved,
            b"ASK" => Self::Ask,
            b"CROSSSLOT" => Self::CrossSlot,
            b"CLUSTERDOWN" => Self::ClusterDown,
            b"NOSCRIPT" => Self::NoScript,
            b"ERR" => Self::without_code(rest),
            _ => match Code::new(code) {
                Some(code) => Self::Other(code),
                // A script error of Redis 6.2 may have lost its code on the way.
                None => Self::without_code(text),
            },
        }
    }

    /// Returns whether only an operator can fix the cause, by changing a URL, a permission or a
    /// setup: a retry will not help.
    pub fn is_configuration(self) -> bool {
        match self {
            Self::NoAuth
            | Self::WrongPass
            | Self::PasswordNotSet
            | Self::NoPerm
            | Self::NoDatabase
            | Self::Denied
            | Self::Moved
            | Self::Ask
            | Self::CrossSlot
            | Self::ClusterDown
            | Self::UnknownCommand
            | Self::NoReplicationId => true,
            Self::Oom
            | Self::Misconf
            | Self::NoReplicas
            | Self::ReadOnly
            | Self::Loading
            | Self::Busy
            | Self::MasterDown
            | Self::MaxClients
            | Self::WrongType
            | Self::NoScript
            | Self::Other(_) => false,
        }
    }

    /// An error recognized by its sentence, because its code is the general `ERR`.
    fn without_code(sentence: &[u8]) -> Self {
        SENTENCES
            .iter()
            .find(|(start, _)| sentence.starts_with(start.as_bytes()))
            .map_or(Self::Other(Code::ERR), |(_, error)| *error)
    }
}

/// The beginnings of sentences without their own code, as Redis 5.0 to 8 write them.
const SENTENCES: [(&str, ServerError); 14] = [
    ("unknown command", ServerError::UnknownCommand),
    ("unknown subcommand", ServerError::UnknownCommand),
    ("Unknown subcommand", ServerError::UnknownCommand),
    ("Unknown Redis command called from", ServerError::UnknownCommand),
    ("INFO tells no master_replid", ServerError::NoReplicationId),
    ("max number of clients", ServerError::MaxClients),
    ("invalid password", ServerError::WrongPass),
    ("Client sent AUTH, but no password is set", ServerError::PasswordNotSet),
    ("AUTH <password> called without any password configured", ServerError::PasswordNotSet),
    ("The user executing the script can't", ServerError::NoPerm),
    ("ACL failure in script", ServerError::NoPerm),
    ("DB index is out of range", ServerError::NoDatabase),
    ("invalid DB index", ServerError::NoDatabase),
    ("SELECT is not allowed in cluster mode", ServerError::NoDatabase),
];

/// Strips the prefix that Redis 6.2 and older add to an error of a command in a script: `ERR Error
/// running script (call to f_<sha>): @user_script:1: @user_script: 1: -OOM command not allowed …`,
/// or only the last `@user_script` when the script returned the error. Each part is matched only at
/// its own position, so that an argument in the text can never pass for a code.
fn unwrap_script_error(text: &[u8]) -> &[u8] {
    let wrapped = text
        .strip_prefix(b"ERR Error running script (call to f_")
        .and_then(|rest| rest.iter().position(|byte| *byte == b')').and_then(|end| rest.get(end..)))
        .and_then(|rest| rest.strip_prefix(b"): "));
    let mut error = wrapped.unwrap_or(text);
    while let Some(rest) = strip_script_line(error) {
        error = rest;
    }
    if error.len() < text.len() { error.strip_prefix(b"-").unwrap_or(error) } else { text }
}

/// The text after a leading `@user_script:1: `, in any of its spellings.
fn strip_script_line(text: &[u8]) -> Option<&[u8]> {
    let rest = text.strip_prefix(b"@").unwrap_or(text).strip_prefix(b"user_script:")?;
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    rest.get(digits..)?.strip_prefix(b": ")
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Oom => "is out of memory (OOM)",
            Self::Misconf => "refuses writes because it cannot save to disk (MISCONF)",
            Self::NoReplicas => "refuses writes because it has too few replicas (NOREPLICAS)",
            Self::ReadOnly => "is a replica (READONLY)",
            Self::Loading => "is still loading its data (LOADING)",
            Self::Busy => "is kept busy by a script (BUSY)",
            Self::MasterDown => "is a replica without its master (MASTERDOWN)",
            Self::NoAuth => "needs a password (NOAUTH)",
            Self::WrongPass => "wrong user or password (WRONGPASS)",
            Self::PasswordNotSet => "has no password set: leave it out of the URL",
            Self::NoPerm => "user lacks a permission (NOPERM)",
            Self::NoDatabase => "has no database of this number: change it in the URL",
            Self::Denied => "is in protected mode: set a password or bind it to this network (DENIED)",
            Self::MaxClients => "has no connection left: raise its maxclients",
            Self::WrongType => "the key holds something that is not a lock (WRONGTYPE)",
            Self::Moved => "is part of a cluster (MOVED): use redis+cluster://host:port/?tag=q0",
            Self::Ask => "is part of a cluster (ASK): use redis+cluster://host:port/?tag=q0",
            Self::CrossSlot => "is part of a cluster (CROSSSLOT): use redis+cluster://host:port/?tag=q0",
            Self::ClusterDown => "is part of a cluster (CLUSTERDOWN): use redis+cluster://host:port/?tag=q0",
            Self::NoScript => "does not know the script (NOSCRIPT)",
            Self::UnknownCommand => "does not know a command that Quorlock needs",
            Self::NoReplicationId => "reports no replication id, so the restart guard cannot work: use another server, or no restart guard",
            Self::Other(code) => return write!(f, "answered with the error {code}"),
        })
    }
}

impl Code {
    /// The code of errors that have no other.
    const ERR: Self = {
        let mut letters = [0; MAX_CODE_BYTES];
        letters[0] = b'E';
        letters[1] = b'R';
        letters[2] = b'R';
        Self { letters, length: 3 }
    };

    fn new(word: &[u8]) -> Option<Self> {
        let mut letters = [0; MAX_CODE_BYTES];
        letters.get_mut(..word.len())?.copy_from_slice(word);
        let length = u8::try_from(word.len()).ok()?;
        (length > 0 && word.iter().all(u8::is_ascii_uppercase)).then_some(Self { letters, length })
    }

    /// The letters.
    pub fn as_str(&self) -> &str {
        let letters = self.letters.get(..usize::from(self.length)).unwrap_or_default();
        std::str::from_utf8(letters).unwrap_or_default()
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const MAX_CODE_BYTES: usize = 24;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ServerError::*, *};

    fn other(code: &str) -> ServerError {
        Other(Code::new(code.as_bytes()).unwrap())
    }

    #[test]
    fn errors_are_classified_by_the_code_at_their_start() {
        for (text, error) in [
            ("OOM command not allowed when used memory > 'maxmemory'.", Oom),
            ("MISCONF Errors writing to the AOF file: No space left on device", Misconf),
            ("NOREPLICAS Not enough good replicas to write.", NoReplicas),
            ("READONLY You can't write against a read only replica.", ReadOnly),
            ("LOADING Redis is loading the dataset in memory", Loading),
            ("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", Busy),
            ("UNKILLABLE Sorry the script already executed write commands", Busy),
            ("BUSYKEY Target key name already exists.", other("BUSYKEY")),
            ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", MasterDown),
            ("NOAUTH Authentication required.", NoAuth),
            ("WRONGPASS invalid username-password pair or user is disabled.", WrongPass),
            ("NOPERM this user has no permissions to run the 'set' command", NoPerm),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", WrongType),
            ("MOVED 866 10.0.0.1:6379", Moved),
            ("ASK 866 10.0.0.1:6379", Ask),
            ("CROSSSLOT Keys in request don't hash to the same slot", CrossSlot),
            ("CLUSTERDOWN Hash slot not served", ClusterDown),
            ("NOSCRIPT No matching script. Please use EVAL.", NoScript),
            ("DENIED Redis is running in protected mode because protected mode is enabled", Denied),
            ("NOPROTO unsupported protocol version", other("NOPROTO")),
            ("OOM", Oom),
        ] {
            assert_eq!(ServerError::classify(text.as_bytes()), error, "{text}");
        }
    }

    #[test]
    fn errors_without_a_code_are_classified_by_their_text() {
        for (text, error) in [
            ("ERR unknown command 'AUTH', with args beginning with: 'password' ", UnknownCommand),
            ("ERR unknown command `HELLO`, with args beginning with: `3`, ", UnknownCommand),
            ("ERR unknown subcommand 'TRACKING'. Try CLIENT HELP.", UnknownCommand),
            (
                "ERR Unknown subcommand or wrong number of arguments for 'DRYRUN'. Try ACL HELP.",
                UnknownCommand,
            ),
            ("ERR INFO tells no master_replid", NoReplicationId),
            ("ERR max number of clients reached", MaxClients),
            ("ERR max number of clients + cluster connections reached", MaxClients),
            ("ERR invalid password", WrongPass),
            ("ERR Client sent AUTH, but no password is set", PasswordNotSet),
            (
                "ERR AUTH <password> called without any password configured for the default user.",
                PasswordNotSet,
            ),
            ("ERR DB index is out of range", NoDatabase),
            ("ERR SELECT is not allowed in cluster mode", NoDatabase),
            ("ERR syntax error", other("ERR")),
            ("ERR", other("ERR")),
            ("", other("ERR")),
            ("lower case", other("ERR")),
            ("AWORDOFMORETHANTWENTYFOURLETTERS x", other("ERR")),
            (" OOM", other("ERR")),
        ] {
            assert_eq!(ServerError::classify(text.as_bytes()), error, "{text}");
        }
    }

    /// Errors as Redis 6.2.14 and 7.0.15 sent them.
    #[test]
    fn errors_from_scripts_are_classified_by_the_code_inside() {
        const CALL: &str = "ERR Error running script (call to f_1f8f4cfba6f3375f8c4ec02b9de4361a5dea5c64): ";
        for (text, error) in [
            (
                "@user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.",
                Oom,
            ),
            ("@user_script:1: @user_script: 1: -NOREPLICAS Not enough good replicas to write.", NoReplicas),
            (
                "@user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.",
                ReadOnly,
            ),
            ("@user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value", WrongType),
            ("user_script:12: WRONGTYPE Operation", WrongType),
            (
                "@user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand",
                NoPerm,
            ),
            (
                "@user_script:1: @user_script: 1: Wrong number of args calling Redis command From Lua script",
                other("ERR"),
            ),
            ("@user_script:1: -OOM", Oom),
        ] {
            assert_eq!(ServerError::classify(format!("{CALL}{text}").as_bytes()), error, "{text}");
        }
        for (text, error) in [
            ("@user_script: 1: -READONLY You can't write against a read only replica.", ReadOnly),
            ("@user_script: 1: The user executing the script can't run this command or subcommand", NoPerm),
            ("ERR The user executing the script can't run this command or subcommand", NoPerm),
            ("ERR ACL failure in script: User default has no permissions to run the 'get' command", NoPerm),
            ("OOM command not allowed when used memory > 'maxmemory'. script: 1f8f, on @user_script:1.", Oom),
        ] {
            assert_eq!(ServerError::classify(text.as_bytes()), error, "{text}");
        }
    }

    #[test]
    fn an_argument_in_the_text_never_passes_for_a_code() {
        for text in [
            "ERR value is not an integer: @user_script: 1: -OOM x",
            "ERR Error compiling script (new function): user_script:1: -OOM",
            "ERR -OOM",
            "-OOM",
        ] {
            assert_eq!(ServerError::classify(text.as_bytes()), other("ERR"), "{text}");
        }
    }

    #[test]
    fn neither_display_nor_debug_shows_the_servers_text() {
        let error = ServerError::classify(b"ERR unknown command 'AUTH', with args beginning with: 'hunter2'");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
        let error = ServerError::classify(b"STRANGE hunter2");
        assert_eq!(format!("{error} {error:?}"), "answered with the error STRANGE Other(STRANGE)");
    }

    #[test]
    fn errors_that_a_person_has_to_fix_count_as_configuration() {
        assert!(
            [NoAuth, WrongPass, NoPerm, Moved, Ask, CrossSlot, ClusterDown]
                .iter()
                .all(|error| error.is_configuration())
        );
        assert!(
            ![Oom, Loading, WrongType, NoScript, MaxClients].iter().any(|error| error.is_configuration())
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>, tail in "[ -~]{0,60}") {
            ServerError::classify(&text).to_string();
            ServerError::classify(format!("ERR Error running script (call to f_{tail}").as_bytes());
            ServerError::classify(format!("@user_script:{tail}").as_bytes());
        }
    }
}
