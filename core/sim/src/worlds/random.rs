//! The random choices of one seed.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A repeatable sequence of choices, the same on every machine (SplitMix64, Steele, Lea and Flood
/// 2014).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns another sequence, so that drawing from it does not change the values of this one.
    pub(super) fn fork(&mut self) -> Self {
        Self::new(self.next())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `limit`, which must not be zero.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        // A usize has at most 64 bits, and the remainder is below a usize.
        usize::try_from(self.next() % (limit.max(1) as u64)).unwrap_or(0)
    }

    /// True once in `times`.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn within(&mut self, bounds: RangeInclusive<Duration>) -> Duration {
        let (low, high) = (*bounds.start(), *bounds.end());
        let width = nanos(high.saturating_sub(low));
        low + Duration::from_nanos(self.next() % width.saturating_add(1).max(1))
    }

    /// A span between the bounds, with short ones as likely as long ones: each power of two has the
    /// same chance.
    pub(super) fn spread(&mut self, bounds: RangeInclusive<Duration>) -> Duration {
        let (low, high) = (nanos(*bounds.start()).max(1), nanos(*bounds.end()).max(1));
        let doublings = (high / low).max(1).ilog2();
        let low = low << self.below(doublings as usize + 1);
        let high = low.saturating_mul(2).min(high).max(low);
        self.within(Duration::from_nanos(low)..=Duration::from_nanos(high))
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            for (byte, random) in chunk.iter_mut().zip(self.next().to_le_bytes()) {
                *byte = random;
            }
        }
    }
}

pub(super) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
