//! The scripts that report the content of a lock's key, and that delete the key even while it is
//! held.

use super::Script;

/// Reports the content of each of KEYS, and the master's state. It writes nothing. ARGV\[1\] has
/// our tokens, with a space between. ARGV\[2\] is the restart guard's marker. If KEYS\[1\] may be
/// shared, ARGV\[3\] is the mark of its waiting writers.
///
/// The answer:
///
/// 1. A line for each key that exists: its place, and `held`, `shared` or `other`. After `held` and
///    `shared` follow the first 16 digits of the value's digest, as in refusals, the PTTL, and 1 if
///    the value is one of our tokens, else 0.
/// 2. A line for each sharer of the first key: the digits, the milliseconds until its end, and 1 if
///    it is ours, else 0. At most 1,000 sharers are listed, which takes a master 3 ms (redis-server
///    7.0.15). `denied` if the user may not read the server's clock.
/// 3. The name of the sharers' group.
/// 4. The PTTL of the mark; -2 if there is none, or the user may not read it.
/// 5. to 9. The seconds and microseconds of the server's clock, the restart guard's marker, and
///    `INFO server` and `INFO replication`. If the user may not read one of these, it is empty, but
///    the marker is then `denied`.
///
/// The marker and the mark are used without being named as keys, so that a user who may not use
/// them can still ask.
pub const INSPECT: Script = Script {
    number: 19,
    name: "inspect",
    text: "\
local keys, sharers, group, mark, mine = {}, {}, '', -2, {}
for token in string.gmatch(ARGV[1], '%x+') do mine[token] = true end
local function told(...)
  local reply = redis.pcall(...)
  if not reply or reply.err then return '' end
  return reply
end
local clock = told('TIME')
local function holder(value, left)
  local digits = string.sub(redis.sha1hex(string.sub(value, 1, 64)), 1, 16)
  return string.format('%s %.0f %d', digits, left, mine[value] and 1 or 0)
end
local function look(held)
  local length = string.match(held, '^(%d+):', 65) or ''
  local from = 65 + #length + (tonumber(length) or 0)
  group = string.sub(held, 66 + #length, from)
  local now = clock[1] and clock[1] * 1000 + math.floor(clock[2] / 1000)
  if not now then sharers[1] = 'denied' end
  for at = from + 1, now and #held - 56 or 0, 57 do
    local left = (tonumber(string.sub(held, at, at + 15)) or 0) - now
    if left > 0 then sharers[#sharers + 1] = holder(string.sub(held, at + 17, at + 56), left) end
    if #sharers == 1000 then break end
  end
  mark = redis.pcall('PTTL', ARGV[3])
  if type(mark) == 'table' then mark = -2 end
end
for i = 1, #KEYS do
  local held = redis.pcall('GET', KEYS[i])
  if type(held) == 'table' then
    if not string.find(held.err, 'WRONGTYPE', 1, true) then return held end
    keys[#keys + 1] = i .. ' other'
  elseif held then
    local shared = ARGV[3] and string.sub(held, 1, 16) == 'quorlock:shared:'
    keys[#keys + 1] = i .. (shared and ' shared ' or ' held ') .. holder(held, redis.call('PTTL', KEYS[i]))
    if shared then look(held) end
  end
end
local marker = redis.pcall('GET', ARGV[2])
if type(marker) == 'table' then marker = 'denied' end
return {table.concat(keys, '\\n'), table.concat(sharers, '\\n'), group, mark, clock[1] or '', clock[2] or '',
  marker or '', told('INFO', 'server'), told('INFO', 'replication')}",
    sha1_hex: "5c45b9d9163baf6ca71884890530ac5c9bd96399",
};

/// Deletes KEYS\[1\] if its holder's digest begins with ARGV\[1\], which has 16 digits. Answers 1
/// if it deleted the key, 0 if there is no key, and else the holder. A key of a foreign type
/// answers GET's WRONGTYPE.
///
/// If the key is shared, ARGV\[1\] may name any of the first 1,000 sharers in the value: the key is
/// deleted with all of them. If it names none, the answer is the one of these that ends last.
///
/// The script is called twice: the first call has no digits, and only reports the holder. A request
/// that a stopped server executes late finds another holder, and deletes nothing.
pub const FORCE_RELEASE: Script = Script {
    number: 20,
    name: "force release",
    text: "\
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then return held end
if not held then return 0 end
local holders, longest, most = {}, held, '0000000000000000'
if string.sub(held, 1, 16) == 'quorlock:shared:' then
  local length = string.match(held, '^(%d+):', 65) or ''
  local from = 65 + #length + (tonumber(length) or 0)
  for at = from + 1, #held - 56, 57 do
    local ends, token = string.sub(held, at, at + 15), string.sub(held, at + 17, at + 56)
    if ends > '0000000000000000' then holders[#holders + 1] = token end
    if ends > most then longest, most = token, ends end
    if #holders == 1000 then break end
  end
end
if longest == held then holders = {held} end
for i = 1, #holders do
  local digits = redis.sha1hex(string.sub(holders[i], 1, 64))
  if string.sub(digits, 1, 16) == ARGV[1] then return redis.pcall('DEL', KEYS[1]) end
end
return {redis.sha1hex(string.sub(longest, 1, 64)), redis.call('PTTL', KEYS[1])}",
    sha1_hex: "a990d7dbd919720a8c7d5fa12fc53f5b8578c5d9",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inspection_scripts_write_nothing() {
        let calls = INSPECT.text.split("('").skip(1).filter_map(|call| call.split('\'').next());
        let mut commands: Vec<_> =
            calls.filter(|word| word.chars().all(|it| it.is_ascii_uppercase())).collect();
        commands.sort_unstable();
        assert_eq!(commands, ["GET", "GET", "INFO", "INFO", "PTTL", "PTTL", "TIME"]);
    }

    #[test]
    fn a_key_is_deleted_only_where_its_holder_was_named() {
        let (before, named) = FORCE_RELEASE.text.split_once("== ARGV[1] then ").unwrap();
        let (behind, rest) = named.split_once(" end\n").unwrap();
        assert_eq!([before, behind, rest].map(|part| part.matches("DEL").count()), [0, 1, 0]);
    }
}
