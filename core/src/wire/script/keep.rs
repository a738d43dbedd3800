//! A release that keeps the keys for a while.

use super::Script;
use super::claim::{read_claim, read_clock};

/// Lets go of KEYS\[1\], if it holds the token ARGV\[1\], but keeps it for ARGV\[2\] milliseconds
/// from now: longer than it would live, or shorter. Answers 1 if it did or has done so before, 0 if
/// the lock is not ours.
///
/// Besides a release, nothing else shortens a key's life. The value becomes the SHA-1 of the token,
/// the same on all masters: an extension, a release or a repeat of the acquisition that is executed
/// behind it finds a key that is not ours. A repeat of this one only shortens the life: of several
/// that were sent one after the other, and executed late, the one that comes nearest to the end
/// that all of them mean counts. The life is set first, because a server without memory refuses the
/// `SET` only before a script's first write. Errors as in [`RELEASE`](super::RELEASE).
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
  return 1
end
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then return held end
return 0",
    sha1_hex: "682899f37080e9cd102aaa1d130e4f5d1edaa44c",
};

/// The same for a claim of several targets, with the keys and values of
/// [`RELEASE_ALL`](super::RELEASE_ALL): lets go of each target that is ours, but keeps it for
/// ARGV\[2\] milliseconds from now. Answers 1 if all of them were ours, or have been kept before.
///
/// In a read target our entry gets the SHA-1 of the token as its name, and ends then: those who
/// share the target keep it, and may come in. Where `x` is our token, because this master has not
/// been told yet that it is shared, `x` is kept as a written target, and keeps readers out, too.
pub const KEEP_ALL: Script = Script {
    number: 40,
    name: "keep all",
    text: concat!(
        read_claim!(),
        read_clock!(),
        "\
local kept, complete = redis.sha1hex(token), true
local function stay(key, value)
  if value == token then
    local done = redis.pcall('PEXPIRE', key, ARGV[2])
    if bad(done) then return done end
    redis.pcall('SET', key, kept, 'PX', ARGV[2])
    return nil
  end
  if value ~= kept then
    complete = false
    return nil
  end
  local left = redis.pcall('PTTL', key)
  return bad(left) or left > life and bad(redis.pcall('PEXPIRE', key, ARGV[2]))
end
local function remain(x, zset)
  local ends = now + life
  local own = redis.pcall('ZSCORE', zset, token)
  if bad(own) then return own end
  local last = own or redis.pcall('ZSCORE', zset, kept)
  if bad(last) then return last end
  if not last or tonumber(last) <= now then
    complete = false
    return nil
  end
  if not own then ends = math.min(ends, tonumber(last)) end
  local left = redis.pcall('PTTL', x)
  if bad(left) then return left end
  local whole = math.max(left, ends + 1 - now)
  local stop = bad(redis.pcall('PEXPIRE', x, whole)) or bad(redis.pcall('PEXPIRE', zset, whole))
    or bad(redis.pcall('ZADD', zset, ends, kept)) or bad(redis.pcall('ZREM', zset, token))
  if stop then return stop end
  local longest = redis.pcall('ZREVRANGE', zset, 0, 0, 'WITHSCORES')
  if bad(longest) then return longest end
  whole = tonumber(longest[2]) + 1 - now
  return bad(redis.pcall('PEXPIRE', x, whole)) or bad(redis.pcall('PEXPIRE', zset, whole))
end
local stop = all('MGET', KEYS, 1, written, function(values, before)
  for i = 1, #values do
    local stop = stay(KEYS[before + i], values[i])
    if stop then return stop end
  end
end)
if stop then return stop end
for i = 1, read do
  local x, zset = KEYS[written + 3 * i - 2], KEYS[written + 3 * i - 1]
  local held = redis.pcall('GET', x)
  if held == ARGV[6 + i] then
    stop = remain(x, zset)
  elseif not bad(held) then
    stop = stay(x, held)
  else
    stop = held
  end
  if stop and not string.find(stop.err, 'WRONGTYPE', 1, true) then return stop end
  if stop then complete = false end
end
return complete and 1 or 0"
    ),
    sha1_hex: "51bbecbaf0b83eb7a49ce31d09d8cf3fe44bc40c",
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands that a part of the script calls, but for those that only read.
    fn writes(part: &str) -> Vec<&str> {
        let calls = part.split("call('").skip(1).filter_map(|call| call.split('\'').next());
        calls.filter(|command| !matches!(*command, "GET" | "PTTL")).collect()
    }

    #[test]
    fn it_gives_up_the_token_where_that_is_ours_and_touches_no_other_key() {
        let (before, rest) = KEEP.text.split_once("if held == ARGV[1] then\n").unwrap();
        let (ours, rest) = rest.split_once("\nend\n").unwrap();
        let (kept, behind) =
            rest.strip_prefix("if held == kept then\n").unwrap().split_once("\nend\n").unwrap();
        assert_eq!((writes(before), writes(behind)), (vec![], vec![]));
        assert_eq!((writes(ours), writes(kept)), (vec!["PEXPIRE", "SET"], vec!["PEXPIRE"]));
        assert!(ours.contains("'SET', KEYS[1], kept, 'PX', ARGV[2]"));
    }

    #[test]
    fn a_repeat_moves_the_end_of_a_kept_key_only_towards_now() {
        let shortens = "'PTTL', KEYS[1]) > tonumber(ARGV[2]) then redis.pcall('PEXPIRE'";
        assert!(KEEP.text.contains(shortens));
    }
}
