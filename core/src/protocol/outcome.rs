//! The outcomes of commands, with texts that say what to do.
//!
//! Each error prints as one complete sentence. `kind` is a short word for it, the same in every
//! version, for the labels of metrics; `source` is the underlying error, for programs.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Ballot, ConfigError, EntropyFailed, Missing, Quorum, Resource, are_quarantined};

/// Why a lock was not acquired.
///
/// `Debug` shows the text of `Display`: it is what a `main` that returns the error prints.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireError {
    /// Another client or caller holds the lock: a quorum of masters answered, and at least one of
    /// them refused because its key has another token.
    ///
    /// It can also mean that another caller of this process is ahead: a single try never overtakes
    /// waiting callers, and a caller that waits behind a holder in this process asks no master for
    /// the lock. [`Ballot::callers_ahead`] returns how many callers are ahead.
    HeldByAnother(Arc<Ballot>),
    /// Too few masters answered.
    NoQuorum(Arc<Ballot>),
    /// Too few masters can vote until a configuration is changed, such as a password, a permission,
    /// a database or a duplicate address.
    Misconfigured(Arc<Ballot>),
    /// Too few masters can vote: the others are in the quarantine of the restart guard, each for a
    /// time that it reported. If the caller's time is over before a quorum can vote, the request
    /// ends at once with this error.
    Quarantined(Arc<Ballot>),
    /// A quorum granted the lock, but so late that no validity was left.
    TooLate(Arc<Ballot>),
    /// The request was to resume a lock, and too few masters for a quorum have its token.
    NotHeld(Arc<Ballot>),
    /// An [`Owner`](crate::front::Owner) requested a lock that it had acquired, and that lock was
    /// lost while a handle of it still exists. Nothing was sent.
    Lost(LossCause),
    /// An [`Owner`](crate::front::Owner) requested a lock that it holds, but the lock lacks
    /// something that the request asked for. Nothing was sent.
    HeldWithout {
        /// The resource that the owner holds.
        resource: Resource,
        /// What the lock lacks.
        missing: Missing,
    },
    /// An [`Owner`](crate::front::Owner) requested a lock that would wait for the owner's own lock:
    /// a write lock on what it reads, or several resources of which it holds some. Request all of
    /// them at once, for writing, in the outermost request. Nothing was sent; or the request was
    /// given up while it waited, because another request of the owner was granted.
    WouldDeadlock {
        /// The resource that the owner holds.
        resource: Resource,
    },
    /// An [`Owner`](crate::front::Owner) requested a lock that it holds, with a longer TTL, and the
    /// lock could not be extended. Its validity is unchanged.
    NotExtended(Box<ExtendError>),
    /// The request is invalid, for example its resource or its TTL. Nothing was sent.
    Invalid(ConfigError),
    /// As many locks are held or waited for as the configuration allows. Nothing was sent.
    TooManyLocks {
        /// The limit.
        limit: usize,
    },
    /// The operating system provided no random bytes for a token.
    NoEntropy,
    /// This process is a forked child of the one that opened the locker, and must open its own.
    /// Nothing was sent.
    Forked,
    /// The transport's I/O loop has ended, so no answer can arrive.
    DriverEnded,
}

impl AcquireError {
    /// Returns every master's last answer, if masters decided.
    pub fn ballot(&self) -> Option<&Ballot> {
        match self {
            Self::HeldByAnother(ballot)
            | Self::NoQuorum(ballot)
            | Self::Misconfigured(ballot)
            | Self::Quarantined(ballot)
            | Self::TooLate(ballot)
            | Self::NotHeld(ballot) => Some(ballot),
            Self::NotExtended(error) => error.ballot(),
            Self::Lost(_)
            | Self::HeldWithout { .. }
            | Self::WouldDeadlock { .. }
            | Self::Invalid(_)
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
            Self::Quarantined(_) => "quarantined",
            Self::TooLate(_) => "too_late",
            Self::NotHeld(_) => "not_held",
            Self::Lost(_) => "lost",
            Self::HeldWithout { .. } => "held_without",
            Self::WouldDeadlock { .. } => "would_deadlock",
            Self::NotExtended(_) => "not_extended",
            Self::Invalid(_) => "invalid",
            Self::TooManyLocks { .. } => "too_many_locks",
            Self::NoEntropy => "no_entropy",
            Self::Forked => "forked",
            Self::DriverEnded => "driver_ended",
        }
    }

    /// The error for these final votes.
    pub(crate) fn from_ballot(ballot: Arc<Ballot>, quorum: Quorum) -> Self {
        let tally = ballot.tally();
        if tally.other_fleet() > 0 {
            Self::Misconfigured(ballot)
        } else if tally.granted() >= quorum.needed() {
            Self::TooLate(ballot)
        } else if tally.is_held_by_another(quorum) {
            Self::HeldByAnother(ballot)
        } else if tally.is_misconfigured(quorum) {
            Self::Misconfigured(ballot)
        } else if are_quarantined(ballot.cast(), quorum, Duration::ZERO) {
            Self::Quarantined(ballot)
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
            Self::Quarantined(ballot) => {
                write!(
                    f,
                    "{} not acquired: {ballot}; `quorlock bootstrap` tells masters that are new, and have never granted a lock, to vote now",
                    ballot.targets
                )
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
            Self::Lost(cause) => {
                write!(f, "not acquired again by its owner, whose lock was lost: {cause}")
            }
            Self::HeldWithout { resource, missing } => write!(
                f,
                "{resource} not acquired again: its owner holds it {missing}; the outermost request must ask for what the inner one needs"
            ),
            Self::WouldDeadlock { resource } => write!(
                f,
                "{resource} not acquired by its owner, which would wait for its own lock; the outermost request must ask for all of it at once"
            ),
            Self::NotExtended(error) => {
                write!(f, "not acquired again by its owner with a longer TTL: {error}")
            }
            Self::Invalid(error) => write!(f, "{error}"),
            Self::TooManyLocks { limit } => write!(f, "{}", TooManyLocks { limit: *limit }),
            Self::NoEntropy => write!(f, "{EntropyFailed}"),
            Self::Forked => f.write_str(FORKED),
            Self::DriverEnded => f.write_str(DRIVER_ENDED),
        }
    }
}

impl fmt::Debug for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for AcquireError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Lost(cause) => Some(cause),
            Self::NotExtended(error) => Some(error),
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

/// The error text for a forked child that uses its parent's locker.
pub(crate) const FORKED: &str = "this locker was opened before a fork; open another one in the child";

/// The error text when nothing drives the locker any more.
pub(crate) const DRIVER_ENDED: &str = "the I/O loop of this locker has ended; open another locker";

/// As many locks are held, waited for or being released as the configuration allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyLocks {
    /// The limit.
    pub limit: usize,
}

impl fmt::Display for TooManyLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit } = self;
        write!(f, "the limit of {limit} locks is reached; release some, or raise max_locks")
    }
}

impl Error for TooManyLocks {}

/// Why a guard is no longer valid.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LossCause {
    /// The lock's validity ran out without an extension: it was not renewed, renewal failed for too
    /// long, or the longest hold was over
    /// ([`Request::renew_for`](crate::front::Request::renew_for)).
    Expired,
    /// Too few masters for a quorum still hold the lock's token.
    NotHeld,
    /// A master said only after the grant that it belongs to the fleet of another configuration.
    /// Clients of the two configurations may not exclude each other.
    OtherFleet,
    /// The holder released the lock.
    Released,
    /// The holder handed the lock over.
    HandedOver,
    /// The transport's I/O loop has ended, so nothing renews or watches the lock.
    DriverEnded,
    /// This process is a forked child of the one that holds the lock.
    Forked,
}

impl LossCause {
    /// Returns a word for this cause, for the labels of metrics. It is the same in every version.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::NotHeld => "not_held",
            Self::OtherFleet => "other_fleet",
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
            Self::OtherFleet => "a master belongs to the fleet of another configuration",
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
    /// The lock is no longer held.
    Lost(LossCause),
    /// Too few masters confirmed the extension. The lock's validity is unchanged.
    NoQuorum(Arc<Ballot>),
    /// The TTL is invalid. The lock's validity is unchanged, and nothing was sent.
    Invalid(ConfigError),
    /// Too many extensions of this lock are in flight. The lock's validity is unchanged, and
    /// nothing was sent.
    TooManyExtensions,
}

impl ExtendError {
    /// Returns every master's answer, if masters decided.
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
    /// A quorum of masters did not hold it for us any more: another client may have held it
    /// meanwhile.
    NotOurs,
    /// Too few masters answered to know whether it was still ours. Keys that could not be deleted
    /// expire with their TTL.
    Unknown(Arc<Ballot>),
}

#[cfg(test)]
mod tests;
