//! Extension and healing under the restart guard: the scripts for other masters, with a look at the
//! marker behind them.
//!
//! A master that has lost its data may have lost a vote for another client, so in its quarantine a
//! key that is there now proves nothing. It may have been restored, or copied from another master.
//! The scripts still keep it alive, and then answer `quarantined`. The answer counts only for a
//! client that knows that it has held this key without a gap: then the master has voted for no
//! other one.

use super::fleet::{check_marker, read_info, read_life};
use super::joined::script;
use super::{EXTEND, EXTEND_ALL, EXTEND_FENCED, HEAL_ALL, HEAL_FENCED, Script};

/// Restores a lock without a number. Without the restart guard a plain `SET NX` does that.
pub(super) const HEAL: &str = "\
if redis.pcall('GET', KEYS[1]) then return 0 end
local done = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if done.err then return done end
return 1";

/// The beginning of a script whose answer is looked at behind it.
const KEEP: &str = "local function keep()\n";

/// The end of a script: looks at the marker, if the key is ours.
const LOOK: &str = concat!(
    "\nend\nlocal said = keep()\nif said ~= 1 then return said end\n",
    check_marker!(),
    "return said"
);

pub(crate) const EXTEND_GUARDED: Script =
    script!([KEEP, EXTEND.text, LOOK], 40, "extend guarded", "9e0d03b614643a2796b1950431e19789a30cb837");
const EXTEND_FENCED_GUARDED: Script = script!(
    [KEEP, EXTEND_FENCED.text, LOOK],
    41,
    "extend fenced guarded",
    "69ae91166d0408a3ebe56a36fe24c04620148d25"
);
const EXTEND_ALL_GUARDED: Script = script!(
    [KEEP, EXTEND_ALL.text, LOOK],
    42,
    "extend all guarded",
    "dc3d15341f6d64bfad9ab3c0f61ddff0a131ac3d"
);
const HEAL_GUARDED: Script =
    script!([KEEP, HEAL, LOOK], 43, "heal guarded", "9116a0221de4d2dbb7ac15e5c512879b39319c9a");
const HEAL_FENCED_GUARDED: Script = script!(
    [KEEP, HEAL_FENCED.text, LOOK],
    44,
    "heal fenced guarded",
    "fc25b841fcee27ba561a2f73ac2e1f34aa0767b5"
);
const HEAL_ALL_GUARDED: Script =
    script!([KEEP, HEAL_ALL.text, LOOK], 45, "heal all guarded", "17c81ce241e5d36ad48d0b85f04e063389dcef7e");

/// Each script that keeps a lock alive, with its replacement under the restart guard. Without the
/// guard, restoring a lock without a number needs no script.
pub const GUARDED: [(Option<&Script>, &Script); 6] = [
    (Some(&EXTEND), &EXTEND_GUARDED),
    (Some(&EXTEND_FENCED), &EXTEND_FENCED_GUARDED),
    (Some(&EXTEND_ALL), &EXTEND_ALL_GUARDED),
    (None, &HEAL_GUARDED),
    (Some(&HEAL_FENCED), &HEAL_FENCED_GUARDED),
    (Some(&HEAL_ALL), &HEAL_ALL_GUARDED),
];

/// The replacement of this script, or of a plain `SET`, under the restart guard.
pub(crate) fn guarded(script: Option<&'static Script>) -> Option<&'static Script> {
    super::replacement(&GUARDED, script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_is_looked_at_behind_the_script_and_only_if_the_key_is_ours() {
        for (plain, guarded) in GUARDED {
            let own = plain.map_or(HEAL, |plain| plain.text);
            assert_eq!(guarded.text, format!("{KEEP}{own}{LOOK}"), "{}", guarded.name);
        }
        let (ours, marker) = LOOK.split_once(check_marker!()).unwrap();
        assert!(ours.ends_with("local said = keep()\nif said ~= 1 then return said end\n"));
        assert_eq!(marker, "return said");
    }
}
