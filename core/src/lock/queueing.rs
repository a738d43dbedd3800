//! Fair waiting: a place in the queue that each master keeps for one resource.
//!
//! If each master queued waiters by arrival, two waiters could block each other: each may be first
//! on one master. So the order is agreed first, as an atomic register's timestamps are. On each
//! master a place gets the number after the largest. The largest of a majority's numbers counts,
//! and is written to a majority. A later waiter meets that number on at least one master, and gets
//! a larger one. If a request has a place, each master grants the lock only to the smallest number
//! in its queue whose waiter is alive.
//!
//! A waiter that a quorum has told of its turn asks like any other client, without its place: the
//! queue only decides who asks when, and a plain command costs a master a tenth of the script.
//!
//! Exclusion does not depend on any of that: a grant needs a majority, as without a queue.

use std::time::Duration;

use super::clearing::Clearing;
use super::context::Context;
use super::{Effects, Lock, Phase, Report, Stage};
use crate::protocol::{
    Action, Answer, Claim, Config, Fate, FencingToken, MasterId, MasterSet, QueuePlace, Quorum, Request,
};
use crate::time::Instant;

/// The state of fair waiting. The place belongs to the callers of this process together: one that
/// ends without the lock leaves it to the next one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Queueing {
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
    /// Of those that have answered, the ones that will not notify when its turn comes.
    silent: MasterSet,
    /// Masters that have the place without the turn that fits it.
    uninformed: MasterSet,
    /// When all were last asked.
    asked_at: Instant,
    /// How long the place's turn may be, once the answers of a quorum have been timed.
    turn: Option<Duration>,
    /// From the end of its lock to the first request of the next one: the last request for the
    /// former lock, and the masters that may have granted that.
    left: Option<(Request, MasterSet)>,
    /// Masters on which it is first, and waits only for the key.
    first: MasterSet,
    /// Masters that have told it of its turn since it last asked all, and when the first one did.
    told: MasterSet,
    told_at: Instant,
    /// The round of the last attempt, if it was made in turn.
    in_turn: Option<u32>,
}

impl Queueing {
    pub(super) fn place(&self) -> Option<QueuePlace> {
        self.place
    }

    /// An attempt begins.
    pub(super) fn begins(&mut self, round: u32, in_turn: bool) {
        self.in_turn = in_turn.then_some(round);
    }

    /// Whether the last attempt was made in turn, without the place.
    fn is_in_turn(&self) -> bool {
        self.in_turn.is_some()
    }

    /// No other caller of this process goes on with the place.
    pub(crate) fn end(mut self: Box<Self>, effects: &mut Effects<'_>) {
        if let Some((request, reached)) = self.left.take() {
            effects.order(self.placed.with(reached), request);
        }
    }

    /// Takes back only what its last caller may have been granted.
    fn pass_on(&mut self, effects: &mut Effects<'_>) {
        if let Some((request, reached)) = &mut self.left {
            effects.order(std::mem::take(reached), request.clone().without_place());
        }
        self.raised = MasterSet::EMPTY;
    }

    /// Notes that all masters are asked to enter or keep the place.
    fn asks_all(&mut self, all: MasterSet, now: Instant) {
        self.added = all.without(self.placed);
        (self.placed, self.answered, self.asked_at) = (all, MasterSet::EMPTY, now);
        self.told = MasterSet::EMPTY;
        self.uninformed = if self.turn.is_none() { all } else { MasterSet::EMPTY };
        self.left = None;
    }

    pub(super) fn note(&mut self, master: MasterId, round: u32, answer: Answer, effects: &Effects<'_>) {
        if self.in_turn == Some(round) {
            // It says nothing about the place.
            return;
        }
        match answer {
            Answer::Failed { fate: Fate::NotSent, cause, .. } if !cause.is_no_vote_yet() => {
                if self.added.contains(master) {
                    self.placed.remove(master);
                }
            }
            _ => self.added.remove(master),
        }
        if may_have_place(answer) && !effects.without_queue.contains(master) {
            self.hear_from(master, answer, effects.config, effects.now);
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

    /// Once a quorum has answered, it is known how long a turn must be for this waiter. One that is
    /// not notified of its turn finds it when it asks the next time.
    fn hear_from(&mut self, master: MasterId, answer: Answer, config: &Config, now: Instant) {
        if matches!(answer, Answer::Queued { watched: false, .. }) {
            self.silent.insert(master);
        } else {
            self.silent.remove(master);
        }
        let (before, needed) = (self.answered.iter().count(), config.quorum.needed());
        self.answered.insert(master);
        let answered = self.answered.iter().count();
        if before < needed && answered == needed {
            let is_told = self.answered.without(self.silent).iter().count() >= needed;
            let asks_within = if is_told { Duration::ZERO } else { *config.retry_delay.end() };
            self.turn = Some(QueuePlace::turn_after(now.since(self.asked_at), asks_within));
        }
    }

    /// Masters that have answered, but have the place without the turn that fits it.
    fn to_inform(&self) -> MasterSet {
        let needs_more = self.turn.is_some_and(|turn| turn > QueuePlace::SHORTEST_TURN);
        if needs_more { self.answered.intersection(self.uninformed) } else { MasterSet::EMPTY }
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

    /// Whether it waits in the masters' queues, as far as a quorum of them may keep its place.
    pub(crate) fn queues_up(&self, effects: &Effects<'_>) -> bool {
        self.is_fair() && effects.may_queue()
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

    /// When all masters were last asked to keep its place.
    pub(crate) fn queued_at(&self) -> Option<Instant> {
        Some(self.base.queueing.as_ref()?.asked_at)
    }

    /// Whether a quorum of masters has answered since all were last asked to keep its place, if as
    /// many as `outstanding` still answer.
    pub(crate) fn keeps_its_place(&self, outstanding: usize, quorum: Quorum) -> bool {
        let answered = self.base.queueing.as_ref().map(|queueing| queueing.answered);
        answered.is_some_and(|answered| answered.iter().count() + outstanding >= quorum.needed())
    }

    /// After a lost round: masters that have the place with another number than the one that
    /// counts, or have not reported one, get that number; and those that have it without its turn
    /// get that.
    pub(crate) fn agree_on_number(&mut self, effects: &mut Effects<'_>) {
        let quorum = effects.config.quorum;
        let Some(queueing) = &mut self.base.queueing else { return };
        queueing.is_settled |= queueing.agreed.iter().count() >= quorum.needed();
        let behind = queueing.answered.without(queueing.agreed).without(queueing.raised);
        behind.iter().for_each(|master| queueing.raised.insert(master));
        let uninformed = queueing.to_inform();
        queueing.uninformed = queueing.uninformed.without(uninformed);
        self.stay_on(behind.with(uninformed), effects);
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

    /// Keeps its place on all masters that keep places.
    pub(crate) fn stay(&mut self, effects: &mut Effects<'_>) {
        let Some(queueing) = &mut self.base.queueing else { return };
        let all = MasterSet::all(effects.config.masters.len()).without(effects.without_queue);
        queueing.asks_all(all, effects.now);
        self.stay_on(all, effects);
    }

    /// Keeps its place on these masters.
    pub(crate) fn stay_on(&mut self, to: MasterSet, effects: &mut Effects<'_>) {
        let Self { base, stage: Stage::Asked(keys, Phase::Clearing(clearing)) } = self else { return };
        let Some(queueing) = base.queueing.as_ref().filter(|queueing| queueing.place.is_some()) else {
            return;
        };
        let (number, insists, round) = (queueing.number, queueing.is_settled, clearing.read_round);
        let turn = queueing.turn;
        let cx = Context { base, keys, effects };
        let request = cx.request(Some(round), Action::Stay, cx.base.ttl);
        cx.effects.order(to, Request { fence: number, insists, turn, watch: true, ..request });
    }

    /// Its place, once it has ended without the lock.
    pub(crate) fn leave_place(&mut self) -> Option<Box<Queueing>> {
        self.base.queueing.take_if(|queueing| queueing.left.is_some())
    }

    /// Goes on with the place of another caller of this process, whose lock has ended.
    pub(crate) fn go_on_with(&mut self, mut queueing: Box<Queueing>, effects: &mut Effects<'_>) {
        queueing.pass_on(effects);
        self.base.queueing = Some(queueing);
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

    /// The next attempt enters the queue again, if enough of the masters that have answered keep
    /// places. Returns whether it does.
    pub(crate) fn enter_anew(&mut self, answered: MasterSet, effects: &Effects<'_>) -> bool {
        let Some(queueing) = &mut self.base.queueing else { return false };
        let keep_places = answered.without(effects.without_queue);
        queueing.is_out = keep_places.iter().count() < effects.config.quorum.needed();
        !queueing.is_out
    }

    /// Before an attempt: whether it needs a new place.
    pub(super) fn needs_place(&self, effects: &Effects<'_>) -> bool {
        let is_without = |queueing: &Queueing| queueing.place.is_none() && !queueing.is_out;
        self.base.queueing.as_deref().is_some_and(is_without) && effects.may_queue()
    }

    pub(super) fn enters(&mut self, place: Option<QueuePlace>, all: MasterSet, now: Instant) {
        let Some(queueing) = &mut self.base.queueing else { return };
        queueing.place = place.or(queueing.place);
        if queueing.place.is_some() {
            queueing.asks_all(all, now);
        }
    }

    /// A master has told it of its turn.
    pub(crate) fn told_of_turn(&mut self, master: MasterId, now: Instant) {
        if let Some(queueing) = &mut self.base.queueing {
            if queueing.told.is_empty() {
                queueing.told_at = now;
            }
            queueing.told.insert(master);
        }
    }

    /// Whether it is first on a quorum of masters, of which these are free, and has time left to
    /// ask. A place that ends is told of, too, so it must not have had the time to end. A turn that
    /// is too short for this waiter is only long enough to renew the place.
    pub(crate) fn has_its_turn(&self, free: MasterSet, effects: &Effects<'_>) -> bool {
        let Some(queueing) = &self.base.queueing else { return false };
        let told = queueing.told.intersection(free).iter().count();
        let is_in_time = |turn: Duration| {
            let now = effects.now;
            turn < QueuePlace::LONGEST_TURN
                && now < queueing.told_at + turn / 2
                && now < queueing.asked_at + QueuePlace::LEASE
        };
        queueing.is_settled && told >= effects.config.quorum.needed() && queueing.turn.is_some_and(is_in_time)
    }

    /// Whether its last attempt was made in turn.
    pub(crate) fn asked_in_turn(&self) -> bool {
        self.base.queueing.as_deref().is_some_and(Queueing::is_in_turn)
    }

    /// When to renew the place at the latest, if a master has told it of its turn, so that the
    /// turn is not lost there.
    pub(crate) fn renews_in_turn_at(&self) -> Option<Instant> {
        let queueing = self.base.queueing.as_ref().filter(|queueing| !queueing.told.is_empty())?;
        Some(queueing.told_at + queueing.turn.unwrap_or(QueuePlace::SHORTEST_TURN) / 2)
    }

    /// A turn that was not granted is over: the next one may be asked for at once.
    pub(crate) fn end_turn(&mut self) {
        if let Some(queueing) = &mut self.base.queueing {
            queueing.in_turn = None;
        }
    }
}

impl Context<'_, '_> {
    pub(super) fn has_place(&self) -> bool {
        self.base.queueing.as_ref().is_some_and(|queueing| queueing.place.is_some())
    }

    /// Whether the present attempt is made in turn.
    pub(super) fn asks_in_turn(&self) -> bool {
        self.base.queueing.as_deref().is_some_and(Queueing::is_in_turn)
    }

    /// The number for the place on masters that do not have it yet.
    pub(super) fn queue_number(&self) -> Option<FencingToken> {
        self.base.queueing.as_ref()?.number
    }

    /// How long the turn of the place may be.
    pub(super) fn queue_turn(&self) -> Option<Duration> {
        self.base.queueing.as_ref()?.turn
    }

    /// Whether the place must have exactly that number.
    pub(super) fn is_settled_in_queue(&self) -> bool {
        self.base.queueing.as_ref().is_some_and(|queueing| queueing.is_settled)
    }

    /// When an attempt in turn that is not decided by then must renew the place: a quarter of the
    /// turn, which is a round, is left for that.
    pub(super) fn place_due_in_turn(&self) -> Option<Instant> {
        let queueing = self.base.queueing.as_deref().filter(|queueing| queueing.is_in_turn())?;
        Some(queueing.told_at + queueing.turn? * 3 / 4)
    }

    /// Renews the place during an attempt in turn. Its answers are not waited for.
    ///
    /// It does not name the attempt's token: if the connection ends before the answer, what was
    /// asked for is taken back, and the attempt may have been granted meanwhile.
    pub(super) fn renew_place(&mut self) {
        let Some(claim) = self.place_of_nobody() else { return };
        let Some(queueing) = &self.base.queueing else { return };
        let (number, insists, turn) = (queueing.number, queueing.is_settled, queueing.turn);
        let all = MasterSet::all(self.effects.config.masters.len()).without(self.effects.without_queue);
        let request = Request { claim, ..self.request(None, Action::Stay, self.base.ttl) };
        self.effects.order(all, Request { fence: number, insists, turn, watch: true, ..request });
    }

    /// A claim of the place with a token that no master has. Without one, the place stays until it
    /// ends.
    fn place_of_nobody(&mut self) -> Option<Claim> {
        let place = self.base.queueing.as_ref()?.place?;
        let nobody = self.effects.fresh_token().ok()?;
        Some(Claim::queued(self.base.targets.as_one()?, nobody, false, place))
    }

    /// Whether another attempt with the same place may follow, and the answers to this one tell of
    /// the place.
    pub(super) fn goes_on_in_queue(&self) -> bool {
        let asks_with_place = self.base.queueing.is_some() && !self.asks_in_turn();
        asks_with_place && self.effects.may_queue() && self.base.may_try_again()
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

    /// The lock ends without a grant, and leaves its place to other callers of this process;
    /// `reached` may have its token. Returns whether it has a place.
    pub(super) fn leave_place_to_others(&mut self, reached: MasterSet) -> bool {
        let request = self.request(None, Action::Release, self.base.longest_ttl);
        let queueing = self.base.queueing.as_mut().filter(|queueing| queueing.place.is_some());
        queueing.map(|queueing| queueing.left = Some((request, reached))).is_some()
    }

    /// Leaves the queue, but keeps the token: the lock will be released by another locker, or in
    /// another form, so that its release does not remove the place.
    pub(super) fn leave_places_held(&mut self) {
        let Some(claim) = self.place_of_nobody() else { return };
        let request = self.request(None, Action::Release, self.base.longest_ttl);
        let placed = std::mem::take(&mut self.base.queueing).map_or(MasterSet::EMPTY, |it| it.placed);
        self.effects.order(placed, Request { claim, is_copied: false, ..request });
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
