//! The differences of other servers from Redis 7.0, which the model follows.

use std::fmt;

use quorlock_tests::Value;

use crate::commands::Arguments;
use crate::model::Ends;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    is_valkey: bool,
    major: u32,
    minor: u32,
}

impl Version {
    /// Reads the version from `INFO server`.
    pub(crate) fn of(info: &Value) -> Self {
        let info = info.text().unwrap();
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
        let valkey = field("valkey_version:");
        let version = valkey.or_else(|| field("redis_version:")).unwrap();
        let mut numbers = version.split('.').map(|number| number.parse().unwrap());
        Self { is_valkey: valkey.is_some(), major: numbers.next().unwrap(), minor: numbers.next().unwrap() }
    }

    pub(crate) fn is_modelled(self) -> bool {
        !self.is_valkey && (self.major, self.minor) == (7, 0)
    }

    /// Whether the command must not be sent to this server, because it has another effect there.
    pub(crate) fn leaves_out(self, arguments: &Arguments) -> bool {
        let upper: Vec<Vec<u8>> = arguments.iter().map(|argument| argument.to_ascii_uppercase()).collect();
        let words: Vec<&[u8]> = upper.iter().map(Vec::as_slice).collect();
        LEFT_OUT.iter().any(|(applies, is_meant)| applies(self) && is_meant(&words))
    }

    /// Whether this server expresses the model's reply in these other words.
    pub(crate) fn words_it_so(self, model: &[u8], real: &[u8]) -> bool {
        let starts = |reply: &[u8], start: &str| reply.starts_with(start.as_bytes());
        WORDS
            .iter()
            .any(|(applies, ours, theirs)| applies(self) && starts(model, ours) && starts(real, theirs))
    }

    /// Whether expired keys are gone on a replica. Before 7.0, scripts on a replica still saw them.
    pub(crate) fn hides_ended_keys_on_replicas(self) -> bool {
        !self.is_before_7()
    }

    /// Whether the caller of a script has read the keys that the script read, instead of all keys
    /// that it was given.
    pub(crate) fn tracks_scripts(self) -> bool {
        self.is_valkey || (self.major, self.minor) >= (7, 2)
    }

    /// Whether this command notifies readers differently: Valkey does not set expired keys, and
    /// notifies only of keys that it deletes.
    pub(crate) fn tells_otherwise(self, arguments: &Arguments) -> bool {
        let is_instant =
            |word: &Vec<u8>| [b"EXAT", &b"PXAT"[..]].iter().any(|name| word.eq_ignore_ascii_case(name));
        self.is_valkey && arguments.iter().any(is_instant)
    }

    /// Whether the command DEBUG must be enabled first.
    pub(crate) fn asks_for_debug(self) -> bool {
        !self.is_before_7()
    }

    /// Whether lines that a person would type, and ends of arguments, are read as in Redis 7.0.
    /// Later servers read ahead in the protocol of the last command, and accept quotes that do not
    /// match.
    pub(crate) fn reads_lines_alike(self) -> bool {
        !self.is_after_7_0()
    }

    /// Whether a browser's request ends the connection before a password was given.
    pub(crate) fn always_hangs_up_on_browsers(self) -> bool {
        !self.is_before_7()
    }

    /// What happens to a key in the millisecond of its expiry. Redis after 7.0 deletes it already
    /// then, in the background, but does not hide it before.
    pub(crate) fn ends(self) -> Ends {
        if self.is_redis_after_7_0() { Ends::MaybeEarly } else { Ends::Late }
    }

    fn is_before_7(self) -> bool {
        !self.is_valkey && self.major < 7
    }

    fn is_after_7_0(self) -> bool {
        self.is_valkey || (self.major, self.minor) > (7, 0)
    }

    fn is_redis_after_7_0(self) -> bool {
        !self.is_valkey && self.is_after_7_0()
    }

    fn swallows_refusals(self) -> bool {
        self.is_redis_after_7_0() || self.is_valkey && (self.major, self.minor) == (8, 0)
    }

    fn is_valkey(self) -> bool {
        self.is_valkey
    }
}

type Applies = fn(Version) -> bool;
type IsMeant = fn(&[&[u8]]) -> bool;

/// Commands, in capitals, that other servers do not know or read differently.
const LEFT_OUT: &[(Applies, IsMeant)] = &[
    // Commands and options that came with Redis 7.0.
    (Version::is_before_7, |words| words[0] == b"PEXPIRETIME"),
    (Version::is_before_7, |words| matches!(words[0], b"EXPIRE" | b"PEXPIRE") && words.len() != 3),
    (Version::is_before_7, |words| {
        words[0] == b"SET" && words.contains(&&b"NX"[..]) && words.contains(&&b"GET"[..])
    }),
    (Version::is_before_7, |words| match words {
        [b"CONFIG", b"SET", _, _] => false,
        _ => words[0] == b"CONFIG",
    }),
    (Version::is_before_7, |words| words[0] == b"INFO" && words.len() > 2),
    (Version::is_before_7, |words| words[0] == b"SCRIPT" && words.len() == 2),
    // Redis empties databases in the background; garbage after such a command is never answered
    // then.
    (Version::is_redis_after_7_0, |words| matches!(words[0], b"FLUSHALL" | b"FLUSHDB")),
    // For expiries this far away, the sum in a script is a whole number on later servers. On
    // earlier ones it is a power of ten, which no command accepts.
    (Version::is_after_7_0, |words| {
        let ends = [&b"9223372036854775807"[..], b"9000000000000000"];
        matches!(words[0], b"SET" | b"EXPIRE") && words.iter().any(|word| ends.contains(word))
    }),
    // If another reply is still waiting to be sent, these servers do not answer a wrong password.
    (Version::swallows_refusals, |words| match words {
        [b"AUTH"] | [b"AUTH", b"SECRET"] | [b"AUTH", b"DEFAULT", b"SECRET"] => false,
        [b"AUTH", ..] => true,
        [b"HELLO", _, b"AUTH", user, password, ..] => (*user, *password) != (b"DEFAULT", b"SECRET"),
        _ => false,
    }),
    // These servers read all options of HELLO, and check the password, before they set the name.
    (Version::is_after_7_0, |words| match words {
        [b"HELLO", _] | [b"HELLO", _, b"AUTH", _, _] => false,
        [b"HELLO", _, b"AUTH", b"DEFAULT", b"SECRET", b"SETNAME", name] => {
            !name.iter().all(u8::is_ascii_graphic)
        }
        [b"HELLO", _, _, ..] => true,
        _ => false,
    }),
    (Version::is_before_7, |words| words[0] == b"CLIENT" && words.get(1) == Some(&&b"NO-EVICT"[..])),
];

/// The same reply in other words: the beginning of the model's and of the server's.
const WORDS: &[(Applies, &str, &str)] = &[
    // Before 7.0, subcommands were not separate commands.
    (Version::is_before_7, "-ERR unknown command '", "-ERR unknown command `"),
    (
        Version::is_before_7,
        "-ERR unknown subcommand '",
        "-ERR Unknown subcommand or wrong number of arguments for '",
    ),
    (
        Version::is_before_7,
        "-ERR wrong number of arguments for '",
        "-ERR Unknown subcommand or wrong number of arguments for '",
    ),
    (Version::is_before_7, "-ERR CONFIG SET failed (", "-ERR Invalid argument '"),
    (Version::is_before_7, "-ERR Unknown option or number", "-ERR Unsupported CONFIG parameter: "),
    (Version::is_before_7, "-ERR invalid expire time in 'set' command", "-ERR invalid expire time in set"),
    (Version::is_before_7, "-ERR invalid expire time in '", "-ERR invalid expire time in "),
    (Version::is_before_7, "-ERR unknown subcommand '", "-NOAUTH "),
    (Version::is_before_7, "-ERR wrong number of arguments for '", "-NOAUTH "),
    // Errors in scripts were wrapped.
    (Version::is_before_7, "-ERR Lua redis lib command arguments", "-@user_script: "),
    (Version::is_before_7, "-ERR Lua redis lib command arguments", WRAPPED),
    // Errors that a script returns were wrapped too, if the command was not even tried.
    (Version::is_before_7, "-OOM command not allowed", "-@user_script: "),
    (Version::is_before_7, "-READONLY You can't write", "-@user_script: "),
    (Version::is_before_7, "-ERR user_script:", WRAPPED),
    (Version::is_before_7, "-ERR value is not an integer or out of range script: ", WRAPPED),
    (Version::is_before_7, "-ERR invalid expire time in 'pexpire' command script: ", WRAPPED),
    (Version::is_before_7, "-READONLY You can't write against a read only replica. script: ", WRAPPED),
    (
        Version::is_valkey,
        "-ERR Lua redis lib command arguments",
        "-ERR Command arguments must be strings or integers",
    ),
    // Redict, which reports the version of Redis that it is compatible with.
    (
        Version::is_redis_after_7_0,
        "-ERR Lua redis lib command arguments",
        "-ERR Lua redict lib command arguments",
    ),
    (Version::is_after_7_0, "-NOAUTH HELLO must be called", "-NOAUTH HELLO must be called"),
    // A client that is not logged in does not learn which commands exist.
    (Version::is_valkey, "-ERR unknown ", "-NOAUTH "),
    (Version::is_valkey, "-ERR wrong number of arguments for '", "-NOAUTH "),
    (
        Version::is_valkey,
        "-ERR invalid expire time in 'pexpire' command script: ",
        "-ERR invalid expire time in 'pexpire' command script: on @user_script:",
    ),
    // Valkey 9 does not name the script.
    (
        Version::is_valkey,
        "-READONLY You can't write against a read only replica. script: ",
        "-READONLY You can't write against a read only replica. script: on @user_script:",
    ),
    (
        Version::is_valkey,
        "-ERR value is not an integer or out of range script: ",
        "-ERR value is not an integer or out of range script: on @user_script:",
    ),
    (Version::is_valkey, "-ERR user_script:", "-ERR user_script:"),
    (Version::is_valkey, "-NOSCRIPT No matching script. Please use EVAL.", "-NOSCRIPT No matching script."),
];

const WRAPPED: &str = "-ERR Error running script (call to f_";

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.is_valkey { "Valkey" } else { "Redis" };
        write!(f, "{name} {}.{}", self.major, self.minor)
    }
}
