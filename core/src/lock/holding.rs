//! Holding: from the grant to the end of validity, a loss or the release.

use super::clearing::LostRound;
use super::context::Context;
use super::extending::{Extension, Renewal, renewal_after};
use super::resuming::not_resumed;
use super::seating::{Asking, Said};
use super::{NOTICE, Next};
use crate::protocol::{Answer, Cause, Event, Fate, LossCause, MasterId, MasterSet, Vote};
use crate::time::Instant;

/// A granted lock.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Held {
    /// The round that granted it.
    round: u32,
    /// The round in which keys are restored.
    pub(super) healing_round: u32,
    pub(super) since: Instant,
    /// The masters' votes in that round; empty once it has been extended and they are no longer
    /// needed.
    pub(super) votes: Vec<Vote>,
    /// Masters that granted it in that round.
    granted: MasterSet,
    /// Masters with an unanswered request that sets the key: if the connection falls silent, a
    /// release is written behind it.
    pub(super) unsettled: MasterSet,
    pub(super) valid_until: Instant,
    /// Whether the caller has taken it; until then its end is not a loss.
    pub(super) taken: bool,
    /// Whether it was handed over to us. Until it is taken it is not ours to release.
    pub(super) was_resumed: bool,
    /// When keys were last restored.
    pub(super) healed_at: Option<Instant>,
    pub(super) renewal: Option<Renewal>,
    pub(super) extensions: Vec<Extension>,
}

impl Held {
    pub(super) fn new(
        round: u32,
        since: Instant,
        votes: Vec<Vote>,
        valid_until: Instant,
        cx: &mut Context<'_, '_>,
    ) -> Self {
        let healing_round = if cx.base.heals { cx.base.next_round() } else { round };
        let renewal = cx.base.renew_for.map(|longest| Renewal {
            next: renewal_after(since, cx.base.ttl, cx.effects.jitter),
            until: since + longest,
        });
        let mut granted = MasterSet::EMPTY;
        let cast = MasterId::all(votes.len()).zip(&votes);
        cast.filter(|(_, vote)| **vote == Vote::Granted).for_each(|(master, _)| granted.insert(master));
        if cx.is_guarded() {
            granted.iter().for_each(|master| cx.kept(master, cx.base.ttl, since));
        }
        Self {
            round,
            healing_round,
            since,
            votes,
            granted,
            unsettled: MasterSet::EMPTY,
            valid_until,
            taken: false,
            was_resumed: false,
            healed_at: None,
            renewal,
            extensions: Vec::new(),
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        let end = self.valid_until - NOTICE;
        self.next_renewal().map_or(end, |next| next.min(end))
    }

    pub(super) fn answer(
        &mut self,
        master: MasterId,
        round: u32,
        answer: Answer,
        cx: &mut Context<'_, '_>,
    ) -> Next {
        if round == self.round {
            return self.late_vote(master, answer, cx);
        } else if round == self.healing_round {
            self.heal_answered(master, answer, cx);
        } else {
            return self.extension_answered(master, round, answer, cx);
        }
        Next::Stay
    }

    /// A vote that comes after the lock was won: the master also holds it, or never will. A master
    /// of another fleet would have ended the round, and ends the lock now.
    fn late_vote(&mut self, master: MasterId, mut answer: Answer, cx: &mut Context<'_, '_>) -> Next {
        // A master that has granted the lock answers a raise here. If the lock was resumed, every
        // master answers an extension. Neither sets a key.
        if self.was_resumed || self.granted.contains(master) {
            return Next::Stay;
        }
        if cx.keys.seating.is_some() {
            let asking = Asking { round: self.round, watch: false, waited: None, is_open: false };
            let Said::All(chosen) = cx.chosen_by(master, answer, asking) else { return Next::Stay };
            answer = chosen;
        }
        let vote = answer.vote();
        if let Some(place) = self.votes.get_mut(master.index()) {
            *place = vote;
        }
        if let Some(grant) = &mut cx.base.grant {
            grant.was_refused |= vote.is_refusal();
        }
        if vote == Vote::Granted {
            self.granted.insert(master);
            cx.kept(master, cx.base.ttl, self.since);
        }
        if !matches!(answer, Answer::Failed { fate: Fate::Unknown | Fate::Undone, .. }) {
            self.unsettled.remove(master);
        }
        cx.keys.note_fate(master, answer);
        if matches!(answer, Answer::No | Answer::Holder { .. } | Answer::Queued { .. }) {
            cx.keys.reached.remove(master);
        }
        match vote {
            Vote::Failed(Cause::OtherFleet { .. }) if self.taken => self.lose(LossCause::OtherFleet, cx),
            Vote::Failed(Cause::OtherFleet { .. }) => self.ended_untaken(cx),
            _ => Next::Stay,
        }
    }

    /// The caller takes it, if it is still valid; if not, the lock is still sought.
    pub(super) fn take(&mut self, cx: &mut Context<'_, '_>) -> Result<Instant, Next> {
        let now = cx.effects.now;
        if now + NOTICE < self.valid_until {
            self.taken = true;
            return Ok(self.valid_until);
        }
        Err(self.ended_untaken(cx))
    }

    pub(super) fn time_passed(&mut self, cx: &mut Context<'_, '_>) -> Next {
        let now = cx.effects.now;
        if now + NOTICE >= self.valid_until {
            return if self.taken { self.lose(LossCause::Expired, cx) } else { self.ended_untaken(cx) };
        }
        if self.next_renewal().is_some_and(|next| next <= now) {
            self.start_extension(None, cx.base.ttl, cx);
        }
        Next::Stay
    }

    /// A grant that ended before its caller took it is a lost attempt.
    pub(super) fn ended_untaken(&mut self, cx: &mut Context<'_, '_>) -> Next {
        self.end_extensions(LossCause::Expired, cx);
        let votes = std::mem::take(&mut self.votes);
        if self.was_resumed {
            return not_resumed(votes, cx);
        }
        Next::RoundLost(LostRound { was_granted: true, ..LostRound::new(self.round, self.since, votes, cx) })
    }

    /// Notifies the holder, and clears the rest of the lock away. If another locker may hold it,
    /// that is done only if neither has a quorum.
    pub(super) fn lose(&mut self, cause: LossCause, cx: &mut Context<'_, '_>) -> Next {
        cx.effects.events.push_back(Event::Lost { lock: cx.base.id, cause });
        self.end_extensions(cause, cx);
        if !cx.keys.is_copied || cause == LossCause::NotHeld {
            cx.clear_all();
        }
        Next::Gone
    }
}
