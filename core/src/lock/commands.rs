//! The commands of a lock's caller.

use std::time::Duration;

use super::context::Context;
use super::releasing::Releasing;
use super::{Effects, Lock, NOTICE, Next, Phase, Report, Stage};
use crate::protocol::{
    Action, ExtendError, ExtensionId, LossCause, MasterSet, ReleaseOutcome, Resumption, Ttl,
};
use crate::time::Instant;

impl Lock {
    /// The caller takes the grant. Returns until when it is valid; `None` if it no longer is, and
    /// then the lock is still sought.
    pub(crate) fn take(&mut self, effects: &mut Effects<'_>) -> (Option<Instant>, Report) {
        let Self { base, stage: Stage::Asked(keys, Phase::Held(held)) } = self else {
            return (None, Report::Nothing);
        };
        match held.take(&mut Context { base, keys, effects }) {
            Ok(valid_until) => (Some(valid_until), Report::Unchanged),
            Err(next) => (None, self.go_on(next, effects)),
        }
    }

    /// Asks for more time.
    pub(crate) fn extend(
        &mut self,
        id: ExtensionId,
        ttl: Ttl,
        effects: &mut Effects<'_>,
    ) -> Result<(), ExtendError> {
        let Self { base, stage: Stage::Asked(keys, Phase::Held(held)) } = self else {
            return Err(ExtendError::Lost(LossCause::Released));
        };
        held.extend(id, ttl, &mut Context { base, keys, effects })
    }

    /// Stops renewal. An extension under way still counts.
    pub(crate) fn stop_renewal(&mut self) {
        if let Stage::Asked(_, Phase::Held(held)) = &mut self.stage {
            held.renewal = None;
        }
    }

    /// Before a command: a lock whose time has run out is lost, whether or not a timer has fired.
    pub(crate) fn look_at_clock(&mut self, effects: &mut Effects<'_>) {
        let now = effects.now;
        let Self { base, stage: Stage::Asked(keys, Phase::Held(held)) } = self else { return };
        if held.taken && now + NOTICE >= held.valid_until {
            let next = held.lose(LossCause::Expired, &mut Context { base, keys, effects });
            let report = self.go_on(next, effects);
            debug_assert_eq!(report, Report::Nothing, "a lock that its caller has taken is not sought again");
        }
    }

    /// Turns an exclusive lock into a reader's. Returns whether it is held.
    ///
    /// The token keeps writers out on the masters just as the reader's entry that replaces it, so
    /// the lock stays valid whatever they answer. The change must come first in this process:
    /// masters that have made it admit readers.
    pub(crate) fn downgrade(&mut self, effects: &mut Effects<'_>) -> bool {
        let Self { base, stage: Stage::Asked(keys, Phase::Held(held)) } = self else { return false };
        if base.targets.is_permit() {
            return false;
        }
        if !base.targets.is_shared() {
            let mut cx = Context { base, keys, effects };
            cx.unmark_held();
            cx.leave_places_held();
            base.targets = base.targets.downgraded();
            keys.change_form(base);
            held.extend_anew(&mut Context { base, keys, effects });
        }
        true
    }

    /// Leaves the lock to the process that gets its token: it ends here, and its keys stay. `None`
    /// if it is no longer held.
    ///
    /// The new holder counts no master with an unsettled request, so on the same connection a
    /// release follows that request: no key is left behind when the new holder releases its own.
    /// Not if another locker may know an earlier resumption, which may count such a master.
    pub(crate) fn hand_over(&mut self, effects: &mut Effects<'_>) -> Option<Resumption> {
        let resumption = self.resumption(effects.config.masters.len());
        let Self { base, stage: Stage::Asked(keys, Phase::Held(held)) } = self else { return None };
        let mut cx = Context { base, keys, effects };
        held.end_extensions(LossCause::HandedOver, &mut cx);
        cx.leave_places_held();
        // The new holder does not know of them.
        cx.give_other_seats_back(cx.keys.reached, Action::Release);
        if !cx.keys.is_copied {
            let release = cx.request(None, Action::Release, cx.base.longest_ttl);
            cx.effects.order(held.unsettled, release);
        }
        self.stage = Stage::Over;
        resumption
    }

    /// Releases the lock and reports whether it was still ours.
    pub(crate) fn release(&mut self, effects: &mut Effects<'_>) {
        match &mut self.stage {
            Stage::Asked(keys, phase) => match phase {
                Phase::Held(held) => {
                    let mut cx = Context { base: &mut self.base, keys, effects };
                    held.end_extensions(LossCause::Released, &mut cx);
                    let buffer = std::mem::take(&mut held.votes);
                    *phase = Phase::Releasing(Releasing::begin(buffer, &mut cx));
                }
                Phase::Gone => {
                    let report = self.go_on(Next::Released(ReleaseOutcome::NotOurs), effects);
                    debug_assert_eq!(report, Report::Nothing, "a release ends the lock");
                }
                Phase::Releasing(_) => {}
                Phase::Trying(_) | Phase::Clearing(_) | Phase::Resuming(_) => self.cancel(effects),
            },
            Stage::Told => {}
            Stage::Queued | Stage::Over => self.cancel(effects),
        }
    }

    /// How much is left of the span `at_least`, which began with the grant; `None` if it is over,
    /// or the lock is not held.
    pub(crate) fn left_of(&self, at_least: Duration, now: Instant) -> Option<Duration> {
        let Stage::Asked(_, Phase::Held(held)) = &self.stage else { return None };
        // A resumed lock was granted elsewhere.
        let granted = self.base.grant.map_or(held.since, |grant| grant.at);
        Some((granted + at_least).since(now)).filter(|left| !left.is_zero())
    }

    /// Releases the lock, but keeps its keys for this long from now; reports whether it was still
    /// ours.
    pub(crate) fn release_keeping(&mut self, life: Ttl, effects: &mut Effects<'_>) {
        let Self { base, stage: Stage::Asked(keys, phase) } = self else { return self.release(effects) };
        let Phase::Held(held) = phase else { return self.release(effects) };
        let mut cx = Context { base, keys, effects };
        held.end_extensions(LossCause::Released, &mut cx);
        let buffer = std::mem::take(&mut held.votes);
        *phase = Phase::Releasing(Releasing::keeping(life, buffer, &mut cx));
    }

    /// Gives the lock up in any state, without an event; an event about its end that is already
    /// queued is still delivered.
    pub(crate) fn cancel(&mut self, effects: &mut Effects<'_>) {
        match &mut self.stage {
            Stage::Told => return,
            // The lock was handed over to this process, and the caller has not taken it: it is not
            // ours to release.
            Stage::Asked(_, Phase::Held(held)) if held.was_resumed && !held.taken => {}
            Stage::Asked(keys, phase @ (Phase::Trying(_) | Phase::Held(_))) => {
                let is_sought = matches!(phase, Phase::Trying(_));
                let mut cx = Context { base: &mut self.base, keys, effects };
                if !(is_sought && cx.leave_place_to_others(cx.keys.reached)) {
                    cx.clear_all();
                }
            }
            Stage::Asked(keys, Phase::Clearing(_)) => {
                let mut cx = Context { base: &mut self.base, keys, effects };
                cx.leave_place_to_others(MasterSet::EMPTY);
                cx.unmark();
            }
            Stage::Queued | Stage::Asked(..) | Stage::Over => {}
        }
        self.stage = Stage::Over;
    }
}
