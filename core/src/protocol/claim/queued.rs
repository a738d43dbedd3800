//! A claim of one resource with a place in the queue of its fair waiters: the keys and values of
//! the scripts of the queue (`wire/script/queue.rs`). All other requests are those of a plain lock.

use std::time::Duration;

use super::Claim;
use crate::protocol::{Action, FencingToken, Fleet, QueuePlace, Request, Resource, Terms, Token};
use crate::wire::{Decimal, put_argument};

/// RESP arguments in the order of the scripts.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct QueuedClaim {
    /// The claim of the same lock, without the place.
    lock: Claim,
    /// The keys of the place and the queue.
    queue: Box<[u8]>,
    /// The counter's key, if the lock is fenced.
    counter: Box<[u8]>,
    place: QueuePlace,
}

impl QueuedClaim {
    pub(super) fn new(resource: &Resource, token: Token, fenced: bool, place: QueuePlace) -> Self {
        let arguments = |all: &[Vec<u8>]| {
            let mut bytes = Vec::new();
            all.iter().for_each(|argument| put_argument(&mut bytes, argument));
            Box::from(&*bytes)
        };
        Self {
            lock: Claim::one(resource, token, fenced),
            queue: arguments(&[resource.place_key(place), resource.queue_key()]),
            counter: if fenced { arguments(&[resource.counter_key()]) } else { Box::default() },
            place,
        }
    }

    pub(super) fn lock(&self) -> &Claim {
        &self.lock
    }

    pub(super) fn place(&self) -> QueuePlace {
        self.place
    }

    /// The arguments of the queue's script for this request; `None` if the request is about the
    /// lock alone.
    pub(crate) fn arguments(&self, request: &Request, fleet: Option<Fleet>) -> Option<QueueArguments<'_>> {
        let acquires = request.action == Action::Acquire;
        let entering = match request.action {
            Action::Acquire | Action::Stay => Some(Entering {
                acquires,
                counts: acquires && self.lock.is_fenced(),
                turn: request.turn.unwrap_or(QueuePlace::SHORTEST_TURN),
                number: request.fence,
                is_exact: request.insists,
            }),
            Action::Release | Action::Keep => None,
            _ => return None,
        };
        let terms = Terms::of(request.action, fleet);
        Some(QueueArguments { claim: self, life: request.ttl.as_millis(), entering, terms })
    }
}

/// The keys and values of one request to a queue.
pub(crate) struct QueueArguments<'a> {
    claim: &'a QueuedClaim,
    life: u64,
    /// `None` if the place leaves the queue.
    entering: Option<Entering>,
    terms: Terms,
}

struct Entering {
    acquires: bool,
    counts: bool,
    /// How long the place's turn may be.
    turn: Duration,
    /// The smallest number that the place may have.
    number: Option<FencingToken>,
    /// Whether the place must have exactly that number.
    is_exact: bool,
}

impl QueueArguments<'_> {
    fn counts(&self) -> bool {
        self.entering.as_ref().is_some_and(|entering| entering.counts)
    }

    pub(crate) fn keys(&self) -> u64 {
        3 + u64::from(self.counts()) + u64::from(self.terms.are_of_marker())
    }

    pub(crate) fn values(&self) -> u64 {
        let more = if self.entering.is_some() { 4 } else { 0 };
        3 + more + self.terms.values()
    }

    /// Appends all keys, then all values.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let claim = self.claim;
        claim.lock.put_key(out);
        out.extend_from_slice(&claim.queue);
        if self.counts() {
            out.extend_from_slice(&claim.counter);
        }
        if self.terms.are_of_marker() {
            put_argument(out, Fleet::MARKER.as_bytes());
        }
        claim.lock.put_token(out);
        put_argument(out, Decimal::new(self.life).as_bytes());
        put_argument(out, &claim.place.to_hex());
        if let Some(entering) = &self.entering {
            let [lease, turn] = [QueuePlace::LEASE, entering.turn].map(whole_millis);
            for number in [lease, turn, entering.number.map_or(0, FencingToken::get)] {
                put_argument(out, Decimal::new(number).as_bytes());
            }
            put_argument(out, entering.flags(self.terms.are_of_marker()));
        }
        self.terms.put(out);
    }
}

impl Entering {
    fn flags(&self, is_guarded: bool) -> &'static [u8] {
        match (self.acquires, self.counts, is_guarded, self.is_exact) {
            (false, .., false) => b"s",
            (false, .., true) => b"sx",
            (true, false, false, false) => b"-",
            (true, false, false, true) => b"x",
            (true, true, false, false) => b"f",
            (true, true, false, true) => b"fx",
            (true, false, true, false) => b"g",
            (true, false, true, true) => b"gx",
            (true, true, true, false) => b"fg",
            (true, true, true, true) => b"fgx",
        }
    }
}

fn whole_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
