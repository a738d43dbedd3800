//! The records of workers about their turns, and the figures from them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use quorlock_tests::Summary;

/// One lock that was requested, granted, held and released; all in nanoseconds of `history::now`,
/// which all processes share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Turn {
    /// Read before the lock was asked for.
    pub(crate) asked: u64,
    /// Read when the worker had it.
    pub(crate) granted: u64,
    /// Read before the release began.
    pub(crate) released: u64,
}

/// A span of work, on the same clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// How long a worker rests after its release before it asks again, in nanoseconds.
    pub(crate) rest: u64,
}

/// How the lock passed from holder to holder.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Figures {
    /// From the beginning of a release until the next worker had the lock.
    pub(crate) gaps: Summary,
    /// The number of turns in a second of the span.
    pub(crate) per_second: f64,
    /// The fraction of turns that went to another worker than the turn before.
    pub(crate) changes: f64,
    /// The fraction of turns that the busiest worker had.
    pub(crate) busiest: f64,
    /// The longest wait, as a multiple of what all workers' turns take on average.
    pub(crate) longest_wait: f64,
    /// The longest wait of each worker, in the same unit.
    pub(crate) waits: Vec<f64>,
    /// How many turns each worker had in the span.
    pub(crate) turns: Vec<usize>,
    /// How many turns went to workers that had asked later than a waiting one, in the worst case.
    pub(crate) passed_over: usize,
}

impl Figures {
    /// The figures of these workers' turns.
    pub(crate) fn of(workers: &[Vec<Turn>], span: Span) -> Self {
        let mut owned: Vec<(usize, Turn)> = Vec::new();
        for (worker, turns) in workers.iter().enumerate() {
            owned.extend(turns.iter().map(|turn| (worker, *turn)));
        }
        owned.sort_by_key(|(_, turn)| turn.granted);
        let changes =
            owned.iter().zip(owned.iter().skip(1)).filter(|((one, _), (other, _))| one != other).count();
        let turns: Vec<Turn> = owned.into_iter().map(|(_, turn)| turn).collect();
        let mut gaps = Vec::new();
        for (turn, next) in turns.iter().zip(turns.iter().skip(1)) {
            assert!(next.granted >= turn.released, "two workers held the lock: {turn:?}, {next:?}");
            // Turns after the end do not count: fewer and fewer workers wait then, and none may be
            // waiting when the lock is released.
            if next.granted <= span.end {
                gaps.push(Duration::from_nanos(next.granted - turn.released));
            }
        }
        let in_span = |turns: &Vec<Turn>| turns.iter().filter(|turn| turn.granted <= span.end).count();
        let each: Vec<usize> = workers.iter().map(in_span).collect();
        let in_time: usize = each.iter().sum();
        let fair = (span.end - span.start) as f64 / in_time.max(1) as f64 * workers.len() as f64;
        let longest = |turns: &Vec<Turn>| {
            let longest = turns.iter().map(|turn| turn.granted - turn.asked).max().unwrap_or_default();
            longest as f64 / fair
        };
        let waits: Vec<f64> = workers.iter().map(longest).collect();
        let busiest = workers.iter().map(Vec::len).max().unwrap_or_default();
        let passed_over = |(place, turn): (usize, &Turn)| {
            turns.iter().take(place).filter(|earlier| earlier.asked > turn.asked).count()
        };
        Self {
            gaps: Summary::of(&gaps),
            per_second: in_time as f64 * 1e9 / (span.end - span.start) as f64,
            changes: changes as f64 / turns.len().saturating_sub(1).max(1) as f64,
            busiest: busiest as f64 / turns.len().max(1) as f64,
            longest_wait: waits.iter().copied().fold(0.0, f64::max),
            waits,
            turns: each,
            passed_over: turns.iter().enumerate().map(passed_over).max().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.asked, self.granted, self.released)
    }
}

impl FromStr for Turn {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut numbers = line.split(' ').map(|word| word.parse().map_err(|_| format!("no turn: {line}")));
        let mut next = || numbers.next().unwrap_or_else(|| Err(format!("half a turn: {line}")));
        Ok(Self { asked: next()?, granted: next()?, released: next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(asked: u64, granted: u64, released: u64) -> Turn {
        Turn { asked, granted, released }
    }

    #[test]
    fn turns_in_the_order_of_their_requests_pass_no_waiter_over() {
        let workers = [vec![turn(0, 0, 10), turn(11, 24, 34)], vec![turn(1, 12, 22), turn(23, 36, 46)]];
        let figures = Figures::of(&workers, Span { start: 0, end: 40, rest: 0 });
        assert_eq!((figures.per_second, figures.changes), (1e8, 1.0));
        assert_eq!((figures.busiest, figures.passed_over), (0.5, 0));
        assert_eq!((figures.gaps.count, figures.gaps.max), (3, Duration::from_nanos(2)));
        assert_eq!((figures.longest_wait, figures.turns), (13.0 / 20.0, vec![2, 2]));
        assert_eq!(figures.waits, [13.0 / 20.0, 13.0 / 20.0]);
    }

    #[test]
    fn a_later_request_that_was_served_earlier_is_counted() {
        let workers = [vec![turn(2, 2, 3), turn(4, 5, 6), turn(7, 8, 9)], vec![turn(1, 10, 11)]];
        let figures = Figures::of(&workers, Span { start: 0, end: 9, rest: 0 });
        assert_eq!((figures.changes, figures.busiest, figures.passed_over), (1.0 / 3.0, 0.75, 3));
        assert_eq!(figures.gaps.count, 2, "the last turn began after the end");
    }

    #[test]
    fn a_turn_survives_printing_and_parsing() {
        let line = "1 22 333";
        assert_eq!(line.parse::<Turn>().unwrap().to_string(), line);
        assert!("1 2".parse::<Turn>().is_err() && "1 2 x".parse::<Turn>().is_err());
    }
}
