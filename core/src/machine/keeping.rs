//! A release that leaves the keys for the rest of a minimum hold time.

use std::time::Duration;

use super::Machine;
use super::table::{Place, Slot, Task};
use crate::lock::{Effects, Lock};
use crate::protocol::{Config, ConfigError, Entropy, LockId, Resource, Token, TooManyLocks, Ttl};
use crate::time::Instant;

impl<E: Entropy> Machine<E> {
    /// Releases a lock, but keeps its keys until `at_least` has passed since its grant; then they
    /// expire. Like [`release`](Self::release) it ends with
    /// [`Event::Released`](super::Event::Released), whose outcome then says whether a quorum of
    /// masters held the lock for us and keeps the keys. Returns for how long the keys stay; `None`
    /// if that time is over, and this is an ordinary release.
    ///
    /// The keys live a little longer, by the drift of a TTL of that length ([`Ttl::drift`]), so
    /// that no master's clock ends them early. A master that does not answer gets the request when
    /// it can be reached again: to keep the key for the rest of the time, or to delete it.
    ///
    /// # Errors
    /// [`ConfigError::OversizedTtl`] and [`ConfigError::TtlAboveFleet`] if the rest of the time is
    /// longer than any key may live. The lock is unchanged, and nothing was sent.
    pub fn release_after(
        &mut self,
        lock: LockId,
        at_least: Duration,
        now: Instant,
    ) -> Result<Option<Duration>, ConfigError> {
        let Some(left) = self.lock(lock).and_then(|lock| lock.left_of(at_least, now)) else {
            self.release(lock, now);
            return Ok(None);
        };
        let life = kept_life(&self.config, left)?;
        self.with_lock(lock, now, |lock, effects| {
            lock.look_at_clock(effects);
            lock.release_keeping(life, effects);
        });
        self.settle(now);
        Ok(Some(left))
    }

    /// As [`release_token`](Self::release_token), but the keys stay for `life` from now, and then
    /// expire.
    ///
    /// # Errors
    /// [`TooManyLocks`], and nothing was sent.
    pub fn release_token_keeping(
        &mut self,
        resource: &Resource,
        token: Token,
        life: Ttl,
        now: Instant,
    ) -> Result<LockId, TooManyLocks> {
        self.check_room()?;
        let id = self.locks.next_id();
        let lock = Lock::released(id, &resource.clone().into(), token, Some(life), &mut effects!(self, now));
        self.locks.insert(Slot::new(Task::Lock(lock), Place::Outside(None)));
        self.changed(id, false, now);
        self.settle(now);
        Ok(id)
    }
}

/// The TTL of a key that must stay for `left`. It is a little longer, so that a master with a fast
/// clock does not expire the key early. It is at most the longest TTL: a restarted master under the
/// restart guard waits no longer than that before it votes.
pub(crate) fn kept_life(config: &Config, left: Duration) -> Result<Ttl, ConfigError> {
    let longest = config.longest_ttl();
    if left > longest.as_duration() {
        return Err(match config.fleet {
            Some(_) => ConfigError::TtlAboveFleet { ttl: left, longest: longest.as_duration() },
            None => ConfigError::OversizedTtl { ttl: left },
        });
    }
    let rounded_up = |span| Ttl::new(span + ALMOST_A_MILLI).map_or(longest, |life| life.min(longest));
    let left = rounded_up(left);
    Ok(rounded_up(left.as_duration() + left.drift()))
}

/// Added to round up, since a TTL is rounded down to whole milliseconds.
const ALMOST_A_MILLI: Duration = Duration::from_nanos(999_999);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_key_lives_for_the_hold_time_plus_drift_but_at_most_the_longest_ttl() {
        let [second, minute] = [1, 60].map(Duration::from_secs);
        let life = |config: &Config, left| kept_life(config, left).map(Ttl::as_duration);
        let plain = Config::new(["redis://a", "redis://b", "redis://c"]).unwrap();
        assert_eq!(life(&plain, second), Ok(second + Duration::from_millis(12)));
        assert_eq!(life(&plain, Duration::from_micros(1)), Ok(Duration::from_millis(4)), "rounded up");
        assert_eq!(life(&plain, Ttl::MAX), Ok(Ttl::MAX));
        assert!(matches!(life(&plain, Ttl::MAX + second), Err(ConfigError::OversizedTtl { .. })));
        let guarded = Config::builder(["redis://a"]).ttl(second).restart_guard(minute).build().unwrap();
        assert_eq!(life(&guarded, minute), Ok(minute));
        assert!(matches!(life(&guarded, minute + second), Err(ConfigError::TtlAboveFleet { .. })));
    }
}
