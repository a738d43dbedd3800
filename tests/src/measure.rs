//! Describing durations that were measured. Measurements are printed, never asserted: the machine
//! is shared.

use std::fmt;
use std::time::Duration;

/// Percentiles of a set of durations, by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How many durations there were.
    pub count: usize,
    /// Half of the durations are no longer than this.
    pub p50: Duration,
    /// 99 % of the durations are no longer than this.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

impl Summary {
    /// Describes these durations; all zero when there are none.
    pub fn of(durations: &[Duration]) -> Self {
        let mut sorted = durations.to_vec();
        sorted.sort_unstable();
        let rank = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100);
            sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
        };
        Self { count: sorted.len(), p50: rank(50), p99: rank(99), max: rank(100) }
    }

    /// Prints one line to standard error; `cargo test -- --nocapture` or `cargo nextest run
    /// --no-capture` shows it.
    pub fn print(label: &str, durations: &[Duration]) {
        eprintln!("{label}: {}", Self::of(durations));
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, p50, p99, max } = self;
        write!(f, "p50 {p50:.2?}, p99 {p99:.2?}, max {max:.2?} ({count} samples)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_taken_by_nearest_rank() {
        let durations: Vec<_> = (1..=200).rev().map(Duration::from_millis).collect();

        let summary = Summary::of(&durations);

        assert_eq!(summary.p50, Duration::from_millis(100));
        assert_eq!(summary.p99, Duration::from_millis(198));
        assert_eq!(summary.max, Duration::from_millis(200));
    }

    #[test]
    fn an_empty_set_of_durations_is_described_as_zero() {
        assert_eq!(Summary::of(&[]).to_string(), "p50 0.00ns, p99 0.00ns, max 0.00ns (0 samples)");
    }
}
