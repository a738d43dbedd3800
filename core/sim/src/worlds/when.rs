//! When faults are injected.

use std::time::Duration;

/// When a fault is injected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum When {
    /// At this true time since the world began.
    At(Duration),
    /// After this number of events in the world.
    ///
    /// Most events happen while requests are under way, so random numbers hit the moments that
    /// matter.
    AfterEvents(u64),
    /// After a master has executed a certain grant, counted from 0 over all masters.
    ///
    /// Without a delay the fault comes before the master's answer. The numbers of the fault's
    /// client and master are added to those of the grant.
    AtGrant {
        /// The number of the grant.
        number: u64,
        /// The delay after it, in true time.
        delay: Duration,
    },
}

impl When {
    /// The latest instant at which it can happen in a world whose events last for this span.
    pub(super) fn at_latest(self, busy_for: Duration) -> Duration {
        match self {
            Self::At(at) => at,
            Self::AfterEvents(_) | Self::AtGrant { .. } => busy_for,
        }
    }
}

impl From<Duration> for When {
    fn from(at: Duration) -> Self {
        Self::At(at)
    }
}
