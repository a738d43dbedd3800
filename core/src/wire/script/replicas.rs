//! Masters with replicas: the voting scripts, after a check of the replicas.
//!
//! Each of these scripts is one for other masters, with a part before it and a part behind it. The
//! part before it is the check: it ends the script unless the server is a primary and has exactly
//! the declared replicas. The part behind it makes every `Yes` write something: `WAIT` only covers
//! the last write of its own connection, and since Redis 7.2 not the writes of others. The number
//! of servers is in the last argument, which is the marker's last number
//! ([`Fleet`](crate::protocol::Fleet)): the master, and its replicas, if there are any.
//!
//! A release that keeps its keys does that before the check: without its replicas, the master keeps
//! the key as well, and only its answer does not count.
//!
//! The check comes before the restart guard. So a promoted server's marker is written, and its
//! quarantine begins, when the group is first seen complete.
//!
//! The check is no proof: a primary dates a replica's report when it reads it, so an old report
//! from a buffer looks fresh. The proof is `WAIT`, which follows each script. The check avoids a
//! wait that would fail, and names the cause. A server that is not a primary must not vote,
//! whatever `WAIT` answers.
//!
//! Of the rule for a vote: no yes of a server that takes this one's seat, or that has had it.

use super::fleet::{check_marker, read_info, read_life};
use super::guarded::{
    DONE, EXTEND_ALL_GUARDED, EXTEND_FENCED_GUARDED, HEAL_ALL_GUARDED, HEAL_FENCED_GUARDED, HEAL_GUARDED,
    KEEP_ALL_GUARDED, KEEP_GUARDED, KEEP_LEAVING_GUARDED, WORK,
};
use super::joined::script;
use super::{
    ACQUIRE_ALL, ACQUIRE_FENCED_GUARDED, ACQUIRE_GUARDED, ATTEND, ENTER, EXTEND_GUARDED, KEEP, KEEP_ALL,
    KEEP_LEAVING, OPEN, RAISE, RAISE_ALL, Script, TAKE,
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
local declared = math.floor(tonumber(ARGV[#ARGV]) / 1000) - 1
local connected = tonumber(string.match(info, 'connected_slaves:(%d+)'))
if follow ~= declared or connected ~= declared then return {'alone', follow, connected} end
"
);
/// The beginning of a script whose answer is checked at its end.
const VOTE: &str = "local function vote()\n";

/// The end of a script. Before it answers `Yes`, in a quarantine or not, it sets the expiry of one
/// of its keys to the present expiry, or the value to the present value if the key never expires. A
/// `No` writes nothing, so that waiters are not notified.
const WRITE: &str = "
end
local said = vote()
local yes = type(said) == 'number' and said > 0
  or type(said) == 'table' and (said[1] == 'seats' or said[1] == 'ours')
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
macro_rules! behind_check {
    ($text:expr, $number:literal, $name:literal, $sha1_hex:literal) => {{
        const OWN: [&str; 2] = unread($text);
        script!([CHECK, VOTE, OWN[0], OWN[1], WRITE], $number, $name, $sha1_hex)
    }};
}

/// What the marker says of a key that is ours, without the reading of `INFO`.
const MARKER: [&str; 2] = unread(check_marker!("ours"));

/// A script with the check, and the look at the marker, behind its work.
macro_rules! before_check {
    ($text:expr, $number:literal, $name:literal, $sha1_hex:literal) => {
        script!(
            [VOTE, WORK, $text, DONE, CHECK, MARKER[0], MARKER[1], "return said", WRITE],
            $number,
            $name,
            $sha1_hex
        )
    };
}

pub(crate) const ACQUIRE_REPLICATED: Script =
    behind_check!(ACQUIRE_GUARDED.text, 23, "acquire replicated", "cfbf7777c8c8c8793ce223038d2e45b849ba2fd2");
const ACQUIRE_FENCED_REPLICATED: Script = behind_check!(
    ACQUIRE_FENCED_GUARDED.text,
    24,
    "acquire fenced replicated",
    "104b1692ed273d951dccec096ba4b0272db7ed59"
);
const ACQUIRE_ALL_REPLICATED: Script =
    behind_check!(ACQUIRE_ALL.text, 25, "acquire all replicated", "47b414c5377c868fc895e4506f6a387ff2b12ae6");
const TAKE_REPLICATED: Script =
    behind_check!(TAKE.text, 26, "take replicated", "46a96b47c90f2576d8c59552d482cb263a44cdf0");
/// The `Yes` of this script is no vote and writes nothing: each vote checks the marker itself.
pub(crate) const ATTEND_REPLICATED: Script = script!(
    [CHECK, unread(ATTEND.text)[0], unread(ATTEND.text)[1]],
    27,
    "attend replicated",
    "1652b9ee667397ecdddfae44a21920fa541404a8"
);
const OPEN_REPLICATED: Script =
    behind_check!(OPEN.text, 28, "open replicated", "261e8b4f3d87eb93eaa08132e4a4b18308d439ab");
const RAISE_REPLICATED: Script =
    behind_check!(RAISE.text, 29, "raise replicated", "0383a24b1926bea7a1e6cf926c17e9910d35beee");
pub(crate) const EXTEND_REPLICATED: Script =
    behind_check!(EXTEND_GUARDED.text, 30, "extend replicated", "dcedfefc596b9ef71b6d4a17278d2bcaf8cf4a02");
const EXTEND_FENCED_REPLICATED: Script = behind_check!(
    EXTEND_FENCED_GUARDED.text,
    31,
    "extend fenced replicated",
    "b550ad4da9c30d6785be25f9167041d862db0f85"
);
const RAISE_ALL_REPLICATED: Script =
    behind_check!(RAISE_ALL.text, 32, "raise all replicated", "dc57063bc5143fb7358a3a6615cb19c88bb6c6a7");
const EXTEND_ALL_REPLICATED: Script = behind_check!(
    EXTEND_ALL_GUARDED.text,
    33,
    "extend all replicated",
    "7d7b23d5d8e76bf928cdde652606b85cd1acdb7d"
);
const HEAL_REPLICATED: Script =
    behind_check!(HEAL_GUARDED.text, 34, "heal replicated", "9418bb5f6ed0d2454a7935f42b92d93d65f9e773");
const HEAL_FENCED_REPLICATED: Script = behind_check!(
    HEAL_FENCED_GUARDED.text,
    35,
    "heal fenced replicated",
    "693d32393b8a32d90968ed44fe3155abf9521c1c"
);
const HEAL_ALL_REPLICATED: Script = behind_check!(
    HEAL_ALL_GUARDED.text,
    36,
    "heal all replicated",
    "64ad08970431047ebb7228fb4b9ad97a5c416b92"
);
const ENTER_REPLICATED: Script =
    behind_check!(ENTER.text, 39, "enter replicated", "e752cddf54502607403eaada45232a323aebcfc9");
const KEEP_REPLICATED: Script =
    before_check!(KEEP.text, 48, "keep replicated", "740cf5fbc43e984d5fbd3c8f6badff13e5cc5698");
const KEEP_ALL_REPLICATED: Script =
    before_check!(KEEP_ALL.text, 49, "keep all replicated", "a1c22ecdd254ddc5588d08defc412c6f539bad81");

const KEEP_LEAVING_REPLICATED: Script = before_check!(
    KEEP_LEAVING.text,
    52,
    "keep leaving replicated",
    "9b6789edc37a0c1bb3700f4fd60322e7de08c606"
);

/// Each voting script under the restart guard, with its replacement on a master with replicas.
pub const REPLICATED: [(&Script, &Script); 18] = [
    (&ACQUIRE_GUARDED, &ACQUIRE_REPLICATED),
    (&ACQUIRE_FENCED_GUARDED, &ACQUIRE_FENCED_REPLICATED),
    (&ACQUIRE_ALL, &ACQUIRE_ALL_REPLICATED),
    (&TAKE, &TAKE_REPLICATED),
    (&ATTEND, &ATTEND_REPLICATED),
    (&OPEN, &OPEN_REPLICATED),
    (&RAISE, &RAISE_REPLICATED),
    (&EXTEND_GUARDED, &EXTEND_REPLICATED),
    (&EXTEND_FENCED_GUARDED, &EXTEND_FENCED_REPLICATED),
    (&RAISE_ALL, &RAISE_ALL_REPLICATED),
    (&EXTEND_ALL_GUARDED, &EXTEND_ALL_REPLICATED),
    (&HEAL_GUARDED, &HEAL_REPLICATED),
    (&HEAL_FENCED_GUARDED, &HEAL_FENCED_REPLICATED),
    (&HEAL_ALL_GUARDED, &HEAL_ALL_REPLICATED),
    (&ENTER, &ENTER_REPLICATED),
    (&KEEP_GUARDED, &KEEP_REPLICATED),
    (&KEEP_ALL_GUARDED, &KEEP_ALL_REPLICATED),
    (&KEEP_LEAVING_GUARDED, &KEEP_LEAVING_REPLICATED),
];

/// The replacement of this script on a master with replicas.
pub(crate) fn replicated(script: &'static Script) -> &'static Script {
    let pair = REPLICATED.iter().find(|(plain, _)| plain.number == script.number);
    pair.map_or(script, |(_, replicated)| replicated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicated_scripts_check_the_replicas_before_they_write() {
        let keeps = |script: &Script| [KEEP_GUARDED, KEEP_ALL_GUARDED, KEEP_LEAVING_GUARDED].contains(script);
        for (plain, replicated) in REPLICATED {
            assert_eq!(replicated.text.matches("INFO'").count(), 1, "{}", replicated.name);
            if keeps(plain) {
                continue;
            }
            let text = replicated.text.strip_prefix(CHECK).unwrap();
            let text = text.strip_suffix(if replicated == &ATTEND_REPLICATED { "" } else { WRITE }).unwrap();
            assert!(text.ends_with(&plain.text.replace(read_info!(), "")), "{}", replicated.name);
        }
        assert!(!CHECK.contains("SET"));
    }

    /// `open` ends a quarantine, and the `Yes` of a raise is no new vote.
    #[test]
    fn every_replicated_script_that_gives_a_vote_looks_at_the_marker() {
        let looks =
            |script: &Script| script.text.contains("{'quarantined'") || script.text.contains("{'ours'");
        let without = REPLICATED.iter().filter(|(_, replicated)| !looks(replicated));
        let without: Vec<_> = without.map(|(plain, _)| plain.name).collect();
        assert_eq!(without, [OPEN.name, RAISE.name, RAISE_ALL.name]);
    }
}
