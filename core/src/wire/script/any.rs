//! The release of a token by a client that does not know which kind of lock the token holds.

use super::Script;
use super::claim::{define_leave, read_clock};

/// Removes what the token ARGV\[1\] has of KEYS\[1\]: the key if it holds the token, or the token's
/// entry among the sharers, whatever their group is. ARGV\[2\] is the zset of the sharers. Answers
/// 1 if there was something to remove, 0 if not.
///
/// The zset is used without being named as a key, so that a user who may not use it can still
/// release a lock that is not shared.
pub const RELEASE_ANY: Script = Script {
    number: 22,
    name: "release of any kind",
    text: concat!(
        "\
local call = redis.pcall
local held, token, complete = call('GET', KEYS[1]), ARGV[1], true
local function bad(reply) return type(reply) == 'table' and reply.err and reply end
local shared = type(held) == 'string' and string.sub(held, 1, 16) == 'quorlock:shared:'
",
        define_leave!(),
        "\
local stop = leave(KEYS[1], ARGV[2], shared and held or nil)
if stop and not string.find(stop.err, 'WRONGTYPE', 1, true) then return stop end
return not stop and complete and 1 or 0"
    ),
    sha1_hex: "9e74f1d92fbf29ef23a7657cea812bfbbadf2027",
};
