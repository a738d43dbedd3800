//! The script of semaphores. A permit is an ordinary lock with its seat's name; this script only
//! chooses the seat.

use super::Script;
use super::fleet::{check_marker, read_info, read_life};

/// Sets the first ARGV\[3\] seats of a window that do not exist to the token ARGV\[1\] for
/// ARGV\[2\] milliseconds, or none if fewer are free. Answers `seats`, the places of those seats in
/// the window with spaces between them, and the number of the grant: one more than the largest of
/// their counters was, or 0 without the flag `f`.
///
/// KEYS: the seats in order of preference, with the flag `f` their counters, the mark for the next
/// seat, with `g` the restart guard's marker. ARGV: token, life, how many to take, flags, the
/// number of seats, with `m` the name of the wait and for how long it has lasted, with `g` the two
/// numbers of the fleet. Refused if our token already has a seat (one server behind two addresses
/// has one vote), or if too few are free: it answers the holder of the seat that ends first.
///
/// With the flag `w` the master notifies of every change of these seats, and the first seat that is
/// held will do for the answer. Up to version 7.0, Redis registers all keys of a script again with
/// each read in it: to read the end of each of 64 seats takes five times as long as all the rest.
///
/// With the flag `m` a refusal leaves a mark: the start of our wait on this server's clock, how
/// many seats we want, and the name of our wait. The mark lives as long as we have waited, but
/// 20 ms at least and a second at most. Meanwhile, requests that have not waited longer leave that
/// many seats free, and get the answer `wanted`. The earliest mark wins. A mark is a courtesy and
/// holds no seat, so an error of reading or writing it counts as no mark.
pub const TAKE: Script = Script {
    number: 17,
    name: "take",
    text: concat!(
        "\
local token, flags, wanted, seats = ARGV[1], ARGV[4], tonumber(ARGV[3]), tonumber(ARGV[5])
local function has(flag) return string.find(flags, flag, 1, true) end
local floor = 0
if has('g') then
",
        check_marker!(),
        "\
  floor = opens * 1024
end
local held = redis.pcall('MGET', unpack(KEYS, 1, seats))
if held.err then return held end
local mark = KEYS[seats * (has('f') and 2 or 1) + 1]
local marked = redis.pcall('GET', mark)
marked = type(marked) == 'string' and marked or ''
local since, spare, name = string.match(marked, '^(%d+) (%d+) (%x+)$')
local clock = has('m') and redis.pcall('TIME')
local came = clock and not clock.err
  and clock[1] * 1000 + math.floor(clock[2] / 1000) - tonumber(ARGV[7])
local ours = came and name == ARGV[6]
local earliest = not name or ours or came and came < tonumber(since)
spare = earliest and 0 or tonumber(spare)
local free, first, least, odd = {}, nil, nil, 1
for i = 1, seats do
  if held[i] == token then first = i end
end
for i = 1, first and 0 or seats do
  local there = held[i] and 1 or redis.pcall('EXISTS', KEYS[i])
  if type(there) == 'table' then return there end
  if there == 0 then free[#free + 1] = i elseif not held[i] then odd = i end
  if #free == wanted + spare then break end
end
if #free == wanted + spare then
  local fence = 0
  if has('f') then
    for i = 1, wanted do
      local counter = redis.pcall('GET', KEYS[seats + free[i]])
      if type(counter) == 'table' then return counter end
      counter = tonumber(counter or 0)
      if not counter or counter ~= counter then
        return redis.error_reply('ERR the fencing counter is not a number')
      end
      fence = math.max(fence, counter)
    end
    fence = math.max(fence, floor) + 1
    if fence > 9007199254740991 then
      return redis.error_reply('ERR the fencing counter is used up')
    end
    for i = 1, wanted do
      local done = redis.pcall('SET', KEYS[seats + free[i]], string.format('%.0f', fence))
      if done.err then return done end
    end
  end
  for i = 1, wanted do
    local done = redis.pcall('SET', KEYS[free[i]], token, 'PX', ARGV[2])
    if done.err then return done end
  end
  if ours then redis.pcall('DEL', mark) end
  return {'seats', table.concat(free, ' ', 1, wanted), fence}
end
local lasts = name and redis.pcall('PTTL', mark)
if type(lasts) == 'table' then return lasts end
if came and earliest and not first and (not ours or lasts < 500) then
  local life = math.max(20, math.min(1000, tonumber(ARGV[7])))
  redis.pcall('SET', mark, string.format('%.0f %s %s', came, ARGV[3], ARGV[6]), 'PX', life)
end
if #free >= wanted then return {'wanted', lasts} end
for i = first or 1, first or seats do
  local left = held[i] and redis.pcall('PTTL', KEYS[i])
  if type(left) == 'table' then return left end
  if left == -1 then left = math.huge end
  if left and (not least or left < least) then first, least = i, left end
  if first and has('w') then break end
end
if not first then return redis.pcall('GET', KEYS[odd]) end
if least == math.huge then least = -1 end
return {redis.sha1hex(string.sub(held[first], 1, 64)), least}"
    ),
    sha1_hex: "10974846861efe37a7cf306ca1eb23ebcfbb3bc7",
};
