//! The release of a token by a client that does not know which kind of lock the token holds.

use super::Script;
use super::claim::{define_leave, define_replace, read_clock};

/// Removes what the token ARGV\[1\] has of KEYS\[1\]: the key if it holds the token, or the token's
/// entry among the sharers, whatever their group is. Answers 1 if there was something to remove, 0
/// if not.
pub const RELEASE_ANY: Script = Script {
    number: 22,
    name: "release of any kind",
    text: concat!(
        "\
local call = redis.pcall
local first, token, complete = call('GET', KEYS[1]), ARGV[1], true
local function bad(reply) return type(reply) == 'table' and reply.err and reply end
local length = type(first) == 'string' and string.sub(first, 1, 16) == 'quorlock:shared:'
  and string.match(first, '^(%d+):', 65)
",
        define_leave!(),
        "\
local stop = leave(KEYS[1], length and string.sub(first, 1, 65 + #length + length) or nil)
if stop and not string.find(stop.err, 'WRONGTYPE', 1, true) then return stop end
return not stop and complete and 1 or 0"
    ),
    sha1_hex: "3d2b237aae3eca5ae7068df881f136029fef1c45",
};
