//! How commands end, in words that a person can act on.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::units::Span;
use super::vote::Tally;
use super::{Quorum, Resource, Vote};
use crate::endpoint::Endpoint;

/// What every master said in the round that settled a command.
#[derive(Clone, PartialEq, Eq)]
pub struct Ballot {
    pub(crate) resource: Resource,
    pub(crate) masters: Arc<[Endpoint]>,
    pub(crate) votes: Vec<Vote>,
    pub(crate) attempts: u32,
    pub(crate) callers_ahead: usize,
}

impl Ballot {
    /// What was to be locked.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Each master with its vote, in the order of the configuration.
    pub fn votes(&self) -> impl Iterator<Item = (&Endpoint, Vote)> {
        // Where no master was asked there are no votes.
        self.masters.iter().zip(self.votes.iter().copied().chain(std::iter::repeat(Vote::Outstanding)))
    }

    /// Votes for.
    pub fn granted(&self) -> usize {
        Tally::of(&self.votes).granted
    }

    /// Votes that were needed.
    pub fn needed(&self) -> usize {
        Quorum::of(self.masters.len()).map_or(1, Quorum::needed)
    }

    /// Attempts that were made. The further rounds of one whose split votes were settled are not counted.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// How many callers of this process hold the lock or were first to ask for it, where that decided and no master was asked; zero
    /// where the votes decided.
    pub fn callers_ahead(&self) -> usize {
        self.callers_ahead
    }
}

impl fmt::Display for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.callers_ahead {
            0 => {}
            1 => return f.write_str("another caller in this process holds it or asked for it first"),
            ahead => return write!(f, "{ahead} other callers in this process hold it or asked for it first"),
        }
        write!(f, "{} of {} votes, {} needed (", self.granted(), self.masters.len(), self.needed())?;
        for (place, (name, vote)) in self.votes().enumerate() {
            write!(f, "{}{name} ", if place == 0 { "" } else { ", " })?;
            match vote {
                Vote::Outstanding => f.write_str("not heard yet"),
                Vote::Granted => f.write_str("granted"),
                Vote::HeldByAnother { remaining: Some(remaining), .. } => {
                    write!(f, "held by another for {}", Span(remaining))
                }
                Vote::HeldByAnother { remaining: None, .. } => f.write_str("held by another"),
                Vote::NotHeld => f.write_str("holds it no longer"),
                Vote::Failed(cause) => cause.describe(&self.masters, f),
            }?;
        }
        f.write_str(")")
    }
}

impl fmt::Debug for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ballot({}: {self}, attempt {})", self.resource, self.attempts)
    }
}

/// A request that cannot be carried out as it stands: the caller's mistake, nothing was sent.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RequestError {
    /// The resource or the TTL is none.
    Invalid(super::ConfigError),
    /// The operating system gave no random bytes for a token.
    NoEntropy,
    /// So many locks are alive or being sought that no more are taken on.
    TooManyLocks {
        /// The limit.
        limit: usize,
    },
    /// So many extensions of this lock are under way that no more are taken on.
    TooManyExtensions,
    /// No such lock: it was released or cancelled.
    UnknownLock,
    /// This process is a forked child of the one that opened the locker, and must open one of its own.
    Forked,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => write!(f, "{error}"),
            Self::NoEntropy => f.write_str("the operating system gave no random bytes for a token"),
            Self::TooManyLocks { limit } => {
                write!(f, "{limit} locks are alive or being sought already; release some, or raise the limit")
            }
            Self::TooManyExtensions => f.write_str("too many extensions of this lock are under way"),
            Self::UnknownLock => f.write_str("no such lock: it was released or cancelled"),
            Self::Forked => {
                f.write_str("this locker was opened before a fork; open another one in the child")
            }
        }
    }
}

impl Error for RequestError {}

impl From<super::ConfigError> for RequestError {
    fn from(error: super::ConfigError) -> Self {
        Self::Invalid(error)
    }
}

/// Why a lock was not acquired.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AcquireError {
    /// Another holds it: a quorum of masters answered, and at least one of them refused because of another's key.
    ///
    /// Or the other is a caller of this process, and no master was asked: a single try never goes ahead of callers that wait, and a
    /// caller that waits behind a holder in this process asks no master. [`Ballot::callers_ahead`] tells how many they are.
    HeldByAnother(Box<Ballot>),
    /// Too few masters answered.
    NoQuorum(Box<Ballot>),
    /// Too few masters can answer before a configuration is changed: password, permission, database, duplicate.
    Misconfigured(Box<Ballot>),
    /// A quorum granted it, but so late that nothing was left of its validity.
    TooLate(Box<Ballot>),
    /// Asked to go on with a lock that was handed over, so many masters did not have its token that a quorum is impossible.
    NotHeld(Box<Ballot>),
    /// The request cannot be carried out as it stands.
    Request(RequestError),
    /// The transport's I/O loop has ended, so nobody can answer.
    DriverEnded,
}

impl AcquireError {
    /// What every master said last, if the request was carried out.
    pub fn ballot(&self) -> Option<&Ballot> {
        match self {
            Self::HeldByAnother(ballot)
            | Self::NoQuorum(ballot)
            | Self::Misconfigured(ballot)
            | Self::TooLate(ballot)
            | Self::NotHeld(ballot) => Some(ballot),
            Self::Request(_) | Self::DriverEnded => None,
        }
    }

    /// The error that these final votes amount to.
    pub(crate) fn from_ballot(ballot: Ballot, quorum: Quorum) -> Self {
        let tally = Tally::of(&ballot.votes);
        let ballot = Box::new(ballot);
        if tally.other_fleet > 0 {
            Self::Misconfigured(ballot)
        } else if tally.granted >= quorum.needed() {
            Self::TooLate(ballot)
        } else if tally.is_held_by_another(quorum) {
            Self::HeldByAnother(ballot)
        } else if tally.is_misconfigured(quorum) {
            Self::Misconfigured(ballot)
        } else {
            Self::NoQuorum(ballot)
        }
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeldByAnother(ballot) | Self::NoQuorum(ballot) | Self::Misconfigured(ballot) => {
                write!(f, "{} not acquired: {ballot}", ballot.resource)
            }
            Self::NotHeld(ballot) => {
                write!(f, "{} not resumed: it is not held by this token: {ballot}", ballot.resource)
            }
            Self::TooLate(ballot) => {
                write!(
                    f,
                    "{} not acquired: the votes came after its validity had run out: {ballot}",
                    ballot.resource
                )
            }
            Self::Request(error) => write!(f, "{error}"),
            Self::DriverEnded => f.write_str("the I/O loop of this locker has ended"),
        }
    }
}

impl Error for AcquireError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Request(error) => Some(error),
            _ => None,
        }
    }
}

impl From<RequestError> for AcquireError {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

/// Why a guard is not valid any more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LossCause {
    /// Its validity ran out without an extension.
    Expired,
    /// So many masters no longer hold its token that a quorum is impossible.
    NotHeld,
    /// Its holder released it.
    Released,
    /// Its holder handed it on.
    HandedOver,
    /// The transport's I/O loop has ended, so nobody can renew or watch it.
    DriverEnded,
    /// This process is a forked child of the one that holds it.
    Forked,
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "the lock's validity ran out",
            Self::NotHeld => "a quorum of masters no longer holds the lock",
            Self::Released => "the lock was released",
            Self::HandedOver => "the lock was handed over",
            Self::DriverEnded => "the I/O loop of this locker has ended",
            Self::Forked => "the lock is held by the process that this one was forked from",
        })
    }
}

impl Error for LossCause {}

/// Why an extension did not come about.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ExtendError {
    /// The lock is not held any more.
    Lost(LossCause),
    /// Too few masters answered; the lock is as valid as it was.
    NoQuorum(Box<Ballot>),
    /// The request cannot be carried out as it stands; the lock is as valid as it was.
    Request(RequestError),
}

impl fmt::Display for ExtendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(cause) => write!(f, "not extended: {cause}"),
            Self::NoQuorum(ballot) => write!(f, "{} not extended: {ballot}", ballot.resource),
            Self::Request(error) => write!(f, "not extended: {error}"),
        }
    }
}

impl Error for ExtendError {}

/// What a release found.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReleaseOutcome {
    /// A quorum of masters still held the lock for us until now.
    StillOurs,
    /// A quorum of masters did not: somebody else may have held it meanwhile.
    NotOurs,
    /// Too few masters answered to say. Keys that could not be deleted expire by themselves.
    Unknown(Box<Ballot>),
}

#[cfg(test)]
mod tests {
    use super::super::{Cause, ConfigError};
    use super::*;

    fn ballot(votes: [Vote; 3]) -> Ballot {
        let masters = ["redis://a", "redis://b", "redis://c"].map(|url| url.parse().unwrap());
        let resource = Resource::new("job").unwrap();
        Ballot { resource, masters: masters.into(), votes: votes.to_vec(), attempts: 3, callers_ahead: 0 }
    }

    #[test]
    fn a_ballot_tells_each_vote_and_how_many_were_needed() {
        let ballot = ballot([Vote::Granted, Vote::NotHeld, Vote::Outstanding]);
        assert_eq!((ballot.granted(), ballot.needed(), ballot.attempts()), (1, 2, 3));
        assert_eq!(ballot.resource().to_string(), "job");
        assert_eq!(ballot.votes().count(), 3);
        assert_eq!(
            ballot.to_string(),
            "1 of 3 votes, 2 needed (a:6379 granted, b:6379 holds it no longer, c:6379 not heard yet)"
        );
    }

    #[test]
    fn contention_in_this_process_tells_how_many_callers_are_ahead() {
        for (callers_ahead, said) in [
            (1, "job not acquired: another caller in this process holds it or asked for it first"),
            (3, "job not acquired: 3 other callers in this process hold it or asked for it first"),
        ] {
            let ballot = Ballot { callers_ahead, ..ballot([Vote::Outstanding; 3]) };
            assert_eq!(AcquireError::HeldByAnother(Box::new(ballot)).to_string(), said);
        }
    }

    #[test]
    fn the_error_of_an_acquisition_is_what_its_votes_amount_to() {
        let held = Vote::HeldByAnother { remaining: None, holder: None };
        let closed = Vote::Failed(Cause::Closed);
        let duplicate =
            Vote::Failed(Cause::SameServer { other: super::super::MasterId::all(1).next().unwrap() });
        let error = |votes| AcquireError::from_ballot(ballot(votes), Quorum::of(3).unwrap());
        assert!(matches!(error([Vote::Granted, Vote::Granted, held]), AcquireError::TooLate(_)));
        assert!(matches!(error([Vote::Granted, held, closed]), AcquireError::HeldByAnother(_)));
        assert!(matches!(error([duplicate, duplicate, held]), AcquireError::Misconfigured(_)));
        let no_quorum = error([held, closed, closed]);
        assert!(matches!(no_quorum, AcquireError::NoQuorum(_)));
        assert_eq!(no_quorum.ballot().map(Ballot::granted), Some(0));
        assert_eq!(AcquireError::DriverEnded.ballot(), None);
    }

    #[test]
    fn errors_say_what_happened_and_to_which_lock() {
        let boxed = || Box::new(ballot([Vote::Granted; 3]));
        let votes = boxed().to_string();
        let request = || RequestError::TooManyLocks { limit: 5 };
        let limit = "5 locks are alive or being sought already; release some, or raise the limit";
        for (error, said) in [
            (AcquireError::NoQuorum(boxed()).to_string(), format!("job not acquired: {votes}")),
            (
                AcquireError::TooLate(boxed()).to_string(),
                format!("job not acquired: the votes came after its validity had run out: {votes}"),
            ),
            (AcquireError::from(request()).to_string(), limit.to_owned()),
            (AcquireError::DriverEnded.to_string(), "the I/O loop of this locker has ended".to_owned()),
            (
                ExtendError::Lost(LossCause::NotHeld).to_string(),
                "not extended: a quorum of masters no longer holds the lock".to_owned(),
            ),
            (ExtendError::NoQuorum(boxed()).to_string(), format!("job not extended: {votes}")),
            (ExtendError::Request(request()).to_string(), format!("not extended: {limit}")),
            (LossCause::Expired.to_string(), "the lock's validity ran out".to_owned()),
            (RequestError::from(ConfigError::ZeroTtl).to_string(), ConfigError::ZeroTtl.to_string()),
        ] {
            assert_eq!(error, said);
        }
        assert!(AcquireError::from(request()).source().is_some_and(|error| error.to_string() == limit));
        assert!(AcquireError::NoQuorum(boxed()).source().is_none());
    }
}
