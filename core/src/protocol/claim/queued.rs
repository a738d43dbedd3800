//! A claim of one resource with a place in the queue of its fair waiters: the keys and values of
//! the scripts of the queue (`wire/script/queue.rs`). All other requests are those of a plain lock.

use super::Claim;
use crate::protocol::{Action, FencingToken, Fleet, QueuePlace, Request, Resource, Terms, Token};
use crate::wire::{Decimal, put_argument};

/// RESP arguments in the order of the scripts.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct QueuedClaim {
    /// The claim of the same lock, without the place.
    lock: Claim,
    /// The keys of the place and the queue.
    leaving: Box<[u8]>,
    /// The key of the largest number.
    entering: Box<[u8]>,
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
            leaving: arguments(&[resource.place_key(place), resource.queue_key()]),
            entering: arguments(&[resource.ticket_key()]),
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
        let acquires = match request.action {
            Action::Acquire => true,
            Action::Stay => false,
            Action::Release => return Some(QueueArguments { claim: self, entering: None }),
            _ => return None,
        };
        let terms = Terms::of(request.action, fleet);
        let counts = acquires && self.lock.is_fenced();
        let (life, number) = (request.ttl.as_millis(), request.fence);
        Some(QueueArguments {
            claim: self,
            entering: Some(Entering { acquires, counts, terms, life, number, is_exact: request.insists }),
        })
    }
}

/// The keys and values of one request to a queue.
pub(crate) struct QueueArguments<'a> {
    claim: &'a QueuedClaim,
    /// `None` if the place leaves the queue.
    entering: Option<Entering>,
}

struct Entering {
    acquires: bool,
    counts: bool,
    terms: Terms,
    life: u64,
    /// The smallest number that the place may have.
    number: Option<FencingToken>,
    /// Whether the place must have exactly that number.
    is_exact: bool,
}

impl QueueArguments<'_> {
    pub(crate) fn keys(&self) -> u64 {
        let more =
            |entering: &Entering| 1 + u64::from(entering.counts) + u64::from(entering.terms.are_of_marker());
        3 + self.entering.as_ref().map_or(0, more)
    }

    pub(crate) fn values(&self) -> u64 {
        let more = |entering: &Entering| 4 + entering.terms.values();
        2 + self.entering.as_ref().map_or(0, more)
    }

    /// Appends all keys, then all values.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let claim = self.claim;
        claim.lock.put_key(out);
        out.extend_from_slice(&claim.leaving);
        if let Some(entering) = &self.entering {
            out.extend_from_slice(&claim.entering);
            if entering.counts {
                out.extend_from_slice(&claim.counter);
            }
            if entering.terms.are_of_marker() {
                put_argument(out, Fleet::MARKER.as_bytes());
            }
        }
        claim.lock.put_token(out);
        put_argument(out, &claim.place.to_hex());
        let Some(entering) = &self.entering else { return };
        let lease = u64::try_from(QueuePlace::LEASE.as_millis()).unwrap_or(u64::MAX);
        for number in [entering.life, lease, entering.number.map_or(0, FencingToken::get)] {
            put_argument(out, Decimal::new(number).as_bytes());
        }
        put_argument(out, entering.flags());
        entering.terms.put(out);
    }
}

impl Entering {
    fn flags(&self) -> &'static [u8] {
        match (self.acquires, self.counts, self.terms.are_of_marker(), self.is_exact) {
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
