//! A release whose keys stay for a while.

use std::time::Duration;

use super::releasing::Releasing;
use super::shared::Context;
use super::{Effects, Lock, Phase, Stage};
use crate::protocol::{LossCause, Ttl};
use crate::time::Instant;

impl Lock {
    /// How much is left of a time that began with the grant; `None` if it is over, or the lock is
    /// not held.
    pub(crate) fn left_of(&self, at_least: Duration, now: Instant) -> Option<Duration> {
        let Stage::Asked(_, Phase::Held(held)) = &self.stage else { return None };
        // A lock that was granted before, and not taken, counts from the round that granted it
        // again.
        let granted = self.base.grant.map_or(held.since, |grant| grant.at.max(held.since));
        Some((granted + at_least).since(now)).filter(|left| !left.is_zero())
    }

    /// Gives the lock up, but has its keys live for this long from now; tells whether it was still
    /// ours.
    pub(crate) fn release_keeping(&mut self, life: Ttl, effects: &mut Effects<'_>) {
        let Self { base, stage: Stage::Asked(keys, phase) } = self else { return self.release(effects) };
        let Phase::Held(held) = phase else { return self.release(effects) };
        let mut cx = Context { base, keys, effects };
        held.end_extensions(LossCause::Released, &mut cx);
        let buffer = std::mem::take(&mut held.votes);
        *phase = Phase::Releasing(Releasing::keeping(life, buffer, &mut cx));
    }
}
