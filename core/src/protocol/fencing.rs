//! Fencing tokens: numbers that rise with every grant of a resource.

use std::fmt;
use std::num::NonZeroU64;

/// A fencing token: a number that is larger than that of every earlier fenced grant of the same
/// resource.
///
/// A lock alone cannot keep a holder that was paused for too long from writing late. A store can:
/// it remembers the largest fencing token that it has seen and refuses writes with a smaller one.
///
/// Fencing tokens rise, but not by one: failed attempts use some up. They stay below 2^53, so that
/// a double holds them exactly.
///
/// Source: Martin Kleppmann, "How to do distributed locking", section "Making the lock safe with
/// fencing".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FencingToken(NonZeroU64);

impl FencingToken {
    /// The largest fencing token: 2^53 − 1.
    pub const MAX: Self = Self(NonZeroU64::MIN.saturating_add((1 << 53) - 2));

    /// Creates the fencing token of this number. Returns `None` for zero and above
    /// [`FencingToken::MAX`].
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) if number.get() <= Self::MAX.get() => Some(Self(number)),
            _ => None,
        }
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_a_double_cannot_hold_are_no_fencing_tokens() {
        assert_eq!(FencingToken::new(0), None);
        assert_eq!(FencingToken::new(1 << 53), None);
        assert_eq!(FencingToken::new((1 << 53) - 1), Some(FencingToken::MAX));
        assert_eq!(FencingToken::new(7).map(|token| token.to_string()), Some("7".to_owned()));
    }
}
