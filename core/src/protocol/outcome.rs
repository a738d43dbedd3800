//! How commands end, in words that a person can act on.
//!
//! Each error prints as one complete sentence. `kind` is a short word for it that stays the same
//! from version to version, for the labels of metrics; `source` is the error inside, for programs
//! that look at it.

use std::error::Error;
use std::fmt;

use super::vote::Tally;
use super::{Ballot, ConfigError, EntropyFailed, Quorum};

/// Why a lock was not acquired.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AcquireError {
    /// Another client or caller holds it: a quorum of masters answered, and at least one of them
    /// refused because its key has another token.
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
    /// The request was to resume a lock, and so many masters do not have its token that a quorum is
    /// impossible.
    NotHeld(Box<Ballot>),
    /// The resource or the TTL is invalid. Nothing was sent.
    Invalid(ConfigError),
    /// As many locks are held or waited for as the configuration allows. Nothing was sent.
    TooManyLocks {
        /// The limit.
        limit: usize,
    },
    /// The operating system gave no random bytes for a token.
    NoEntropy,
    /// This process is a forked child of the one that opened the locker, and must open its own.
    /// Nothing was sent.
    Forked,
    /// The transport's I/O loop has ended, so no answer can arrive.
    DriverEnded,
}

impl AcquireError {
    /// Returns what every master said last, if masters decided.
    pub fn ballot(&self) -> Option<&Ballot> {
        match self {
            Self::HeldByAnother(ballot)
            | Self::NoQuorum(ballot)
            | Self::Misconfigured(ballot)
            | Self::TooLate(ballot)
            | Self::NotHeld(ballot) => Some(ballot),
            Self::Invalid(_)
            | Self::TooManyLocks { .. }
            | Self::NoEntropy
            | Self::Forked
            | Self::DriverEnded => None,
        }
    }

    /// Returns a word for this kind of error, for the labels of metrics. It is the same in every
    /// version.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::HeldByAnother(_) => "held_by_another",
            Self::NoQuorum(_) => "no_quorum",
            Self::Misconfigured(_) => "misconfigured",
            Self::TooLate(_) => "too_late",
            Self::NotHeld(_) => "not_held",
            Self::Invalid(_) => "invalid",
            Self::TooManyLocks { .. } => "too_many_locks",
            Self::NoEntropy => "no_entropy",
            Self::Forked => "forked",
            Self::DriverEnded => "driver_ended",
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
                write!(f, "{} not acquired: {ballot}", ballot.targets)
            }
            Self::NotHeld(ballot) => {
                write!(f, "{} not resumed: it is not held by this token: {ballot}", ballot.targets)
            }
            Self::TooLate(ballot) => {
                write!(
                    f,
                    "{} not acquired: the votes came after its validity had run out: {ballot}",
                    ballot.targets
                )
            }
            Self::Invalid(error) => write!(f, "{error}"),
            Self::TooManyLocks { limit } => write!(f, "{}", TooManyLocks { limit: *limit }),
            Self::NoEntropy => f.write_str("the operating system gave no random bytes for a token"),
            Self::Forked => f.write_str(FORKED),
            Self::DriverEnded => f.write_str(DRIVER_ENDED),
        }
    }
}

impl Error for AcquireError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Invalid(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ConfigError> for AcquireError {
    fn from(error: ConfigError) -> Self {
        Self::Invalid(error)
    }
}

impl From<TooManyLocks> for AcquireError {
    fn from(TooManyLocks { limit }: TooManyLocks) -> Self {
        Self::TooManyLocks { limit }
    }
}

impl From<EntropyFailed> for AcquireError {
    fn from(_: EntropyFailed) -> Self {
        Self::NoEntropy
    }
}

/// What a forked child is told that uses its parent's locker.
pub(crate) const FORKED: &str = "this locker was opened before a fork; open another one in the child";

/// What is told where nothing drives the locker any more.
pub(crate) const DRIVER_ENDED: &str = "the I/O loop of this locker has ended";

/// As many locks are held, waited for or being released as the configuration allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyLocks {
    /// The limit.
    pub limit: usize,
}

impl fmt::Display for TooManyLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit } = self;
        write!(f, "{limit} locks are alive or being sought already; release some, or raise the limit")
    }
}

impl Error for TooManyLocks {}

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
    /// Its holder handed it over.
    HandedOver,
    /// The transport's I/O loop has ended, so nothing renews or watches it.
    DriverEnded,
    /// This process is a forked child of the one that holds it.
    Forked,
}

impl LossCause {
    /// Returns a word for this cause, for the labels of metrics. It is the same in every version.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::NotHeld => "not_held",
            Self::Released => "released",
            Self::HandedOver => "handed_over",
            Self::DriverEnded => "driver_ended",
            Self::Forked => "forked",
        }
    }
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "the lock's validity ran out",
            Self::NotHeld => "a quorum of masters no longer holds the lock",
            Self::Released => "the lock was released",
            Self::HandedOver => "the lock was handed over",
            Self::DriverEnded => DRIVER_ENDED,
            Self::Forked => "the lock is held by the process that this one was forked from",
        })
    }
}

impl Error for LossCause {}

/// Why a lock was not extended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ExtendError {
    /// The lock is not held any more.
    Lost(LossCause),
    /// Too few masters answered. The lock is as valid as it was.
    NoQuorum(Box<Ballot>),
    /// The TTL is invalid. The lock is as valid as it was, and nothing was sent.
    Invalid(ConfigError),
    /// Too many extensions of this lock are in flight. The lock is as valid as it was, and nothing
    /// was sent.
    TooManyExtensions,
}

impl ExtendError {
    /// Returns what every master said, if masters decided.
    pub fn ballot(&self) -> Option<&Ballot> {
        match self {
            Self::NoQuorum(ballot) => Some(ballot),
            Self::Lost(_) | Self::Invalid(_) | Self::TooManyExtensions => None,
        }
    }

    /// Returns a word for this kind of error, for the labels of metrics. It is the same in every
    /// version.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Lost(_) => "lost",
            Self::NoQuorum(_) => "no_quorum",
            Self::Invalid(_) => "invalid",
            Self::TooManyExtensions => "too_many_extensions",
        }
    }
}

impl fmt::Display for ExtendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(cause) => write!(f, "not extended: {cause}"),
            Self::NoQuorum(ballot) => write!(f, "{} not extended: {ballot}", ballot.targets),
            Self::Invalid(error) => write!(f, "not extended: {error}"),
            Self::TooManyExtensions => {
                f.write_str("not extended: too many extensions of this lock are under way")
            }
        }
    }
}

impl Error for ExtendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Lost(cause) => Some(cause),
            Self::Invalid(error) => Some(error),
            Self::NoQuorum(_) | Self::TooManyExtensions => None,
        }
    }
}

impl From<ConfigError> for ExtendError {
    fn from(error: ConfigError) -> Self {
        Self::Invalid(error)
    }
}

/// What a release found.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReleaseOutcome {
    /// A quorum of masters still held the lock for us until now.
    StillOurs,
    /// A quorum of masters did not: another client may have held it meanwhile.
    NotOurs,
    /// Too few masters answered to say. Keys that could not be deleted expire by themselves.
    Unknown(Box<Ballot>),
}

#[cfg(test)]
mod tests {
    use super::super::{Cause, MasterId, Resource, Vote};
    use super::*;

    fn ballot(votes: [Vote; 3]) -> Ballot {
        let masters = ["redis://a", "redis://b", "redis://c"].map(|url| url.parse().unwrap());
        let resource = Resource::new("job").unwrap();
        Ballot {
            targets: resource.into(),
            masters: masters.into(),
            votes: votes.to_vec(),
            attempts: 3,
            callers_ahead: 0,
        }
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
        let duplicate = Vote::Failed(Cause::SameServer { other: MasterId::all(1).next().unwrap() });
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
        let limit = "5 locks are alive or being sought already; release some, or raise the limit";
        let zero = ConfigError::ZeroTtl;
        for (error, said) in [
            (AcquireError::NoQuorum(boxed()).to_string(), format!("job not acquired: {votes}")),
            (
                AcquireError::TooLate(boxed()).to_string(),
                format!("job not acquired: the votes came after its validity had run out: {votes}"),
            ),
            (AcquireError::from(TooManyLocks { limit: 5 }).to_string(), limit.to_owned()),
            (AcquireError::from(zero.clone()).to_string(), zero.to_string()),
            (AcquireError::DriverEnded.to_string(), "the I/O loop of this locker has ended".to_owned()),
            (
                ExtendError::Lost(LossCause::NotHeld).to_string(),
                "not extended: a quorum of masters no longer holds the lock".to_owned(),
            ),
            (ExtendError::NoQuorum(boxed()).to_string(), format!("job not extended: {votes}")),
            (ExtendError::from(zero.clone()).to_string(), format!("not extended: {zero}")),
            (LossCause::Expired.to_string(), "the lock's validity ran out".to_owned()),
        ] {
            assert_eq!(error, said);
        }
    }

    #[test]
    fn an_error_inside_of_another_is_its_source() {
        fn source(error: &dyn Error) -> Option<String> {
            error.source().map(ToString::to_string)
        }
        let boxed = || Box::new(ballot([Vote::Granted; 3]));
        let zero = ConfigError::ZeroTtl;
        assert_eq!(source(&AcquireError::Invalid(zero.clone())), Some(zero.to_string()));
        assert_eq!(source(&AcquireError::NoQuorum(boxed())), None);
        assert_eq!(source(&ExtendError::Invalid(zero.clone())), Some(zero.to_string()));
        assert_eq!(source(&ExtendError::NoQuorum(boxed())), None);
        let lost = LossCause::Released;
        assert_eq!(source(&ExtendError::Lost(lost)), Some(lost.to_string()));
    }

    #[test]
    fn each_kind_of_error_has_a_word_of_its_own() {
        let boxed = || Box::new(ballot([Vote::Granted; 3]));
        let kinds = [
            AcquireError::HeldByAnother(boxed()),
            AcquireError::NoQuorum(boxed()),
            AcquireError::Misconfigured(boxed()),
            AcquireError::TooLate(boxed()),
            AcquireError::NotHeld(boxed()),
            AcquireError::Invalid(ConfigError::ZeroTtl),
            AcquireError::TooManyLocks { limit: 5 },
            AcquireError::NoEntropy,
            AcquireError::Forked,
            AcquireError::DriverEnded,
        ]
        .map(|error| error.kind());
        let words = "held_by_another no_quorum misconfigured too_late not_held invalid too_many_locks no_entropy forked driver_ended";
        assert_eq!(kinds.join(" "), words);
    }
}
