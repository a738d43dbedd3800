//! Random spread for pauses, so that many clients do not act in step. It is not for secrets.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A small repeatable sequence (SplitMix64, Steele, Lea and Flood 2014), seeded by the machine's
/// driver.
///
/// Tokens never come from it: they must differ between processes that share a past, as after a
/// fork.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Jitter(u64);

impl Jitter {
    /// The sequence of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A span within the bounds, uniformly distributed.
    pub(crate) fn within(&mut self, bounds: &RangeInclusive<Duration>) -> Duration {
        let (low, high) = (*bounds.start(), *bounds.end());
        let width = u64::try_from(high.saturating_sub(low).as_nanos()).unwrap_or(u64::MAX);
        low + Duration::from_nanos(self.next() % width.saturating_add(1).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_stay_within_their_bounds_and_differ() {
        let mut jitter = Jitter::new(1);
        let bounds = Duration::from_millis(50)..=Duration::from_millis(150);
        let spans: Vec<_> = (0..100).map(|_| jitter.within(&bounds)).collect();
        assert!(spans.iter().all(|span| bounds.contains(span)));
        assert!(spans.windows(2).any(|pair| pair[0] != pair[1]));
        let point = Duration::from_millis(7)..=Duration::from_millis(7);
        assert_eq!(jitter.within(&point), Duration::from_millis(7));
    }
}
