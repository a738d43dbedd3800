//! A fair waiter's place in the queue for one resource.

use std::fmt;
use std::time::Duration;

use super::{Resource, Token};

/// A waiter's place in the queues that the masters keep for one resource: 20 random bytes, the
/// same in all attempts of a wait, and of the next caller that goes on with it. Each attempt has
/// its own token.
///
/// It is not secret: it neither proves that a lock is held nor releases one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueuePlace([u8; Self::BYTES]);

impl QueuePlace {
    /// Its length, in bytes.
    pub const BYTES: usize = Token::BYTES;

    /// How long a place lives unless its waiter renews it, which happens every third of that time.
    /// Larger: a dead waiter delays the others for longer. Smaller: more requests, and a waiter
    /// whose messages are late loses its place.
    pub const LEASE: Duration = Duration::from_secs(1);

    /// The interval of renewals: a third of the lease, so that one late message does not lose the
    /// place.
    pub(crate) const RENEWED_EACH: Duration = Duration::from_nanos(1_000_000_000 / 3);

    /// The longest time for which a place that is first keeps the others waiting while the lock is
    /// free, if its waiter is notified. Longer: a client far away, or one that has died, leaves the
    /// lock idle for longer. Shorter: a client that is as far away only gets the lock if it asks
    /// while it is free.
    pub(crate) const LONGEST_TURN: Duration = Duration::from_millis(200);

    /// The shortest one, also for a waiter that has yet to time its masters' answers. Longer: a
    /// client that has died costs more. Shorter: a busy machine lets a process wait for as long.
    pub(crate) const SHORTEST_TURN: Duration = Duration::from_millis(50);

    /// How long the turn of a place is whose waiter has just had the answers of a quorum within
    /// `round`. From the notification to its next request passes about as much time, and more if
    /// the machine or the network is slower then. A waiter that is not notified asks again
    /// `asks_within` of its last request, or when it renews the place.
    pub(crate) fn turn_after(round: Duration, asks_within: Duration) -> Duration {
        let told = (4 * round).clamp(Self::SHORTEST_TURN, Self::LONGEST_TURN);
        told + asks_within.min(Self::RENEWED_EACH)
    }

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

/// The keys of a queue.
impl Resource {
    /// Returns the key under which every master keeps the queue of fair waiters for this resource:
    /// a sorted set of places by number, and of the largest number that a place has had. It expires
    /// after ten leases in which no waiter was in it. Its name has the resource's hash tag.
    pub fn queue_key(&self) -> Vec<u8> {
        self.key_of(QUEUE)
    }

    /// Returns the key of one place in the queue, which expires unless its waiter renews it. Its
    /// name has the resource's hash tag.
    pub fn place_key(&self, place: QueuePlace) -> Vec<u8> {
        [self.key_of(PLACE).as_slice(), b":", &place.to_hex()].concat()
    }

    /// Returns the resource's key and the digits of the place, if this is the key of a place.
    pub(crate) fn of_place_key(key: &[u8]) -> Option<(&[u8], &[u8])> {
        let rest = key.strip_prefix(PLACE)?;
        let (rest, place) = rest.split_at_checked(rest.len().checked_sub(2 * QueuePlace::BYTES)?)?;
        let rest = rest.strip_suffix(b":")?;
        let resource = rest.strip_prefix(b":").or_else(|| rest.strip_prefix(b"/{")?.strip_suffix(b"}"))?;
        Some((resource, place))
    }
}

/// The prefix of queues' keys.
pub(super) const QUEUE: &[u8] = b"quorlock:queue";
/// The prefix of the keys of places in a queue.
pub(super) const PLACE: &[u8] = b"quorlock:place";
