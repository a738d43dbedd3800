//! Masters with replicas: the scripts that carry votes, behind a look at the replicas.
//!
//! Each is another script with a part in front that ends it unless the server is a primary and has
//! exactly the declared replicas. Their number is in the last argument, which is the marker's last
//! number ([`Fleet`](crate::protocol::Fleet)). So the marker of a server that was promoted is
//! written, and its quarantine begins, when the group is seen complete for the first time.
//!
//! That look is no proof: a primary stamps a replica's word when it reads it, so what has lain in a
//! buffer looks fresh. The proof is `WAIT`, which follows each of them. The look spares the wait
//! where it would fail, and tells what is the matter. A server that is no primary must not vote
//! whatever `WAIT` says.

use super::fleet::{check_marker, read_life};
use super::{
    ACQUIRE_ALL, ACQUIRE_FENCED_GUARDED, ACQUIRE_GUARDED, ATTEND, EXTEND, EXTEND_ALL, EXTEND_FENCED,
    HEAL_ALL, HEAL_FENCED, OPEN, RAISE, RAISE_ALL, Script, TAKE,
};

/// Goes on only where the server is a primary with exactly the declared replicas, each with an
/// address of its own and heard of within the last second. Else it answers `alone`, how many of
/// them follow and how many are connected.
///
/// A backup tool that reads as a replica has port 0. The lag is digits only: a negative one is that
/// of a clock that was set back.
macro_rules! check_replicas {
    () => {
        "\
local info = redis.pcall('INFO', 'replication')
if type(info) == 'table' then return info end
if not string.find(info, 'role:master', 1, true) then
  return redis.error_reply('READONLY this server is a replica')
end
local places, follow = {}, 0
for line in string.gmatch(info, 'slave%d+:([^\\r\\n]*)') do
  line = line .. ','
  local place = string.match(line, '^ip=([^,]+,port=[1-9]%d*),')
  local fresh = string.find(line, ',state=online,', 1, true) and string.find(line, ',lag=[01],')
  if place and fresh and not places[place] then places[place], follow = true, follow + 1 end
end
local declared = math.floor(tonumber(ARGV[#ARGV]) / 1000)
local connected = tonumber(string.match(info, 'connected_slaves:(%d+)'))
if follow ~= declared or connected ~= declared then return {'alone', follow, connected} end
"
    };
}

/// What comes before a script whose keys and arguments are those of the restart guard, or which
/// needs no marker.
const CHECK: &str = check_replicas!();
/// What comes before a script that sets a key and knows no guard otherwise.
const CHECK_ALL: &str = concat!(check_replicas!(), check_marker!());

/// Puts back a lock that is not numbered: as a plain `SET NX`, in a script.
const HEAL: &str = "\
if redis.pcall('GET', KEYS[1]) then return 0 end
local done = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if done.err then return done end
return 1";

/// The second text behind the first; `N` is the length of both.
// An index beyond the end is an error of the compiler, because every use is in a constant.
#[allow(clippy::indexing_slicing)]
const fn joined<const N: usize>(first: &str, second: &str) -> [u8; N] {
    let (first, second) = (first.as_bytes(), second.as_bytes());
    let (mut text, mut place) = ([0; N], 0);
    while place < N {
        text[place] = if place < first.len() { first[place] } else { second[place - first.len()] };
        place += 1;
    }
    text
}

/// A script with a check in front of its text.
macro_rules! behind {
    ($check:ident, $text:expr, $number:literal, $name:literal, $sha1_hex:literal) => {{
        const BYTES: [u8; $check.len() + $text.len()] = joined($check, $text);
        const TEXT: &str = match std::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => panic!("two texts are a text"),
        };
        Script { number: $number, name: $name, text: TEXT, sha1_hex: $sha1_hex }
    }};
}

pub(crate) const ACQUIRE_REPLICATED: Script = behind!(
    CHECK,
    ACQUIRE_GUARDED.text,
    23,
    "acquire replicated",
    "41e3d7b7993fe58549d0734ad0d82fa9e39c6932"
);
pub(crate) const ACQUIRE_FENCED_REPLICATED: Script = behind!(
    CHECK,
    ACQUIRE_FENCED_GUARDED.text,
    24,
    "acquire fenced replicated",
    "f3163d70e7a8242cb5782c2e4d151f519ba0e4c7"
);
pub(crate) const ACQUIRE_ALL_REPLICATED: Script = behind!(
    CHECK,
    ACQUIRE_ALL.text,
    25,
    "acquire all replicated",
    "f57d4935b6389b9a766d11289134b31fdf5ef3eb"
);
pub(crate) const TAKE_REPLICATED: Script =
    behind!(CHECK, TAKE.text, 26, "take replicated", "f4fb832081442e587b4717a94e43e2b64f55b71d");
pub(crate) const ATTEND_REPLICATED: Script =
    behind!(CHECK, ATTEND.text, 27, "attend replicated", "36faea9658a31ce99866944fa38fd9ce993babc1");
pub(crate) const OPEN_REPLICATED: Script =
    behind!(CHECK, OPEN.text, 28, "open replicated", "9d8e3051211eac5e2357ea4cd175d7276513f726");
pub(crate) const RAISE_REPLICATED: Script =
    behind!(CHECK, RAISE.text, 29, "raise replicated", "808199dff4a0ec02f4e483e9d6232c40abd11603");
pub(crate) const EXTEND_REPLICATED: Script =
    behind!(CHECK, EXTEND.text, 30, "extend replicated", "087ebee782264869192f3652de5c6945e3aab84c");
pub(crate) const EXTEND_FENCED_REPLICATED: Script = behind!(
    CHECK,
    EXTEND_FENCED.text,
    31,
    "extend fenced replicated",
    "ca50c8e34161ca2cac1ba518aefd1689a28ad848"
);
pub(crate) const RAISE_ALL_REPLICATED: Script =
    behind!(CHECK, RAISE_ALL.text, 32, "raise all replicated", "59ba195b5b74fddf3d07a1c5cb9c29afa112bd2b");
pub(crate) const EXTEND_ALL_REPLICATED: Script =
    behind!(CHECK, EXTEND_ALL.text, 33, "extend all replicated", "3ecec34e90c58759779361f8a6bd5eaa9848423b");
pub(crate) const HEAL_REPLICATED: Script =
    behind!(CHECK_ALL, HEAL, 34, "heal replicated", "8461b646fe1c047db623ecb027516190c4a3e63f");
pub(crate) const HEAL_FENCED_REPLICATED: Script = behind!(
    CHECK_ALL,
    HEAL_FENCED.text,
    35,
    "heal fenced replicated",
    "fd4beaebcbad77a93e95db2d416022d02575fb29"
);
pub(crate) const HEAL_ALL_REPLICATED: Script =
    behind!(CHECK_ALL, HEAL_ALL.text, 36, "heal all replicated", "913fc6f88910c69eb23d1f5159901478209271b0");

/// Each script that carries votes, with the one in its place on a master with replicas. What is put
/// back without a number needs none elsewhere.
pub const REPLICATED: [(Option<&Script>, &Script); 14] = [
    (Some(&ACQUIRE_GUARDED), &ACQUIRE_REPLICATED),
    (Some(&ACQUIRE_FENCED_GUARDED), &ACQUIRE_FENCED_REPLICATED),
    (Some(&ACQUIRE_ALL), &ACQUIRE_ALL_REPLICATED),
    (Some(&TAKE), &TAKE_REPLICATED),
    (Some(&ATTEND), &ATTEND_REPLICATED),
    (Some(&OPEN), &OPEN_REPLICATED),
    (Some(&RAISE), &RAISE_REPLICATED),
    (Some(&EXTEND), &EXTEND_REPLICATED),
    (Some(&EXTEND_FENCED), &EXTEND_FENCED_REPLICATED),
    (Some(&RAISE_ALL), &RAISE_ALL_REPLICATED),
    (Some(&EXTEND_ALL), &EXTEND_ALL_REPLICATED),
    (None, &HEAL_REPLICATED),
    (Some(&HEAL_FENCED), &HEAL_FENCED_REPLICATED),
    (Some(&HEAL_ALL), &HEAL_ALL_REPLICATED),
];

/// What a master with replicas is asked in place of this script, or of a plain `SET`.
pub(crate) fn replicated(script: Option<&'static Script>) -> Option<&'static Script> {
    let number = script.map(|script| script.number);
    let pair = REPLICATED.iter().find(|(plain, _)| plain.map(|plain| plain.number) == number);
    pair.map_or(script, |(_, replicated)| Some(replicated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_before_the_replicas_have_been_looked_at() {
        for (plain, replicated) in REPLICATED {
            let text = replicated.text.strip_prefix(CHECK).unwrap();
            let own = plain.map_or(HEAL, |plain| plain.text);
            assert!(text.ends_with(own), "{}", replicated.name);
            // What rests on a key that is there, and what ends a quarantine, does not wait for its
            // end.
            let words = ["open", "raise", "extend"];
            let is_exempt = words.iter().any(|word| replicated.name.starts_with(word));
            assert_eq!(text.contains("{'quarantined'"), !is_exempt, "{}", replicated.name);
        }
        assert!(!CHECK.contains("SET"));
    }
}
