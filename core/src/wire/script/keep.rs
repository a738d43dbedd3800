//! A release that keeps the keys for a while.

use super::Script;
use super::claim::{define_entries, prepare_clock, read_claim, read_clock};

/// Releases the lock if KEYS\[1\] holds the token ARGV\[1\], but keeps the key for ARGV\[2\]
/// milliseconds from now, whether that makes its life longer or shorter. Answers 1 if it did, 0 if
/// the lock is not ours, or no longer: it may have been kept for less.
///
/// Only this script and a release shorten a key's life. The value becomes the SHA-1 of the token,
/// the same on all masters: an extension, a release or a repeated acquisition that is executed
/// later finds a key that is not ours. A repeat of this script can only shorten the life: if
/// several repeats are executed late, the earliest end counts, which is the nearest to the intended
/// one. The life is set first, because a server without memory refuses the `SET` only before a
/// script's first write. Errors are handled as in [`RELEASE`](super::RELEASE).
pub const KEEP: Script = Script {
    number: 18,
    name: "keep",
    text: "\
local held, kept = redis.pcall('GET', KEYS[1]), redis.sha1hex(ARGV[1])
if held == ARGV[1] then
  local done = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if type(done) == 'table' then return done end
  redis.pcall('SET', KEYS[1], kept, 'PX', ARGV[2])
  return 1
end
if held == kept then
  if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then redis.pcall('PEXPIRE', KEYS[1], ARGV[2]) end
  return 0
end
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then return held end
return 0",
    sha1_hex: "a1c39d66ec460a6796c4c67bcec7641528d4fc40",
};

/// The same for a claim of several targets, with the keys and values of
/// [`RELEASE_ALL`](super::RELEASE_ALL): releases each target that is ours, but keeps it for
/// ARGV\[2\] milliseconds from now. Answers 1 if all of them were ours.
///
/// In a read target our entry is renamed to the SHA-1 of the token, and ends after that time: other
/// sharers keep the target, and new ones may join. If `x` is our token, because this master does
/// not know of the downgrade yet, `x` is kept as a written target, and keeps readers out, too.
pub const KEEP_ALL: Script = Script {
    number: 21,
    name: "keep all",
    text: concat!(
        read_claim!(),
        prepare_clock!(),
        define_entries!(),
        "\
local life, kept, complete = tonumber(ARGV[2]), redis.sha1hex(token), true
local function stay(key, value)
  if value == token then
    local done = call('PEXPIRE', key, ARGV[2])
    if bad(done) then return done end
    call('SET', key, kept, 'PX', ARGV[2])
    return nil
  end
  complete = false
  if value ~= kept then return nil end
  local left = call('PTTL', key)
  return bad(left) or left > life and bad(call('PEXPIRE', key, ARGV[2]))
end
local function remain(x, sentinel, value)
  local from = #sentinel + 1
  local function ends_of(name)
    local at = string.find(value, ':' .. name, from, true)
    return at and tonumber(string.sub(value, at - 16, at - 1))
  end
  local own, last = ends_of(token), ends_of(kept)
  if not own or own <= now then complete = false end
  if (own or last or now) <= now then return nil end
  local ends = own and now + life or math.min(now + life, last)
  local others, most = alive(value, from, token, kept)
  local entry = string.format('%016.0f:', ends) .. kept
  return put(x, sentinel .. others .. entry, math.max(most, ends))
end
local stop = all('MGET', KEYS, 1, written, function(values, before)
  for i = 1, #values do
    local stop = stay(KEYS[before + i], values[i])
    if stop then return stop end
  end
end)
if stop then return stop end
for i = 1, read do
  local x, sentinel = KEYS[written + 2 * i - 1], ARGV[6 + i]
  local held = call('GET', x)
  if bad(held) then
    stop = held
  elseif held and string.sub(held, 1, #sentinel) == sentinel then
    stop = remain(x, sentinel, held)
  else
    stop = stay(x, held)
  end
  if stop and not string.find(stop.err, 'WRONGTYPE', 1, true) then return stop end
  if stop then complete = false end
end
return complete and 1 or 0"
    ),
    sha1_hex: "a12b31336d54cce6dd55e3f968ffbeee7f768255",
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands that a part of the script calls, except those that only read.
    fn writes(part: &str) -> Vec<&str> {
        let calls = part.split("call('").skip(1).filter_map(|call| call.split('\'').next());
        calls.filter(|command| !matches!(*command, "GET" | "PTTL")).collect()
    }

    #[test]
    fn the_keep_script_replaces_our_token_and_changes_no_other_key() {
        let (before, rest) = KEEP.text.split_once("if held == ARGV[1] then\n").unwrap();
        let (ours, rest) = rest.split_once("\nend\n").unwrap();
        let (kept, behind) =
            rest.strip_prefix("if held == kept then\n").unwrap().split_once("\nend\n").unwrap();
        assert_eq!((writes(before), writes(behind)), (vec![], vec![]));
        assert_eq!((writes(ours), writes(kept)), (vec!["PEXPIRE", "SET"], vec!["PEXPIRE"]));
        assert!(ours.contains("'SET', KEYS[1], kept, 'PX', ARGV[2]"));
    }

    #[test]
    fn a_repeated_keep_script_only_shortens_the_life_of_its_key() {
        let shortens = "'PTTL', KEYS[1]) > tonumber(ARGV[2]) then redis.pcall('PEXPIRE'";
        assert!(KEEP.text.contains(shortens));
    }
}
