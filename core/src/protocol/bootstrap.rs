//! How a bootstrap fails.

use std::error::Error;
use std::fmt;

use super::{Ballot, Cause, RequestError, Vote};
use crate::endpoint::Endpoint;

/// Why not all masters were told that nothing can be locked yet. Those that were not go on to wait.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BootstrapError {
    /// The configuration has no restart guard, so there is nothing to wait for.
    NoRestartGuard,
    /// These masters vote already and others do not: locks may be held.
    InUse(Vec<Endpoint>),
    /// Not every master answered. Where that was only the second time, some have been told, and the others end their wait by themselves.
    Unreached(Box<Ballot>),
    /// So much is under way that nothing more is taken on.
    Request(RequestError),
    /// The transport's I/O loop has ended, so nobody can answer.
    DriverEnded,
}

impl fmt::Display for BootstrapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRestartGuard => f.write_str("the restart guard is off, so masters need no bootstrap"),
            Self::InUse(masters) => {
                f.write_str("locks may be held, wait for the quarantine to end: ")?;
                for (place, master) in masters.iter().enumerate() {
                    write!(f, "{}{master}", if place == 0 { "" } else { ", " })?;
                }
                f.write_str(if masters.len() == 1 { " votes already" } else { " vote already" })
            }
            Self::Unreached(ballot) => {
                write!(f, "all masters must answer, and these did not: ")?;
                let failed = ballot.votes().filter(|(_, vote)| {
                    matches!(vote, Vote::Failed(cause) if !matches!(cause, Cause::Quarantined { .. }))
                });
                for (place, (master, vote)) in failed.enumerate() {
                    write!(f, "{}{master} ", if place == 0 { "" } else { ", " })?;
                    if let Vote::Failed(cause) = vote {
                        cause.describe(&ballot.masters, f)?;
                    }
                }
                Ok(())
            }
            Self::Request(error) => write!(f, "{error}"),
            Self::DriverEnded => f.write_str("the I/O loop of this locker has ended"),
        }
    }
}

impl Error for BootstrapError {}
