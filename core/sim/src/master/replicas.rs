//! The replicas of a master, as it knows them: what each has acknowledged, and when the master
//! received that.

use std::fmt::Write;
use std::time::Duration;

use super::call::{Call, Role};
use super::keyspace::{Change, Millis, millis};
use super::number::integer;
use super::reply::{Failure, NOT_AN_INTEGER};
use super::{Master, Session, digest};

/// The attached replicas, in the order in which they were attached.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(super) struct Replicas {
    attached: Vec<Replica>,
    /// Whether it has had a replica since its start, or was one.
    has_backlog: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Replica {
    port: u16,
    heard: Heard,
    /// It has applied all writes up to this offset.
    acknowledged: u64,
}

/// When a master last received an acknowledgement from a replica.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Heard {
    /// It is receiving a copy of all keys, and has not acknowledged it.
    NotYet,
    At(Millis),
    /// Always just now: the replica is not simulated.
    Now,
    LongAgo,
}

impl Replica {
    /// How many seconds ago its last acknowledgement arrived, and whether it follows.
    fn lag(&self, now: Millis) -> Millis {
        match self.heard {
            Heard::Now => 0,
            Heard::At(heard) => now.saturating_sub(heard).div_euclid(1000),
            Heard::NotYet | Heard::LongAgo => 9,
        }
    }

    fn is_fresh(&self, now: Millis) -> bool {
        (0..=1).contains(&self.lag(now))
    }
}

impl Replicas {
    /// Forgets all replicas, after a restart of the server.
    pub(super) fn start_again(&mut self) {
        self.has_backlog = false;
    }

    pub(super) fn connected(&self) -> usize {
        self.attached.len()
    }

    /// The replicas that the scripts count: acknowledged within the last second.
    pub(super) fn following(&self, now: Millis) -> usize {
        self.attached.iter().filter(|replica| replica.is_fresh(now)).count()
    }
}

/// Changes of keys, as a master sends them to its replicas, with the offset after them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Changes {
    changes: Vec<Change>,
    offset: u64,
}

impl Changes {
    /// The offset that a replica acknowledges after applying them.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl std::fmt::Debug for Changes {
    /// Keys and tokens are not shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changes").field("offset", &self.offset).finish_non_exhaustive()
    }
}

impl Master {
    /// Sets the number of attached replicas, all of which follow and confirm writes. They hold no
    /// data.
    ///
    /// The first replica gives the master another replication id. For the id that a master gets
    /// when its last replica has been away for a long time, see [`Master::set_replication_id`].
    pub fn set_replicas(&mut self, replicas: u16) {
        if self.conditions.replicas.connected() == 0 && replicas > 0 {
            self.meet_first_replica();
        }
        let all = (0..replicas).map(|number| FIRST_PORT.saturating_add(number));
        let all = all.map(|port| Replica { port, heard: Heard::Now, acknowledged: u64::MAX });
        self.conditions.replicas.attached = all.collect();
    }

    /// Sets how many of the attached replicas have sent an acknowledgement lately, and how many of
    /// them confirm a `WAIT`. A master may still believe that a replica follows it.
    pub fn set_following(&mut self, following: u16, confirming: u16) {
        for (number, replica) in (0..).zip(&mut self.conditions.replicas.attached) {
            replica.heard = if number < following { Heard::Now } else { Heard::LongAgo };
            replica.acknowledged = if number < confirming { u64::MAX } else { 0 };
        }
    }

    /// Sets whether scripts look at the marker of the restart guard before they look at the
    /// replicas, so that the time in which a new primary does not vote begins while replicas are
    /// missing. No server does that: it removes one of the two defences against a former primary
    /// that continues, to show what the other one does alone.
    pub fn set_early_quarantine(&mut self, is_early: bool) {
        self.conditions.early_quarantine = is_early;
    }

    /// Attaches a replica that listens on this port. It must get a copy of all keys
    /// ([`Master::resync_from`]) and then the changes of [`Master::take_changes`].
    ///
    /// The master reports the replica, but counts it only after its first acknowledgement.
    pub fn attach(&mut self, port: u16) {
        if !self.conditions.replicas.has_backlog {
            self.meet_first_replica();
        }
        self.detach(port);
        self.keyspace.keep_changes();
        let replica = Replica { port, heard: Heard::NotYet, acknowledged: 0 };
        self.conditions.replicas.attached.push(replica);
    }

    /// Detaches the replica on this port.
    pub fn detach(&mut self, port: u16) {
        self.conditions.replicas.attached.retain(|replica| replica.port != port);
    }

    /// Detaches all replicas.
    pub fn detach_all(&mut self) {
        self.conditions.replicas.attached.clear();
    }

    /// Receives an acknowledgement that the replica on this port has applied everything up to this
    /// offset. It counts from now, even if it was sent much earlier.
    pub fn hear_replica(&mut self, port: u16, offset: u64, now: Duration) {
        let mut attached = self.conditions.replicas.attached.iter_mut();
        if let Some(replica) = attached.find(|replica| replica.port == port) {
            replica.heard = Heard::At(millis(now));
            replica.acknowledged = offset.max(replica.acknowledged);
        }
    }

    /// Takes the changes since the last call, for the replicas; `None` if there are none.
    pub fn take_changes(&mut self) -> Option<Changes> {
        let changes = self.keyspace.take_changes();
        (!changes.is_empty()).then(|| Changes { changes, offset: self.offset() })
    }

    /// Applies changes of its master. A replica executes nothing itself.
    pub fn apply(&mut self, changes: &Changes) {
        self.keyspace.apply(&changes.changes);
    }

    /// Returns how many changes of keys there have been since the first replica.
    pub fn offset(&self) -> u64 {
        self.keyspace.offset()
    }

    /// Returns how many replicas have acknowledged this connection's last write: the present answer
    /// to a `WAIT`.
    pub fn confirming(&self, session: &Session) -> usize {
        let attached = self.conditions.replicas.attached.iter();
        let is_behind_it = |replica: &&Replica| replica.acknowledged >= session.written;
        attached.filter(|replica| replica.heard != Heard::NotYet).filter(is_behind_it).count()
    }

    /// Returns how many replicas have sent an acknowledgement lately: those that scripts count.
    pub fn followed_by(&self, now: Duration) -> usize {
        self.conditions.replicas.following(millis(now))
    }

    /// Returns whether the server is a replica.
    pub fn is_replica(&self) -> bool {
        self.conditions.role == Role::Replica
    }

    /// Whether it can send changes to others. A replica can too, so it keeps its replication id
    /// when others follow it after its promotion.
    pub(super) fn keep_backlog(&mut self) {
        self.conditions.replicas.has_backlog = true;
        self.keyspace.count_changes();
    }

    fn meet_first_replica(&mut self) {
        self.keep_backlog();
        self.replication_id = digest(&format!("first replica of {}", self.replication_id));
        self.former_replication_id = None;
    }
}

/// The lines of `INFO replication`.
pub(super) fn lines(master: &Master, now: Millis) -> String {
    let mut text = String::new();
    for (number, replica) in master.conditions.replicas.attached.iter().enumerate() {
        let state = if replica.heard == Heard::NotYet { "wait_bgsave" } else { "online" };
        let offset = if replica.acknowledged == u64::MAX { 0 } else { replica.acknowledged };
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "slave{number}:ip=127.0.0.1,port={},state={state},offset={offset},lag={}\r\n",
            replica.port,
            replica.lag(now)
        );
    }
    text
}

/// `WAIT`, without waiting: it returns what the replicas have confirmed by now. As since Redis 7.2,
/// it concerns what this connection has written; without writes, all replicas confirm it.
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
    let confirming = call.master.confirming(call.session);
    if confirming == call.master.conditions.replicas.connected() {
        // Once all have confirmed it, it needs no further confirmation.
        call.session.written = 0;
    }
    call.reply.integer(i64::try_from(confirming).unwrap_or(i64::MAX));
    Ok(())
}

/// The port of the first replica that holds no data.
const FIRST_PORT: u16 = 6380;
