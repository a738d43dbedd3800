//! One seed's choices.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::jitter::Jitter;

/// A repeatable sequence of choices, the same on every machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Random(Jitter);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(Jitter::new(seed))
    }

    /// Another sequence, so that what draws from it does not shift what this one gives.
    pub(super) fn fork(&mut self) -> Self {
        Self::new(self.0.next())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// A number below `limit`, which must not be zero.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        // A usize has at most 64 bits, and the remainder is below a usize.
        usize::try_from(self.0.next() % (limit.max(1) as u64)).unwrap_or(0)
    }

    /// True once in `times`.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn within(&mut self, bounds: RangeInclusive<Duration>) -> Duration {
        self.0.within(&bounds)
    }

    /// A span between the bounds, with short ones as likely as long ones: each power of two has the same chance.
    pub(super) fn spread(&mut self, bounds: RangeInclusive<Duration>) -> Duration {
        let (low, high) = (nanos(*bounds.start()).max(1), nanos(*bounds.end()).max(1));
        let doublings = (high / low).max(1).ilog2();
        let low = low << self.below(doublings as usize + 1);
        let high = low.saturating_mul(2).min(high).max(low);
        self.within(Duration::from_nanos(low)..=Duration::from_nanos(high))
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            for (byte, random) in chunk.iter_mut().zip(self.0.next().to_le_bytes()) {
                *byte = random;
            }
        }
    }
}

pub(super) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
