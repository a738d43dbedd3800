//! What a master has at a lock's key, for somebody who only asks; and deleting it, whoever holds
//! it.

use super::Script;

/// Tells what KEYS\[1\] is, and how the master is. It writes nothing. ARGV\[1\] are the tokens that
/// are ours, one behind the other with a space between.
///
/// The first four values of the answer are about the key: `free`, `held` or `other`, the digest of
/// its value as refusals tell it, its PTTL, and 1 if the value is one of ours. The others are about
/// the server: the seconds and microseconds of its clock, the restart guard's marker, and `INFO
/// server` and `INFO replication`. Each of these may be denied to us, and is empty then; for the
/// marker it says so. The marker is read without being named as a key, so that a user who may not
/// read it can still ask.
pub const INSPECT: Script = Script {
    number: 19,
    name: "inspect",
    text: "\
local held = redis.pcall('GET', KEYS[1])
local kind, digest, left, ours = 'free', '', -2, 0
if type(held) == 'table' then
  if not string.find(held.err, 'WRONGTYPE', 1, true) then return held end
  kind = 'other'
elseif held then
  kind, digest = 'held', redis.sha1hex(string.sub(held, 1, 64))
  left = redis.call('PTTL', KEYS[1])
  if #held == 40 and string.find(ARGV[1], held, 1, true) then ours = 1 end
end
local function told(...)
  local reply = redis.pcall(...)
  if not reply or reply.err then return '' end
  return reply
end
local clock, marker = told('TIME'), redis.pcall('GET', 'quorlock:restart-guard')
if type(marker) == 'table' then marker = 'denied' end
return {kind, digest, left, ours, clock[1] or '', clock[2] or '', marker or '', told('INFO', 'server'),
  told('INFO', 'replication')}",
    sha1_hex: "01b31c49d79619a028ab03cf854b24ed1679a52c",
};

/// Deletes KEYS\[1\] if the digest of its value begins with ARGV\[1\], which has 16 digits. Answers
/// 1 if it did, 0 if there is no key, and who holds it if that is anybody else. A key of a foreign
/// type answers GET's WRONGTYPE.
///
/// So it is asked twice: without digits it only tells them. A request that a stopped server
/// executes late finds another token, and deletes nothing.
pub const FORCE_RELEASE: Script = Script {
    number: 20,
    name: "force release",
    text: concat!(
        "\
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then return held end
if not held then return 0 end
if string.sub(redis.sha1hex(string.sub(held, 1, 64)), 1, 16) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
",
        tell_holder!()
    ),
    sha1_hex: "cce3a55c4495ce4492c1f0de4d069b5cd65e1c06",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_writes_nothing() {
        let calls = INSPECT.text.split("('").skip(1).filter_map(|call| call.split('\'').next());
        let mut commands: Vec<_> =
            calls.filter(|word| word.chars().all(|it| it.is_ascii_uppercase())).collect();
        commands.sort_unstable();
        assert_eq!(commands, ["GET", "GET", "INFO", "INFO", "PTTL", "TIME"]);
    }

    #[test]
    fn a_key_is_deleted_only_where_its_holder_was_named() {
        let named = "string.sub(redis.sha1hex(string.sub(held, 1, 64)), 1, 16) == ARGV[1] then return redis.call('DEL'";
        assert!(FORCE_RELEASE.text.contains(named));
        assert_eq!(FORCE_RELEASE.text.matches("DEL").count(), 1);
    }
}
