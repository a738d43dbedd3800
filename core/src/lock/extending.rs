//! Extensions of a held lock: those that its caller requests, and renewal in the background.

use std::sync::Arc;

use std::time::Duration;

use super::context::Context;
use super::holding::Held;
use super::{NOTICE, Next};
use crate::jitter::Jitter;
use crate::protocol::{
    Action, Answer, Event, ExtendError, ExtensionId, LossCause, MasterId, MasterSet, Ttl, Vote, Votes,
};
use crate::time::Instant;

/// Extensions that may be under way at once: renewal, and a few callers'. Larger only lets one
/// caller use more memory. Smaller refuses callers that share a guard.
const MAX_EXTENSIONS: usize = 8;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Renewal {
    pub(super) next: Instant,
    /// No renewal begins after this instant.
    pub(super) until: Instant,
}

/// One round of extensions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Extension {
    round: u32,
    since: Instant,
    ttl: Ttl,
    votes: Votes,
    /// The caller's number for it; `None` is renewal.
    caller: Option<ExtensionId>,
    stage: Stage,
    /// Masters on which this extension has restored the lock.
    healed: MasterSet,
}

/// The state of an extension.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Open,
    /// Further answers only find masters that do not hold the lock, to restore it there.
    Won,
    /// Further answers only find masters that no longer hold the lock.
    Failed,
}

impl Held {
    fn has_room(&self) -> bool {
        self.extensions.len() < MAX_EXTENSIONS || self.won_extension().is_some()
    }

    /// An extension that is won. It is only kept for what further answers say about their masters.
    fn won_extension(&self) -> Option<usize> {
        self.extensions.iter().position(|extension| extension.stage == Stage::Won)
    }

    /// When renewal begins again: not while one is under way, nor past the longest hold.
    pub(super) fn next_renewal(&self) -> Option<Instant> {
        let renewal = self.renewal.as_ref().filter(|renewal| renewal.next <= renewal.until)?;
        let under_way = self.extensions.iter().any(|it| it.caller.is_none() && it.stage == Stage::Open);
        (!under_way && self.has_room()).then_some(renewal.next)
    }

    /// An extension that the caller requests.
    pub(super) fn extend(
        &mut self,
        id: ExtensionId,
        ttl: Ttl,
        cx: &mut Context<'_, '_>,
    ) -> Result<(), ExtendError> {
        if !self.has_room() {
            return Err(ExtendError::TooManyExtensions);
        }
        self.start_extension(Some(id), ttl, cx);
        Ok(())
    }

    /// Asks every master that may hold the token. All N masters have a vote: one that never had the
    /// token, or must not count as a holder, counts as "not held" from the start.
    pub(super) fn start_extension(
        &mut self,
        caller: Option<ExtensionId>,
        ttl: Ttl,
        cx: &mut Context<'_, '_>,
    ) {
        let now = cx.effects.now;
        let round = cx.base.next_round();
        let asked = cx.keys.reached.without(cx.keys.forsaken).without(cx.keys.unproven);
        let votes = Votes::outstanding_from(asked, cx.effects.config.masters.len(), Vec::new());
        cx.base.longest_ttl = cx.base.longest_ttl.max(ttl);
        if let Some(won) = self.won_extension().filter(|_| self.extensions.len() >= MAX_EXTENSIONS) {
            self.extensions.swap_remove(won);
        }
        self.extensions.push(Extension {
            round,
            since: now,
            ttl,
            votes,
            caller,
            stage: Stage::Open,
            healed: MasterSet::EMPTY,
        });
        cx.order_numbered(asked, round, Action::Extend, ttl, cx.keys.fence);
    }

    pub(super) fn extension_answered(
        &mut self,
        master: MasterId,
        round: u32,
        answer: Answer,
        cx: &mut Context<'_, '_>,
    ) -> Next {
        let now = cx.effects.now;
        let Some(place) = self.extensions.iter().position(|extension| extension.round == round) else {
            return Next::Stay;
        };
        let Some(extension) = self.extensions.get_mut(place) else { return Next::Stay };
        let vote = cx.holder_vote(master, answer);
        extension.votes.record(master, vote);
        if vote == Vote::Granted {
            cx.kept(master, extension.ttl, extension.since);
            // The master has executed what was sent to it before, and no release is behind that.
            if self.healed_at.is_none_or(|healed_at| healed_at < extension.since) {
                self.unsettled.remove(master);
            }
        }
        if extension.stage == Stage::Won {
            self.heal_behind(place, cx);
            return Next::GoOn;
        }
        let quorum = cx.quorum();
        let tally = extension.votes.tally();
        if tally.not_held() > quorum.masters() - quorum.needed() {
            if self.taken {
                return self.lose(LossCause::NotHeld, cx);
            }
            // The caller has not taken the lock, so this is a lost attempt and not a loss.
            self.votes = extension.votes.take();
            return self.ended_untaken(cx);
        }
        if tally.granted() >= quorum.needed() {
            // An extension decided after validity ended does not revive the lock: another holder
            // may have had the key in between.
            if now + NOTICE >= self.valid_until {
                return self.time_passed(cx);
            }
            // If the extension was already reported to its caller as failed, the success is
            // reported as a renewal.
            let caller = extension.caller.filter(|_| extension.stage == Stage::Open);
            // No extension shortens a key, so a validity that already reaches further remains.
            self.valid_until = self.valid_until.max(extension.ttl.valid_until(extension.since));
            let valid_until = self.valid_until;
            if let (None, Some(renewal)) = (extension.caller, &mut self.renewal) {
                renewal.next = renewal_after(extension.since, cx.base.ttl, cx.effects.jitter);
            }
            extension.stage = Stage::Won;
            let lock = cx.base.id;
            cx.effects.events.push_back(match caller {
                Some(extension) => Event::Extended { lock, extension, result: Ok(valid_until) },
                None => Event::Renewed { lock, valid_until },
            });
            self.heal_behind(place, cx);
        } else if tally.granted() + tally.outstanding() < quorum.needed() {
            self.extension_failed(place, cx);
        }
        Next::GoOn
    }

    /// A quorum still holds the lock: as further masters report that they do not, it is restored
    /// there. A late confirmation matters, too: to a locker that resumes the lock, and under the
    /// restart guard if the master is quarantined later ([`Context::holder_vote`]).
    fn heal_behind(&mut self, place: usize, cx: &mut Context<'_, '_>) {
        let Some(extension) = self.extensions.get_mut(place) else { return };
        let mut lost = MasterSet::EMPTY;
        for (master, vote) in MasterId::all(extension.votes.len()).zip(extension.votes.iter()) {
            if *vote == Vote::NotHeld && !extension.healed.contains(master) {
                lost.insert(master);
                extension.healed.insert(master);
            }
        }
        if !extension.votes.contains(&Vote::Outstanding) {
            self.forget_extension(place);
        }
        self.heal(lost, cx);
    }

    /// Too few masters confirmed it: the validity is unchanged. Outstanding answers may still
    /// confirm it, or report that a master does not hold the lock.
    fn extension_failed(&mut self, place: usize, cx: &mut Context<'_, '_>) {
        let now = cx.effects.now;
        let Some(extension) = self.extensions.get_mut(place) else { return };
        let first_time = std::mem::replace(&mut extension.stage, Stage::Failed) == Stage::Open;
        let (caller, votes) = (extension.caller, extension.votes.to_vec());
        if extension.votes.tally().outstanding() == 0 {
            self.forget_extension(place);
        }
        if !first_time {
            return;
        }
        match caller {
            Some(extension) => {
                let result = Err(ExtendError::NoQuorum(Arc::new(cx.ballot(votes))));
                let lock = cx.base.id;
                cx.effects.events.push_back(Event::Extended { lock, extension, result });
            }
            None => {
                if let Some(renewal) = &mut self.renewal {
                    renewal.next = now + retry_pause(cx.base.ttl.as_duration(), cx.effects.jitter);
                }
            }
        }
    }

    /// A lock that is held for long does not keep memory for occasional extensions.
    fn forget_extension(&mut self, place: usize) {
        self.extensions.swap_remove(place);
        if self.extensions.is_empty() {
            self.extensions = Vec::new();
        }
        if self.taken {
            self.votes = Vec::new();
        }
    }

    /// The claim has another form, so answers about the earlier one no longer matter. Repeats the
    /// extensions that callers wait for. If there are none, starts one as in renewal.
    pub(super) fn extend_anew(&mut self, cx: &mut Context<'_, '_>) {
        let under_way = std::mem::take(&mut self.extensions).into_iter();
        for extension in under_way.filter(|extension| extension.stage == Stage::Open) {
            if extension.caller.is_some() {
                self.start_extension(extension.caller, extension.ttl, cx);
            }
        }
        if self.extensions.is_empty() {
            self.start_extension(None, cx.base.ttl, cx);
        }
    }

    /// Ends the extensions that callers still wait for: there is nothing left to extend.
    pub(super) fn end_extensions(&self, cause: LossCause, cx: &mut Context<'_, '_>) {
        let open = self.extensions.iter().filter(|extension| extension.stage == Stage::Open);
        for extension in open.filter_map(|extension| extension.caller) {
            let result = Err(ExtendError::Lost(cause));
            cx.effects.events.push_back(Event::Extended { lock: cx.base.id, extension, result });
        }
    }
}

/// A step of renewal is at most the pause before a renewal divided by this. Renewals that are due
/// in the same step begin together, so thousands of held locks need fewer wake-ups and writes.
/// Larger: smaller steps, and more wake-ups. Smaller: more locks are renewed at the same instant,
/// and other requests wait behind them.
const STEPS_OF_A_PAUSE: u32 = 256;

/// When the renewal after a request that began at `since` begins: a third of the TTL later, or up
/// to a tenth of that earlier, so that two more tries fit before the end and many locks taken
/// together are not all renewed together.
pub(super) fn renewal_after(since: Instant, ttl: Ttl, jitter: &mut Jitter) -> Instant {
    let third = ttl.as_duration() / 3;
    // A power of two, so that a lock with another TTL is often renewed at the same instants.
    let most = u64::try_from((third / STEPS_OF_A_PAUSE).as_nanos()).unwrap_or(u64::MAX);
    let step = 1 << most.checked_ilog2().unwrap_or(0);
    let earliest = third - third / 10 + Duration::from_nanos(step);
    (since + jitter.within(&(earliest..=third))).rounded_down(step)
}

/// A failed renewal is tried again soon, but never in a tight loop.
fn retry_pause(ttl: Duration, jitter: &mut Jitter) -> Duration {
    let shortest = (ttl / 20).clamp(Duration::from_millis(5), Duration::from_secs(1));
    jitter.within(&(shortest..=shortest + shortest / 4))
}
