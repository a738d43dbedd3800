//! A place in the queue of those that wait fairly for one resource.

use std::fmt;
use std::time::Duration;

use super::Token;

/// A waiter's place in the queues that the masters keep of one resource: 20 random bytes, new for
/// each wait and the same in all its attempts. Each attempt has a token of its own.
///
/// It is no secret: it neither proves who holds a lock nor releases one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueuePlace([u8; Self::BYTES]);

impl QueuePlace {
    /// Its length, in bytes.
    pub const BYTES: usize = Token::BYTES;

    /// How long a place lives unless it is renewed, which is done each third of that. A longer lease
    /// has a waiter that died keep the others waiting for longer; a shorter one costs more requests,
    /// and a waiter whose messages are late loses its place.
    pub const LEASE: Duration = Duration::from_secs(1);

    /// Creates a place from random bytes.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the 40 lower-case digits that the masters store.
    pub fn to_hex(self) -> [u8; 2 * Self::BYTES] {
        Token::from_bytes(self.0).to_hex()
    }
}

impl fmt::Debug for QueuePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QueuePlace({})", self.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }
}
