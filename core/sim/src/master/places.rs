//! The value of a queue: the largest number given, then an entry for each place.

use std::time::Duration;

use super::number::lua_number;

/// The digits of the largest number, and of each long number of an entry.
const DIGITS: usize = 16;
/// An entry's bytes: three long numbers, three digits, a colon, and a name of 40 digits.
const ENTRY: usize = 92;

/// The names of the places in the value of a queue's key that have not ended at `now`, a time since
/// the Unix epoch on the server's clock; the first one first.
///
/// It is for tests that look into a master: a client never reads that value.
pub fn places(value: &[u8], now: Duration) -> Vec<Vec<u8>> {
    let now = now.as_millis() as f64;
    let alive = Places::read(value, now, 0.0).all.into_iter().filter(|place| place.ends > now);
    alive.map(|place| place.name).collect()
}

/// The state of a place that has not been told that it is first.
pub(super) const WAITS: f64 = 9_007_199_254_740_991.0;
/// The state of a place that knows that it is first.
pub(super) const KNOWS: f64 = 9_007_199_254_740_990.0;

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Place {
    pub(super) number: f64,
    pub(super) ends: f64,
    /// The end of its turn, [`WAITS`] or [`KNOWS`].
    pub(super) state: f64,
    /// How long its turn is.
    pub(super) long: f64,
    pub(super) name: Vec<u8>,
}

/// A queue as a script sees it.
pub(super) struct Places {
    pub(super) largest: f64,
    pub(super) all: Vec<Place>,
    pub(super) now: f64,
    pub(super) lease: f64,
}

impl Places {
    /// A value that cannot be one of a queue counts as an empty queue.
    pub(super) fn read(value: &[u8], now: f64, lease: f64) -> Self {
        let is_queue = value.len() % ENTRY == DIGITS;
        let (largest, entries) = value.split_at_checked(DIGITS).filter(|_| is_queue).unwrap_or_default();
        let place = |entry: &[u8]| {
            let number = |from: usize, digits: usize| entry.get(from..from + digits).and_then(lua_number);
            let [first, second, third] =
                [0, DIGITS, 2 * DIGITS].map(|from| number(from, DIGITS).unwrap_or(0.0));
            Place {
                number: first,
                ends: second,
                state: third,
                long: number(3 * DIGITS, 3).unwrap_or(1.0),
                name: entry.get(3 * DIGITS + 4..).unwrap_or_default().to_vec(),
            }
        };
        let all = entries.chunks_exact(ENTRY).map(place).collect();
        Self { largest: lua_number(largest).unwrap_or(0.0), all, now, lease }
    }

    pub(super) fn value(&self) -> Vec<u8> {
        let mut value = format!("{:016.0}", self.largest).into_bytes();
        for Place { number, ends, state, long, name } in &self.all {
            value.extend(format!("{number:016.0}{ends:016.0}{state:016.0}{long:03.0}:").into_bytes());
            value.extend(name);
        }
        value
    }

    pub(super) fn position(&self, name: &[u8]) -> Option<usize> {
        self.all.iter().position(|place| place.name == name)
    }

    pub(super) fn lives(&self, place: &Place) -> bool {
        place.ends > self.now && place.ends <= self.now + 2.0 * self.lease
    }

    /// `sweep()`: how many places it has dropped.
    pub(super) fn sweep(&mut self) -> usize {
        let ended = self.all.iter().take(100).take_while(|place| !self.lives(place)).count();
        self.all.drain(..ended);
        ended
    }

    /// `first(last)`: the place before `last` that keeps others waiting, and the first one alive.
    pub(super) fn first(&self, last: usize) -> (Option<usize>, Option<usize>) {
        let mut any = None;
        for (at, place) in self.all.iter().enumerate().take(last) {
            if self.lives(place) {
                any = any.or(Some(at));
                if place.state > self.now {
                    return (Some(at), any);
                }
            }
        }
        (None, any)
    }

    /// `next_turn(at)`
    pub(super) fn next_turn(&self, place: &Place) -> f64 {
        if place.state > self.now { place.long } else { (place.long / 2.0).floor().max(8.0) }
    }

    /// `tell(at, free)`, without the bell: the name of the place whose bell is rung.
    pub(super) fn tell(&mut self, at: usize, is_free: bool) -> Option<Vec<u8>> {
        let place = self.all.get(at)?;
        let (state, long) = (place.state, self.next_turn(place));
        let now = self.now;
        if state != WAITS && !(is_free && (state == KNOWS || state <= now)) {
            return None;
        }
        let place = self.all.get_mut(at)?;
        (place.state, place.long) = (if is_free { now + long } else { KNOWS }, long);
        Some(place.name.clone())
    }
}
