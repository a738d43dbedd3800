//! A node of a cluster: its answers to commands about a slot that it does not own, or owns only in
//! part.
//!
//! The model serves one slot, that of one tag, and computes no slot numbers.

use super::Master;
use super::call::Call;
use super::command::{Command, CommandKind, FIRST_KEY};
use super::keyspace::Millis;
use super::reply::Failure;
use super::table::{READ, READ_FIRST, Spec, WRITE};

/// What a server knows about the slot of a tag.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Slot {
    /// It is not a node of a cluster.
    #[default]
    Standalone,
    /// It owns only the slot of this tag.
    Owned(String),
    /// Another node owns the slot: `host:port`.
    Elsewhere(String),
    /// It owns the slot of this tag, which is being moved to another node, `host:port`. Keys that
    /// it does not have are on that node.
    Moving(String, String),
    /// The cluster does not serve the slot.
    Down,
}

impl Master {
    /// Makes the server a node of a cluster, or a plain server again.
    ///
    /// A key of another slot than that of the tag is answered with `CLUSTERDOWN` or `CROSSSLOT`,
    /// also if a script names it among its values.
    pub fn set_slot(&mut self, slot: Slot) {
        self.conditions.slot = slot;
    }
}

impl Call<'_> {
    /// Checks that the slot is served. Redis does this before it checks its memory and its role.
    pub(super) fn served(&self, spec: &Spec) -> Result<(), Failure> {
        let (slot, keys) = (&self.master.conditions.slot, self.keys(spec));
        let tag = match slot {
            Slot::Standalone => return Ok(()),
            _ if keys.is_empty() => return Ok(()),
            Slot::Elsewhere(owner) => return Err(failure(&format!("MOVED {NUMBER} {owner}"))),
            Slot::Down => return Err(failure("CLUSTERDOWN Hash slot not served")),
            Slot::Owned(tag) | Slot::Moving(tag, _) => format!("{{{tag}}}"),
        };
        let is_here = |key: &&Vec<u8>| key.starts_with(tag.as_bytes());
        match keys.iter().filter(is_here).count() {
            0 => return Err(failure("CLUSTERDOWN Hash slot not served")),
            here if here < keys.len() => {
                return Err(failure("CROSSSLOT Keys in request don't hash to the same slot"));
            }
            _ => {}
        }
        if !named_in_values(self.command).iter().all(|key| is_here(&key)) {
            return Err(failure("ERR Script attempted to access a non local key in a cluster node"));
        }
        let Slot::Moving(_, target) = slot else { return Ok(()) };
        match keys.iter().filter(|key| self.has(key, self.now)).count() {
            0 => Err(failure(&format!("ASK {NUMBER} {target}"))),
            there if there < keys.len() => {
                Err(failure("TRYAGAIN Multiple keys request during rehashing of slot"))
            }
            _ => Ok(()),
        }
    }

    fn keys(&self, spec: &Spec) -> &[Vec<u8>] {
        let end = match spec.name {
            "eval" | "evalsha" => return self.command.script_keys(),
            "flushdb" | "flushall" => 1,
            "del" | "unlink" => self.count(),
            _ if spec.has(READ) => self.count(),
            _ if spec.has(WRITE) || spec.has(READ_FIRST) => 2,
            _ => 1,
        };
        self.command.arguments().get(1..end).unwrap_or_default()
    }

    fn has(&self, key: &[u8], now: Millis) -> bool {
        self.master.keyspace.get(self.session.database, key, now).is_some()
    }
}

/// The names of keys that scripts get after their first value, because they read these keys only if
/// the name is present.
fn named_in_values(command: &Command) -> &[Vec<u8>] {
    let names =
        matches!(command.kind(), CommandKind::Inspect | CommandKind::ForceRelease | CommandKind::ReleaseAny);
    let behind_keys = FIRST_KEY + command.script_keys().len();
    command.arguments().get(behind_keys + 1..).filter(|_| names).unwrap_or_default()
}

fn failure(text: &str) -> Failure {
    Failure::raw(text.as_bytes().to_vec())
}

/// The number of the slot. Nothing depends on it.
const NUMBER: u16 = 3387;
