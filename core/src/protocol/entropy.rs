//! Random bytes, handed in.

use std::error::Error;
use std::fmt;

/// Where tokens come from.
///
/// A driver hands in the operating system's generator, asked anew for every token: one that is kept
/// in the process repeats itself after a fork, and two holders with one token are one holder to
/// every master. Tests hand in a seeded one.
pub trait Entropy {
    /// Fills `bytes` with random bytes.
    ///
    /// # Errors
    /// [`EntropyFailed`] where the source has none to give.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed>;
}

impl<E: Entropy + ?Sized> Entropy for Box<E> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        (**self).fill(bytes)
    }
}

/// The source of random bytes had none to give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntropyFailed;

impl fmt::Display for EntropyFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operating system gave no random bytes")
    }
}

impl Error for EntropyFailed {}
