//! Pseudo-random numbers: with the same seed a run repeats, as far as a real clock allows.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Splitmix64.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Less than `end`.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).expect("a usize has 64 bits at most");
        usize::try_from(self.number() % end).expect("it is below a usize")
    }

    /// True once in `times` times.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices.get(self.below(choices.len())).expect("a place in the list")
    }

    /// One of a list of values.
    pub fn of_all<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        choices.get(self.below(choices.len())).expect("a place in the list")
    }

    /// A span of whole milliseconds, the bounds included.
    pub fn millis(&mut self, bounds: RangeInclusive<u64>) -> Duration {
        let (low, high) = bounds.into_inner();
        Duration::from_millis(low + self.number() % (high - low + 1))
    }

    /// A place in a list of weights.
    pub fn weighted(&mut self, weights: impl Iterator<Item = usize> + Clone) -> usize {
        let mut left = self.below(weights.clone().sum());
        for (place, weight) in weights.enumerate() {
            if left < weight {
                return place;
            }
            left -= weight;
        }
        unreachable!("what is below the sum of the weights falls on one of them")
    }
}
