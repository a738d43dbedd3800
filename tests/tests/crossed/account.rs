//! Which clients held which permits and when, as the holders report it, and whether that is
//! allowed.

use std::fmt;
use std::time::Instant;

/// A holder's permits, from the grant to the last instant at which its guard was valid.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) by: usize,
    pub(crate) indexes: Vec<u32>,
    pub(crate) from: Instant,
    pub(crate) to: Instant,
}

/// A promise of a semaphore that was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Broken {
    /// More permits were held at one instant than there are.
    TooMany { held: usize, by: Vec<usize> },
    /// Two holders had the same permit at one instant.
    Twice { index: u32, by: [usize; 2] },
    /// A holder's permit has an index that does not exist.
    NoSuch { index: u32, by: usize },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { held, by } => write!(f, "{held} permits were held at once, by {by:?}"),
            Self::Twice { index, by } => write!(f, "permit {index} was held by {by:?} at once"),
            Self::NoSuch { index, by } => write!(f, "{by} held permit {index}"),
        }
    }
}

/// Returns the largest number of permits held at one instant, and each promise that was broken by
/// a semaphore with this many permits.
///
/// Permits are counted without regard to their indices, and indices are compared without regard to
/// the number. A hold that ends at the instant at which another one begins is over.
pub(crate) fn check(permits: u32, holds: &[Hold]) -> (usize, Vec<Broken>) {
    let mut order: Vec<_> = holds.iter().collect();
    order.sort_by_key(|hold| hold.from);
    let (mut most, mut broken) = (0, Vec::new());
    let mut held: Vec<&Hold> = Vec::new();
    for hold in order {
        held.retain(|earlier| earlier.to > hold.from);
        for &index in &hold.indexes {
            if index >= permits {
                broken.push(Broken::NoSuch { index, by: hold.by });
            }
            let twice = held.iter().filter(|earlier| earlier.indexes.contains(&index));
            broken.extend(twice.map(|earlier| Broken::Twice { index, by: [earlier.by, hold.by] }));
        }
        held.push(hold);
        let count = held.iter().map(|hold| hold.indexes.len()).sum();
        most = most.max(count);
        if count > permits as usize {
            let by = held.iter().map(|hold| hold.by).collect();
            broken.push(Broken::TooMany { held: count, by });
        }
    }
    (most, broken)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn holds(all: &[(usize, &[u32], u64, u64)]) -> Vec<Hold> {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let hold = |&(by, indexes, from, to): &(usize, &[u32], u64, u64)| {
            let indexes: &[u32] = indexes;
            Hold { by, indexes: indexes.to_vec(), from: at(from), to: at(to) }
        };
        all.iter().map(hold).collect()
    }

    #[test]
    fn permits_that_follow_one_another_break_nothing() {
        let held = holds(&[(2, &[0], 10, 20), (0, &[0], 0, 10), (1, &[1], 5, 30), (3, &[0], 20, 25)]);
        assert_eq!(check(2, &held), (2, vec![]));
    }

    #[test]
    fn one_permit_too_many_is_seen_with_any_index() {
        let held = holds(&[(0, &[0, 1], 0, 10), (1, &[2], 9, 12)]);
        let (most, broken) = check(2, &held);
        let expected = [Broken::NoSuch { index: 2, by: 1 }, Broken::TooMany { held: 3, by: vec![0, 1] }];
        assert_eq!((most, broken.as_slice()), (3, expected.as_slice()));
    }

    #[test]
    fn one_permit_with_two_holders_is_seen_while_others_are_free() {
        let held = holds(&[(0, &[1], 0, 10), (1, &[2, 1], 9, 12)]);
        assert_eq!(check(4, &held), (3, vec![Broken::Twice { index: 1, by: [0, 1] }]));
    }
}
