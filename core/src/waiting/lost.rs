//! A lost attempt: its votes, and the answers after it.

use std::sync::Arc;
use std::time::Duration;

use super::bid::{Bid, Plan, Waiting};
use super::masters::Masters;
use super::plan::BEHIND_THE_END;
use super::settling;
use crate::lock::{Assigner, Effects, Lock, LostRound, Refused, State};
use crate::protocol::{Ahead, Answer, MasterId, MasterSet, Sentinel, Tally, Vote, are_quarantined};
use crate::time::Instant;

/// A reader that only a waiting writer's mark keeps out counts as overtaken once in this span.
/// Larger: favours writers that keep returning. Smaller: lets readers overtake a writer that waits
/// for a long read.
const KEPT_OUT: Duration = Duration::from_secs(1);

/// When a waiter for a permit asks other masters again, unless the first one says that another has
/// waited longer. Notifications cover the permits of the first one, or of a majority; others may
/// have become free without one. Smaller: more requests. Larger: such a permit is idle for longer.
const LOOKS_AGAIN: Duration = Duration::from_secs(1);

impl Bid {
    pub(super) fn lost(&mut self, lost: LostRound, lock: &mut Lock, effects: &mut Effects<'_>) {
        let now = effects.now;
        self.came_at.get_or_insert(lost.since);
        if lost.was_granted {
            // Knowledge from before it was held is outdated.
            self.masters = Masters::default();
            self.assigner = Assigner::Common;
        }
        if let Some((master, answer)) = lost.last {
            self.named(master, answer, effects);
        }
        let votes: Arc<[Vote]> = lost.votes.into();
        if !lost.is_undecided || self.last_votes.is_none() {
            self.last_votes = Some(Arc::clone(&votes));
        }
        let stale = lost.stale.without(self.repeated);
        // A round can be lost by one vote, so a single fresh connection may win it now. If the
        // round was lost because time ran out, there is no time for another one.
        if !lost.is_undecided && !stale.is_empty() {
            // Once for each master, so that this is bounded.
            stale.iter().for_each(|master| self.repeated.insert(master));
            lock.give_back(effects);
            if let Err(error) = self.attempt(true, lock, effects) {
                lock.fail(error.into(), effects);
            }
            return;
        }
        let quorum = effects.config.quorum;
        let left = lock.give_up_at().map(|limit| limit.since(now));
        let is_hopeless = Tally::of(&votes).is_misconfigured(quorum)
            || left.is_some_and(|left| are_quarantined(&votes, quorum, left));
        let goes_on = !is_hopeless && lock.may_try_again();
        lock.undo(goes_on, effects);
        let may_settle = !goes_on && effects.config.settles_splits;
        let asks_soon = if lost.was_granted { None } else { self.note_seats(lost.assigners, lock, effects) };
        let is_watched = self.masters.watched() >= effects.config.quorum.needed();
        let poll_at = if may_settle || asks_soon == Some(true) {
            now + settling::pause(now.since(lost.since), effects)
        } else if asks_soon.is_none() && lock.targets().is_permit() && is_watched {
            now + LOOKS_AGAIN
        } else {
            now + effects.jitter.within(&effects.config.retry_delay)
        };
        self.learn(&votes, goes_on || may_settle, now);
        if lock.targets().is_permit() {
            // `learn` has forgotten the time before.
            self.all_at = Some(poll_at);
        }
        if asks_soon.is_some() {
            self.masters = Masters::unknown(votes.len());
        }
        self.plan = Plan::Waiting(Waiting {
            votes,
            awaited: lost.awaited,
            retry_at: goes_on.then_some(poll_at),
            poll_at,
            refused_first: None,
            listens: false,
        });
        self.plan_next_attempt(lock, effects);
        if goes_on && !lost.is_last && lock.is_fair() {
            self.lost_in_queue(lost.since, lost.was_granted, lock, effects);
        }
        self.conclude(lock, effects);
        if lost.is_last && lock.state() == State::Sought {
            self.finish(lock, effects);
        }
    }

    /// After a lost round for permits: if seats were assigned in it, whether a waiter asks again
    /// soon. The assigning master may not have executed an acquisition yet, or may have missed one,
    /// or the release of a seat that is free on the others. So one that has not assigned any is
    /// asked next. Once all have, or have none, there is nothing new to learn.
    fn note_seats(&mut self, assigners: MasterSet, lock: &Lock, effects: &Effects<'_>) -> Option<bool> {
        let (_, of, take) = lock.targets().as_permit()?;
        if lock.seat().is_none() {
            self.assigner = match self.assigner {
                // One of these has just assigned seats that others did not grant. If notifications
                // of such a master counted, waiters would wake one another whenever they return
                // such seats.
                Assigner::Beside(before) if effects.has_others(before) => {
                    Assigner::Beside(MasterSet::all(effects.config.masters.len()))
                }
                _ => Assigner::Another,
            };
            return None;
        }
        let asks_soon = take < of && effects.has_others(assigners);
        self.assigner = if asks_soon { Assigner::Beside(assigners) } else { Assigner::Common };
        Some(asks_soon)
    }

    /// Learns from the votes of a lost round. Another may follow if it `goes_on`.
    fn learn(&mut self, votes: &[Vote], goes_on: bool, now: Instant) {
        if votes.iter().any(|vote| vote.is_refusal()) {
            // Readers of this process are no rivals.
            if !self.is_beside() {
                self.met_others = Some(now);
            }
            self.left_free_at = None;
            self.is_wary = true;
        }
        let named = |vote: &&Vote| matches!(vote, Vote::HeldByAnother { holder: Some(_), .. });
        if let Some(vote) = votes.iter().find(named) {
            self.met(*vote, now);
        }
        if goes_on {
            self.all_at = None;
            self.masters.undone(votes);
        }
    }

    /// A round was lost because of this vote. A holder that renews overtakes no waiter.
    pub(super) fn met(&mut self, vote: Vote, now: Instant) {
        self.left_free_at = None;
        let Vote::HeldByAnother { holder: Some(holder), .. } = vote else { return };
        if holder == Sentinel::WANTED {
            // Marks do not identify a waiting writer: each second of them counts as one turn.
            let since = *self.kept_out_since.get_or_insert(now);
            if now.since(since) >= KEPT_OUT {
                self.passed_over += 1;
                self.kept_out_since = Some(now);
            }
            return;
        }
        self.kept_out_since = None;
        if self.holder.replace(holder).is_some_and(|last| last != holder) {
            self.passed_over += 1;
        }
    }

    /// The only master that was asked refused. Nothing must be undone, and nothing new is known
    /// about the others. A rival that came first on this master is assumed to get the others, too,
    /// unless the key may have been held here since before it became free on the others.
    pub(super) fn turned_away(&mut self, refused: Refused, lock: &Lock, effects: &mut Effects<'_>) {
        let now = effects.now;
        self.came_at.get_or_insert(refused.since);
        let (first, said) = (refused.first, refused.votes);
        let vote = said.get(first.index()).copied().unwrap_or(Vote::Outstanding);
        self.met(vote, now);
        let mut votes = self.last_votes.take().unwrap_or_else(|| said.into());
        record(&mut votes, first, vote);
        self.last_votes = Some(Arc::clone(&votes));
        self.met_others = Some(now);
        let was_wary = std::mem::replace(&mut self.is_wary, true);
        let pause = effects.jitter.within(&effects.config.retry_delay);
        let poll_at = if lock.targets().is_permit() {
            self.asks_for_permits_at(refused.answer, was_wary, pause, effects)
        } else {
            *self.all_at.get_or_insert(now + pause)
        };
        // Earlier notifications of other masters about permits may be of the same changes that this
        // one knows.
        if lock.targets().is_permit() || matches!(self.plan, Plan::Asking { first_leads: true, .. }) {
            self.masters.forget_all_but(first);
        }
        self.plan = Plan::Waiting(Waiting {
            votes,
            awaited: MasterSet::EMPTY,
            retry_at: Some(poll_at),
            poll_at,
            refused_first: Some(first),
            listens: false,
        });
        self.plan_next_attempt(lock, effects);
    }

    /// When to ask again, without a notification, after the only master that was asked had no
    /// permit to assign. It may have missed releases, so others are asked as well after a while,
    /// however often it notifies: renewals of permits are notified, too.
    fn asks_for_permits_at(
        &mut self,
        answer: Answer,
        was_wary: bool,
        pause: Duration,
        effects: &mut Effects<'_>,
    ) -> Instant {
        let now = effects.now;
        let watches = match answer {
            // A first attempt does not ask for notifications, but the next one does.
            _ if !was_wary => return now,
            // A mark expires without a notification if its writer is gone. Other masters may not
            // have it, so they are not asked.
            Answer::Holder { holder: Sentinel::WANTED, remaining: Some(left), .. } => {
                return now + left + effects.jitter.within(&BEHIND_THE_END);
            }
            Answer::Holder { watched, .. } => watched,
            _ => false,
        };
        self.assigner = Assigner::Another;
        let all_at = *self.all_at.get_or_insert(now + LOOKS_AGAIN);
        if watches { all_at } else { all_at.min(now + pause) }
    }

    // Answers after a lost round.

    /// A vote that is too late to count is still worth more to the caller than silence.
    pub(super) fn voted_late(
        &mut self,
        master: MasterId,
        answer: Answer,
        lock: &mut Lock,
        effects: &mut Effects<'_>,
    ) {
        let Some(waiting) = self.lost_wait() else { return };
        let vote = answer.vote();
        if waiting.votes.get(master.index()) == Some(&Vote::Outstanding) {
            record(&mut waiting.votes, master, vote);
            if matches!(vote, Vote::HeldByAnother { holder: None, .. }) {
                waiting.awaited.insert(master);
            } else {
                waiting.awaited.remove(master);
            }
        }
        self.answered(master, answer, false, lock, effects);
    }

    pub(super) fn was_read(
        &mut self,
        master: MasterId,
        answer: Answer,
        lock: &mut Lock,
        effects: &mut Effects<'_>,
    ) {
        let Some(waiting) = self.lost_wait() else { return };
        if waiting.listens {
            return self.listened(master, answer, lock, effects);
        }
        waiting.awaited.remove(master);
        let vote = waiting.votes.get(master.index());
        let refused = vote.is_some_and(|vote| vote.is_refusal());
        // An acquisition that was never sent gets no answer, but its undo may name the holder.
        let is_open = vote == Some(&Vote::Outstanding);
        match answer {
            Answer::Holder { holder, remaining, .. }
            | Answer::Queued { ahead: Some(Ahead { holder, remaining }), .. }
                if refused || is_open =>
            {
                record(&mut waiting.votes, master, Vote::HeldByAnother { remaining, holder: Some(holder) });
                if holder == Sentinel::HOLDER {
                    self.holder = Some(holder);
                }
            }
            // A key of a foreign type refuses `SET NX` like a lock does; only the read
            // distinguishes them. Other failures of the read do not change the refusal.
            Answer::Failed { cause, .. }
                if refused && (cause.is_other_type() || cause.is_configuration()) =>
            {
                record(&mut waiting.votes, master, Vote::Failed(cause));
            }
            _ => {}
        }
        self.answered(master, answer, true, lock, effects);
    }

    fn answered(
        &mut self,
        master: MasterId,
        answer: Answer,
        is_read: bool,
        lock: &mut Lock,
        effects: &mut Effects<'_>,
    ) {
        let now = effects.now;
        let Some(waiting) = self.lost_wait() else { return };
        let (goes_on, votes) = (waiting.retry_at.is_some(), Arc::clone(&waiting.votes));
        self.last_votes = Some(votes);
        if goes_on || effects.config.settles_splits {
            self.masters.note(master, answer, is_read, effects.config.masters.len(), now);
        }
        if goes_on {
            self.plan_next_attempt(lock, effects);
            self.heard_in_queue(lock, effects);
        }
        self.conclude(lock, effects);
    }
}

pub(super) fn record(votes: &mut Arc<[Vote]>, master: MasterId, vote: Vote) {
    if let Some(place) = Arc::make_mut(votes).get_mut(master.index()) {
        *place = vote;
    }
}
