//! The restart guard: the scripts for masters that must not vote for a while after they have lost
//! their data.
//!
//! The last key is the marker, the last two arguments are the largest TTL of the fleet in
//! milliseconds and the number of masters. The marker holds the replication id, the server's time
//! when it was written, the time from which the master votes, and those two arguments. A marker
//! with more words is of a version that knows more than this one: it is never rewritten.
//!
//! The server's `master_replid` is new after every restart and every promotion (`INFO
//! replication`). The scripts read it, not the client, because a promoted replica keeps its
//! connections.

use super::Script;
use super::fence::{grant_fenced, read_counter};

/// Reads the server's replication report into `info`.
macro_rules! read_info {
    () => {
        "\
local info = redis.pcall('INFO', 'replication')
if type(info) == 'table' then return info end
"
    };
}

/// Reads the server's time into `now`, and its present replication id into `id`.
macro_rules! read_life {
    () => {
        concat!(
            "\
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
",
            read_info!(),
            "\
local id = string.match(info, 'master_replid:(%x+)')
if not id then return redis.error_reply('ERR INFO tells no master_replid') end
"
        )
    };
}

/// Continues only if the server is a primary, and the marker has its present replication id and its
/// quarantine is over. Defines `opens`. In a quarantine it answers `quarantined` and the rest of
/// it; behind work on a key that is ours, another word takes the place of that one.
///
/// Of the rule for a vote: no yes of a server that this one was, or whose data it has, and that it
/// may have forgotten.
///
/// A master that becomes a replica of another one loses its data, but then has that master's marker
/// and replication id. If it also has a copy of our key, it would vote for us without a write,
/// although another client may have had its vote before.
macro_rules! check_marker {
    () => {
        check_marker!("quarantined")
    };
    ($word:literal) => {
        concat!(
            "local marker, longest, masters = KEYS[#KEYS], ARGV[#ARGV - 1], ARGV[#ARGV]\n",
            read_life!(),
            "\
if not string.find(info, 'role:master', 1, true) then
  return redis.error_reply('READONLY this server is a replica')
end
local found = redis.pcall('GET', marker)
if type(found) == 'table' then return found end
local seen, born, opens, ttl, many, more = string.match(found or '', '^(%x+) (%d+) (%d+) (%d+) (%d+)(.*)$')
if seen and (ttl ~= longest or many ~= masters or more ~= '') then
  return {'fleet', tonumber(ttl), tonumber(many)}
end
if seen ~= id or tonumber(born) > now then
  born, opens = now, now + longest
  local text = string.format('%s %.0f %.0f %s %s', id, born, opens, longest, masters)
  local done = redis.pcall('SET', marker, text)
  if done.err then return done end
end
if now < tonumber(opens) then return {'",
            $word,
            "', tonumber(opens) - now} end
"
        )
    };
}

pub(super) use {check_marker, read_info, read_life};

/// Like the acquisition that reads the key first, if the marker allows it.
pub const ACQUIRE_GUARDED: Script = Script {
    number: 7,
    name: "acquire guarded",
    text: concat!(check_marker!(), acquire_reading!()),
    sha1_hex: "c852a8dce055358df55e21d01493c183cb02b42f",
};

/// Like the fenced acquisition, if the marker allows it. Lost counters restart above all numbers
/// issued before, as long as no resource was granted more than 1,024 times in a millisecond, and
/// the masters' clocks differ by no more than the longest TTL.
///
/// Lost counters restart at the time from which the master votes, not at the time when the marker
/// was written. Right after a bootstrap, the master whose clock is furthest ahead issues the
/// largest numbers. If a master whose clock is behind then loses its counters, it waits for the
/// longest TTL. Its clock is behind by less, so it restarts above those numbers.
pub const ACQUIRE_FENCED_GUARDED: Script = Script {
    number: 8,
    name: "acquire fenced guarded",
    text: concat!(check_marker!(), "local floor = opens * 1024\n", grant_fenced!()),
    sha1_hex: "cf75dcdb92aa6ef2ca8f01094899f70467bbed15",
};

/// Answers 1 if the master votes. If there is no marker with the server's present replication id,
/// it writes one, and the quarantine begins.
pub const ATTEND: Script = Script {
    number: 9,
    name: "attend",
    text: concat!(check_marker!(), "return 1"),
    sha1_hex: "ae4cca61f86604ebcf614acb5f7e41a52dfc619f",
};

/// Ends the quarantine of a master on which nothing has been locked. Answers 1.
pub const OPEN: Script = Script {
    number: 10,
    name: "open",
    text: concat!(
        read_life!(),
        "\
local text = string.format('%s %.0f %.0f %s %s', id, now, now, ARGV[1], ARGV[2])
local done = redis.pcall('SET', KEYS[1], text)
if done.err then return done end
return 1"
    ),
    sha1_hex: "b2d216a32a2ebb7ddbf75d96ad4bc5f633a5fa3c",
};
