//! Events with their times and their order.

use std::task::Waker;

use super::clock::TrueTime;
use super::fault::{Fault, Refusal};
use super::following::Parcel;
use super::link::LinkId;

/// An event at some time.
#[derive(Debug)]
pub(super) enum Event {
    /// A connection request arrives at the master.
    Knock(LinkId),
    /// It has been accepted, and the client is informed.
    Accepted(LinkId),
    /// It was refused.
    Refused(LinkId),
    /// Bytes arrive at the master.
    Up(LinkId, Vec<u8>),
    /// The client's end of the connection arrives at the master.
    UpEnd(LinkId),
    /// Bytes arrive at the client.
    Down(LinkId, Vec<u8>),
    /// The master's end of the connection arrives at the client.
    DownEnd(LinkId),
    /// A client's driver runs, unless it has been woken earlier.
    Turn {
        client: usize,
        number: u64,
    },
    /// A client's woken tasks are polled.
    Poll {
        client: usize,
    },
    /// A sleep is over.
    Alarm(Waker),
    /// There is room in a client's sockets again.
    Room {
        client: usize,
    },
    /// A client's process continues.
    Resume {
        client: usize,
    },
    /// A master's process continues.
    Continue {
        master: usize,
    },
    /// A master comes back.
    Restart {
        master: usize,
        incarnation: u64,
    },
    /// A master that was made a replica is promoted.
    Promote {
        master: usize,
    },
    /// A master deletes expired keys.
    Round {
        master: usize,
    },
    /// A master's delayed pushes are sent.
    LatePushes {
        master: usize,
    },
    /// A master stops refusing.
    Mend {
        master: usize,
        reason: Refusal,
    },
    /// A message of a server arrives at another one.
    Parcel(Parcel),
    /// A replica acknowledges its offset.
    Beat {
        server: usize,
    },
    /// A client learns which server of a group was promoted.
    Learns {
        client: usize,
        server: usize,
    },
    /// A server of a cluster learns the owner of its master's slot since this epoch.
    OwnerIsTold {
        server: usize,
        epoch: u64,
        owner: usize,
    },
    /// The next key of a slot moves to another group.
    SlotStep {
        master: usize,
        number: u64,
    },
    /// A connection has waited for replicas for long enough.
    WaitEnds {
        link: LinkId,
        wait: u64,
    },
    Fault(Fault),
}

/// An event with its place in the order of all.
#[derive(Debug)]
pub(super) struct Scheduled {
    pub(super) at: TrueTime,
    pub(super) number: u64,
    pub(super) event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
