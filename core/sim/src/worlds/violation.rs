//! The promises that can be broken.

use std::fmt;
use std::time::Duration;

use quorlock_core::Resource;

/// The promise that was broken.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Violation {
    /// Two guards of one resource that do not share it as one group were valid by their own clocks
    /// at one instant of true time.
    TwoHolders {
        /// The number of one client.
        first: usize,
        /// The number of the other client.
        second: usize,
    },
    /// More permits of a semaphore were valid at one instant of true time than the largest number
    /// that any of their holders gave, or a permit was valid that is beyond its holder's number.
    TooManyPermits {
        /// The semaphore.
        resource: Resource,
        /// How many of them were valid.
        valid: usize,
        /// The largest number of permits that any holder gave.
        of: u16,
    },
    /// A guard was valid while fewer than a quorum of masters would keep its token until its end.
    TooFewMasters {
        /// The client that holds the guard.
        client: usize,
        /// The number of masters that would keep the token.
        masters: usize,
    },
    /// A client got a lock that another one had released with a hold time, before that time was
    /// over.
    GrantedWhileKept {
        /// The client that holds the guard.
        client: usize,
        /// The client that had released it.
        by: usize,
    },
    /// A force-release that had ended deleted a key of a lock that was requested later.
    ForcedTooLate {
        /// The client that force-released an earlier lock.
        client: usize,
    },
    /// A guard was valid again after its validity had ended.
    Revived {
        /// The client.
        client: usize,
    },
    /// A guard was handed out after its validity had ended.
    GrantedTooLate {
        /// The client that received it.
        client: usize,
    },
    /// A guard was valid for longer than its TTL less the drift, counted from the first send of its
    /// round.
    ValidTooLong {
        /// The client.
        client: usize,
        /// How much longer.
        by: Duration,
    },
    /// Two grants of a resource had the same fencing token, or one grant had two.
    NumberTwice {
        /// The resource.
        resource: Resource,
        /// The fencing token.
        number: u64,
    },
    /// An exclusive grant has a fencing token that is not larger than that of an earlier grant, or
    /// a shared one a token that is smaller than that of an earlier exclusive grant.
    NumberTooSmall {
        /// The resource.
        resource: Resource,
        /// The token of the later grant.
        number: u64,
        /// The largest token that was granted before the later attempt began.
        earlier: u64,
    },
    /// A script lowered a fencing counter, made it expire, or stored something other than a number.
    CounterBroken {
        /// The master.
        master: usize,
    },
    /// A master voted too soon after it had lost its data, although the restart guard is on.
    VotedInQuarantine {
        /// The master.
        master: usize,
    },
    /// A client wrote to a [`Store`](super::Store) on the basis of an outdated reading, and so
    /// undid the change of another client.
    LostUpdate {
        /// The client that wrote.
        client: usize,
        /// The client that had written since the reading.
        of: usize,
    },
    /// A key of a lock that is not held was still there long after all masters were reachable
    /// again.
    KeyLeft {
        /// The master.
        master: usize,
        /// The resource.
        resource: Resource,
    },
    /// A command ended after its deadline.
    Late {
        /// The client.
        client: usize,
        /// The command.
        command: &'static str,
        /// The time that it took.
        took: Duration,
        /// The time that it may take.
        limit: Duration,
    },
    /// A client went on waiting for a lock that was there for it: free and not held, on a quorum of
    /// masters that would have voted.
    TurnMissed {
        /// The client.
        client: usize,
        /// For how long in total the lock was there.
        waited: Duration,
    },
    /// A client did not get its lock in time after all faults had ended.
    NoProgress {
        /// The client.
        client: usize,
        /// The error that it received.
        error: String,
    },
    /// A driver was woken repeatedly, with nothing to do or without any time passing.
    Spinning {
        /// The client.
        client: usize,
    },
    /// A task did not end in time.
    Unfinished {
        /// The client.
        client: usize,
    },
    /// Something still happened after all tasks had ended.
    Restless,
    /// The code under test reported its own violation.
    Reported(String),
}

impl Violation {
    /// Whether it is promised only under Redlock's assumptions.
    pub(super) fn needs_assumptions(&self) -> bool {
        !matches!(
            self,
            Self::TwoHolders { .. }
                | Self::TooManyPermits { .. }
                | Self::NumberTwice { .. }
                | Self::NumberTooSmall { .. }
                | Self::CounterBroken { .. }
                | Self::LostUpdate { .. }
                | Self::Spinning { .. }
                | Self::Unfinished { .. }
                | Self::Restless
                | Self::Reported(_)
        )
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoHolders { first, second } => {
                write!(f, "client{first} and client{second} hold valid guards of one resource at once")
            }
            Self::TooManyPermits { resource, valid, of } => {
                write!(f, "{valid} permits of {resource} are valid, or one beyond its {of}")
            }
            Self::TooFewMasters { client, masters } => {
                write!(
                    f,
                    "client{client}'s guard is valid, but only {masters} masters keep its token until it ends"
                )
            }
            Self::GrantedWhileKept { client, by } => {
                write!(f, "client{client} holds what client{by} keeps others out of for some time")
            }
            Self::ForcedTooLate { client } => {
                write!(
                    f,
                    "client{client}'s force-release deleted a lock that was requested after it had ended"
                )
            }
            Self::Revived { client } => write!(f, "client{client}'s guard is valid again after its end"),
            Self::GrantedTooLate { client } => {
                write!(f, "client{client} was given a guard whose validity had ended")
            }
            Self::ValidTooLong { client, by } => {
                write!(
                    f,
                    "client{client}'s guard is valid {by:?} longer than TTL less drift from its first send"
                )
            }
            Self::NumberTwice { resource, number } => {
                write!(f, "number {number} of {resource} stands for two grants, or one grant has another too")
            }
            Self::NumberTooSmall { resource, number, earlier } => {
                write!(
                    f,
                    "{resource} was granted with number {number} after it had been granted with {earlier}"
                )
            }
            Self::CounterBroken { master } => {
                write!(f, "a script made a fencing counter of master{master} end, or lowered it")
            }
            Self::VotedInQuarantine { master } => {
                write!(f, "master{master} lost its data and voted before all that it forgot had run out")
            }
            Self::LostUpdate { client, of } => {
                write!(f, "client{client} undid what client{of} had written, because it had read before that")
            }
            Self::KeyLeft { master, resource } => {
                write!(f, "master{master} still keeps {resource}, which no client holds any more")
            }
            Self::Late { client, command, took, limit } => {
                write!(f, "client{client}'s {command} took {took:?}, at most {limit:?} are promised")
            }
            Self::TurnMissed { client, waited } => {
                write!(f, "client{client} waits for a lock that has been there for it for {waited:?}")
            }
            Self::NoProgress { client, error } => {
                write!(f, "all is well, and still client{client} did not get its lock: {error}")
            }
            Self::Spinning { client } => write!(f, "client{client}'s driver spins"),
            Self::Unfinished { client } => write!(f, "a task of client{client} has not ended in time"),
            Self::Restless => f.write_str("no client wants anything any more, and still one is woken"),
            Self::Reported(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Violation {}
