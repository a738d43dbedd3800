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
local marks = written + 2 * read
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
            define_entries!(),
            define_share!(),
            "end\n"
        )
    };
}

/// Defines `tell`: the holder of `KEYS[place]` and its remaining time, as the scripts for one
/// target answer them; nil if the key does not exist, or is shared by the group of `sentinel`.
macro_rules! define_tell {
    () => {
        "\
local function tell(place, sentinel)
  local held = call('GET', KEYS[place])
  if bad(held) then return held end
  if not held or sentinel and string.sub(held, 1, #sentinel) == sentinel then return nil end
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
  local value, sentinel = call('GET', KEYS[written + 2 * i - 1]), ARGV[6 + i]
  if bad(value) then return value end
  held[i] = value
  local at = value and string.sub(value, 1, #sentinel) == sentinel
    and string.find(value, ':' .. token, #sentinel, true)
  local last = at and tonumber(string.sub(value, at - 16, at - 1))
  if last and last > now then ends[i] = last end
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

/// Defines what changes the entries of a shared key. `without` removes the entry with this name: it
/// returns the others, and its end, if there was one. `with` adds an entry where its end belongs.
/// `put` writes the entries, and a life for the key until the last one ends; it answers an error,
/// or nothing.
///
/// With `holds` the key's life is set first, so that the value can be written even if the server
/// has no memory: it refuses a `SET` only before a script's first write. A client that holds the
/// key already must be able to stay or leave.
macro_rules! define_entries {
    () => {
        "\
local function without(entries, name)
  local at = string.find(entries, ':' .. name, 1, true)
  if not at or #name ~= 40 then return entries end
  local others = string.sub(entries, 1, at - 17) .. string.sub(entries, at + 41)
  return others, tonumber(string.sub(entries, at - 16, at - 1))
end
local function with(entries, last, name)
  local at, ends = #entries, string.format('%016.0f', math.min(last, 9007199254740991))
  while at > 0 and string.sub(entries, at - 56, at - 41) > ends do at = at - 57 end
  return string.sub(entries, 1, at) .. ends .. ':' .. name .. string.sub(entries, at + 1)
end
local function put(x, sentinel, entries, holds)
  local whole = string.format('%.0f', string.sub(entries, -57, -42) + 1 - now)
  return holds and bad(call('PEXPIRE', x, whole)) or bad(call('SET', x, sentinel .. entries, 'PX', whole))
end
"
    };
}

/// Defines `share`: puts our entry into a read target, whose `x` is `value`, or extends the entry,
/// which ended at `last`. Entries that have ended are dropped. Answers an error, or nothing.
macro_rules! define_share {
    () => {
        "\
function share(i, value, last)
  local x, sentinel, entries = KEYS[written + 2 * i - 1], ARGV[6 + i], ''
  local holds = last or value == token
  last = math.max(last or 0, now + life)
  if value == token then
    local left = call('PTTL', x)
    if bad(left) then return left end
    last = math.max(last, now + left)
  elseif value then
    local others, from = without(string.sub(value, #sentinel + 1), token), 1
    while from < #others and tonumber(string.sub(others, from, from + 15)) <= now do from = from + 57 end
    entries = string.sub(others, from)
  end
  return put(x, sentinel, with(entries, last, token), holds)
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
            "local now\n",
            define_entries!(),
            "\
local function leave(x, sentinel)
  local value = call('GET', x)
  if bad(value) then return value end
  if value == token then return bad(call('DEL', x)) end
  local entries, last = value or ''
  if sentinel and string.sub(entries, 1, #sentinel) == sentinel then
    entries, last = without(string.sub(entries, #sentinel + 1), token)
  end
  if not last then
    complete = false
    return nil
  end
  if entries == '' then return bad(call('DEL', x)) end
",
            read_clock!(),
            "\
  if tonumber(string.sub(entries, -57, -42)) <= now then return bad(call('DEL', x)) end
  return put(x, sentinel, entries, true)
end
"
        )
    };
}
pub(super) use {
    define_count, define_entries, define_leave, define_lengthen, define_look, define_ours, define_raise,
    define_share, define_tell, prepare_clock, prepare_sharing, read_claim, read_clock,
};
