//! A lock without a machine, for the exhaustive search.

use std::collections::VecDeque;

use crate::jitter::Jitter;
use crate::lock::{Attempt, Effects, Lock, Order, Report, State};
use crate::protocol::{
    Acquire, Answer, Config, Entropy, EntropyFailed, Event, ExtendError, ExtensionId, FencingToken, LockId,
    MasterId, MasterSet, QueuePlace, Token, Ttl,
};
use crate::time::Instant;
use crate::waiting::Bid;

/// A lock's environment in place of a machine.
#[derive(Debug)]
pub struct Around<'a, E> {
    config: &'a Config,
    /// The source of tokens.
    pub entropy: E,
    jitter: Jitter,
    /// Requests to masters, in this order.
    pub orders: VecDeque<Order>,
    /// Events for its caller, in this order.
    pub events: VecDeque<Event>,
}

impl<'a, E: Entropy> Around<'a, E> {
    /// No requests and no events yet.
    pub fn new(config: &'a Config, entropy: E) -> Self {
        let (orders, events) = (VecDeque::new(), VecDeque::new());
        Self { config, entropy, jitter: Jitter::new(0), orders, events }
    }

    fn effects(&mut self, now: Instant) -> Effects<'_> {
        Effects {
            now,
            config: self.config,
            entropy: &mut self.entropy,
            jitter: &mut self.jitter,
            orders: &mut self.orders,
            events: &mut self.events,
            ranks: &[],
            without_queue: MasterSet::EMPTY,
        }
    }
}

/// A lock in front of its queue, with the bid for it once it has lost a round.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sought {
    lock: Lock,
    bid: Option<Box<Bid>>,
}

impl Sought {
    /// Makes the first attempt.
    ///
    /// # Errors
    /// The source of tokens failed.
    pub fn begin<E: Entropy>(
        wanted: &Acquire,
        now: Instant,
        around: &mut Around<'_, E>,
    ) -> Result<Self, EntropyFailed> {
        let mut lock = Lock::queued(LockId::FIRST, wanted, now);
        lock.attempt(Attempt::default(), &mut around.effects(now))?;
        Ok(Self { lock, bid: None })
    }

    fn hear<E: Entropy>(&mut self, report: Report, now: Instant, around: &mut Around<'_, E>) {
        if !matches!(report, Report::Nothing | Report::Unchanged) {
            self.bid.get_or_insert_default().hear(report, &mut self.lock, &mut around.effects(now));
        }
    }

    // Inputs.

    /// A master answered in one of its rounds.
    pub fn answer<E: Entropy>(
        &mut self,
        master: MasterId,
        round: u32,
        answer: Answer,
        now: Instant,
        around: &mut Around<'_, E>,
    ) {
        let report = self.lock.answer(master, round, answer, &mut around.effects(now));
        self.hear(report, now, around);
    }

    /// The time is `now`.
    pub fn time_passed<E: Entropy>(&mut self, now: Instant, around: &mut Around<'_, E>) {
        let report = self.lock.time_passed(&mut around.effects(now));
        self.hear(report, now, around);
    }

    /// A master notifies that the lock's turn in the queue has come, or, without a place there,
    /// that the key has changed.
    pub fn told<E: Entropy>(&mut self, master: MasterId, now: Instant, around: &mut Around<'_, E>) {
        let Some(bid) = &mut self.bid else { return };
        let (lock, effects) = (&mut self.lock, &mut around.effects(now));
        match lock.queue_place() {
            Some(place) => bid.turn_has_come(master, &place.to_hex(), lock, effects),
            None => bid.changed(master, false, lock, effects),
        }
    }

    /// The caller takes the grant. Returns the end of its validity, if it is still valid.
    pub fn take<E: Entropy>(&mut self, now: Instant, around: &mut Around<'_, E>) -> Option<Instant> {
        let (valid_until, report) = self.lock.take(&mut around.effects(now));
        self.hear(report, now, around);
        valid_until
    }

    /// The caller requests an extension, with this number.
    ///
    /// # Errors
    /// The lock is no longer held.
    pub fn extend<E: Entropy>(
        &mut self,
        number: u64,
        ttl: Ttl,
        now: Instant,
        around: &mut Around<'_, E>,
    ) -> Result<(), ExtendError> {
        self.lock.extend(ExtensionId::numbered(number), ttl, &mut around.effects(now))
    }

    /// The caller turns its exclusive lock into a reader's. Returns whether it is held.
    pub fn downgrade<E: Entropy>(&mut self, now: Instant, around: &mut Around<'_, E>) -> bool {
        self.lock.downgrade(&mut around.effects(now))
    }

    /// The caller releases it.
    pub fn release<E: Entropy>(&mut self, now: Instant, around: &mut Around<'_, E>) {
        self.lock.release(&mut around.effects(now));
    }

    /// The caller gives it up.
    pub fn cancel<E: Entropy>(&mut self, now: Instant, around: &mut Around<'_, E>) {
        self.lock.cancel(&mut around.effects(now));
    }

    // Getters.

    /// When [`Self::time_passed`] has something to do next.
    pub fn deadline(&self) -> Option<Instant> {
        let next_attempt = self.bid.as_ref().and_then(|bid| bid.next_attempt());
        self.lock.deadline().into_iter().chain(next_attempt).min()
    }

    /// Whether it is held.
    pub fn is_held(&self) -> bool {
        self.lock.state() == State::Held
    }

    /// Whether nothing refers to it.
    pub fn is_over(&self) -> bool {
        self.lock.state() == State::Over
    }

    /// Whether the votes of its last attempt were split, and it continues.
    pub fn is_settling(&self) -> bool {
        self.bid.as_ref().is_some_and(|bid| bid.is_settling())
    }

    /// The token of its present attempt.
    pub fn token(&self) -> Option<Token> {
        self.lock.token()
    }

    /// How many attempts it has made.
    pub fn attempts(&self) -> u32 {
        self.lock.attempts()
    }

    /// Whether it has lost its last attempt and has yet to make the next one.
    pub fn waits(&self) -> bool {
        self.bid.as_ref().is_some_and(|bid| bid.next_attempt().is_some())
    }

    /// Whether its timer renews its place: between two attempts, and in one that is made in turn.
    pub fn renews(&self) -> bool {
        self.waits() || self.lock.asked_in_turn()
    }

    /// Its place in the masters' queues.
    pub fn place(&self) -> Option<QueuePlace> {
        self.lock.queue_place()
    }

    /// Whether a quorum of masters has its place with the number that counts.
    pub fn is_settled(&self) -> bool {
        self.lock.has_its_number()
    }

    /// Whether a quorum of masters has answered since all were last asked to keep its place.
    pub fn keeps_its_place(&self, config: &Config) -> bool {
        self.lock.keeps_its_place(0, config.quorum)
    }

    /// The index of its permit, once one is chosen.
    pub fn seat(&self) -> Option<u16> {
        self.lock.seat()
    }

    /// Its number, once it has one.
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.lock.resumption(0)?.fencing_token
    }

    /// Drops the bid, as a machine does when the lock has ended.
    pub fn drop_bid(&mut self) {
        self.bid = None;
    }

    /// Forgets what only other locks of the process use, so that locks that behave the same from
    /// now on are equal.
    pub fn forget_its_queue(&mut self) {
        self.lock.forget_its_grant();
        if let Some(bid) = &mut self.bid {
            bid.forget_its_queue(self.lock.state() == State::Held, self.lock.is_fair());
        }
        self.bid.take_if(|bid| **bid == Bid::default());
    }
}
