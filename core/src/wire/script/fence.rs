//! Fencing: the scripts for locks with numbered grants.
//!
//! KEYS\[2\] is the counter of the resource. It is raised before the lock's key is set, because a
//! script's effects are not undone when its next command fails: an unused number does no harm, but
//! one that is used twice does. Numbers stay below 2^53, which Lua's doubles hold exactly; they are
//! written by `%.0f`, since `..` rounds to 14 digits.

use super::Script;

/// Reads the counter into `fence`, or ends with the error of reading it. Lua reads `nan` as a
/// number, which no comparison with a limit stops.
macro_rules! read_counter {
    () => {
        "\
local counter = redis.pcall('GET', KEYS[2])
if type(counter) == 'table' then return counter end
local fence = tonumber(counter or 0)
if not fence or fence ~= fence then
  return redis.error_reply('ERR the fencing counter is not a number')
end
"
    };
}

/// If the lock's key is free, raises the counter above its value and above `floor`, then sets the
/// key. Answers the counter's new value, which is the number of the grant; an error if the counter
/// is used up.
///
/// If the key is held, it answers the digest of its token and the PTTL. Like `SET NX` it also
/// refuses our own token: one server behind two addresses has one vote.
macro_rules! grant_fenced {
    () => {
        concat!(
            "\
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then return held end
if held then ",
            tell_holder!(),
            " end
",
            read_counter!(),
            "\
fence = math.max(fence, floor) + 1
if fence > 9007199254740991 then return redis.error_reply('ERR the fencing counter is used up') end
local done = redis.pcall('SET', KEYS[2], string.format('%.0f', fence))
if done.err then return done end
done = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if done.err then return done end
return fence"
        )
    };
}
pub(super) use {grant_fenced, read_counter};

/// Sets KEYS\[1\] to the token ARGV\[1\] for ARGV\[2\] milliseconds if it does not exist, and
/// raises the counter KEYS\[2\].
pub const ACQUIRE_FENCED: Script = Script {
    number: 3,
    name: "acquire fenced",
    text: concat!("local floor = 0\n", grant_fenced!()),
    sha1_hex: "160d347df7ed6427ab181ccfe8483bef18e16147",
};

/// Raises the counter KEYS\[2\] to ARGV\[2\] if KEYS\[1\] holds the token ARGV\[1\]. Answers the
/// value that the counter then has, or 0 if the lock is not ours. It never lowers the counter.
pub const RAISE: Script = Script {
    number: 4,
    name: "raise",
    text: concat!(
        "\
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then return held end
if held ~= ARGV[1] then return 0 end
",
        read_counter!(),
        "\
if fence >= tonumber(ARGV[2]) then return fence end
local done = redis.pcall('SET', KEYS[2], ARGV[2])
if done.err then return done end
return tonumber(ARGV[2])"
    ),
    sha1_hex: "a9896c284688b868fa3f2ad6de9e8f7547e4918a",
};

/// Like the script of an unfenced extension, but first raises the counter KEYS\[2\] to ARGV\[3\]:
/// whichever masters hold the lock from then on, the next grant's number is larger.
pub const EXTEND_FENCED: Script = Script {
    number: 5,
    name: "extend fenced",
    text: concat!(
        "\
local held = redis.pcall('GET', KEYS[1])
if held == ARGV[1] then
",
        read_counter!(),
        "\
  if fence < tonumber(ARGV[3]) then
    local done = redis.pcall('SET', KEYS[2], ARGV[3])
    if done.err then return done end
  end
  local left = redis.call('PTTL', KEYS[1])
  if left >= 0 then redis.call('PEXPIRE', KEYS[1], left < tonumber(ARGV[2]) and ARGV[2] or left) end
  return 1
end
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then return held end
return 0"
    ),
    sha1_hex: "8a07177ab62d0f114483f05d11bec7c353a2771b",
};

/// Restores a lock: if KEYS\[1\] does not exist, raises the counter KEYS\[2\] to ARGV\[3\], then
/// sets KEYS\[1\] to the token ARGV\[1\] for ARGV\[2\] milliseconds. Answers 1 if it did so, 0 if
/// the key exists, even if it holds our token.
pub const HEAL_FENCED: Script = Script {
    number: 6,
    name: "heal fenced",
    text: concat!(
        "if redis.pcall('GET', KEYS[1]) then return 0 end\n",
        read_counter!(),
        "\
local done
if fence < tonumber(ARGV[3]) then
  done = redis.pcall('SET', KEYS[2], ARGV[3])
  if done.err then return done end
end
done = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if done.err then return done end
return 1"
    ),
    sha1_hex: "7aa324d221e2c400a4dfe6e5c1452681fcb913ef",
};
