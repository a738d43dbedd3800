//! All resources that this process wants: for each the lock in front, those that wait behind it, and what is known of others that want it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::bid::Bid;
use super::pace::{Pace, Start};
use super::queue::{Place, Queue};
use crate::jitter::Jitter;
use crate::lock::Grant;
use crate::protocol::{Acquire, LockId, Resource};
use crate::time::Instant;

/// How many resources are kept, wanted or not, before those are looked for that nobody wants any more. More keeps memory, fewer looks more often.
const KEPT: usize = 1024;

/// One resource. Small, since every lock that is held has one.
#[derive(Clone, Debug)]
struct Contender {
    front: Option<LockId>,
    /// Nothing before the first release, and as long as nobody else wants the lock.
    known: Option<Box<Known>>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    queue: Queue,
    pace: Pace,
    /// Of the lock in front; nothing where that began at once, among no others that are known, and has lost no round.
    bid: Option<Box<Bid>>,
}

impl Known {
    /// A lock comes to the front.
    fn start(&mut self, start: Start, now: Instant) {
        self.bid = (!start.is_plain()).then(|| Box::new(Bid::starting(start, self.pace.lets_pass(), now)));
    }
}

/// What becomes of a lock that is requested.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry {
    /// It is in front.
    Front(Start),
    /// It waits behind others.
    Behind(Place),
    /// It has a single try. Nobody waits, and what the masters say about the holder is worth more than what is known here.
    Outside,
    /// It has a single try, and these callers came before it.
    Refused { others: usize },
}

/// How a lock that has come to the front begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Begin {
    Start(Start),
    /// It waits where the one before it left.
    GoOn,
}

/// Every resource that a lock of this process wants, or wanted a short while ago.
#[derive(Clone, Debug)]
pub(crate) struct Contenders {
    // In order, and without the system's random numbers that a `HashMap` begins with.
    by_resource: BTreeMap<Resource, Contender>,
    tidy_at: usize,
    longest_patience: Duration,
}

impl Contenders {
    /// No lock lets others go first for longer than that.
    pub(crate) fn new(longest_patience: Duration) -> Self {
        Self { by_resource: BTreeMap::new(), tidy_at: KEPT, longest_patience }
    }

    /// The lock in front, if there is one.
    pub(crate) fn front(&self, resource: &[u8]) -> Option<LockId> {
        self.by_resource.get(resource)?.front
    }

    /// All locks in front that have a bid.
    pub(crate) fn bidders(&self) -> Vec<LockId> {
        let bids = |contender: &&Contender| contender.known.as_ref().is_some_and(|known| known.bid.is_some());
        self.by_resource.values().filter(bids).filter_map(|contender| contender.front).collect()
    }

    /// The bid of the lock in front, if it has one.
    pub(crate) fn bid(&self, resource: &[u8]) -> Option<&Bid> {
        self.by_resource.get(resource)?.known.as_ref()?.bid.as_deref()
    }

    /// The bid of the lock in front, which begins with this if it had none.
    pub(crate) fn bid_mut(&mut self, resource: &Resource) -> Option<&mut Bid> {
        let known = self.by_resource.get_mut(resource)?.known.get_or_insert_default();
        let lets_pass = known.pace.lets_pass();
        Some(known.bid.get_or_insert_with(|| Box::new(Bid::of_asking(lets_pass))))
    }

    /// How many callers are ahead of a waiter: the one in front, and those that came before it.
    pub(crate) fn ahead_of(&self, resource: &Resource, place: Place) -> usize {
        1 + self.queue(resource).map_or(0, |queue| queue.ahead_of(place))
    }

    fn queue(&self, resource: &Resource) -> Option<&Queue> {
        self.by_resource.get(resource)?.known.as_ref().map(|known| &known.queue)
    }

    /// A lock is requested: it comes to the front of a queue in which nobody is, or behind the others.
    pub(crate) fn enter(
        &mut self,
        wanted: &Acquire,
        id: LockId,
        is_held: impl FnOnce(LockId) -> bool,
        jitter: &mut Jitter,
        now: Instant,
    ) -> Entry {
        let Some(contender) = self.by_resource.get_mut(&wanted.resource) else {
            self.tidy(now);
            self.by_resource.insert(wanted.resource.clone(), Contender { front: Some(id), known: None });
            return Entry::Front(Start::default());
        };
        let Some(front) = contender.front else {
            contender.front = Some(id);
            let known = contender.known.get_or_insert_default();
            // A lock that does not wait has no patience either.
            let start = if wanted.is_single_try() { Start::default() } else { known.pace.come(jitter, now) };
            known.start(start, now);
            return Entry::Front(start);
        };
        if !wanted.is_single_try() {
            return Entry::Behind(contender.known.get_or_insert_default().queue.push(id));
        }
        let waiting = contender.known.as_ref().map_or(0, |known| known.queue.len());
        if waiting == 0 && is_held(front) { Entry::Outside } else { Entry::Refused { others: waiting + 1 } }
    }

    fn tidy(&mut self, now: Instant) {
        if self.by_resource.len() >= self.tidy_at {
            let is_forgotten = |contender: &Contender| {
                contender.front.is_none()
                    && contender.known.as_ref().is_none_or(|known| known.pace.is_forgotten(now))
            };
            self.by_resource.retain(|_, contender| !is_forgotten(contender));
            self.tidy_at = KEPT.max(2 * self.by_resource.len());
        }
    }

    /// A lock that waited behind others has left. `moved` is told of each that has another place in the queue now.
    pub(crate) fn leave(&mut self, resource: &Resource, place: Place, moved: impl FnMut(LockId, Place)) {
        let known = self.by_resource.get_mut(resource).and_then(|contender| contender.known.as_mut());
        debug_assert!(known.is_some(), "a waiter that leaves is in a queue");
        if let Some(known) = known {
            known.queue.leave(place, moved);
        }
    }

    /// No lock is in front after all.
    pub(crate) fn leave_front(&mut self, resource: &Resource) {
        if let Some(contender) = self.by_resource.get_mut(resource) {
            contender.front = None;
        }
    }

    /// The lock in front has let go of what it was granted, if it was. Returns the one that comes to the front, and how it begins. `moved` is told
    /// of each that has another place in the queue now.
    pub(crate) fn advance(
        &mut self,
        resource: &Resource,
        grant: Option<Grant>,
        moved: impl FnMut(LockId, Place),
        jitter: &mut Jitter,
        now: Instant,
    ) -> Option<(LockId, Begin)> {
        let contender = self.by_resource.get_mut(resource)?;
        contender.front = None;
        // Where nobody was granted anything, nobody has met anybody and nobody waits, there is nothing to keep.
        if contender.known.is_none() && grant.is_none() {
            return None;
        }
        let known = contender.known.get_or_insert_default();
        let bid = known.bid.take();
        if let Some(bid) = &bid {
            known.pace.met_others(bid.met_others);
        }
        if let Some(grant) = grant {
            let waited = bid.as_ref().map_or(Duration::ZERO, |bid| bid.waited(grant));
            let passed_over = bid.as_ref().map_or(0, |bid| bid.passed_over);
            known.pace.let_go(grant, waited, passed_over, self.longest_patience, now);
        }
        let Some(next) = known.queue.pop(moved) else {
            if known.pace == Pace::default() {
                contender.known = None;
            }
            return None;
        };
        contender.front = Some(next);
        // A lock that failed has not kept anybody out.
        let start =
            if grant.is_some() { known.pace.hand_over(jitter, now) } else { known.pace.come_anew(now) };
        if let Some(bid) = bid.filter(|bid| bid.is_worth_keeping()) {
            known.bid = Some(Box::new(bid.passed_on(start, known.pace.lets_pass(), now)));
            return Some((next, Begin::GoOn));
        }
        known.start(start, now);
        Some((next, Begin::Start(start)))
    }
}
