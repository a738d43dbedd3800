//! A master's clock compared with the others', and the time of a round trip, from samples of TIME.

use std::time::{Duration, Instant};

use quorlock_core::Cause;

use crate::asking::{Conversation, since_1970, words};

/// Samples in each of the two bursts. The quickest one of a burst measures the clock best.
const SAMPLES: usize = 15;
/// The time between the bursts. The longer it is, the smaller the rates that can be measured.
const PAUSE: Duration = Duration::from_millis(500);

/// One sample of TIME, on our clock and on the master's.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    /// When we sent it, in seconds of our clock.
    sent: f64,
    /// How long the answer took, in seconds.
    took: f64,
    /// The master's answer, in seconds since 1970, if the user may call TIME.
    told: Option<f64>,
}

/// The result of two bursts of TIME.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    /// Half of all round trips took less.
    pub(super) round_trip: Duration,
    /// Its clock, if the user may call TIME.
    pub(super) clock: Option<Clock>,
}

/// A master's clock compared with ours, in seconds. Each master is first compared with our clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Clock {
    /// The master's clock minus ours.
    offset: f64,
    /// The error of that.
    error: f64,
    /// How much faster than ours it ran between the bursts: 0.01 for 1 %.
    rate: f64,
    /// The error of that.
    rate_error: f64,
}

/// A master's clock compared with those of all masters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Standing {
    /// How far it is ahead of the median, in seconds.
    pub(super) ahead: f64,
    /// The error of that.
    pub(super) error: f64,
    /// How much faster than the median it runs: 0.01 for 1 %.
    pub(super) rate: f64,
    /// The error of that.
    pub(super) rate_error: f64,
}

/// Asks a master for its time in two bursts.
pub(super) fn read(master: &mut Conversation, origin: Instant) -> Result<Reading, Cause> {
    let first = burst(master, origin)?;
    std::thread::sleep(PAUSE);
    Ok(reading(&first, &burst(master, origin)?))
}

fn burst(master: &mut Conversation, origin: Instant) -> Result<Vec<Sample>, Cause> {
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let sent = Instant::now();
        let answer = master.ask(words(&["TIME"]))?;
        let took = sent.elapsed();
        let told = since_1970(&answer).map(|time| time.as_secs_f64());
        let sent = sent.saturating_duration_since(origin).as_secs_f64();
        samples.push(Sample { sent, took: took.as_secs_f64(), told });
    }
    Ok(samples)
}

fn reading(first: &[Sample], second: &[Sample]) -> Reading {
    let mut trips: Vec<f64> = first.iter().chain(second).map(|sample| sample.took).collect();
    trips.sort_by(f64::total_cmp);
    let round_trip = Duration::from_secs_f64(median(&trips).unwrap_or_default());
    Reading { round_trip, clock: clock(first, second) }
}

fn clock(first: &[Sample], second: &[Sample]) -> Option<Clock> {
    let quickest = |burst: &[Sample]| burst.iter().copied().min_by(|a, b| a.took.total_cmp(&b.took));
    let offset = |sample: Sample| Some(sample.told? - sample.sent - sample.took / 2.0);
    let error = |sample: Sample| sample.took / 2.0;
    let (first, second) = (quickest(first)?, quickest(second)?);
    let apart = second.sent - first.sent;
    Some(Clock {
        offset: offset(second)?,
        error: error(second),
        rate: (offset(second)? - offset(first)?) / apart,
        rate_error: (error(first) + error(second)) / apart,
    })
}

/// Compares each clock with the median of all. `None` if there is nothing to compare it with.
pub(super) fn compare(readings: &[Option<Clock>]) -> Vec<Option<Standing>> {
    let median_of = |value: fn(&Clock) -> f64| {
        let mut values: Vec<f64> = readings.iter().flatten().map(value).collect();
        values.sort_by(f64::total_cmp);
        median(&values)
    };
    let (offset, rate) = (median_of(|reading| reading.offset), median_of(|reading| reading.rate));
    let is_alone = readings.iter().flatten().count() < 2;
    let stand = |reading: &Clock| {
        Some(Standing {
            ahead: reading.offset - offset?,
            error: reading.error,
            rate: reading.rate - rate?,
            rate_error: reading.rate_error,
        })
    };
    readings.iter().map(|reading| reading.as_ref().filter(|_| !is_alone).and_then(stand)).collect()
}

/// The middle of sorted values.
fn median(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A burst at `sent` of a clock that is `ahead`, whose last round trip is the quickest.
    fn burst(sent: f64, ahead: f64) -> Vec<Sample> {
        let sample = |took: f64| Sample { sent, took, told: Some(sent + ahead + took / 2.0) };
        [0.004, 0.003, 0.002].map(sample).to_vec()
    }

    #[track_caller]
    fn about(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
    }

    #[test]
    fn offset_and_rate_are_those_of_the_quickest_answers() {
        let mut first = burst(10.0, 5.0);
        // A slow answer says little about the clock.
        first.push(Sample { sent: 10.0, took: 0.9, told: Some(99.0) });
        let Reading { round_trip, clock } = reading(&first, &burst(11.0, 5.02));
        let clock = clock.unwrap();
        about(clock.offset, 5.02);
        about(clock.error, 0.001);
        about(clock.rate, 0.02);
        about(clock.rate_error, 0.002);
        assert_eq!(round_trip, Duration::from_millis(3));
    }

    #[test]
    fn clocks_are_compared_with_the_median() {
        let of = |ahead: f64| clock(&burst(1.0, ahead), &burst(2.0, ahead));
        let standings = compare(&[of(100.0), None, of(100.5), of(107.0)]);
        let ahead: Vec<_> = standings.iter().map(|standing| standing.map(|it| it.ahead)).collect();
        let [Some(first), None, Some(second), Some(third)] = ahead[..] else { panic!("{ahead:?}") };
        about(first, -0.5);
        about(second, 0.0);
        about(third, 6.5);
    }

    #[test]
    fn a_single_clock_is_not_compared() {
        assert_eq!(compare(&[clock(&burst(1.0, 3.0), &burst(2.0, 3.0)), None]), [None, None]);
    }
}
