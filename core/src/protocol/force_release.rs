//! Deleting a lock's keys without holding it, and its result.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::{Cause, ConfigError, DRIVER_ENDED, FORKED, Quorum, Resource, TooManyLocks};
use crate::endpoint::Endpoint;

/// What happened to a lock's key on each master: the answer of
/// [`Locker::force_release`](crate::front::Locker::force_release).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForceReleased {
    pub(crate) resource: Resource,
    pub(crate) masters: Arc<[Endpoint]>,
    pub(crate) quorum: Quorum,
    pub(crate) deletions: Vec<Result<Deletion, Cause>>,
}

/// What happened to a lock's key on one master.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Deletion {
    /// The key is deleted.
    Deleted,
    /// There was no key.
    Absent,
    /// The key is not a string and so not a lock. It is still there.
    OtherType,
    /// Other clients kept taking the lock meanwhile. The key is still there.
    Contended,
}

impl ForceReleased {
    /// Returns the lock of the request.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Returns the number of masters that have deleted the key.
    pub fn deleted(&self) -> usize {
        self.count(Deletion::Deleted)
    }

    /// Returns the number of masters that had no key.
    pub fn absent(&self) -> usize {
        self.count(Deletion::Absent)
    }

    /// Returns each master with what happened to the key there, or why that is unknown, in the
    /// order of the configuration.
    pub fn masters(&self) -> impl Iterator<Item = (&Endpoint, Result<Deletion, Cause>)> {
        self.masters.iter().zip(self.deletions.iter().copied())
    }

    /// Returns the quorum that decides.
    pub fn quorum(&self) -> Quorum {
        self.quorum
    }

    /// Whether a quorum of masters no longer has a key.
    pub(crate) fn is_enough(&self) -> bool {
        self.deleted() + self.absent() >= self.quorum.needed()
    }

    fn count(&self, wanted: Deletion) -> usize {
        self.deletions.iter().filter(|deletion| **deletion == Ok(wanted)).count()
    }
}

impl fmt::Display for ForceReleased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (deleted, absent) = (self.deleted(), self.absent());
        let all = self.quorum.masters();
        write!(f, "deleted {} on {deleted} of {all} masters; {absent} had no such key", self.resource)
    }
}

/// Why a forced release could not free a lock for certain.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ForceReleaseError {
    /// The key is known to be gone on fewer masters than a quorum. Deletions are not undone.
    TooFew(Box<ForceReleased>),
    /// The resource is invalid. Nothing was sent.
    Invalid(ConfigError),
    /// As many locks are held or waited for as the configuration allows. Nothing was sent.
    TooManyLocks {
        /// The limit.
        limit: usize,
    },
    /// This process is a forked child of the one that opened the locker, and must open its own.
    /// Nothing was sent.
    Forked,
    /// The transport's I/O loop has ended, so no answer can arrive. Keys may have been deleted.
    DriverEnded,
}

impl ForceReleaseError {
    /// Returns what happened to the key on each master, if masters were asked.
    pub fn outcome(&self) -> Option<&ForceReleased> {
        match self {
            Self::TooFew(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Returns a word for this kind of error, for the labels of metrics. It is the same in every
    /// version.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TooFew(_) => "too_few",
            Self::Invalid(_) => "invalid",
            Self::TooManyLocks { .. } => "too_many_locks",
            Self::Forked => "forked",
            Self::DriverEnded => "driver_ended",
        }
    }
}

impl fmt::Display for ForceReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew(outcome) => write!(f, "{outcome}: too few to free it"),
            Self::Invalid(error) => write!(f, "{error}"),
            Self::TooManyLocks { limit } => write!(f, "{}", TooManyLocks { limit: *limit }),
            Self::Forked => f.write_str(FORKED),
            Self::DriverEnded => f.write_str(DRIVER_ENDED),
        }
    }
}

impl Error for ForceReleaseError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Invalid(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ConfigError> for ForceReleaseError {
    fn from(error: ConfigError) -> Self {
        Self::Invalid(error)
    }
}

impl From<TooManyLocks> for ForceReleaseError {
    fn from(TooManyLocks { limit }: TooManyLocks) -> Self {
        Self::TooManyLocks { limit }
    }
}
