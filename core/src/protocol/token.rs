//! The random value that proves who holds a lock, and where it comes from.

use std::error::Error;
use std::fmt;

/// The secret that proves who holds a lock: 20 random bytes, new for every attempt, sent as 40
/// hexadecimal digits.
///
/// Any process that knows a token can release the lock, so `Debug` does not show it.
///
/// Source: the Redis distributed-locks page asks for a value "unique across all clients and all
/// lock requests" and suggests 20 bytes from `/dev/urandom`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token([u8; 20]);

impl Token {
    /// The length of a token, in bytes.
    pub const BYTES: usize = 20;

    /// Creates a token from random bytes.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Reads a token from 40 hexadecimal digits. Returns `None` if the text is anything else.
    pub fn from_hex(digits: &str) -> Option<Self> {
        let digits = digits.as_bytes();
        if digits.len() != 2 * Self::BYTES {
            return None;
        }
        let mut bytes = [0; Self::BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            for digit in pair {
                *byte = *byte * 16 + u8::try_from(char::from(*digit).to_digit(16)?).ok()?;
            }
        }
        Some(Self(bytes))
    }

    /// Returns the 40 lower-case digits that the masters store.
    pub fn to_hex(self) -> [u8; 2 * Self::BYTES] {
        // Without a table or branches, so that the compiler can vectorize it.
        let digit = |nibble: u8| b'0' + nibble + (b'a' - b'9' - 1) * u8::from(nibble > 9);
        let mut hex = [0; 2 * Self::BYTES];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        hex
    }

    /// Returns the digits as text, to give the token to another process. Keep it out of logs.
    pub fn expose(self) -> String {
        self.to_hex().iter().map(|&digit| char::from(digit)).collect()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

/// Where tokens come from.
///
/// A driver passes in the operating system's generator, which is read for every token: a generator
/// within the process would repeat itself after a fork, and masters take two holders with the same
/// token for one. Tests pass in a seeded one.
pub trait Entropy {
    /// Fills `bytes` with random bytes.
    ///
    /// # Errors
    /// [`EntropyFailed`] if the source returns none.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed>;
}

impl<E: Entropy + ?Sized> Entropy for Box<E> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        (**self).fill(bytes)
    }
}

/// The source of random bytes failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntropyFailed;

impl fmt::Display for EntropyFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("could not get random bytes from the operating system")
    }
}

impl Error for EntropyFailed {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_travel_as_forty_digits_and_back() {
        let token = Token::from_bytes(std::array::from_fn(|i| u8::try_from(i * 13 % 256).unwrap()));
        assert_eq!(token.expose().len(), 40);
        assert_eq!(Token::from_hex(&token.expose()), Some(token));
        assert!(token.expose().starts_with("000d1a27"));
    }

    #[test]
    fn anything_but_forty_hexadecimal_digits_is_no_token() {
        assert_eq!(Token::from_hex(""), None);
        assert_eq!(Token::from_hex(&"g".repeat(40)), None);
        assert_eq!(Token::from_hex(&"a".repeat(41)), None);
    }

    #[test]
    fn a_boxed_source_of_random_bytes_is_the_source_itself() {
        struct Once(Option<u8>);
        impl Entropy for Once {
            fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
                bytes.fill(self.0.take().ok_or(EntropyFailed)?);
                Ok(())
            }
        }
        let mut boxed: Box<dyn Entropy> = Box::new(Once(Some(7)));
        let mut bytes = [0; 3];
        assert_eq!((boxed.fill(&mut bytes), bytes), (Ok(()), [7; 3]));
        assert_eq!(boxed.fill(&mut bytes), Err(EntropyFailed));
    }

    #[test]
    fn debug_never_shows_a_token() {
        assert_eq!(format!("{:?}", Token::from_bytes([7; 20])), "Token(hidden)");
    }
}
