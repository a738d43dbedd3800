//! The errors of a bootstrap.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::{Ballot, Cause, DRIVER_ENDED, FORKED, TooManyLocks, Vote};
use crate::endpoint::Endpoint;

/// Why a bootstrap did not make all masters vote. Masters that it did not reach still wait for
/// their quarantine to end.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BootstrapError {
    /// The configuration has no restart guard, so all masters vote already.
    NoRestartGuard,
    /// These masters vote already and others do not: locks may be held.
    InUse(Vec<Endpoint>),
    /// Not every master answered. If the failure was in the second round, some masters vote at
    /// once, and the others after their quarantine.
    Unreached(Arc<Ballot>),
    /// As many locks are held or waited for as the configuration allows. Nothing was sent.
    TooManyLocks {
        /// The limit.
        limit: usize,
    },
    /// This process is a forked child of the one that opened the locker, and must open its own.
    /// Nothing was sent.
    Forked,
    /// The transport's I/O loop has ended, so no answer can arrive.
    DriverEnded,
}

impl BootstrapError {
    /// Returns a word for this kind of error, for the labels of metrics. It is the same in every
    /// version.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoRestartGuard => "no_restart_guard",
            Self::InUse(_) => "in_use",
            Self::Unreached(_) => "unreached",
            Self::TooManyLocks { .. } => "too_many_locks",
            Self::Forked => "forked",
            Self::DriverEnded => "driver_ended",
        }
    }
}

impl fmt::Display for BootstrapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRestartGuard => f.write_str("the restart guard is off, so masters need no bootstrap"),
            Self::InUse(masters) => {
                for (place, master) in masters.iter().enumerate() {
                    write!(f, "{}{master}", if place == 0 { "" } else { ", " })?;
                }
                let vote = if masters.len() == 1 { "votes" } else { "vote" };
                write!(
                    f,
                    " already {vote} and others do not, so locks may be held: wait for the quarantine to end"
                )
            }
            Self::Unreached(ballot) => {
                write!(f, "all masters must answer, and these did not: ")?;
                let failed = ballot.votes().filter(|(_, vote)| {
                    matches!(vote, Vote::Failed(cause) if !matches!(cause, Cause::Quarantined { .. }))
                });
                for (place, (master, vote)) in failed.enumerate() {
                    write!(f, "{}{master} ", if place == 0 { "" } else { ", " })?;
                    if let Vote::Failed(cause) = vote {
                        cause.describe(Some(master), &ballot.masters, f)?;
                    }
                }
                Ok(())
            }
            Self::TooManyLocks { limit } => write!(f, "{}", TooManyLocks { limit: *limit }),
            Self::Forked => f.write_str(FORKED),
            Self::DriverEnded => f.write_str(DRIVER_ENDED),
        }
    }
}

impl Error for BootstrapError {}

impl From<TooManyLocks> for BootstrapError {
    fn from(TooManyLocks { limit }: TooManyLocks) -> Self {
        Self::TooManyLocks { limit }
    }
}
