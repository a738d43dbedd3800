//! The Lua scripts, with the contract of each and the reasons for its form.
//!
//! They run on Redis 5.0 to 8 and Valkey 8 and 9. Each gets the keys that it writes in `KEYS`.
//! Commands that may fail use `pcall`, which returns an error as a table instead of ending the
//! script. Redis 6.2 and older wrap errors of `call` in their own sentence, but send a returned
//! table unchanged.

/// Ends the script with the lock's holder and remaining time: the SHA-1 of the first 64 bytes of
/// `held`, and the PTTL. The digest distinguishes holders, while the token, with which any client
/// could release the lock, stays on the server.
macro_rules! tell_holder {
    () => {
        "return {redis.sha1hex(string.sub(held, 1, 64)), redis.call('PTTL', KEYS[1])}"
    };
}

/// Sets the lock's key if it is free. Answers 1, or the holder. Like `SET NX` it also refuses if
/// the key holds our own token: then this attempt has already reached this server by another
/// address, and a server has only one vote.
///
/// Of the rule for a vote: no other yes of this server while the key lives.
macro_rules! acquire_reading {
    () => {
        concat!(
            "\
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then return held end
if held then ",
            tell_holder!(),
            " end
local done = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if done.err then return done end
return 1"
        )
    };
}

mod any;
mod claim;
mod fence;
mod fleet;
mod guarded;
mod inspect;
mod joined;
mod keep;
mod many;
mod queue;
mod replicas;
mod seat;

pub use any::RELEASE_ANY;
pub use fence::{ACQUIRE_FENCED, EXTEND_FENCED, HEAL_FENCED, RAISE};
pub use fleet::{ACQUIRE_FENCED_GUARDED, ACQUIRE_GUARDED, ATTEND, OPEN};
#[cfg(any(test, feature = "internals"))]
pub use guarded::GUARDED;
pub(crate) use guarded::{EXTEND_GUARDED, guarded};
pub use inspect::{FORCE_RELEASE, INSPECT};
pub use keep::{KEEP, KEEP_ALL};
pub use many::{ACQUIRE_ALL, EXTEND_ALL, HEAL_ALL, RAISE_ALL, RELEASE_ALL};
pub use queue::{ENTER, KEEP_LEAVING, LEAVE};
#[cfg(any(test, feature = "internals"))]
pub use replicas::REPLICATED;
pub(crate) use replicas::{ACQUIRE_REPLICATED, ATTEND_REPLICATED, EXTEND_REPLICATED, replicated};
pub use seat::TAKE;

/// All scripts, except the replacements for masters with replicas and under the restart guard.
#[cfg(any(test, feature = "internals"))]
pub const ALL: [&Script; 26] = [
    &RELEASE,
    &EXTEND,
    &UNDO,
    &ACQUIRE_FENCED,
    &RAISE,
    &EXTEND_FENCED,
    &HEAL_FENCED,
    &ACQUIRE_GUARDED,
    &ACQUIRE_FENCED_GUARDED,
    &ATTEND,
    &OPEN,
    &ACQUIRE_READING,
    &ACQUIRE_ALL,
    &RAISE_ALL,
    &EXTEND_ALL,
    &HEAL_ALL,
    &RELEASE_ALL,
    &TAKE,
    &KEEP,
    &INSPECT,
    &FORCE_RELEASE,
    &KEEP_ALL,
    &RELEASE_ANY,
    &ENTER,
    &LEAVE,
    &KEEP_LEAVING,
];

/// A script and its name on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Script {
    /// A unique number below 64.
    pub number: u8,
    /// What the script does, for messages.
    pub name: &'static str,
    /// The source of the script.
    pub text: &'static str,
    /// The SHA-1 of the source, in lower-case hexadecimal: the argument of EVALSHA.
    pub sha1_hex: &'static str,
}

/// A set of scripts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ScriptSet(u64);

impl ScriptSet {
    /// Inserts a script. Returns whether it was missing before.
    pub(crate) fn insert(&mut self, script: &Script) -> bool {
        let before = self.0;
        self.0 |= 1 << script.number;
        self.0 != before
    }
}

/// Deletes KEYS\[1\] if it holds the token ARGV\[1\]. Answers 1 if it did, 0 if the lock is not
/// ours.
///
/// A key of a foreign type is not our lock, so that error becomes 0. Any other error is returned: a
/// GET that the server refused says nothing about who holds the lock.
pub const RELEASE: Script = Script {
    number: 0,
    name: "release",
    text: "\
local held = redis.pcall('GET', KEYS[1])
if held == ARGV[1] then return redis.call('DEL', KEYS[1]) end
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then return held end
return 0",
    sha1_hex: "a4b2cbdaf9fda0ef20074355ba6eb478c8df67ad",
};

/// Deletes the key KEYS\[1\] on the server that runs it, if it is a string and holds ARGV\[1\]: 1
/// if it did, 0 if not. It releases a lock, for tools that talk to masters directly.
pub const RELEASE_SCRIPT: &str = RELEASE.text;

/// Gives KEYS\[1\] a life of ARGV\[2\] milliseconds if it holds the token ARGV\[1\]. Answers 1 if
/// it holds it, 0 if not.
///
/// Only a release, immediate or deferred ([`KEEP`]), shortens a key's life: a key that already
/// lives longer gets its present life again, and one that never expires (a PTTL of -1) is
/// unchanged, so that a late or shorter extension does no harm. It never creates a key. Errors are
/// handled as in [`RELEASE`].
///
/// A vote must be a write. A server that became a replica has lost its votes for others, but may
/// have a copy of this key, and its primary may have extended it just before. A replica refuses
/// only writes. Of the rule for a vote: no yes of a server whose data this one has; and the key is
/// there for the whole span.
pub const EXTEND: Script = Script {
    number: 1,
    name: "extend",
    text: "\
local held = redis.pcall('GET', KEYS[1])
if held == ARGV[1] then
  local left = redis.call('PTTL', KEYS[1])
  if left >= 0 then redis.call('PEXPIRE', KEYS[1], left < tonumber(ARGV[2]) and ARGV[2] or left) end
  return 1
end
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then return held end
return 0",
    sha1_hex: "de1a8ae307ee26854c3a436761afc2e75b415764",
};

/// Takes back a request for KEYS\[1\] with the token ARGV\[1\], or else reports who holds the key.
///
/// Answers 1 if it deleted our token, 0 if there is no key, and else the holder. A key of a foreign
/// type answers GET's WRONGTYPE.
pub const UNDO: Script = Script {
    number: 2,
    name: "undo",
    text: concat!(
        "\
local held = redis.pcall('GET', KEYS[1])
if held == ARGV[1] then return redis.call('DEL', KEYS[1]) end
if not held then return 0 end
if type(held) == 'table' then return held end
",
        tell_holder!()
    ),
    sha1_hex: "0c7c5611d94c8a17f70a4e5a80a365a7cadcf140",
};

/// `SET key token NX PX ttl` that reads the key first: a refused client learns the holder. If its
/// connection is tracked, it is also notified when the key changes. Answers 1, or the holder.
///
/// It is for clients that expect a refusal. A refusal by `SET NX` does not name the holder or
/// register for notifications.
pub const ACQUIRE_READING: Script = Script {
    number: 11,
    name: "acquire reading",
    text: acquire_reading!(),
    sha1_hex: "36419b2a4ecfd8ed4aa9d22961238da55da31e49",
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands that a part of a script calls, except those that only read.
    fn writes(part: &str) -> Vec<&str> {
        let calls = part.split("redis.call('").skip(1).filter_map(|call| call.split('\'').next());
        calls.filter(|command| !matches!(*command, "GET" | "PTTL")).collect()
    }

    #[test]
    fn each_script_writes_only_where_the_token_is_ours() {
        for (script, expected) in [(RELEASE, "DEL"), (EXTEND, "PEXPIRE"), (UNDO, "DEL")] {
            let (before, rest) = script.text.split_once("if held == ARGV[1] then").unwrap();
            let (ours, behind) = rest.split_once("end").unwrap();
            assert_eq!(writes(ours), [expected], "{}", script.name);
            assert_eq!((writes(before), writes(behind)), (vec![], vec![]), "{}", script.name);
        }
    }

    #[test]
    fn an_extension_script_only_lengthens_the_life_of_its_key() {
        let longer = "redis.call('PEXPIRE', KEYS[1], left < tonumber(ARGV[2]) and ARGV[2] or left)";
        assert!(EXTEND.text.contains(longer));
    }

    #[test]
    fn each_script_has_the_sha_1_of_its_text() {
        let mut numbers = ScriptSet::default();
        let mut wrong = String::new();
        let guarded = GUARDED.into_iter().map(|(_, guarded)| guarded);
        let replicated = REPLICATED.into_iter().map(|(_, replicated)| replicated);
        for script in ALL.into_iter().chain(guarded).chain(replicated) {
            let &Script { name, text, sha1_hex, .. } = script;
            assert!(script.number < 64 && numbers.insert(script), "{name}");
            let digest = sha1_smol::Sha1::from(text).digest().to_string();
            if sha1_hex != digest {
                wrong += &format!("{sha1_hex} becomes {digest}: {name}\n");
            }
        }
        // The command reads these lines.
        assert!(wrong.is_empty(), "`cargo xtask digests` writes what has changed:\n{wrong}");
    }
}
