//! Masters with replicas: the voting scripts, after a check of the replicas.
//!
//! Each of these scripts is one for other masters, with a part before it and a part behind it. The
//! part before it is the check: it ends the script unless the server is a primary and has exactly
//! the declared replicas. The part behind it makes every `Yes` write something: `WAIT` only covers
//! the last write of its own connection, and since Redis 7.2 not the writes of others. The number
//! of replicas is in the last argument, which is the marker's last number
//! ([`Fleet`](crate::protocol::Fleet)).
//!
//! The check comes before the restart guard. So a promoted server's marker is written, and its
//! quarantine begins, when the group is first seen complete.
//!
//! The check is no proof: a primary dates a replica's report when it reads it, so an old report
//! from a buffer looks fresh. The proof is `WAIT`, which follows each script. The check avoids a
//! wait that would fail, and names the cause. A server that is not a primary must not vote,
//! whatever `WAIT` answers.

use super::fleet::{check_marker, read_info, read_life};
use super::guarded::HEAL;
use super::joined::script;
use super::{
    ACQUIRE_ALL, ACQUIRE_FENCED_GUARDED, ACQUIRE_GUARDED, ATTEND, ENTER, EXTEND, EXTEND_ALL, EXTEND_FENCED,
    HEAL_ALL, HEAL_FENCED, OPEN, RAISE, RAISE_ALL, Script, TAKE,
};

/// Continues only if the server is a primary with exactly the declared replicas, each with its own
/// address and a report within the last second. Otherwise it answers `alone`, the number of such
/// replicas, and the number of connected ones.
///
/// A backup tool that poses as a replica has port 0. Only digits are accepted as the lag: a
/// negative one means that the clock was set back.
const CHECK: &str = concat!(
    read_info!(),
    "\
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
);
/// The restart guard: it follows the check before a script that sets a key and has no guard of its
/// own.
const MARKER: [&str; 2] = unread(check_marker!());

/// The beginning of a script whose answer is checked at its end.
const VOTE: &str = "local function vote()\n";

/// The end of a script. Before it answers `Yes`, it sets the expiry of one of its keys to the
/// present expiry, or the value to the present value if the key never expires. A `No` writes
/// nothing, so that waiters are not notified.
const WRITE: &str = "
end
local said = vote()
local yes = type(said) == 'number' and said > 0 or type(said) == 'table' and said[1] == 'seats'
for i = 1, yes and #KEYS or 0 do
  local left = redis.pcall('PTTL', KEYS[i])
  if type(left) == 'table' then return left end
  local done = left > 0 and redis.pcall('PEXPIRE', KEYS[i], left)
  if left == -1 then
    done = redis.pcall('GET', KEYS[i])
    if type(done) == 'string' then done = redis.pcall('SET', KEYS[i], done) end
  end
  if type(done) == 'table' and done.err then return done end
  if done then return said end
end
return yes and 0 or said";

/// Splits a script in two, and drops what is between: the reading of `INFO`, which the check has
/// already done.
// An index beyond the end is a compile error, because every use is in a constant.
#[allow(clippy::indexing_slicing)]
const fn unread(text: &str) -> [&str; 2] {
    let (bytes, read) = (text.as_bytes(), read_info!().as_bytes());
    let mut place = 0;
    while place + read.len() <= bytes.len() {
        // The compiler runs this: the work for each byte of each text takes most of its time.
        let mut same = 0;
        while same < read.len() && bytes[place + same] == read[same] {
            same += 1;
        }
        if same == read.len() {
            let (before, rest) = bytes.split_at(place);
            return match (std::str::from_utf8(before), std::str::from_utf8(rest.split_at(same).1)) {
                (Ok(before), Ok(behind)) => [before, behind],
                // A text that cannot be split stays whole.
                _ => [text, ""],
            };
        }
        place += 1;
    }
    [text, ""]
}

/// A script with the check before its text, and with the end that writes before a `Yes`.
macro_rules! behind {
    ([$($check:expr),*], $text:expr, $number:literal, $name:literal, $sha1_hex:literal) => {{
        const OWN: [&str; 2] = unread($text);
        script!([$($check,)* VOTE, OWN[0], OWN[1], WRITE], $number, $name, $sha1_hex)
    }};
}

pub(crate) const ACQUIRE_REPLICATED: Script = behind!(
    [CHECK],
    ACQUIRE_GUARDED.text,
    23,
    "acquire replicated",
    "6f4204b5dfda32f3b98fe2c2264274bbe6d1406d"
);
pub(crate) const ACQUIRE_FENCED_REPLICATED: Script = behind!(
    [CHECK],
    ACQUIRE_FENCED_GUARDED.text,
    24,
    "acquire fenced replicated",
    "48e25f64654c25db2ac120ea2e36a3c98bc98f20"
);
pub(crate) const ACQUIRE_ALL_REPLICATED: Script = behind!(
    [CHECK],
    ACQUIRE_ALL.text,
    25,
    "acquire all replicated",
    "d03822c23757dce86c268bded5c1471bca078871"
);
pub(crate) const TAKE_REPLICATED: Script =
    behind!([CHECK], TAKE.text, 26, "take replicated", "9d237566a1a1c4245b019743f186dad527740a05");
/// The `Yes` of this script is no vote and writes nothing: each vote checks the marker itself.
pub(crate) const ATTEND_REPLICATED: Script = script!(
    [CHECK, unread(ATTEND.text)[0], unread(ATTEND.text)[1]],
    27,
    "attend replicated",
    "a389b5da307a6db62dc42e8f60534a87c66b07c5"
);
pub(crate) const OPEN_REPLICATED: Script =
    behind!([CHECK], OPEN.text, 28, "open replicated", "006bb5647293c15f6bb9f1d3a624091c512121df");
pub(crate) const RAISE_REPLICATED: Script =
    behind!([CHECK], RAISE.text, 29, "raise replicated", "e222d0b0fed58052ac16f992256c0869953528b7");
pub(crate) const EXTEND_REPLICATED: Script =
    behind!([CHECK], EXTEND.text, 30, "extend replicated", "fff746e5e3062ea8a44981ddaa0526c1acd5f0a0");
pub(crate) const EXTEND_FENCED_REPLICATED: Script = behind!(
    [CHECK],
    EXTEND_FENCED.text,
    31,
    "extend fenced replicated",
    "5405d5972af1834a682737884cc5f270a0ea27ec"
);
pub(crate) const RAISE_ALL_REPLICATED: Script =
    behind!([CHECK], RAISE_ALL.text, 32, "raise all replicated", "2ac7a7ed3125ccc376cb4b19424a330876b95253");
pub(crate) const EXTEND_ALL_REPLICATED: Script = behind!(
    [CHECK],
    EXTEND_ALL.text,
    33,
    "extend all replicated",
    "449c22fb76674e32807c3074ef5690fe4eb3858b"
);
pub(crate) const HEAL_REPLICATED: Script = behind!(
    [CHECK, MARKER[0], MARKER[1]],
    HEAL,
    34,
    "heal replicated",
    "afb71d01fb8254f81fb0a70ca33e82f5c28b3517"
);
pub(crate) const HEAL_FENCED_REPLICATED: Script = behind!(
    [CHECK, MARKER[0], MARKER[1]],
    HEAL_FENCED.text,
    35,
    "heal fenced replicated",
    "f6c2778d61ed01493dc4871614c2486916fda5b2"
);
pub(crate) const HEAL_ALL_REPLICATED: Script = behind!(
    [CHECK, MARKER[0], MARKER[1]],
    HEAL_ALL.text,
    36,
    "heal all replicated",
    "f66f80dea82688cf13d912e3b1f8f950f74fef2c"
);

pub(crate) const ENTER_REPLICATED: Script =
    behind!([CHECK], ENTER.text, 39, "enter replicated", "17cc923a213d8c6a0ae2340d1837f2d0bb693654");

/// Each voting script, with its replacement on a master with replicas. On other masters, restoring
/// a lock without a number needs no script.
pub const REPLICATED: [(Option<&Script>, &Script); 15] = [
    (Some(&ACQUIRE_GUARDED), &ACQUIRE_REPLICATED),
    (Some(&ACQUIRE_FENCED_GUARDED), &ACQUIRE_FENCED_REPLICATED),
    (Some(&ACQUIRE_ALL), &ACQUIRE_ALL_REPLICATED),
    (Some(&TAKE), &TAKE_REPLICATED),
    (Some(&ENTER), &ENTER_REPLICATED),
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

/// The replacement of this script, or of a plain `SET`, on a master with replicas.
pub(crate) fn replicated(script: Option<&'static Script>) -> Option<&'static Script> {
    super::replacement(&REPLICATED, script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicated_scripts_check_the_replicas_before_they_write() {
        for (plain, replicated) in REPLICATED {
            let text = replicated.text.strip_prefix(CHECK).unwrap();
            let own = plain.map_or(HEAL, |plain| plain.text);
            let text = text.strip_suffix(if replicated == &ATTEND_REPLICATED { "" } else { WRITE }).unwrap();
            let own = own.replace(read_info!(), "");
            assert!(text.ends_with(&own), "{}", replicated.name);
            assert_eq!(replicated.text.matches("INFO'").count(), 1, "{}", replicated.name);
            // Scripts that need an existing key, or end a quarantine, do not wait for the
            // quarantine's end.
            let words = ["open", "raise", "extend"];
            let is_exempt = words.iter().any(|word| replicated.name.starts_with(word));
            assert_eq!(text.contains("{'quarantined'"), !is_exempt, "{}", replicated.name);
        }
        assert!(!CHECK.contains("SET"));
    }
}
