//! The replicas of a master, as it tells of them. They hold no data.

use std::fmt::Write;

use super::call::{Call, Role};
use super::number::integer;
use super::reply::{Failure, NOT_AN_INTEGER};
use super::{Master, digest};

/// How many replicas there are, and what they do.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub(super) struct Replicas {
    /// How many are attached.
    pub(super) connected: u16,
    /// Of them, those that have been heard of within the last second.
    pub(super) following: u16,
    /// Of them, those that confirm what they are asked about (`WAIT`).
    confirming: u16,
}

impl Master {
    /// Sets the number of attached replicas, all of which follow and confirm writes. They hold no
    /// data.
    ///
    /// The first replica gives the master another replication id. For the id that a master gets
    /// when its last replica has been away for a long time, see [`Master::set_replication_id`].
    pub fn set_replicas(&mut self, replicas: u16) {
        if self.conditions.replicas.connected == 0 && replicas > 0 {
            self.replication_id = digest(&format!("first replica of {}", self.replication_id));
            self.former_replication_id = None;
        }
        self.conditions.replicas =
            Replicas { connected: replicas, following: replicas, confirming: replicas };
    }

    /// Sets how many of the attached replicas have been heard of lately, and how many of them
    /// confirm what `WAIT` asks for. A master may still believe that a replica follows it.
    pub fn set_following(&mut self, following: u16, confirming: u16) {
        self.conditions.replicas.following = following;
        self.conditions.replicas.confirming = confirming;
    }
}

/// The lines of `INFO replication`.
pub(super) fn lines(master: &Master) -> String {
    let Replicas { connected, following, .. } = master.conditions.replicas;
    let mut text = String::new();
    for number in 0..connected {
        let lag = if number < following { 0 } else { 9 };
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "slave{number}:ip=127.0.0.1,port={},state=online,offset=0,lag={lag}\r\n",
            6380 + u32::from(number)
        );
    }
    text
}

/// `WAIT`. It does not wait: what the replicas confirm does not change meanwhile. As since Redis 7.2 it
/// is about what this connection has written: where that is nothing, all replicas confirm it.
pub(super) fn wait(call: &mut Call<'_>) -> Result<(), Failure> {
    if call.master.conditions.role == Role::Replica {
        return Err(Failure::new(
            "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is \
             configured to be writable (which is not the default) writes to replicas are just local and are not \
             propagated.",
        ));
    }
    integer(call.argument(1)).ok_or(NOT_AN_INTEGER)?;
    let limit = integer(call.argument(2));
    let limit = limit.ok_or(Failure::new("ERR timeout is not an integer or out of range"))?;
    if limit < 0 {
        return Err(Failure::new("ERR timeout is negative"));
    }
    let Replicas { connected, confirming, .. } = call.master.conditions.replicas;
    call.session.is_unconfirmed &= confirming < connected;
    call.reply.integer(if call.session.is_unconfirmed { confirming } else { connected }.into());
    Ok(())
}
