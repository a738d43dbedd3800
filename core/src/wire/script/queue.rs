//! Fair waiting: the scripts for an agreed order among processes.
//!
//! KEYS\[2\] is the waiter's own bell, and KEYS\[3\] the queue: a string with the largest number
//! given so far, in 16 digits, and then an entry of 92 characters for each place, the smallest
//! number first. An entry has the place's number, its end, the state of its turn (each in 16
//! digits), how long its turn is (3 digits), a colon, and its name (40 digits). A place that has ended does
//! not count, and is dropped where a script meets it.
//!
//! # Turns
//!
//! A master grants the lock to the first place only, so that place keeps all others waiting. Its
//! waiter may be dead, or far away. So it is told when its turn comes, and the turn is short: once
//! it is over the place keeps nobody waiting, until its waiter asks again. With each turn that a
//! place loses, its next one is half as long.
//!
//! The state of a turn is its end, or one of two larger numbers. `waits` is that of a place that
//! has not been told that it is first; with `knows` it has been told, or has asked, while another
//! had the lock. Of two scripts that find the lock free and a first place that `knows`, one begins
//! its turn: notifications may be lost.
//!
//! # Bells
//!
//! Before Redis 7.2 a connection is only notified of keys that a script *named*, so a waiter cannot
//! watch its entry. It watches its bell, a key that never exists: a script that tells the waiter
//! sets that key, for a millisecond in case that it may not delete it, and deletes it again. So a
//! release wakes one waiter. The other bells are not
//! named: their names are our own bell's prefix followed by the name in the entry.

use super::fleet::{check_marker, read_info, read_life};
use super::guarded::WORK;
use super::joined::script;
use super::{KEEP, RELEASE, Script};

/// Reads the queue into `value`. `wrong` is an error of that. ARGV\[3\] is our place, ARGV\[4\] how
/// long a place lives, in milliseconds.
///
/// Defines `first`, which returns where the first place before `last` is that keeps others waiting,
/// or nil, and where the first one is that is alive; and `tell`. A clock that was set back leaves
/// places with ends that are too far away: they count as ended.
macro_rules! read_queue {
    () => {
        "\
local waits, knows = 9007199254740991, 9007199254740990
local call, queue, place, lease = redis.pcall, KEYS[3], ARGV[3], tonumber(ARGV[4])
local function bad(reply) return type(reply) == 'table' and reply.err and reply end
local clock, value = call('TIME'), call('GET', queue)
local wrong = bad(clock) or bad(value)
local now = wrong and 0 or clock[1] * 1000 + math.floor(clock[2] / 1000)
if wrong or not value or #value % 92 ~= 16 then value = '0000000000000000' end
local found = value
local function number(at) return tonumber(string.sub(value, at, at + 15)) or 0 end
local function name(at) return string.sub(value, at + 52, at + 91) end
local function lives(at)
  local ends = number(at + 16)
  return ends > now and ends <= now + 2 * lease
end
local function sweep()
  local last = 17
  while last < #value and last < 9217 and not lives(last) do last = last + 92 end
  value = string.sub(value, 1, 16) .. string.sub(value, last)
  return last - 17
end
local function first(last)
  local any
  for at = 17, last - 92, 92 do
    if lives(at) then
      any = any or at
      if number(at + 32) > now then return at, any end
    end
  end
  return nil, any
end
local function next_turn(at)
  local long = tonumber(string.sub(value, at + 48, at + 50)) or 1
  return number(at + 32) > now and long or math.max(8, math.floor(long / 2))
end
local function tell(at, free)
  local state, long = number(at + 32), next_turn(at)
  if state ~= waits and not (free and (state == knows or state <= now)) then return end
  state = string.format('%016.0f%03.0f', free and now + long or knows, long)
  value = string.sub(value, 1, at + 31) .. state .. string.sub(value, at + 51)
  local bell = string.sub(KEYS[2], 1, -1 - #place) .. name(at)
  call('SET', bell, 1, 'PX', 1)
  call('DEL', bell)
end
local at = string.find(value, ':' .. place, 17, true)
at = at and at - 51
"
    };
}

/// Enters the queue of KEYS\[1\], or stays in it; then sets KEYS\[1\] to the token ARGV\[1\] for
/// ARGV\[2\] milliseconds if it is free and no place before ours keeps us waiting. Answers 1 or the
/// number of the grant, or what is ahead: the digest of the next place before ours or of the
/// holder's token, its remaining life, our number in the queue, and whether we are first.
///
/// KEYS: the lock, the two of the queue, with the flag `f` the fencing counter, with `g` the
/// restart guard's marker. ARGV: token, life, our place, how long it lives, how long its turn may
/// be, the smallest number that it may have or 0, flags, with `g` the two numbers of the fleet.
/// With `s` nothing is granted; a free lock is reported as `free`.
///
/// A new place gets the number ARGV\[6\], or if that is 0, one more than any place has had here. An
/// existing place keeps its number, or is raised to ARGV\[6\]. With `x` it gets exactly ARGV\[6\]: a
/// quorum has that number, and a larger one here would otherwise never be corrected. A grant leaves
/// the place in the queue: if the grant is taken back, no other waiter has overtaken this one. A
/// place that was told of its turn while ours had lost its own waits for another one.
///
/// If a place keeps us waiting, it is told of its turn if it does not know yet. That is looked at
/// only if we have been here before, or have dropped a place: otherwise nothing has changed.
///
/// A master in quarantine keeps places, but grants nothing.
pub const ENTER: Script = Script {
    number: 37,
    name: "enter",
    text: concat!(
        read_queue!(),
        "\
if wrong then return wrong end
local flags, given, long = ARGV[7], tonumber(ARGV[6]), tonumber(ARGV[5])
local function has(flag) return string.find(flags, flag, 1, true) end
local mine, from = given
if at then
  mine, long = number(at), math.min(long, next_turn(at))
  if mine < given or has('x') and mine > given and given > 0 then mine = given else from = at end
  value = string.sub(value, 1, at - 1) .. string.sub(value, at + 92)
elseif given == 0 then
  mine = number(1) + 1
end
if not (mine < 9007199254740992) then
  return redis.error_reply('ERR the numbers of the queue are used up')
end
local swept = sweep()
if from then
  from = math.max(17, from - swept)
else
  from = #value + 1
  while from > 17 do
    local other = number(from - 92)
    if other < mine or other == mine and name(from - 92) < place then break end
    from = from - 92
  end
end
local head = first(from)
local held, ahead, left, grants
if head then
  if at or swept > 0 then tell(head, not call('GET', KEYS[1])) end
  local before = from - 92
  while before > head and before > from - 9200 and not lives(before) do before = before - 92 end
  value = string.sub(value, 1, before + 91) .. string.sub(value, from)
  from = before + 92
  if not lives(before) then before = head end
  ahead, left = redis.sha1hex(name(before)), number(before + 16) - now
else
  held = call('GET', KEYS[1])
  if bad(held) then return held end
  if held then
    ahead, left = redis.sha1hex(string.sub(held, 1, 64)), call('PTTL', KEYS[1])
    if bad(left) then return left end
  else
    ahead, left, grants = 'free', 0, not has('s')
  end
end
local entry = string.format('%016.0f%016.0f%016.0f%03.0f:', mine, now + lease, head and waits or knows, long)
value = string.format('%016.0f', math.max(number(1), mine)) .. string.sub(value, 17, from - 1)
  .. entry .. place .. string.sub(value, from)
while grants and from + 92 < #value and number(from + 124) < knows do
  from = from + 92
  if number(from + 32) > now then
    value = string.sub(value, 1, from + 31) .. string.format('%.0f', waits) .. string.sub(value, from + 48)
  end
end
local done = call('SET', queue, value, 'PX', string.format('%.0f', 10 * lease))
if bad(done) then return done end
if not grants or has('g') then call('GET', KEYS[2]) end
local floor = 0
if has('g') then
",
        check_marker!(),
        "\
  floor = opens * 1024
end
if not grants then return {ahead, left, mine, head and 0 or 1} end
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
  done = call('SET', KEYS[4], string.format('%.0f', fence))
  if bad(done) then return done end
end
done = call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return bad(done) or fence"
    ),
    sha1_hex: "08a4628eaa89eeb9ace00364e58e04a4e9415aa7",
};

/// The end of a script that gives a lock up: removes its place, and tells the next one. A place
/// ends by itself, so an error of that changes nothing.
const LEAVES: &str = concat!(
    "\nend\nlocal said = work()\n",
    read_queue!(),
    "\
if wrong then return said end
if at then value = string.sub(value, 1, at - 1) .. string.sub(value, at + 92) end
sweep()
local head, any = first(#value + 1)
head = head or any
if head then tell(head, not call('GET', KEYS[1])) end
if value ~= found then call('SET', queue, value, 'PX', string.format('%.0f', 10 * lease)) end
return said"
);

/// The [`RELEASE`](super::RELEASE) of a lock that was waited for in the queue.
///
/// KEYS: the lock, our bell, the queue. ARGV: token, a life that is not used, our place, how long a
/// place lives.
pub const LEAVE: Script =
    script!([WORK, RELEASE.text, LEAVES], 38, "leave", "7c4a45ff9dc1d940d710ad74a2beea7d5d0f6541");

/// The same for a release that keeps the key ([`KEEP`](super::KEEP)), for ARGV\[2\] milliseconds.
/// The place of a holder would otherwise keep all others waiting as long as it lives.
pub const KEEP_LEAVING: Script =
    script!([WORK, KEEP.text, LEAVES], 50, "keep leaving", "b45d2d4e98a2aa7efd032e738bfd21c4c0f3a9da");
