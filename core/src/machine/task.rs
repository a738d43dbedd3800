//! What a machine is busy with: locks, and the first use of its masters.

use crate::bootstrap::Bootstrap;
use crate::lock::Lock;
use crate::time::Instant;

/// Something that asks masters and ends with an event.
// Almost all of them are locks, so that their size is the right one.
#[allow(clippy::large_enum_variant)]
#[derive(Clone)]
pub(super) enum Task {
    Lock(Lock),
    Bootstrap(Bootstrap),
}

impl Task {
    pub(super) fn is_held(&self) -> bool {
        matches!(self, Self::Lock(lock) if lock.is_held())
    }

    /// A bootstrap has none: each of its requests is answered in the time that the connection gives it.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Lock(lock) => lock.deadline(),
            Self::Bootstrap(_) => None,
        }
    }

    pub(super) fn as_lock(&self) -> Option<&Lock> {
        match self {
            Self::Lock(lock) => Some(lock),
            Self::Bootstrap(_) => None,
        }
    }
}
