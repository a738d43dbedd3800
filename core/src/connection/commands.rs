//! Which of the commands that locks need the server does not know: they may have been renamed, or a
//! proxy does not pass them on.
//!
//! A script asks `COMMAND INFO` if the server can say, without an entry in its log of refusals,
//! that the user may (`redis.acl_check_cmd`, since Redis 7). Otherwise it calls each command
//! without arguments: all of them need some, so nothing happens, and the number of arguments is
//! checked before the permission. Servers count these calls as errors, so they are the second
//! choice.

use crate::protocol::Cause;
use crate::wire::{self, Reply, Script, ServerError};

/// How many of [`NAMES`] a plain lock needs, besides EVAL and EVALSHA. Without one of them it could
/// be granted, and neither kept nor released.
const OF_PLAIN_LOCK: usize = 5;

/// The commands of a plain lock, and behind them those of other kinds. INFO and TIME are not among
/// them, because they need no arguments.
const NAMES: [&str; 12] = [
    "SET", "GET", "DEL", "PTTL", "PEXPIRE", "EXISTS", "MGET", "APPEND", "SETRANGE", "ZADD", "ZRANGE", "ZREM",
];

/// Answers with the names in ARGV\[1\] that are unknown. Servers word that error in different ways.
/// The names are one argument, because a server ends a connection without a login that sends a
/// command of more than ten. Only COMMAND is passed to `acl_check_cmd`: for a command with keys and
/// too few arguments it ends the process of Redis 7.0.15.
const LOOK: &str = "\
local names, unknown, info = {}, {}, false
for name in string.gmatch(ARGV[1], '%S+') do names[#names + 1] = name end
if redis.acl_check_cmd then
  local known, allowed = pcall(redis.acl_check_cmd, 'COMMAND', 'INFO', names[1])
  info = known and allowed and redis.pcall('COMMAND', 'INFO', unpack(names))
end
for place, name in ipairs(names) do
  local missing
  if info and not info.err then
    missing = not info[place]
  else
    local answer = redis.pcall(name)
    local text = type(answer) == 'table' and answer.err or ''
    missing = string.find(string.lower(text), 'unknown', 1, true)
  end
  if missing then unknown[#unknown + 1] = name end
end
return unknown";

/// The SHA-1 of no script.
const NO_SCRIPT: [u8; 40] = [b'f'; 40];

/// The commands that the server does not know, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Lacking(u32);

/// Asks whether the server knows EVAL and the other commands, and then whether it knows EVALSHA.
pub(super) fn ask(out: &mut Vec<u8>) {
    wire::encode(out, &[b"EVAL", LOOK.as_bytes(), b"0", NAMES.join(" ").as_bytes()]);
    wire::encode(out, &[b"EVALSHA", &NO_SCRIPT, b"0"]);
}

/// The answer to EVAL or EVALSHA. Without scripts a lock could be granted but not released. Any
/// other error comes from a server that can run scripts.
pub(super) fn check_script_command(name: &'static str, reply: &Reply<'_>) -> Result<(), Cause> {
    match reply {
        Reply::Error(text) if ServerError::classify(text) == ServerError::UnknownCommand => {
            Err(Cause::LacksCommand(name))
        }
        _ => Ok(()),
    }
}

impl Lacking {
    /// The answer to the script. One that does not fit says nothing.
    pub(super) fn read(reply: &Reply<'_>) -> Self {
        let Reply::Array(unknown) = reply else { return Self::default() };
        let is_unknown = |name: &str| unknown.iter().any(|field| field.as_bytes() == Some(name.as_bytes()));
        let places = NAMES.iter().enumerate().filter(|(_, name)| is_unknown(name));
        Self(places.map(|(place, _)| 1 << place).sum())
    }

    /// The first command that a plain lock would lack.
    pub(super) fn for_plain_lock(self) -> Option<&'static str> {
        Self(self.0 & ((1 << OF_PLAIN_LOCK) - 1)).names().next()
    }

    /// The cause if a server answers that it does not know a command: with the command's name, if
    /// that is known.
    pub(super) fn cause_of(self, text: &[u8], script: Option<&Script>) -> Cause {
        let called = || {
            let text = script?.text;
            self.names().find(|name| text.contains(&format!("'{name}'")))
        };
        named_in(text).or_else(called).map_or(Cause::Server(ServerError::UnknownCommand), Cause::LacksCommand)
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES
            .into_iter()
            .enumerate()
            .filter(move |(place, _)| self.0 & (1 << place) != 0)
            .map(|(_, name)| name)
    }
}

/// The command that an error names. Only names from here are returned: the text may repeat
/// passwords and tokens.
fn named_in(text: &[u8]) -> Option<&'static str> {
    let named = text.strip_prefix(b"ERR unknown command ")?.get(1..)?;
    ["EVALSHA", "EVAL"].into_iter().chain(NAMES).find(|name| {
        let (start, end) = (named.get(..name.len()), named.get(name.len()));
        let is_start = start.is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()));
        is_start && end.is_some_and(|end| !end.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_a_script_calls_with_arguments_is_looked_for() {
        for script in wire::ALL {
            for part in script.text.split("call('").skip(1) {
                let name = part.split('\'').next().unwrap();
                let is_known = NAMES.contains(&name) || ["INFO", "TIME"].contains(&name);
                assert!(is_known, "{} calls {name}", script.name);
            }
        }
    }

    #[test]
    fn only_known_names_are_taken_from_an_error() {
        for (text, name) in [
            ("ERR unknown command 'EVALSHA', with args beginning with: 'a' ", Some("EVALSHA")),
            ("ERR unknown command `del`, with args beginning with: ", Some("DEL")),
            ("ERR unknown command 'EVALS', with args beginning with: ", None),
            ("ERR unknown command 'hunter2', with args beginning with: ", None),
            ("ERR unknown command", None),
            ("ERR Unknown Redis command called from script", None),
        ] {
            assert_eq!(named_in(text.as_bytes()), name, "{text}");
        }
    }
}
