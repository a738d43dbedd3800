//! How many messages a master may send that answer no command.
//!
//! Each costs time, and the connection of one master must not take it from all others. A server
//! sends one message for each key that a request of this connection has read while it tracked keys
//! (Redis command page of CLIENT TRACKING), so the requests pay for theirs in advance. Few others
//! are known: a flush of all keys, which is reported to each connection that tracks any.

use std::time::Duration;

use crate::protocol::Cause;
use crate::time::Instant;

/// How many messages that no request has paid for are ignored in each [`SPAN`]. If it is larger, a
/// master that sends nothing else takes more time from the others; if it is smaller, an
/// administrator who flushes databases in a loop ends connections.
const FEW: u32 = 64;

const SPAN: Duration = Duration::from_secs(1);

/// How many bytes of a request name one key, or more: the length, both line ends, and the key.
const BYTES_OF_KEY: usize = 8;

/// Most messages that may be paid for: how many keys a server tracks by default for all connections
/// together (`tracking-table-max-keys`). Ignoring that many takes about a second.
const MOST: u32 = 1_000_000;

/// The messages that a connection may still receive.
#[derive(Clone, Debug, Default)]
pub(super) struct Pushes {
    left: u32,
    renewed_at: Option<Instant>,
}

impl Pushes {
    /// A request of this size is sent while keys are tracked.
    #[inline]
    pub(super) fn pay(&mut self, bytes: usize) {
        let keys = u32::try_from(bytes / BYTES_OF_KEY).unwrap_or(MOST);
        self.left = self.left.saturating_add(keys).min(MOST);
    }

    /// A message about `keys` keys, or about something else, has come.
    pub(super) fn take(&mut self, keys: usize, now: Instant) -> Result<(), Cause> {
        let taken = u32::try_from(keys.max(1)).unwrap_or(u32::MAX);
        if taken > self.left && self.renewed_at.is_none_or(|at| now.since(at) >= SPAN) {
            self.left = self.left.max(FEW);
            self.renewed_at = Some(now);
        }
        self.left = self.left.checked_sub(taken).ok_or(Cause::UnaskedMessages)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_pays_for_as_many_messages_as_it_may_name_keys() {
        let now = Instant::from_nanos(1);
        for (bytes, paid) in [(0, 0), (7, 0), (8, 1), (15, 1), (1_000, 125)] {
            let mut pushes = Pushes::default();
            pushes.pay(bytes);
            let taken = (0..10_000).take_while(|_| pushes.take(1, now).is_ok()).count();
            assert_eq!(taken, paid + 64, "{bytes} bytes");
        }
    }
}
