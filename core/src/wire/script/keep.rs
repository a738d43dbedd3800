//! A release that keeps the keys for a while.

use super::Script;

/// Lets go of KEYS\[1\], if it holds the token ARGV\[1\], but keeps it for ARGV\[2\] milliseconds
/// from now: longer than it would live, or shorter. Answers 1 if it did or has done so before, 0 if
/// the lock is not ours.
///
/// Besides a release, nothing else shortens a key's life. The value becomes the SHA-1 of the token,
/// the same on all masters: an extension, a release or a repeat of the acquisition that is executed
/// behind it finds a key that is not ours. A repeat of this one only shortens the life: of several
/// that were sent one after the other, and executed late, the one that comes nearest to the end
/// that all of them mean counts. The life is set first, because a server without memory refuses the
/// `SET` only before a script's first write. Errors as in [`RELEASE`](super::RELEASE).
pub const KEEP: Script = Script {
    number: 18,
    name: "keep",
    text: "\
local held, kept = redis.pcall('GET', KEYS[1]), redis.sha1hex(ARGV[1])
if held == ARGV[1] then
  local done = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if type(done) == 'table' then return done end
  redis.pcall('SET', KEYS[1], kept, 'PX', ARGV[2])
  return 1
end
if held == kept then
  if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then redis.pcall('PEXPIRE', KEYS[1], ARGV[2]) end
  return 1
end
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then return held end
return 0",
    sha1_hex: "682899f37080e9cd102aaa1d130e4f5d1edaa44c",
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands that a part of the script calls, but for those that only read.
    fn writes(part: &str) -> Vec<&str> {
        let calls = part.split("call('").skip(1).filter_map(|call| call.split('\'').next());
        calls.filter(|command| !matches!(*command, "GET" | "PTTL")).collect()
    }

    #[test]
    fn it_gives_up_the_token_where_that_is_ours_and_touches_no_other_key() {
        let (before, rest) = KEEP.text.split_once("if held == ARGV[1] then\n").unwrap();
        let (ours, rest) = rest.split_once("\nend\n").unwrap();
        let (kept, behind) =
            rest.strip_prefix("if held == kept then\n").unwrap().split_once("\nend\n").unwrap();
        assert_eq!((writes(before), writes(behind)), (vec![], vec![]));
        assert_eq!((writes(ours), writes(kept)), (vec!["PEXPIRE", "SET"], vec!["PEXPIRE"]));
        assert!(ours.contains("'SET', KEYS[1], kept, 'PX', ARGV[2]"));
    }

    #[test]
    fn a_repeat_moves_the_end_of_a_kept_key_only_towards_now() {
        let shortens = "'PTTL', KEYS[1]) > tonumber(ARGV[2]) then redis.pcall('PEXPIRE'";
        assert!(KEEP.text.contains(shortens));
    }
}
