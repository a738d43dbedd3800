//! Fair waiting: the scripts for an agreed order among processes.
//!
//! KEYS\[3\] is the queue, a sorted set of the names of places by their numbers. Its member `~`
//! has the largest number given so far, and comes behind all others. KEYS\[2\] is the key of our
//! own place: it lives as long as the place, and its value says how long the place's turn is. A
//! place whose key has ended does not count, and is dropped where a script meets it. The keys of
//! other places are not named: their names are our own key's prefix followed by the member.
//!
//! # Turns
//!
//! Of the requests with a place only that of the first one is granted, so that place keeps all
//! others waiting. Its waiter may be dead, or far away. So when its turn comes, its key lives for
//! no longer than the turn, until the waiter renews it. Then it has its former number again.
//!
//! Before Redis 7.2 a connection is only notified of keys that a script *named*, so a waiter cannot
//! watch the places before its own. It watches its own place: setting that key's expiry tells it of
//! its turn. So a release wakes one waiter.

use super::fleet::{check_marker, read_info, read_life};
use super::guarded::WORK;
use super::joined::script;
use super::{KEEP, RELEASE, Script};

/// Defines `bad`, and `head`, which answers the first place whose key has not ended, nil if there
/// is none, or `?`; or nil and an error; and how long the turn of that place is, unless it is ours.
///
/// It drops at most a hundred places: a queue may have any number of them, of clients that died.
/// Then `?` says that more are left.
macro_rules! define_head {
    () => {
        "\
local call, queue, place = redis.pcall, KEYS[3], ARGV[3]
local prefix, dropped = string.sub(KEYS[2], 1, -1 - #place)
local function bad(reply) return type(reply) == 'table' and reply.err and reply end
local function head()
  for left = 100, 0, -1 do
    local first = call('ZRANGE', queue, '0', '0')
    if bad(first) then return nil, first end
    first = first[1]
    if first == '~' then return nil end
    if not first or first == place then return first end
    local turn = call('GET', prefix .. first)
    if bad(turn) then return nil, turn end
    if turn then return first, nil, turn end
    if left == 0 then return '?' end
    local done = call('ZREM', queue, first)
    if bad(done) then return nil, done end
    dropped = true
  end
end
"
    };
}

/// Enters the queue of KEYS\[1\], or stays in it; then sets KEYS\[1\] to the token ARGV\[1\] for
/// ARGV\[2\] milliseconds if it is free and no place is before ours. Answers 1 or the number of the
/// grant, or what is ahead: the digest of the first place or of the holder's token, its remaining
/// life, our number in the queue, and whether we are first.
///
/// KEYS: the lock, the two of the queue, with the flag `f` the fencing counter, with `g` the
/// restart guard's marker. ARGV: token, life, our place, how long it lives, how long its turn is,
/// the smallest number that it may have or 0, flags, with `g` the two numbers of the fleet. With
/// `s` nothing is granted; a free lock is reported as `free`.
///
/// A new place gets the number ARGV\[6\], or if that is 0, one more than any place has had here. An
/// existing place keeps its number, or is raised to ARGV\[6\]; if it is then no longer the first,
/// the new first one is notified. With `x` it gets exactly ARGV\[6\]: a quorum has that number, and
/// a larger one here would otherwise never be corrected. A grant leaves the place in the queue: if
/// the grant is taken back, no other waiter has overtaken this one.
///
/// A renewal behind another place that finds the lock free begins that place's turn: its waiter may
/// not have been told, or be dead. A script that drops a place tells the new first one. The
/// remaining life of the first place is only reported once its turn has begun: until then, that of
/// a new place is. While there are more dead places than one call drops, that is a millisecond: the
/// waiters drop them together.
///
/// The queue's expiry is set first, even if there is no queue yet: a user who may not set it is
/// refused before anything is stored that would never expire. A queue whose numbers are used up is
/// deleted: its waiters enter the next one with the numbers that they have. A master in quarantine
/// keeps places, but grants nothing.
pub const ENTER: Script = Script {
    number: 37,
    name: "enter",
    text: concat!(
        define_head!(),
        "\
local flags, given, was = ARGV[7], tonumber(ARGV[6])
local function has(flag) return string.find(flags, flag, 1, true) end
local function whole(number) return string.format('%.0f', number) end
local long = whole(10 * ARGV[4])
local there = call('PEXPIRE', queue, long)
if bad(there) then return there end
local known = call('ZADD', queue, 'XX', 'INCR', '0', place)
if bad(known) then return known end
local number = known and tonumber(known) or given
local moves = not known or number < given or number > given and given > 0 and has('x')
if moves then
  local largest = call('ZADD', queue, 'XX', 'INCR', '0', '~')
  if bad(largest) then return largest end
  largest = tonumber(largest or 0)
  was, number = known and head(), given > 0 and given or largest + 1
  if number >= 9007199254740992 then
    if given == 0 then call('DEL', queue) end
    return redis.error_reply('ERR the numbers of the queue are used up')
  end
  local done = call('ZADD', queue, whole(number), place, whole(math.max(largest, number)), '~')
  if bad(done) then return done end
  done = there == 0 and call('PEXPIRE', queue, long)
  if bad(done) then return done end
end
local done = call('SET', KEYS[2], ARGV[5], 'PX', ARGV[4])
if bad(done) then return done end
call('GET', KEYS[2])
local floor = 0
if has('g') then
",
        check_marker!(),
        "\
  floor = opens * 1024
end
local first, wrong, turn = head()
if wrong then return wrong end
if first and first ~= place then
  local ends = first == '?' and 1 or tonumber(ARGV[4])
  if turn and (known or dropped) then
    local left, free = call('PTTL', prefix .. first), not call('GET', KEYS[1])
    if bad(left) then return left end
    if free then
      ends = math.min(left, tonumber(turn) or 0)
      if left > ends then call('PEXPIRE', prefix .. first, turn) end
    elseif left > 0 and (was == place or dropped) then
      call('PEXPIRE', prefix .. first, left)
    end
  end
  return {redis.sha1hex(first), ends, number, 0}
end
local held = call('GET', KEYS[1])
if bad(held) then return held end
if held then
  local left = call('PTTL', KEYS[1])
  return bad(left) or {redis.sha1hex(string.sub(held, 1, 64)), left, number, 1}
end
if has('s') then return {'free', 0, number, 1} end
local fence = 1
if has('f') then
  local counter = call('GET', KEYS[4])
  if bad(counter) then return counter end
  fence = tonumber(counter or 0)
  if not fence or fence ~= fence then
    return redis.error_reply('ERR the fencing counter is not a number')
  end
  fence = math.max(fence, floor) + 1
  if fence > 9007199254740991 then
    return redis.error_reply('ERR the fencing counter is used up')
  end
  done = call('SET', KEYS[4], whole(fence))
  if bad(done) then return done end
end
done = call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return bad(done) or fence"
    ),
    sha1_hex: "cad3721bbcab81e226c6a2b98998f6f723c29292",
};

/// The end of a script that gives a lock up: removes its place, and tells the next one. If the lock
/// is free, its turn begins.
///
/// A place ends on its own, so no error of that matters.
const LEAVES: &str = concat!(
    define_head!(),
    "\
local was = said == 1 and place or head()
call('ZREM', queue, place)
call('DEL', KEYS[2])
local first, wrong, turn = head()
if turn and (was == place or dropped) then
  local left = not freed and call('GET', KEYS[1]) and call('PTTL', prefix .. first) or turn
  left = not bad(left) and tonumber(left)
  if left and left > 0 then call('PEXPIRE', prefix .. first, left) end
end
return said"
);

/// What comes before it: whether the lock is free then.
const FREED: &str = "\nend\nlocal said = work()\nlocal freed = said == 1\n";
const KEPT: &str = "\nend\nlocal said, freed = work()\n";

/// The [`RELEASE`](super::RELEASE) of a lock that was waited for in the queue.
///
/// KEYS: the lock, our place, the queue. ARGV: token, a life that is not used, our place.
pub const LEAVE: Script =
    script!([WORK, RELEASE.text, FREED, LEAVES], 38, "leave", "56c5d1d1a5db22348f1b0d1cad7f0fe638813d38");

/// The same for a release that keeps the key ([`KEEP`](super::KEEP)), for ARGV\[2\] milliseconds.
/// The place of a holder would otherwise keep all others waiting as long as it lives.
pub const KEEP_LEAVING: Script =
    script!([WORK, KEEP.text, KEPT, LEAVES], 50, "keep leaving", "4ab6a9eca7034612169b01eea51b1490b42d1b9e");
