//! The scripts of claims of several targets, written or read, under one token.
//!
//! All five take the same keys and values. KEYS: the written targets; for each read target its key
//! `x` and its want mark; with the flag `m` the want marks of the written targets; with `f` the
//! counters of all targets, those of the written ones first; with `g` the restart guard's marker.
//! ARGV: token, life in milliseconds, number (0 if there is none), flags, how many targets are
//! written, how many are read, the sentinel of each read target, with `m` the id of the wait, with
//! `g` the two numbers of the fleet.
//!
//! The value of a shared `x` is the sentinel of the group, followed by an entry for each sharer:
//! the end of its life in milliseconds of the server's clock since 1970 (16 digits), `:`, and its
//! token (40 digits). An entry that has ended is as good as none; one that was released is free for
//! the next sharer. A sorted set beside `x` would need more commands, and rules for a set that a
//! master has lost. Its only advantage is with very many sharers: a script reads the whole value,
//! which takes a master 70 ns for each entry.
//!
//! Rules that keep them correct if a command fails in the middle, because nothing is undone:
//!
//! - A script that can refuse reads everything before it writes anything.
//! - `x` has its TTL from the command that creates it. It lives until the largest end of an entry
//!   and one millisecond more; longer if a command was denied.

use super::Script;
use super::claim::{
    define_count, define_entries, define_leave, define_lengthen, define_look, define_ours, define_raise,
    define_replace, define_share, define_tell, prepare_clock, prepare_sharing, read_claim, read_clock,
};
use super::fleet::{check_marker, read_info, read_life};

/// The most common claims, if nothing is in their way: several written targets, with or without
/// numbers, or one read target without a number. It does what the rest of the script would do, in
/// three quarters of the instructions. Counters that do not exist yet, or are not numbers, are left
/// to the rest. If something is in the way of a read target, `first` is its value for the rest.
macro_rules! take_if_free {
    () => {
        "\
local call, token, first = redis.pcall, ARGV[1]
if ARGV[6] == '0' and (ARGV[4] == '-' or ARGV[4] == 'f') and #KEYS <= 2000 then
  local written, counts, fence = tonumber(ARGV[5]), {}, 1
  local free = written and call('EXISTS', unpack(KEYS, 1, written)) == 0
  if free and ARGV[4] == 'f' then
    counts = call('MGET', unpack(KEYS, written + 1))
    free = #counts == written
    for i = 1, #counts do
      local next = (tonumber(counts[i]) or 0 / 0) + 1
      free, fence = free and next <= 9007199254740991, math.max(fence, next)
    end
  end
  if free then
    local text = string.format('%.0f', fence)
    for i = 1, #counts do
      local done = call('SET', KEYS[written + i], text)
      if done.err then return done end
    end
    for i = 1, written do
      local done = call('SET', KEYS[i], token, 'PX', ARGV[2])
      if done.err then return done end
    end
    return fence
  end
elseif ARGV[4] == '-' and ARGV[5] == '0' and ARGV[6] == '1' then
  first = call('GET', KEYS[1])
  if not first and call('PTTL', KEYS[2]) == -2 then
    local clock = call('TIME')
    if clock.err then return clock end
    local last = clock[1] * 1000 + math.floor(clock[2] / 1000) + ARGV[2]
    local value = ARGV[7] .. string.format('%016.0f:', last) .. token
    local done = call('SET', KEYS[1], value, 'PX', ARGV[2] + 1)
    if done.err then return done end
    return 1
  end
end
"
    };
}

/// The same for the release of such claims, if they still have all of their targets.
macro_rules! release_if_ours {
    () => {
        "\
local call, token, first = redis.pcall, ARGV[1]
if ARGV[4] == '-' and ARGV[6] == '0' and #KEYS <= 1000 then
  local values, ours = call('MGET', unpack(KEYS)), 0
  for i = 1, #values do
    if values[i] == token then ours = ours + 1 end
  end
  if ours == #KEYS then
    local done = call('DEL', unpack(KEYS))
    if done ~= ours then return done end
    return 1
  end
elseif ARGV[4] == '-' and ARGV[5] == '0' and ARGV[6] == '1' then
  first = call('GET', KEYS[1])
  local length = #ARGV[7]
  if type(first) == 'string' and string.sub(first, 1, length) == ARGV[7]
      and string.sub(first, length + 17) == ':' .. token then
    return call('DEL', KEYS[1])
  end
end
"
    };
}

/// Takes all targets, or none: refused if a written one exists, if a read one exists and is not
/// shared by our group, if our token is already known (one server behind two addresses has one
/// vote), or if a writer waits for a read one, unless the flag `i` is set.
///
/// Answers 1, or with the flag `f` the number of the grant: if a target is written, one more than
/// the largest counter was; if all are read, the largest counter, but at least 1. A refusal answers
/// the holder of the first held target, or `wanted` and how long the mark lasts. With the flag `m`
/// a refusal leaves the mark of our wait at each written target that is shared. An error of reading
/// a target ends with its place, such as `(target 2)`, those that are written first.
pub const ACQUIRE_ALL: Script = Script {
    number: 12,
    name: "acquire all",
    text: concat!(
        take_if_free!(),
        read_claim!(),
        "\
local floor = 0
if has('g') then
",
        check_marker!(),
        "\
  floor = opens * 1024
end
",
        prepare_sharing!(),
        "\
local function at(target, reply)
  reply.err = reply.err .. ' (target ' .. target .. ')'
  return reply
end
local found, refused, wanted = 0
if written > 0 then
  local stop = all('EXISTS', KEYS, 1, written, function(count) found = found + count end)
  if stop then return stop end
end
for i = 1, found > 0 and written or 0 do
  local held = call('GET', KEYS[i])
  if bad(held) then return at(i, held) end
  if held then
    refused = refused or i
    found = found - 1
    if has('m') and string.sub(held, 1, 16) == 'quorlock:shared:' then
      local done = call('SET', KEYS[marks + i], ARGV[7 + read], 'PX', 1000)
      if bad(done) then return done end
    end
  end
  if found == 0 or refused and not has('m') then break end
end
local held = {}
for i = 1, refused and 0 or read do
  local x, value = written + 2 * i - 1, first
  if value == nil then value = call('GET', KEYS[x]) end
  if value then
    if bad(value) then return at(written + i, value) end
    local sentinel = ARGV[6 + i]
    if string.sub(value, 1, #sentinel) ~= sentinel or string.find(value, ':' .. token, #sentinel, true) then
      refused = x
      break
    end
  end
  held[i] = value
  local left = has('i') and -2 or call('PTTL', KEYS[x + 1])
  if bad(left) then return left end
  if left ~= -2 then wanted = wanted or left end
end
if refused then
",
        define_tell!(),
        "\
  return tell(refused)
end
if wanted then return {'wanted', wanted} end
local fence = 1
if has('f') then
",
        define_count!(),
        "\
  local counts, most = {}, floor
  for i = 1, written + read do
    local counter, wrong = count(i)
    if wrong then return wrong end
    counts[i], most = counter, math.max(most, counter)
  end
  fence = written > 0 and most + 1 or math.max(most, 1)
  if fence > 9007199254740991 then
    return redis.error_reply('ERR the fencing counter is used up')
  end
  local text = string.format('%.0f', fence)
  for i = 1, written + read do
    local done = counts[i] < fence and call('SET', KEYS[counters + i], text)
    if bad(done) then return done end
  end
end
for i = 1, written do
  local done = call('SET', KEYS[i], token, 'PX', ARGV[2])
  if bad(done) then return done end
end
for i = 1, read do
  local stop = share(i, held[i])
  if stop then return stop end
end
return fence"
    ),
    sha1_hex: "929688a7145f0fb6df38c74d50c6f8b6cb8a9060",
};

/// Raises all counters to ARGV\[3\] if all targets are ours. Answers the largest counter of the
/// written targets, or ARGV\[3\] if there are none; 0 if not all are ours. It never lowers a
/// counter.
///
/// Sharers of a target may raise one another's counters at any time, and no writer can come before
/// they are gone. So a master agrees to a reader's number if its counters are at least that number.
pub const RAISE_ALL: Script = Script {
    number: 13,
    name: "raise all",
    text: concat!(
        read_claim!(),
        prepare_clock!(),
        define_raise!(),
        define_look!(),
        define_ours!(),
        "\
local stop = ours()
if stop then return stop end
local wrong, largest = raise()
if wrong then return wrong end
return written > 0 and largest or number"
    ),
    sha1_hex: "998e2bd123ea8b8fae291ccfa6342777db5b4cc4",
};

/// Raises the counters, then gives all targets a life of ARGV\[2\] milliseconds, if all are ours.
/// Answers 1, or 0 without a change if not all are ours.
///
/// No life is shortened, and only our own entry is changed. A read target whose `x` is our token
/// becomes a shared one, with the later of both ends.
pub const EXTEND_ALL: Script = Script {
    number: 14,
    name: "extend all",
    text: concat!(
        read_claim!(),
        prepare_sharing!(),
        define_raise!(),
        define_look!(),
        define_ours!(),
        define_lengthen!(),
        "\
local stop = ours()
if stop and bad(stop) and not string.find(stop.err, 'WRONGTYPE', 1, true) then return stop end
if stop then return 0 end
stop = has('f') and number > 0 and raise()
for i = 1, written do stop = stop or lengthen(KEYS[i]) end
for i = 1, read do stop = stop or share(i, held[i], ends[i]) end
return stop or 1"
    ),
    sha1_hex: "8c86eebd5409e9f5b0af6b6defe6d3abd7897010",
};

/// Raises the counters, then restores missing targets and extends ours, if no target is another's.
/// Answers 1; or 0 without a change if a target is another's, or if none is missing: one server
/// behind two addresses has one vote. Want marks do not keep out a claim that is already held.
pub const HEAL_ALL: Script = Script {
    number: 15,
    name: "heal all",
    text: concat!(
        read_claim!(),
        prepare_sharing!(),
        define_raise!(),
        define_look!(),
        define_lengthen!(),
        "\
local values, there, missing = {}, 0, false
local stop = all('MGET', KEYS, 1, written, function(part, before)
  for i = 1, #part do
    values[before + i] = part[i]
    if part[i] then there = there + 1 else missing = true end
    if part[i] and part[i] ~= token then return 0 end
  end
end)
stop = stop or all('EXISTS', KEYS, 1, written, function(count) there = there - count end)
stop = stop or there ~= 0 and 0
for i = 1, read do
  stop = stop or look(i) or held[i] and held[i] ~= token
    and string.sub(held[i], 1, #ARGV[6 + i]) ~= ARGV[6 + i] and 0
  missing = missing or not ends[i] and held[i] ~= token
end
if stop and bad(stop) and not string.find(stop.err, 'WRONGTYPE', 1, true) then return stop end
if stop or not missing then return 0 end
stop = has('f') and number > 0 and raise()
for i = 1, written do
  stop = stop or values[i] and lengthen(KEYS[i])
    or not values[i] and bad(call('SET', KEYS[i], token, 'PX', ARGV[2]))
end
for i = 1, read do stop = stop or share(i, held[i], ends[i]) end
return stop or 1"
    ),
    sha1_hex: "1b2ae5b95c3f8f5c04c2ed13f3322f7f9abd5b8c",
};

/// Removes only what is ours. Answers 1 if all targets were ours; else 0, or with the flag `t` the
/// holder of the first target that is held by others than our group.
///
/// A read target is ours if `x` is our token, or our group's sentinel with our own entry. The key
/// is deleted with the last entry; until then it expires with the latest remaining one. With the
/// flag `m` the marks of our wait are also deleted.
pub const RELEASE_ALL: Script = Script {
    number: 16,
    name: "release all",
    text: concat!(
        release_if_ours!(),
        read_claim!(),
        "\
local complete, gone = true, {}
",
        define_leave!(),
        "\
local stop = written > 0 and all('MGET', KEYS, 1, written, function(values, before)
  for i = 1, #values do
    if values[i] == token then gone[#gone + 1] = KEYS[before + i] else complete = false end
  end
end)
stop = stop or has('m') and all('MGET', KEYS, marks + 1, counters, function(values, before)
  for i = 1, #values do
    if values[i] == ARGV[7 + read] then gone[#gone + 1] = KEYS[before + i] end
  end
end)
stop = stop or gone[1] and all('DEL', gone, 1, #gone)
if stop then return stop end
for i = 1, read do
  stop = leave(KEYS[written + 2 * i - 1], ARGV[6 + i])
  if stop and not string.find(stop.err, 'WRONGTYPE', 1, true) then return stop end
  if stop then complete = false end
end
if complete then return 1 end
if not has('t') then return 0 end
",
        define_tell!(),
        "\
local found = 0
stop = all('EXISTS', KEYS, 1, written, function(count) found = found + count end)
if stop then return stop end
for i = 1, found > 0 and written or 0 do
  local holder = tell(i)
  if holder then return holder end
end
for i = 1, read do
  local holder = tell(written + 2 * i - 1, ARGV[6 + i])
  if holder then return holder end
end
return 0"
    ),
    sha1_hex: "7d0df414702d6f12edbd3ca148a4a349129f7f23",
};

#[cfg(test)]
mod tests {
    #[test]
    fn short_forms_write_only_what_they_have_checked() {
        let (take, release) = (take_if_free!(), release_if_ours!());
        let conditions = [
            (take, "local free = written and call('EXISTS', unpack(KEYS, 1, written)) == 0\n  if free and"),
            (take, "free = #counts == written\n    for i = 1, #counts do\n"),
            (take, "free, fence = free and next <= 9007199254740991, math.max(fence, next)"),
            (take, "  if free then\n    local text"),
            (take, "first = call('GET', KEYS[1])\n  if not first and call('PTTL', KEYS[2]) == -2 then\n"),
            (release, "if ours == #KEYS then\n    local done = call('DEL', unpack(KEYS))\n"),
            (release, "string.sub(first, 1, length) == ARGV[7]\n      and string.sub(first, length + 17) =="),
        ];
        for (text, condition) in conditions {
            assert_eq!(text.matches(condition).count(), 1, "{condition}");
        }
        assert_eq!([take.matches("'SET'").count(), release.matches("'DEL'").count()], [3, 2]);
    }
}
