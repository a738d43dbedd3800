//! Fair waiting: the scripts for an agreed order among processes.
//!
//! KEYS\[2\] is the waiter's own place, KEYS\[3\] the queue of all places of the resource, a sorted
//! set of places by their numbers, and KEYS\[4\] the largest number given so far. A place whose key
//! has expired no longer counts: its entry is dropped when it reaches the head. The keys of other
//! places are not named: their names are our own key's prefix followed by the entry in the queue.
//!
//! Before Redis 7.2 a connection is only notified of keys that a script *named*, so a waiter could
//! not watch its predecessor's place. It watches its own place instead: when a place leaves the
//! head of the queue, the script sets the next place's expiry to its present value, which notifies
//! that waiter. So a release wakes one waiter.

use super::Script;
use super::fleet::{check_marker, read_info, read_life};

/// Defines `bad`, and `head`, which drops expired places at the head of the queue, except our own.
/// `head` answers the first remaining place or nil, an error or nil, and that place's remaining
/// life.
macro_rules! define_head {
    () => {
        "\
local call = redis.pcall
local own, queue, place = KEYS[2], KEYS[3], ARGV[2]
local prefix = string.sub(own, 1, -1 - #place)
local function bad(reply) return type(reply) == 'table' and reply.err and reply end
local function head()
  while true do
    local first = call('ZRANGE', queue, 0, 0)
    if bad(first) then return nil, first end
    first = first[1]
    if not first or first == place then return first end
    local left = call('PTTL', prefix .. first)
    if bad(left) then return nil, left end
    if left ~= -2 then return first, nil, left end
    local done = call('ZREM', queue, first)
    if bad(done) then return nil, done end
  end
end
"
    };
}

/// Enters the queue of KEYS\[1\], or stays in it; then sets KEYS\[1\] to the token ARGV\[1\] for
/// ARGV\[3\] milliseconds if it is free and no place is before ours. Answers 1 or the number of the
/// grant, or what is ahead: the digest of the next place before ours or of the holder's token, its
/// remaining life, our number in the queue, and whether we are first.
///
/// KEYS: the lock, the four of the queue, with the flag `f` the fencing counter, with `g` the
/// restart guard's marker. ARGV: token, our place, life, how long the place lives, the smallest
/// number that it may have or 0, flags, with `g` the two numbers of the fleet. With `s` nothing is
/// granted; a free lock is reported as `free`.
///
/// A new place gets the number ARGV\[5\], or if that is 0, one more than any place has had here. An
/// existing place keeps its number, or is raised to ARGV\[5\]; if it is then no longer the first,
/// the new first one is notified. With `x` it gets exactly ARGV\[5\]: a quorum has that number, and
/// a larger one here would otherwise never be corrected. A grant leaves the place in the queue: if
/// the grant is taken back, no other waiter has overtaken this one.
///
/// The queue's expiry is set first, even if there is no queue yet: a user who may not set it is
/// refused before anything is stored that would never expire. A master in quarantine keeps places,
/// but grants nothing.
pub const ENTER: Script = Script {
    number: 37,
    name: "enter",
    text: concat!(
        define_head!(),
        "\
local flags, given = ARGV[6], tonumber(ARGV[5])
local function has(flag) return string.find(flags, flag, 1, true) end
local long = string.format('%.0f', 10 * ARGV[4])
local there = call('PEXPIRE', queue, long)
if bad(there) then return there end
local number = call('ZSCORE', queue, place)
if bad(number) then return number end
local last = call('GET', KEYS[4])
if bad(last) then return last end
last = tonumber(last or 0)
if not last or not (last > 0 and last < 9007199254740992) then last = 0 end
last = math.floor(last)
local was
if number then
  number = tonumber(number)
  if number < given or has('x') and number > given and given > 0 then was, number = head(), given end
elseif given > 0 then
  number = given
else
  local largest = call('ZREVRANGE', queue, 0, 0, 'WITHSCORES')
  if bad(largest) then return largest end
  number = math.max(last, tonumber(largest[2] or 0)) + 1
end
if not (number < 9007199254740992) then
  return redis.error_reply('ERR the numbers of the queue are used up')
end
local text = string.format('%.0f', number)
local done = call('SET', KEYS[4], string.format('%.0f', math.max(last, number)), 'PX', long)
if bad(done) then return done end
done = call('ZADD', queue, text, place)
if bad(done) then return done end
done = there == 0 and call('PEXPIRE', queue, long)
if bad(done) then return done end
done = call('SET', own, text, 'PX', ARGV[4])
if bad(done) then return done end
call('GET', own)
local floor = 0
if has('g') then
",
        check_marker!(),
        "\
  floor = opens * 1024
end
local first, wrong, left = head()
if wrong then return wrong end
if first ~= place then
  if was == place and left > 0 then call('PEXPIRE', prefix .. first, left) end
  local rank = call('ZRANK', queue, place)
  if bad(rank) then return rank end
  for before = rank - 1, 1, -1 do
    local other = call('ZRANGE', queue, before, before)
    if bad(other) then return other end
    local lives = call('PTTL', prefix .. other[1])
    if bad(lives) then return lives end
    if lives ~= -2 then
      first, left = other[1], lives
      break
    end
  end
  return {redis.sha1hex(first), left, number, 0}
end
local held = call('GET', KEYS[1])
if bad(held) then return held end
if held then
  left = call('PTTL', KEYS[1])
  return bad(left) or {redis.sha1hex(string.sub(held, 1, 64)), left, number, 1}
end
if has('s') then return {'free', 0, number, 1} end
local fence = 1
if has('f') then
  local counter = call('GET', KEYS[5])
  if bad(counter) then return counter end
  fence = tonumber(counter or 0)
  if not fence or fence ~= fence then
    return redis.error_reply('ERR the fencing counter is not a number')
  end
  fence = math.max(fence, floor) + 1
  if fence > 9007199254740991 then
    return redis.error_reply('ERR the fencing counter is used up')
  end
  done = call('SET', KEYS[5], string.format('%.0f', fence))
  if bad(done) then return done end
end
done = call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return bad(done) or fence"
    ),
    sha1_hex: "03a9aef48d7c6c36d58b4b6e85cee5ff4f9468b6",
};

/// Deletes KEYS\[1\] if it holds the token ARGV\[1\], and removes the place ARGV\[2\] from the
/// queue; if that was the first place, the waiter with the next one is notified. Answers 1 if it
/// deleted the token, 0 if the lock is not ours.
///
/// A place expires on its own, so the lock is released even if the place cannot be removed.
pub const LEAVE: Script = Script {
    number: 38,
    name: "leave",
    text: concat!(
        define_head!(),
        "\
local held, deleted = call('GET', KEYS[1]), 0
if held == ARGV[1] then
  deleted = call('DEL', KEYS[1])
elseif bad(held) and not string.find(held.err, 'WRONGTYPE', 1, true) then
  deleted = held
end
local was = head()
call('ZREM', queue, place)
call('DEL', own)
if was == place then
  local first, wrong, left = head()
  if first and left and left > 0 then call('PEXPIRE', prefix .. first, left) end
end
return deleted"
    ),
    sha1_hex: "ad46a303b6b1550aea0b9b4196bb1a32dc18848a",
};
