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
            define_replace!(),
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

/// Defines `alive`, which returns the entries from a place on that have not ended, without those of
/// two names, and their largest end; and `put`, which replaces the value and its life, and answers
/// an error or nothing. `put` sets the life first, for the same reason as `replace`.
macro_rules! define_entries {
    () => {
        "\
local function alive(value, from, name, another)
  local all, most = {}, 0
  for at = from, #value - 56, 57 do
    local ends, holder = tonumber(string.sub(value, at, at + 15)), string.sub(value, at + 17, at + 56)
    if ends > now and holder ~= name and holder ~= another then
      all[#all + 1], most = string.sub(value, at, at + 56), math.max(most, ends)
    end
  end
  return table.concat(all), most
end
local function put(x, value, most)
  local whole = string.format('%.0f', most + 1 - now)
  return bad(call('PEXPIRE', x, whole)) or bad(call('SET', x, value, 'PX', whole))
end
"
    };
}

/// Defines `replace`: overwrites an entry of a key that lives for `left` milliseconds. Answers an
/// error, or nothing.
///
/// The client holds the key, and must be able to stay or leave. A server without memory refuses a
/// command only before a script's first write, so there the key gets its present life again. Not
/// elsewhere: each time the life may get longer by a fraction of a millisecond.
macro_rules! define_replace {
    () => {
        "\
local function replace(x, at, entry, left)
  local done = call('SETRANGE', x, at - 1, entry)
  if bad(done) and left > 0 and string.find(done.err, 'OOM', 1, true) then
    done = call('PEXPIRE', x, string.format('%.0f', left))
    if not bad(done) then done = call('SETRANGE', x, at - 1, entry) end
  end
  return bad(done)
end
"
    };
}

/// Defines `share`: puts our entry into a read target, whose `x` is `value`, or extends the entry,
/// which ends at `last`. Answers an error, or nothing.
///
/// A new entry takes the place of one that is free (its token is hyphens), or comes last. Each time
/// that the entries have doubled, those that have ended are removed.
macro_rules! define_share {
    () => {
        "\
function share(i, value, last)
  local x, sentinel = KEYS[written + 2 * i - 1], ARGV[6 + i]
  local left, ends = value and call('PTTL', x), math.max(last or 0, now + life)
  if bad(left) then return left end
  if value == token then ends = math.max(ends, now + left) end
  ends = math.min(ends, 9007199254740991)
  local own, whole = string.format('%016.0f:', ends) .. token, ends + 1 - now
  local text = string.format('%.0f', whole)
  if value == token then return put(x, sentinel .. own, ends) end
  if not value then return bad(call('SET', x, sentinel .. own, 'PX', text)) end
  local from = #sentinel + 1
  local at = string.find(value, ':' .. token, from, true)
  at = at or string.find(value, ':-', from, true)
  at = at and at - 16
  if last then
    return left >= 0 and left < whole and bad(call('PEXPIRE', x, text)) or replace(x, at, own, left)
  end
  if not at and math.frexp((#value - #sentinel) / 57) == 0.5 then
    local others, most = alive(value, from)
    if #others < #value - #sentinel then
      most = string.format('%.0f', math.max(most, ends) + 1 - now)
      return bad(call('SET', x, sentinel .. others .. own, 'PX', most))
    end
  end
  local done
  if at then done = call('SETRANGE', x, at - 1, own) else done = call('APPEND', x, own) end
  return bad(done) or left >= 0 and left < whole and bad(call('PEXPIRE', x, text))
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
  return bad(left) or left >= 0 and bad(call('PEXPIRE', key, left < life and ARGV[2] or left))
end
"
    };
}

/// Defines `leave`: removes our part of a shared key, or the key if it is our token. It answers an
/// error, or nothing, and clears `complete` if no part was ours. If the key is the only one and has
/// been read, its value is `first`.
///
/// Our entry becomes free. The key's life stays if another entry ends no earlier; else it ends with
/// the other entries, or now.
macro_rules! define_leave {
    () => {
        concat!(
            define_replace!(),
            "\
local function leave(x, sentinel)
  local value = first
  if value == nil then value = call('GET', x) end
  if bad(value) then return value end
  if value == token then return bad(call('DEL', x)) end
  local from = sentinel and #sentinel + 1
  local at = value and from and string.sub(value, 1, #sentinel) == sentinel and #token == 40
    and string.find(value, ':' .. token, from, true)
  if not at then
    complete = false
    return nil
  end
  at = at - 16
  local own, most, left = string.sub(value, at, at + 15), '0000000000000000'
  for other = #value - 56, from, -57 do
    local ends = other ~= at and string.sub(value, other, other + 15)
    if ends and ends > most then most = ends end
    if most >= own then break end
  end
  if most >= own then
    left = call('PTTL', x)
    if bad(left) then return left end
  else
    local now
",
            read_clock!(),
            "\
    left = most + 1 - now
    if left <= 1 then return bad(call('DEL', x)) end
    local stop = bad(call('PEXPIRE', x, string.format('%.0f', left)))
    if stop then return stop end
  end
  return replace(x, at, '0000000000000000:----------------------------------------', left)
end
"
        )
    };
}
pub(super) use {
    define_count, define_entries, define_leave, define_lengthen, define_look, define_ours, define_raise,
    define_replace, define_share, define_tell, prepare_clock, prepare_sharing, read_claim, read_clock,
};
