//! Clocks that drift: the time as a client or a master reads it.

use std::time::Duration;

/// A point in true time, in nanoseconds since the world began.
pub(super) type TrueTime = u64;

const MILLION: i128 = 1_000_000;

/// A clock whose rate differs from true time by some parts in a million.
///
/// Mutual exclusion assumes that the rates of any two clocks differ by at most a
/// hundredth.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Clock {
    anchor_true: TrueTime,
    anchor_local: u64,
    /// Local nanoseconds in a million true ones.
    rate: i128,
}

impl Clock {
    /// A clock that shows `start` as the world begins and gains `gain_ppm` parts in a million.
    pub(super) fn new(start: Duration, gain_ppm: i32) -> Self {
        let anchor_local = u64::try_from(start.as_nanos()).unwrap_or(u64::MAX / 2);
        Self { anchor_true: 0, anchor_local, rate: rate(gain_ppm) }
    }

    /// What it shows, in nanoseconds.
    pub(super) fn read(&self, at: TrueTime) -> u64 {
        let passed = i128::from(at) - i128::from(self.anchor_true);
        let local = i128::from(self.anchor_local) + passed * self.rate / MILLION;
        u64::try_from(local.max(0)).unwrap_or(u64::MAX)
    }

    /// The first true time at which it shows `local` or later; the anchor if that is past.
    pub(super) fn when(&self, local: u64) -> TrueTime {
        let passed = i128::from(local) - i128::from(self.anchor_local);
        let at = i128::from(self.anchor_true) + (passed * MILLION + self.rate - 1).div_euclid(self.rate);
        u64::try_from(at.max(0)).unwrap_or(u64::MAX)
    }

    /// Changes its rate: it then gains `gain_ppm` parts in a million.
    pub(super) fn drift(&mut self, at: TrueTime, gain_ppm: i32) {
        *self = Self { anchor_true: at, anchor_local: self.read(at), rate: rate(gain_ppm) };
    }

    /// Sets the clock forward or back by this many milliseconds.
    pub(super) fn jump(&mut self, at: TrueTime, by_millis: i64) {
        let local = i128::from(self.read(at)) + i128::from(by_millis) * MILLION;
        self.anchor_local = u64::try_from(local.max(0)).unwrap_or(u64::MAX);
        self.anchor_true = at;
    }
}

/// A clock never stops or runs backwards by itself.
fn rate(gain_ppm: i32) -> i128 {
    (MILLION + i128::from(gain_ppm)).max(MILLION / 100)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_true_time_of_a_clock_reading_is_found(
            start in 0u64..1 << 50,
            gain in -900_000i32..900_000,
            at in 0u64..1 << 45,
        ) {
            let mut clock = Clock::new(Duration::from_nanos(start), gain);
            let local = clock.read(at);
            let found = clock.when(local);
            prop_assert!(found <= at && clock.read(found) >= local);
            prop_assert!(found == 0 || clock.read(found - 1) < local);
            clock.drift(at, -gain);
            prop_assert_eq!(clock.read(at), local);
        }
    }

    #[test]
    fn a_fast_clock_gains_time_and_a_jump_changes_its_reading() {
        let mut clock = Clock::new(Duration::from_secs(5), 10_000);
        assert_eq!(clock.read(1_000_000_000), 6_010_000_000);
        clock.jump(1_000_000_000, -1_000);
        assert_eq!(clock.read(1_000_000_000), 5_010_000_000);
    }
}
