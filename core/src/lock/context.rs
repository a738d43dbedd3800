//! What all phases of a lock work with: its caller's request, the token of the present attempt, and
//! its effects while it handles one input.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::queueing::Queueing;
use super::seating::Seating;
use crate::jitter::Jitter;
use crate::protocol::{
    Acquire, Action, Answer, Ballot, Claim, Config, Entropy, EntropyFailed, Event, Fate, FencingToken,
    LockId, MasterId, MasterSet, QueuePlace, Quorum, Request, Resource, Targets, Ticket, Token, Ttl, Vote,
    Wish,
};
use crate::time::Instant;

/// The caller's request, and its progress.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Base {
    pub(super) id: LockId,
    pub(super) targets: Targets,
    /// The seat of a semaphore that the next attempt asks for first.
    pub(super) seat_from: u16,
    /// The name of the wait, once it has met sharers of what it wants to write.
    pub(super) wish: Option<Box<Wish>>,
    pub(super) ttl: Ttl,
    /// The longest TTL that any of its keys may have: a release that could not be sent is owed for
    /// that long.
    pub(super) longest_ttl: Ttl,
    /// When its caller stops waiting for it.
    pub(super) give_up_at: Option<Instant>,
    pub(super) attempts_allowed: Option<u32>,
    pub(super) attempts: u32,
    rounds: u32,
    pub(super) renew_for: Option<Duration>,
    /// Its last grant, even if the caller did not take it.
    pub(super) grant: Option<Grant>,
    pub(super) is_fenced: bool,
    pub(super) heals: bool,
    /// Whether others were expected to want it at its last attempt.
    pub(super) is_contended: bool,
    /// For fair waiting.
    pub(super) queueing: Option<Box<Queueing>>,
}

/// When the round that granted a lock began, and when it was granted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Grant {
    pub(crate) asked_at: Instant,
    pub(crate) at: Instant,
    /// Whether a master refused it, in that round or too late to count.
    pub(crate) was_refused: bool,
}

impl Base {
    pub(super) fn new(id: LockId, wanted: &Acquire, now: Instant) -> Self {
        let (timeout, attempts) = wanted.limits();
        let is_fenced =
            wanted.resumption.map_or(wanted.fenced, |resumption| resumption.fencing_token.is_some());
        Self {
            id,
            targets: wanted.targets.clone(),
            seat_from: 0,
            wish: None,
            ttl: wanted.ttl,
            longest_ttl: wanted.ttl,
            give_up_at: timeout.map(|limit| now + limit),
            attempts_allowed: attempts,
            attempts: 0,
            rounds: 0,
            renew_for: wanted.renew_for,
            grant: None,
            is_fenced,
            heals: wanted.healing,
            is_contended: false,
            queueing: wanted.fair.then(Box::default),
        }
    }

    pub(super) fn next_round(&mut self) -> u32 {
        self.rounds = self.rounds.wrapping_add(1);
        self.rounds
    }

    pub(super) fn may_try_again(&self) -> bool {
        self.attempts_allowed.is_none_or(|allowed| self.attempts < allowed)
    }

    /// Whether an attempt from now on lasts until the caller's time is over, or may do so.
    pub(super) fn is_last_in_time(&self, effects: &Effects<'_>) -> bool {
        self.give_up_at.is_some_and(|limit| effects.now + effects.config.request_timeout >= limit)
    }

    pub(super) fn ballot(&self, votes: Option<Arc<[Vote]>>, effects: &Effects<'_>) -> Ballot {
        Ballot {
            targets: self.targets.clone(),
            masters: Arc::clone(&effects.config.masters),
            votes,
            attempts: self.attempts,
            callers_ahead: 0,
        }
    }
}

/// The token of one attempt, and the masters that may have it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Keys {
    pub(super) token: Token,
    claim: Claim,
    /// The choice of seats, for permits.
    pub(super) seating: Option<Box<Seating>>,
    /// Masters that may hold the token, now or later. Those that refused are taken out when the
    /// round is decided; after a lost one only if they named the holder, because the undo reads the
    /// key on the others.
    pub(super) reached: MasterSet,
    /// Masters on which a release may follow the token at any time: they never count as holders.
    pub(super) forsaken: MasterSet,
    /// Masters that did not take the token at first and have not confirmed that it was restored
    /// there: they do not count as holders.
    pub(super) unproven: MasterSet,
    /// Whether another locker may know the token: the lock was resumed, or its resumption was
    /// copied. That locker may count, extend or release keys that this one does not know of.
    pub(super) is_copied: bool,
    /// Under the restart guard, until when each master votes for nobody else: until then it has the
    /// token, or has just lost it and is quarantined.
    kept_until: Vec<Option<Instant>>,
    /// The number of the grant, once it is fenced and granted.
    pub(super) fence: Option<FencingToken>,
}

impl Keys {
    pub(super) fn new(base: &Base, token: Token, reached: MasterSet) -> Self {
        let seating = base.targets.as_permit().map(|permit| Box::new(Seating::new(permit, base)));
        let claim = match seating.as_ref().map(|seating| seating.locks()) {
            Some(Some(locks)) => Claim::new(&locks, token, base.is_fenced, None),
            // No seat is chosen yet.
            Some(None) => Claim::none(),
            None if base.queueing.is_some() => claim_in_queue(base, token),
            None => Claim::new(&base.targets, token, base.is_fenced, base.wish.as_deref().copied()),
        };
        Self {
            token,
            claim,
            seating,
            reached,
            forsaken: MasterSet::EMPTY,
            unproven: MasterSet::EMPTY,
            is_copied: false,
            kept_until: Vec::new(),
            fence: None,
        }
    }

    /// The seats are chosen.
    pub(super) fn choose(&mut self, seats: &Targets, fenced: bool) {
        self.claim = Claim::new(seats, self.token, fenced, None);
    }

    /// The same token claims something else.
    pub(super) fn change_form(&mut self, base: &Base) {
        self.claim = Claim::new(&base.targets, self.token, base.is_fenced, None);
    }

    /// The token may hold the one target alone or share it.
    pub(super) fn be_of_any_kind(&mut self, targets: &Targets) {
        if let Some(resource) = targets.as_one() {
            self.claim = Claim::of_any_kind(resource, self.token);
        }
    }

    /// Whether a master does not count as a holder even if it reports the token: a release may
    /// follow the token there, or it refused the token and can have it only as another master (one
    /// server behind two addresses). Of the rule for a vote: the key is there for the whole span,
    /// and one vote of one server.
    pub(super) fn is_discounted(&self, master: MasterId) -> bool {
        self.forsaken.contains(master) || self.unproven.contains(master) || !self.reached.contains(master)
    }

    /// Tracks the masters that may have the token, and those that must not count.
    pub(super) fn note_fate(&mut self, master: MasterId, answer: Answer) {
        match answer {
            Answer::Failed { fate: Fate::NotSent, .. } => self.reached.remove(master),
            Answer::Failed { fate: Fate::Undone, .. } => self.forsaken.insert(master),
            _ => {}
        }
    }
}

/// The claim of a lock that waits fairly: with its place in the queue, if it has one.
fn claim_in_queue(base: &Base, token: Token) -> Claim {
    let place = base.queueing.as_ref().and_then(|queueing| queueing.place());
    match (base.targets.as_one(), place) {
        (Some(resource), Some(place)) => Claim::queued(resource, token, base.is_fenced, place),
        _ => Claim::new(&base.targets, token, base.is_fenced, base.wish.as_deref().copied()),
    }
}

/// What a phase works with while it handles one input.
pub(super) struct Context<'a, 'e> {
    pub(super) base: &'a mut Base,
    pub(super) keys: &'a mut Keys,
    pub(super) effects: &'a mut Effects<'e>,
}

impl Context<'_, '_> {
    pub(super) fn quorum(&self) -> Quorum {
        self.effects.config.quorum
    }

    /// A request in this round; `None` if its answer is not awaited.
    pub(super) fn request(&self, round: Option<u32>, action: Action, ttl: Ttl) -> Request {
        let ticket = round.map(|round| Ticket { lock: self.base.id, round });
        let request = Request::new(ticket, action, self.keys.claim.clone(), ttl);
        Request { is_copied: self.keys.is_copied, ..request }
    }

    /// Orders a request that carries the number of the grant.
    pub(super) fn order_numbered(
        &mut self,
        to: MasterSet,
        round: u32,
        action: Action,
        ttl: Ttl,
        fence: Option<FencingToken>,
    ) {
        let request = Request { fence, ..self.request(Some(round), action, ttl) };
        self.effects.order(to, request);
    }

    pub(super) fn is_guarded(&self) -> bool {
        self.effects.config.fleet.is_some()
    }

    /// A master had the token when it executed a request that was sent after `since`, and votes for
    /// nobody else until this TTL has passed. Of the rule for a vote: nothing was forgotten.
    pub(super) fn kept(&mut self, master: MasterId, ttl: Ttl, since: Instant) {
        if !self.is_guarded() {
            return;
        }
        let until = ttl.valid_until(since);
        let kept_until = &mut self.keys.kept_until;
        if kept_until.is_empty() {
            *kept_until = vec![None; self.effects.config.masters.len()];
        }
        if let Some(kept) = kept_until.get_mut(master.index()) {
            *kept = (*kept).max(Some(until));
        }
    }

    /// The vote that a master's answer to a request for its key is: an extension or a release. A
    /// quarantined master that has the token counts if it has had it without a gap: else it may
    /// have lost a vote for another client. If another locker may have released the token, only the
    /// end of the quarantine proves that.
    pub(super) fn holder_vote(&self, master: MasterId, answer: Answer) -> Vote {
        let (is_discounted, now) = (self.keys.is_discounted(master), self.effects.now);
        let kept_until = self.keys.kept_until.get(master.index()).copied().flatten();
        let is_proven = !is_discounted && !self.keys.is_copied;
        let has_no_gap = is_proven && kept_until.is_some_and(|until| now < until);
        if has_no_gap && matches!(answer, Answer::OursInQuarantine { .. }) {
            return Vote::Granted;
        }
        answer.holder_vote(is_discounted)
    }

    /// Releases the token everywhere, without waiting for the masters' answers.
    pub(super) fn clear_all(&mut self) {
        let request = self.request(None, Action::Release, self.base.longest_ttl);
        self.order_back(self.keys.reached, request);
        self.leave_other_places();
    }

    /// Releases the token everywhere, as [`Self::clear_all`] does, but keeps the place in the
    /// queue.
    pub(super) fn give_back(&mut self) {
        let request = self.request(None, Action::Release, self.base.longest_ttl);
        self.order_back(self.keys.reached, request.without_place());
    }

    /// Removes the marks of a wait behind readers: otherwise they would keep new readers out until
    /// they expire.
    pub(super) fn unmark(&mut self) {
        if self.base.wish.is_some() && !self.base.targets.is_permit() {
            let all = MasterSet::all(self.effects.config.masters.len());
            self.effects.order(all, self.request(None, Action::Release, self.base.longest_ttl));
        }
    }

    /// Removes the marks of the wait, but not the token: the lock lets readers in from now on.
    pub(super) fn unmark_held(&mut self) {
        let Some(wish) = self.base.wish.take() else { return };
        // A token that no master has. Without one, the marks stay until they expire.
        let Ok(nobody) = self.effects.fresh_token() else { return };
        let claim = Claim::new(&self.base.targets, nobody, false, Some(*wish));
        let request = self.request(None, Action::Release, self.base.longest_ttl);
        let all = MasterSet::all(self.effects.config.masters.len());
        self.effects.order(all, Request { claim, ..request });
    }

    pub(super) fn ballot(&self, votes: Vec<Vote>) -> Ballot {
        self.base.ballot(Some(votes.into()), self.effects)
    }
}

/// One request for a set of masters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Order {
    /// The masters.
    pub to: MasterSet,
    /// The request for each of them.
    pub request: Request,
}

/// What a lock may read, request and report while it handles one input.
pub(crate) struct Effects<'a> {
    pub(crate) now: Instant,
    pub(crate) config: &'a Config,
    pub(crate) entropy: &'a mut dyn Entropy,
    pub(crate) jitter: &'a mut Jitter,
    pub(crate) orders: &'a mut VecDeque<Order>,
    pub(crate) events: &'a mut VecDeque<Event>,
    /// Each connected master's rank, which is the same for all clients.
    pub(crate) ranks: &'a [Option<u64>],
    /// Masters that keep no places in queues for this client, as far as is known.
    pub(crate) without_queue: MasterSet,
}

impl Effects<'_> {
    pub(crate) fn order(&mut self, to: MasterSet, request: Request) {
        if !to.is_empty() {
            self.orders.push_back(Order { to, request });
        }
    }

    /// Whether a quorum of masters may keep places in queues for this client.
    pub(crate) fn may_queue(&self) -> bool {
        let keep_places = MasterSet::all(self.config.masters.len()).without(self.without_queue);
        keep_places.iter().count() >= self.config.quorum.needed()
    }

    /// The connected master that all clients ask first for these targets, if they ask one before
    /// the others.
    pub(crate) fn first_master(&self, targets: &Targets) -> Option<MasterId> {
        self.ranked(targets).max().map(|(_, first)| first)
    }

    /// The next master to assign permits: these ones come behind the others, and masters that are
    /// not connected come last. Within these the order is the same for all clients.
    pub(super) fn next_to_assign(
        &self,
        targets: &Targets,
        passed_over: MasterSet,
        may_assign: impl Fn(&MasterId) -> bool,
    ) -> Option<MasterId> {
        let ranked = self.ranked(targets).filter(|(_, master)| may_assign(master));
        let best = ranked.max_by_key(|(rank, master)| (!passed_over.contains(*master), *rank, *master));
        let any = || MasterId::all(self.config.masters.len()).find(may_assign);
        best.map(|(_, master)| master).or_else(any)
    }

    /// Whether there are connected masters beside these.
    pub(crate) fn has_others(&self, masters: MasterSet) -> bool {
        let ranks = MasterId::all(self.ranks.len()).zip(self.ranks);
        ranks.filter(|(_, rank)| rank.is_some()).any(|(master, _)| !masters.contains(master))
    }

    fn ranked(&self, targets: &Targets) -> impl Iterator<Item = (u64, MasterId)> {
        // Locks of several targets may overlap in different ways, so all of them ask the same
        // master first.
        let seed = targets.only().map_or(0, |(resource, _)| digest(resource));
        let ranked = MasterId::all(self.ranks.len()).zip(self.ranks);
        let connected = ranked.filter_map(|(master, rank)| Some((master, (*rank)?)));
        connected.map(move |(master, rank)| (Jitter::new(seed ^ rank).next(), master))
    }

    pub(super) fn fresh_wish(&mut self) -> Result<Wish, EntropyFailed> {
        let mut bytes = [0; Wish::BYTES];
        self.entropy.fill(&mut bytes)?;
        Ok(Wish::from_bytes(bytes))
    }

    pub(super) fn fresh_place(&mut self) -> Result<QueuePlace, EntropyFailed> {
        let mut bytes = [0; QueuePlace::BYTES];
        self.entropy.fill(&mut bytes)?;
        Ok(QueuePlace::from_bytes(bytes))
    }

    pub(super) fn fresh_token(&mut self) -> Result<Token, EntropyFailed> {
        let mut bytes = [0; Token::BYTES];
        self.entropy.fill(&mut bytes)?;
        Ok(Token::from_bytes(bytes))
    }
}

/// A hash that is the same in every process (FNV-1a, Fowler, Noll and Vo 1991).
fn digest(resource: &Resource) -> u64 {
    let bytes = resource.key().iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
