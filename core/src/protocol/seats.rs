//! The permits of a semaphore that one lock has.

use std::fmt;

use super::Targets;

/// Some permits of a semaphore, out of 64 consecutive ones. Behind the semaphore's last permit, the
/// first one follows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Seats {
    /// The permit of the first bit.
    from: u16,
    /// The semaphore's number of permits; zero only for [`Seats::NONE`].
    of: u16,
    places: u64,
}

impl Seats {
    /// The maximum number of one lock's permits.
    pub(crate) const MOST: u16 = 64;

    /// No permits, for all other locks.
    pub(crate) const NONE: Self = Self { from: 0, of: 0, places: 0 };

    /// The permits whose bits are set in `places`, counted from the permit `from`, out of `of`.
    /// `None` if no bit is set, or if a bit is for a permit that does not exist.
    pub(crate) fn new(from: u16, of: u16, places: u64) -> Option<Self> {
        let is_one_of = |number: u16| number < of && of <= Targets::MAX_PERMITS;
        let last = u64::BITS.checked_sub(places.leading_zeros() + 1)?;
        let exist = is_one_of(from) && u16::try_from(last).is_ok_and(is_one_of);
        exist.then_some(Self { from, of, places })
    }

    /// How many there are.
    pub(crate) const fn count(self) -> u32 {
        self.places.count_ones()
    }

    /// Their numbers, counted from zero.
    pub(crate) fn numbers(self) -> impl Iterator<Item = u16> {
        let bits = (0..Self::MOST).filter(move |place| self.places >> place & 1 == 1);
        bits.map(move |place| (self.from + place) % self.of.max(1))
    }

    /// Text that [`Seats::from_text`] reads.
    pub(crate) fn to_text(self) -> String {
        let Self { from, of, places } = self;
        format!("{from:x}.{of:x}.{places:x}")
    }

    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(|digits| u64::from_str_radix(digits, 16).ok());
        let [from, of, places] = [parts.next()??, parts.next()??, parts.next()??];
        let seats = Self::new(u16::try_from(from).ok()?, u16::try_from(of).ok()?, places);
        seats.filter(|_| parts.next().is_none())
    }
}

impl fmt::Debug for Seats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.numbers()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(from: u16, of: u16, places: u64) -> Option<Vec<u16>> {
        Seats::new(from, of, places).map(|seats| seats.numbers().collect())
    }

    #[test]
    fn seat_numbers_wrap_around_after_the_last_permit() {
        assert_eq!(numbers(0, 1, 0b1), Some(vec![0]));
        assert_eq!(numbers(3, 5, 0b1101), Some(vec![3, 0, 1]));
        assert_eq!(numbers(1_023, 1_024, 1 << 63 | 1), Some(vec![1_023, 62]));
        for (from, of, places) in [(0, 1, 0), (0, 0, 1), (1, 1, 1), (0, 3, 0b1000), (0, 1_025, 1)] {
            assert_eq!(numbers(from, of, places), None, "{from} {of} {places:b}");
        }
        assert_eq!(Seats::NONE.numbers().count(), 0);
    }

    #[test]
    fn the_text_of_seats_is_parsed_and_other_text_is_refused() {
        let seats = Seats::new(1_000, 1_024, 0b1011).unwrap();
        assert_eq!(Seats::from_text(&seats.to_text()), Some(seats));
        for text in ["", "1", "0.1", "0.1.0", "0.1.1.1", "0.1.g", "0.ffffff.1", "-1.1.1"] {
            assert_eq!(Seats::from_text(text), None, "{text}");
        }
    }
}
