//! The scripts that rest on a key of ours, under the restart guard: those for other masters, with a
//! look at the marker behind them.
//!
//! A master that has lost its data may have lost a vote for another client, so in its quarantine a
//! key that is there now proves nothing. It may have been restored, or copied from another master.
//! The scripts still do their work, and then answer `ours` and the rest of the quarantine. This
//! counts only for a client that knows that the master has had its key without a gap: then the
//! master has voted for no other one.
//!
//! A raise has no look: its `Yes` is no new vote, and a counter that a quarantined master has lost
//! restarts above all numbers.

use super::fleet::{check_marker, read_info, read_life};
use super::joined::script;
use super::{EXTEND, EXTEND_ALL, EXTEND_FENCED, HEAL_ALL, HEAL_FENCED, KEEP, KEEP_ALL, KEEP_LEAVING, Script};

/// Restores a lock without a number. Without the restart guard a plain `SET NX` does that.
pub(super) const HEAL: &str = "\
if redis.pcall('GET', KEYS[1]) then return 0 end
local done = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if done.err then return done end
return 1";

/// The beginning of a script whose answer is looked at behind it.
pub(super) const WORK: &str = "local function work()\n";

/// The end of the work. What follows is looked at if the key is ours.
pub(super) const DONE: &str = "\nend\nlocal said = work()\nif said ~= 1 then return said end\n";

/// The end of a script: looks at the marker.
const LOOK: &str = concat!(check_marker!("ours"), "return said");

macro_rules! before_look {
    ($text:expr, $number:literal, $name:literal, $sha1_hex:literal) => {
        script!([WORK, $text, DONE, LOOK], $number, $name, $sha1_hex)
    };
}

pub(crate) const EXTEND_GUARDED: Script =
    before_look!(EXTEND.text, 40, "extend guarded", "35c4d84b06c5079a6bad747e46e5bfc319229a4a");
pub(super) const EXTEND_FENCED_GUARDED: Script =
    before_look!(EXTEND_FENCED.text, 41, "extend fenced guarded", "8af43a86e77385b8f545503a36a760e977a42224");
pub(super) const EXTEND_ALL_GUARDED: Script =
    before_look!(EXTEND_ALL.text, 42, "extend all guarded", "3a9142ce385e5a71337a2981efa6c3617856b08e");
pub(super) const HEAL_GUARDED: Script =
    before_look!(HEAL, 43, "heal guarded", "3ce3f0c41c5688fae38a0381c47291af4472a03b");
pub(super) const HEAL_FENCED_GUARDED: Script =
    before_look!(HEAL_FENCED.text, 44, "heal fenced guarded", "7acf4e540d61c798eb1c70eba83078c84cf02cbf");
pub(super) const HEAL_ALL_GUARDED: Script =
    before_look!(HEAL_ALL.text, 45, "heal all guarded", "d70178ff43c6dcd1d32a884804e244e58b5fc218");
pub(super) const KEEP_GUARDED: Script =
    before_look!(KEEP.text, 46, "keep guarded", "f57db0b7834fe8621c489fdad0945b566bbb85ff");
pub(super) const KEEP_ALL_GUARDED: Script =
    before_look!(KEEP_ALL.text, 47, "keep all guarded", "8bbdb3cb18c7a48e9219c6f4633f409783f5d04f");

pub(super) const KEEP_LEAVING_GUARDED: Script =
    before_look!(KEEP_LEAVING.text, 51, "keep leaving guarded", "a55449c79ed30bcc69b50c705fd8dd8f703f66e7");

/// Each script that rests on a key of ours, with its replacement under the restart guard. Without
/// the guard, restoring a lock without a number needs no script.
pub const GUARDED: [(Option<&Script>, &Script); 9] = [
    (Some(&EXTEND), &EXTEND_GUARDED),
    (Some(&EXTEND_FENCED), &EXTEND_FENCED_GUARDED),
    (Some(&EXTEND_ALL), &EXTEND_ALL_GUARDED),
    (None, &HEAL_GUARDED),
    (Some(&HEAL_FENCED), &HEAL_FENCED_GUARDED),
    (Some(&HEAL_ALL), &HEAL_ALL_GUARDED),
    (Some(&KEEP), &KEEP_GUARDED),
    (Some(&KEEP_ALL), &KEEP_ALL_GUARDED),
    (Some(&KEEP_LEAVING), &KEEP_LEAVING_GUARDED),
];

/// The replacement of this script, or of a plain `SET`, under the restart guard.
pub(crate) fn guarded(script: Option<&'static Script>) -> Option<&'static Script> {
    let number = script.map(|script| script.number);
    let pair = GUARDED.iter().find(|(plain, _)| plain.map(|plain| plain.number) == number);
    pair.map_or(script, |(_, guarded)| Some(guarded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_is_looked_at_behind_the_script_and_only_if_the_key_is_ours() {
        for (plain, guarded) in GUARDED {
            let own = plain.map_or(HEAL, |plain| plain.text);
            assert_eq!(guarded.text, format!("{WORK}{own}{DONE}{LOOK}"), "{}", guarded.name);
        }
        assert!(DONE.ends_with("local said = work()\nif said ~= 1 then return said end\n"));
        assert_eq!(LOOK.strip_prefix(check_marker!("ours")), Some("return said"));
    }
}
