//! The pauses between attempts to reach a master.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::jitter::Jitter;

/// Doubles from the lower to the upper bound, and adds up to a quarter at random so that many clients do not come back at once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Backoff {
    shortest: Duration,
    longest: Duration,
    next: Duration,
    jitter: Jitter,
}

impl Backoff {
    pub(crate) fn new(bounds: &RangeInclusive<Duration>, jitter: Jitter) -> Self {
        Self { shortest: *bounds.start(), longest: *bounds.end(), next: *bounds.start(), jitter }
    }

    /// The pause before the next attempt.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (self.next * 2).min(self.longest);
        self.jitter.within(&(pause..=pause + pause / 4))
    }

    /// The longest pause at once, for what only a person can mend.
    pub(crate) fn longest_pause(&mut self) -> Duration {
        self.next = self.longest;
        self.pause()
    }

    /// The next failure is the first again.
    pub(crate) fn reset(&mut self) {
        self.next = self.shortest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_cap_and_start_again_after_a_reset() {
        let milli = Duration::from_millis;
        let mut backoff = Backoff::new(&(milli(10)..=milli(50)), Jitter::new(3));
        let near = |pause: Duration, wanted| pause >= milli(wanted) && pause <= milli(wanted) * 5 / 4;
        for wanted in [10, 20, 40, 50, 50] {
            assert!(near(backoff.pause(), wanted));
        }
        backoff.reset();
        assert!(near(backoff.pause(), 10));
        assert!(near(backoff.longest_pause(), 50));
        assert!(near(backoff.pause(), 50));
    }

    #[test]
    fn pauses_differ_from_client_to_client() {
        let bounds = Duration::from_millis(10)..=Duration::from_millis(50);
        let pauses = (0..10).map(|seed| Backoff::new(&bounds, Jitter::new(seed)).pause());
        assert!(pauses.collect::<std::collections::BTreeSet<_>>().len() > 5);
    }
}
