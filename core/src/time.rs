//! The core's own instant: a duration since an origin that the driver chose.
//!
//! The core never asks for the time; every call passes it in. The driver reads a clock that keeps
//! running while the machine sleeps (CLOCK_BOOTTIME on Linux), because a lock's key expires on the
//! masters meanwhile.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A point on the driver's clock, in nanoseconds since an origin that the driver chose.
///
/// Arithmetic saturates: an instant too far in the future is [`Instant::FAR_FUTURE`], and a span
/// that would be negative is zero. Only instants of one driver can be compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(
    /// One more than the nanoseconds, so that `Option<Instant>`, of which every lock has several,
    /// takes no more room.
    NonZeroU64,
);

impl Instant {
    /// The origin of the driver's clock.
    pub const ORIGIN: Self = Self(NonZeroU64::MIN);
    /// Later than anything that a driver will see (584 years after the origin).
    pub const FAR_FUTURE: Self = Self(NonZeroU64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// The earlier of two instants that may never come.
    #[inline]
    pub(crate) fn first_of(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// The last instant until this one that is a whole number of steps after the origin. A step is
    /// at least a nanosecond.
    pub(crate) fn rounded_down(self, step_nanos: u64) -> Self {
        Self::from_nanos(self.as_nanos() - self.as_nanos() % step_nanos.max(1))
    }

    /// The span from `earlier` to `self`; zero if `earlier` is later.
    #[doc(alias = "saturating_duration_since")]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl Default for Instant {
    fn default() -> Self {
        Self::ORIGIN
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self::from_nanos(self.as_nanos().saturating_sub(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t+{:?}", Duration::from_nanos(self.as_nanos()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Instant::FAR_FUTURE + Duration::from_secs(1), Instant::FAR_FUTURE);
        assert_eq!(Instant::ORIGIN + Duration::MAX, Instant::FAR_FUTURE);
        assert_eq!(Instant::ORIGIN - Duration::from_secs(1), Instant::ORIGIN);
        assert_eq!(Instant::from_nanos(5).since(Instant::from_nanos(9)), Duration::ZERO);
        assert_eq!(Instant::from_nanos(u64::MAX), Instant::FAR_FUTURE);
        assert_eq!((Instant::from_nanos(5).as_nanos(), Instant::ORIGIN.as_nanos()), (5, 0));
        assert_eq!(size_of::<Option<Instant>>(), 8);
    }
}
