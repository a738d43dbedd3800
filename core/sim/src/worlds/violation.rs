//! The promises that can be broken.

use std::fmt;
use std::time::Duration;

use quorlock_core::Resource;

/// A promise that was broken.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Violation {
    /// Two guards' own clocks called them valid at one instant of true time.
    TwoHolders {
        /// One of them,
        first: usize,
        /// and the other: the clients' numbers.
        second: usize,
    },
    /// A guard called itself valid while fewer than a quorum of masters would keep its token until it ends.
    TooFewMasters {
        /// Whose guard.
        client: usize,
        /// How many would.
        masters: usize,
    },
    /// A guard called itself valid after its validity had ended.
    Revived {
        /// Whose.
        client: usize,
    },
    /// A guard was handed out whose validity had ended already.
    WornOut {
        /// To whom.
        client: usize,
    },
    /// A guard was valid for longer than any request for it, counted from its first send, could have promised.
    ValidTooLong {
        /// Whose.
        client: usize,
        /// By how much.
        by: Duration,
    },
    /// Two grants of a resource had one number, or one grant two.
    NumberTwice {
        /// What was locked.
        resource: Resource,
        /// Which number.
        number: u64,
    },
    /// A grant was decided before another attempt sent anything, and has not the smaller number.
    NumberTooSmall {
        /// What was locked.
        resource: Resource,
        /// The number of the later one,
        number: u64,
        /// and the largest until it began.
        earlier: u64,
    },
    /// A script gave a fencing counter an end, lowered it, or made it something else than a number.
    CounterBroken {
        /// Where.
        master: usize,
    },
    /// A master voted under the restart guard too soon after it had lost its data.
    VotedInQuarantine {
        /// Which.
        master: usize,
    },
    /// A client wrote to a [`Store`](super::Store) what followed from an outdated reading, and so undid another's change.
    LostUpdate {
        /// Who wrote.
        client: usize,
        /// Who had written since the reading.
        of: usize,
    },
    /// A key of a lock that nobody has any more was still there long after every master answered again.
    KeyLeft {
        /// Where.
        master: usize,
        /// What was locked.
        resource: Resource,
    },
    /// A command ended after its time.
    Late {
        /// Whose.
        client: usize,
        /// Which.
        command: &'static str,
        /// How long it took.
        took: Duration,
        /// And how long it may take.
        limit: Duration,
    },
    /// After all faults had ended a client did not get its lock in time.
    NoProgress {
        /// Whose.
        client: usize,
        /// What it was told.
        error: String,
    },
    /// A driver was woken again and again without any time passing, or with nothing to do.
    Spinning {
        /// Whose.
        client: usize,
    },
    /// A task had not ended in time.
    Unfinished {
        /// Whose.
        client: usize,
    },
    /// Nobody wanted anything any more, and still something happened.
    Restless,
    /// What the code under test reported itself.
    Reported(String),
}

impl Violation {
    /// Whether it is promised under Redlock's assumptions only.
    pub(super) fn needs_assumptions(&self) -> bool {
        !matches!(
            self,
            Self::TwoHolders { .. }
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
            Self::TooFewMasters { client, masters } => {
                write!(
                    f,
                    "client{client}'s guard is valid, but only {masters} masters keep its token until it ends"
                )
            }
            Self::Revived { client } => write!(f, "client{client}'s guard is valid again after its end"),
            Self::WornOut { client } => {
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
                write!(f, "client{client} undid what client{of} had written, for it had read before that")
            }
            Self::KeyLeft { master, resource } => {
                write!(f, "master{master} still keeps {resource}, which nobody holds any more")
            }
            Self::Late { client, command, took, limit } => {
                write!(f, "client{client}'s {command} took {took:?}, at most {limit:?} are promised")
            }
            Self::NoProgress { client, error } => {
                write!(f, "all is well, and still client{client} did not get its lock: {error}")
            }
            Self::Spinning { client } => write!(f, "client{client}'s driver spins"),
            Self::Unfinished { client } => write!(f, "a task of client{client} has not ended in time"),
            Self::Restless => f.write_str("nobody wants anything any more, and still somebody is woken"),
            Self::Reported(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Violation {}
