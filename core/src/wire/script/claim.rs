//! The common parts of the scripts for claims of several targets.

/// Reads the claim's arguments. `bad` returns an error reply, and false for anything else; `all`
/// calls a command with keys in portions, because Lua cannot unpack more than about 8,000 at once.
///
/// A master serves no other client while a script runs, and most claims are small. So functions and
/// values that only some claims need are defined and read where they are needed. A number that
/// several commands get is converted to text once: otherwise each command would convert it again,
/// which takes longer than looking up a key.
macro_rules! read_claim {
    () => {
        "\
local call = redis.pcall
local token, flags = ARGV[1], ARGV[4] ~= '-' and ARGV[4]
local written, read = tonumber(ARGV[5]), tonumber(ARGV[6])
local function has(flag) return flags and string.find(flags, flag, 1, true) end
local marks = written + 3 * read
local counters = marks + (has('m') and written or 0)
local function bad(reply) return type(reply) == 'table' and reply.err and reply end
local function all(command, keys, from, last, see)
  for first = from, last, 1000 do
    local reply = call(command, unpack(keys, first, math.min(first + 999, last)))
    local stop = bad(reply) or see and see(reply, first - 1)
    if stop then return stop end
  end
end
"
    };
}

/// Reads the server's time into `now`.
macro_rules! read_clock {
    () => {
        "\
local clock = call('TIME')
if clock.err then return clock end
now = clock[1] * 1000 + math.floor(clock[2] / 1000)
"
    };
}

/// Reads the server's time into `now`, if a target is shared.
macro_rules! prepare_clock {
    () => {
        concat!("local now = 0\nif read > 0 then\n", read_clock!(), "end\n")
    };
}

/// Reads the server's time into `now`, and defines `share`, if a target is shared.
macro_rules! prepare_sharing {
    () => {
        concat!(
            "local life, now, share = tonumber(ARGV[2]), 0\nif read > 0 then\n",
            read_clock!(),
            define_share!(),
            "end\n"
        )
    };
}

/// Defines `tell`: the holder of `KEYS[place]` and its remaining time, as the scripts for one
/// target answer them; nil if the key does not exist.
macro_rules! define_tell {
    () => {
        "\
local function tell(place)
  local held = call('GET', KEYS[place])
  if bad(held) then return held end
  if not held then return nil end
  local left = call('PTTL', KEYS[place])
  return bad(left) or {redis.sha1hex(string.sub(held, 1, 64)), left}
end
"
    };
}

/// Defines `count`: the counter of a target, or nil and the error of reading it. Defines `raise`:
/// raises all counters to `number`, and answers an error, or nil and the largest counter of the
/// written targets.
macro_rules! define_raise {
    () => {
        concat!(
            define_count!(),
            "\
local number = tonumber(ARGV[3])
local function raise()
  local largest = 0
  for i = 1, written + read do
    local counter, wrong = count(i)
    if wrong then return wrong end
    if counter < number then
      local done = call('SET', KEYS[counters + i], ARGV[3])
      if bad(done) then return done end
      counter = number
    end
    if i <= written then largest = math.max(largest, counter) end
  end
  return nil, largest
end
"
        )
    };
}

macro_rules! define_count {
    () => {
        "\
local function count(i)
  local counter = call('GET', KEYS[counters + i])
  if bad(counter) then return nil, counter end
  counter = tonumber(counter or 0)
  if not counter or counter ~= counter then
    return nil, redis.error_reply('ERR the fencing counter is not a number')
  end
  return counter
end
"
    };
}

/// Defines `look`: reads a read target. `held` keeps the value of `x`, `ends` the end of our entry,
/// if it is alive.
macro_rules! define_look {
    () => {
        "\
local held, ends = {}, {}
local function look(i)
  local x = written + 3 * i - 2
  held[i] = call('GET', KEYS[x])
  if bad(held[i]) then return held[i] end
  if held[i] == ARGV[6 + i] then
    local last = call('ZSCORE', KEYS[x + 1], token)
    if bad(last) then return last end
    if last and tonumber(last) > now then ends[i] = tonumber(last) end
  end
end
"
    };
}

/// Defines `ours`: nil if the claim has all of its targets, else an error or 0. A read target is
/// also ours if `x` is our token: it was a written one before, and this master does not know of the
/// downgrade yet.
macro_rules! define_ours {
    () => {
        "\
local function ours()
  local stop = all('MGET', KEYS, 1, written, function(values, before)
    for i = 1, #values do
      if values[i] ~= token then
        return not values[i] and bad(call('GET', KEYS[before + i])) or 0
      end
    end
  end)
  for i = 1, stop and 0 or read do
    local stop = look(i) or not ends[i] and held[i] ~= token and 0
    if stop then return stop end
  end
  return stop
end
"
    };
}

/// Defines `share`: puts our entry into a read target, whose `x` is `value`, or extends the entry.
/// Answers an error, or nothing.
///
/// If `x` is our token the sentinel is written last: until then no other client looks at the zset.
/// If there is no `x` the sentinel is written first, so that a server without memory refuses before
/// anything has changed.
macro_rules! define_share {
    () => {
        "\
local function enter(zset, whole, ...)
  local there = call('PEXPIRE', zset, whole)
  return bad(there) or bad(call('ZADD', zset, ...))
    or there == 0 and bad(call('PEXPIRE', zset, whole))
end
function share(i, value, last)
  local x, zset, sentinel = KEYS[written + 3 * i - 2], KEYS[written + 3 * i - 1], ARGV[6 + i]
  last = math.max(last or 0, now + life)
  if not value then
    local whole = string.format('%.0f', last + 1 - now)
    local stop = bad(call('SET', x, sentinel, 'PX', whole))
    if stop then return stop end
    local stale = call('PEXPIRE', zset, whole)
    stop = bad(stale) or stale == 1 and bad(call('DEL', zset))
      or bad(call('ZADD', zset, last, token)) or bad(call('PEXPIRE', zset, whole))
    if stop then call('DEL', x) end
    return stop
  end
  local left = call('PTTL', x)
  if bad(left) then return left end
  if value == token then
    last = math.max(last, now + left)
    local whole = last + 1 - now
    return bad(call('DEL', zset)) or enter(zset, whole, last, token)
      or bad(call('SET', x, sentinel, 'PX', whole))
  end
  local longest = call('ZREVRANGE', zset, 0, 0, 'WITHSCORES')
  if bad(longest) then return longest end
  local lost = not longest[1] and left > 1
  local whole = math.max(last, tonumber(longest[2] or 0), lost and now + left - 1 or 0) + 1 - now
  local stop = left >= 0 and left < whole and bad(call('PEXPIRE', x, whole))
  if stop then return stop end
  if lost then return enter(zset, whole, last, token, now + left - 1, 'lost') end
  return enter(zset, whole, last, token) or bad(call('ZREMRANGEBYSCORE', zset, '-inf', now))
end
"
    };
}

/// Defines `lengthen`, which works like the extension of one target. It uses the `life` that
/// `prepare_sharing` defines.
macro_rules! define_lengthen {
    () => {
        "\
local function lengthen(key)
  local left = call('PTTL', key)
  return bad(left) or left >= 0 and left < life and bad(call('PEXPIRE', key, ARGV[2]))
end
"
    };
}

/// Defines `leave`: removes our part of a shared key, or the key if it is our token. It answers an
/// error, or nothing, and clears `complete` if no part was ours.
macro_rules! define_leave {
    () => {
        concat!(
            "\
local function leave(x, zset, sentinel)
  local held = call('GET', x)
  if bad(held) then return held end
  if held == token then return bad(call('DEL', x)) end
  local found = held == sentinel and call('ZREM', zset, token)
  if bad(found) then return found end
  if found ~= 1 then
    complete = false
    return nil
  end
  local longest = call('ZREVRANGE', zset, 0, 0, 'WITHSCORES')
  if bad(longest) then return longest end
  if not longest[2] then return bad(call('DEL', x, zset)) end
  local now
",
            read_clock!(),
            "\
  local left = tonumber(longest[2]) - now
  if left <= 0 then return bad(call('DEL', x, zset)) end
  left = string.format('%.0f', left + 1)
  return bad(call('PEXPIRE', x, left)) or bad(call('PEXPIRE', zset, left))
end
"
        )
    };
}
pub(super) use {
    define_count, define_leave, define_lengthen, define_look, define_ours, define_raise, define_share,
    define_tell, prepare_clock, prepare_sharing, read_claim, read_clock,
};
