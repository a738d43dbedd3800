//! The life of a key, and how long its holder may rely on it.

use std::time::Duration;

use super::ConfigError;
use crate::time::Instant;

/// How long a lock's key lives on a master, in whole milliseconds, as `SET … PX` and `PEXPIRE` take
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Ttl {
    millis: u64,
}

impl Ttl {
    /// The longest TTL: 366 days. A longer one is probably a mistake. Up to this value no
    /// arithmetic overflows.
    pub const MAX: Duration = Duration::from_secs(366 * 24 * 3600);

    /// One millisecond, the shortest TTL.
    pub(crate) const SHORTEST: Self = Self { millis: 1 };

    /// [`Ttl::MAX`] as a TTL.
    pub(crate) const LONGEST: Self = Self { millis: Self::MAX.as_secs() * 1000 };

    /// Creates a TTL. It is rounded down to whole milliseconds, which is what masters count.
    ///
    /// # Errors
    /// [`ConfigError::ZeroTtl`] below one millisecond, [`ConfigError::OversizedTtl`] above
    /// [`Ttl::MAX`].
    pub fn new(span: Duration) -> Result<Self, ConfigError> {
        if span > Self::MAX {
            return Err(ConfigError::OversizedTtl { ttl: span });
        }
        match u64::try_from(span.as_millis()) {
            Ok(0) => Err(ConfigError::ZeroTtl),
            Ok(millis) => Ok(Self { millis }),
            Err(_) => Err(ConfigError::OversizedTtl { ttl: span }),
        }
    }

    /// Returns the TTL in milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.millis
    }

    /// Returns the TTL as a duration.
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.millis)
    }

    /// Returns how far the clocks of this process and of a master may drift apart while a key
    /// lives: TTL × 0.01 + 2 ms.
    ///
    /// Source: the Redis distributed-locks page subtracts "a few milliseconds" for clock drift. Its
    /// reference implementation fixes them to a hundredth of the TTL, plus 2 ms because masters
    /// expire keys in steps of 1 ms.
    pub const fn drift(self) -> Duration {
        Duration::from_micros(self.millis * 10 + 2_000)
    }

    /// Returns the end of validity of a grant whose first request was sent at `first_send`: TTL −
    /// drift later.
    ///
    /// Source: "MIN_VALIDITY = TTL − (T2 − T1) − CLOCK_DRIFT" (Redis distributed-locks page,
    /// "Safety arguments"). As an instant it is compared with the clock, so the elapsed time is
    /// never subtracted and nothing can underflow.
    pub fn valid_until(self, first_send: Instant) -> Instant {
        first_send + self.as_duration().saturating_sub(self.drift())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ttl(millis: u64) -> Ttl {
        Ttl::new(Duration::from_millis(millis)).unwrap()
    }

    #[test]
    fn drift_is_a_hundredth_and_two_milliseconds() {
        assert_eq!(ttl(10_000).drift(), Duration::from_millis(102));
        assert_eq!(ttl(150).drift(), Duration::from_micros(3_500));
    }

    #[test]
    fn validity_counts_from_the_first_send_and_never_underflows() {
        let sent = Instant::from_nanos(1_000_000_000);
        assert_eq!(ttl(1_000).valid_until(sent), sent + Duration::from_millis(988));
        assert_eq!(ttl(1).valid_until(sent), sent);
    }

    #[test]
    fn zero_and_endless_ttls_are_refused() {
        assert_eq!(Ttl::new(Duration::from_micros(999)), Err(ConfigError::ZeroTtl));
        assert!(matches!(Ttl::new(Duration::MAX), Err(ConfigError::OversizedTtl { .. })));
        assert!(Ttl::new(Ttl::MAX).is_ok());
        assert_eq!(Ttl::MAX.as_secs(), 31_622_400);
    }
}
