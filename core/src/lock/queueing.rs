//! Fair waiting: a place in the queue that each master keeps for one resource.
//!
//! If each master queued waiters by arrival, two waiters could block each other: each may be first
//! on one master. So the order is agreed first, as an atomic register's timestamps are. On each
//! master a place gets the number after the largest. The largest of a majority's numbers counts,
//! and is written to a majority. A later waiter meets that number on at least one master, and gets
//! a larger one. Each master grants the lock only to the smallest number in its queue whose waiter
//! is alive.
//!
//! Exclusion does not depend on any of that: a grant needs a majority, as without a queue.

use super::clearing::Clearing;
use super::context::Context;
use super::{Effects, Lock, Phase, Report, Stage};
use crate::protocol::{Action, Answer, Fate, FencingToken, MasterId, MasterSet, QueuePlace, Quorum, Request};

/// The state of fair waiting.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Queueing {
    /// `None` before the first attempt, and while the lock waits without a place.
    place: Option<QueuePlace>,
    /// Whether the lock waits without a place.
    is_out: bool,
    /// The largest number that a master gave the place before a quorum had one number: masters with
    /// another one get this one.
    number: Option<FencingToken>,
    /// Masters that have the place with that number.
    agreed: MasterSet,
    /// Whether a quorum has had that number. From then on it is final, and must be exact on each
    /// master: waiters that came later have met it.
    is_settled: bool,
    /// Masters that were asked to give the place that number.
    raised: MasterSet,
    /// Masters that may have the place.
    placed: MasterSet,
    /// Of these, the ones that could not have it before all were last asked, and have not answered
    /// since: if that request is not sent, they do not have it.
    added: MasterSet,
    /// Masters that have answered since all were last asked.
    answered: MasterSet,
    /// Masters on which it is first, and waits only for the key.
    first: MasterSet,
}

impl Queueing {
    pub(super) fn place(&self) -> Option<QueuePlace> {
        self.place
    }

    /// Notes that all masters are asked to enter or keep the place.
    fn asks_all(&mut self, all: MasterSet) {
        self.added = all.without(self.placed);
        (self.placed, self.answered) = (all, MasterSet::EMPTY);
    }

    pub(super) fn note(&mut self, master: MasterId, answer: Answer) {
        match answer {
            Answer::Failed { fate: Fate::NotSent, cause, .. } if !cause.is_no_vote_yet() => {
                if self.added.contains(master) {
                    self.placed.remove(master);
                }
            }
            _ => self.added.remove(master),
        }
        if may_have_place(answer) {
            self.answered.insert(master);
        }
        let Answer::Queued { number, is_first, .. } = answer else { return };
        if Some(number) > self.number && !self.is_settled {
            (self.number, self.agreed, self.raised) = (Some(number), MasterSet::EMPTY, MasterSet::EMPTY);
        }
        if Some(number) == self.number {
            self.agreed.insert(master);
        } else {
            // The place may have reached this master late, behind later waiters.
            self.agreed.remove(master);
            self.raised.remove(master);
        }
        if is_first {
            self.first.insert(master);
        } else {
            self.first.remove(master);
        }
    }
}

/// Whether a master that answers so may have the place.
fn may_have_place(answer: Answer) -> bool {
    match answer {
        // Grants do not report the place's number.
        Answer::Queued { .. } | Answer::Yes | Answer::Counted(_) => true,
        Answer::Failed { cause, .. } => cause.is_no_vote_yet(),
        Answer::No | Answer::Holder { .. } | Answer::Seats { .. } | Answer::OursInQuarantine { .. } => false,
    }
}

impl Lock {
    /// Whether its caller wants it to wait fairly.
    pub(crate) fn is_fair(&self) -> bool {
        self.base.queueing.is_some()
    }

    /// Its place in the masters' queues.
    pub(crate) fn queue_place(&self) -> Option<QueuePlace> {
        self.base.queueing.as_ref()?.place
    }

    /// Whether it is first in this master's queue, and waits only for the key.
    pub(crate) fn is_first_at(&self, master: MasterId) -> bool {
        self.base.queueing.as_ref().is_some_and(|queueing| queueing.first.contains(master))
    }

    /// Whether a quorum of masters has its place with the number that counts.
    pub(crate) fn has_its_number(&self) -> bool {
        self.base.queueing.as_ref().is_some_and(|queueing| queueing.is_settled)
    }

    /// Whether a quorum of masters has answered since all were last asked to keep its place, if as
    /// many as `outstanding` still answer.
    pub(crate) fn keeps_its_place(&self, outstanding: usize, quorum: Quorum) -> bool {
        let answered = self.base.queueing.as_ref().map(|queueing| queueing.answered);
        answered.is_some_and(|answered| answered.iter().count() + outstanding >= quorum.needed())
    }

    /// After a lost round: masters that have the place with another number than the one that
    /// counts, or have not reported one, get that number.
    pub(crate) fn agree_on_number(&mut self, effects: &mut Effects<'_>) {
        let quorum = effects.config.quorum;
        let Some(queueing) = &mut self.base.queueing else { return };
        queueing.is_settled |= queueing.agreed.iter().count() >= quorum.needed();
        let behind = queueing.answered.without(queueing.agreed).without(queueing.raised);
        behind.iter().for_each(|master| queueing.raised.insert(master));
        self.order_stay(behind, effects);
    }

    /// On these masters the key is free now. A lost round that only waits for its last answers ends
    /// if the next attempt may get a quorum.
    pub(crate) fn freed(&mut self, free: MasterSet, effects: &mut Effects<'_>) -> Report {
        let Self { base, stage: Stage::Asked(keys, Phase::Trying(trying)) } = self else {
            return Report::Unchanged;
        };
        let next = trying.freed(free, &mut Context { base, keys, effects });
        self.go_on(next, effects)
    }

    /// Keeps its place on all masters.
    pub(crate) fn stay(&mut self, effects: &mut Effects<'_>) {
        let all = MasterSet::all(effects.config.masters.len());
        if let Some(queueing) = &mut self.base.queueing {
            queueing.asks_all(all);
        }
        self.order_stay(all, effects);
    }

    fn order_stay(&mut self, to: MasterSet, effects: &mut Effects<'_>) {
        let Self { base, stage: Stage::Asked(keys, Phase::Clearing(clearing)) } = self else { return };
        let Some(queueing) = base.queueing.as_ref().filter(|queueing| queueing.place.is_some()) else {
            return;
        };
        let (number, insists, round) = (queueing.number, queueing.is_settled, clearing.read_round);
        let cx = Context { base, keys, effects };
        let request = cx.request(Some(round), Action::Stay, cx.base.ttl);
        cx.effects.order(to, Request { fence: number, insists, watch: true, ..request });
    }

    /// Leaves the queue, and keeps waiting without a place.
    pub(crate) fn leave_queue(&mut self, effects: &mut Effects<'_>) {
        if let Stage::Asked(keys, phase) = &mut self.stage {
            Context { base: &mut self.base, keys, effects }.leave_places();
            if let Phase::Clearing(clearing) = phase {
                // Further answers about that place are outdated.
                *clearing = Clearing::behind(self.base.next_round(), &mut self.base);
            }
        }
        if let Some(queueing) = &mut self.base.queueing {
            **queueing = Queueing { is_out: true, ..Queueing::default() };
        }
    }

    /// The next attempt enters the queue again.
    pub(crate) fn enter_anew(&mut self) {
        if let Some(queueing) = &mut self.base.queueing {
            queueing.is_out = false;
        }
    }

    /// Before an attempt: whether it needs a new place.
    pub(super) fn needs_place(&self) -> bool {
        self.base.queueing.as_ref().is_some_and(|queueing| queueing.place.is_none() && !queueing.is_out)
    }

    pub(super) fn enters(&mut self, place: Option<QueuePlace>, all: MasterSet) {
        let Some(queueing) = &mut self.base.queueing else { return };
        queueing.place = place.or(queueing.place);
        if queueing.place.is_some() {
            queueing.asks_all(all);
        }
    }
}

impl Context<'_, '_> {
    /// The number for the place on masters that do not have it yet.
    pub(super) fn queue_number(&self) -> Option<FencingToken> {
        self.base.queueing.as_ref()?.number
    }

    /// Whether the place must have exactly that number.
    pub(super) fn is_settled_in_queue(&self) -> bool {
        self.base.queueing.as_ref().is_some_and(|queueing| queueing.is_settled)
    }

    /// Whether another attempt with the same place may follow.
    pub(super) fn goes_on_in_queue(&self) -> bool {
        self.base.queueing.is_some() && self.base.may_try_again()
    }

    /// Takes the token and the place back from all masters that may have the place.
    pub(super) fn leave_places(&mut self) {
        let Some(queueing) = self.base.queueing.as_mut().filter(|queueing| queueing.place.is_some()) else {
            return;
        };
        let placed = std::mem::take(&mut queueing.placed);
        let request = self.request(None, Action::Release, self.base.longest_ttl);
        self.effects.order(placed, request);
    }

    /// Leaves the queue on masters that get no release of the token. On the others the release also
    /// removes the place.
    pub(super) fn leave_other_places(&mut self) {
        let reached = self.keys.reached;
        if let Some(queueing) = &mut self.base.queueing {
            queueing.placed = queueing.placed.without(reached);
        }
        self.leave_places();
    }
}
