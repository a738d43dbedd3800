//! What a client holds.

use std::ops::Deref;

use quorlock_core::front::{Guard, Permit, ReadGuard, ReleaseError};

#[derive(Debug)]
pub(super) enum Held {
    Guard(Guard),
    Reader(ReadGuard),
    Permit(Permit),
}

impl Held {
    /// The index of a permit.
    pub(super) fn permit(&self) -> Option<u64> {
        match self {
            Self::Permit(permit) => Some(permit.index().into()),
            Self::Guard(_) | Self::Reader(_) => None,
        }
    }

    /// Downgrades a writer to a reader, if the library allows that.
    pub(super) fn downgrade(self) -> Self {
        match self {
            Self::Guard(guard) => guard.downgrade().map_or_else(Self::Guard, Self::Reader),
            held => held,
        }
    }

    /// Releases it, and returns the outcome as text.
    pub(super) fn release(self) -> String {
        let release = match self {
            Self::Guard(guard) => guard.release(),
            Self::Reader(reader) => reader.release(),
            Self::Permit(permit) => permit.release(),
        };
        let how = match release.wait() {
            Ok(_) => "released",
            Err(ReleaseError::NotOurs(_)) => "released, and not ours",
            Err(_) => "released, outcome unknown",
        };
        how.to_owned()
    }
}

impl Deref for Held {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        match self {
            Self::Guard(guard) => guard,
            Self::Reader(reader) => reader,
            Self::Permit(permit) => permit,
        }
    }
}
