//! How faults are drawn: their lanes and labels.

use super::Actor;
use crate::master::Keep;
use crate::worlds::fault::{Fault, PushFate, Refusal};

/// The lane of a fault and its label.
pub(super) fn shown(fault: Fault) -> (Actor, String) {
    use Actor::{Client, Master};
    let (actor, text) = match fault {
        Fault::Hang { master, .. } => (Master(master), "hangs"),
        Fault::Crash { master, keep: Keep::Everything, .. } => (Master(master), "restarts"),
        Fault::Crash { master, keep: Keep::Nothing, .. } => (Master(master), "restarts empty"),
        Fault::Crash { master, keep: Keep::Half, .. } => (Master(master), "restarts, half forgotten"),
        Fault::Leave { master } => (Master(master), "leaves"),
        Fault::Return { master, .. } => (Master(master), "returns"),
        Fault::Flush { master } => (Master(master), "keys flushed"),
        Fault::Save { master } => (Master(master), "saves its keys"),
        Fault::Restore { master, .. } => (Master(master), "restarts with old keys"),
        Fault::Resync { master, .. } => (Master(master), "is a replica"),
        Fault::Promote { master, .. } => (Master(master), "is promoted"),
        Fault::Follow { master, .. } => (Master(master), "is demoted"),
        Fault::Isolate { master, .. } => (Master(master), "replication is cut"),
        Fault::SlowReplication { master, .. } => (Master(master), "replication is slow"),
        Fault::MoveSlot { master, .. } => (Master(master), "slot moves"),
        Fault::Reshard { master, .. } => (Master(master), "slot moves by keys"),
        Fault::Refuse { master, reason, .. } => (
            Master(master),
            match reason {
                Refusal::OutOfMemory => "is out of memory",
                Refusal::ReadOnly => "is read-only",
                Refusal::Loading => "is loading",
                Refusal::NoAuth => "requires a password",
            },
        ),
        Fault::Pushes { master, fate, .. } => (
            Master(master),
            match fate {
                PushFate::Lost => "push is lost",
                PushFate::Late => "push comes late",
                PushFate::Repeated => "push comes twice",
            },
        ),
        Fault::ForgetScripts { master } => (Master(master), "scripts are gone"),
        Fault::Kill { client } => (Client(client), "dies"),
        Fault::Pause { client, .. } => (Client(client), "pauses"),
        _ => return with_numbers(fault),
    };
    (actor, text.to_owned())
}

fn with_numbers(fault: Fault) -> (Actor, String) {
    use Actor::{Client, Master};
    match fault {
        Fault::Cut { client, master } => (Client(client), format!("cut from {}", Master(master))),
        Fault::HangUp { client, master } => (Master(master), format!("hangs up on {}", Client(client))),
        Fault::HalfOpen { client, master } => (Client(client), format!("dead line to {}", Master(master))),
        Fault::Partition { client, master, .. } => (Master(master), format!("{} cut off", Client(client))),
        Fault::Mute { client, master, .. } => (Master(master), format!("{} hears nothing", Client(client))),
        Fault::Clog { client, master, .. } => {
            (Master(master), format!("{}'s socket is full", Client(client)))
        }
        Fault::Unreachable { client, master, .. } => {
            (Client(client), format!("cannot reach {}", Master(master)))
        }
        Fault::Slow { client, master, .. } => (Master(master), format!("slow to {}", Client(client))),
        Fault::ClientDrift { client, gain_ppm } => (Client(client), rate(gain_ppm)),
        Fault::MasterDrift { master, gain_ppm } => (Master(master), rate(gain_ppm)),
        Fault::ClientJump { client, by } => (Client(client), format!("clock jumps {by:?}")),
        Fault::MasterJump { master, by_millis } => (
            Master(master),
            format!("clock set {:+} s", f64::from(i32::try_from(by_millis).unwrap_or(i32::MAX)) / 1e3),
        ),
        other => (Actor::World, format!("{other:?}")),
    }
}

fn rate(gain_ppm: i32) -> String {
    format!("clock {:+} %", f64::from(gain_ppm) / 1e4)
}
