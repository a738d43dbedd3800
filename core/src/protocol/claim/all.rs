//! A claim of several or shared resources: the keys and values of its scripts
//! (`wire/script/many.rs`).

use std::time::Duration;

use crate::protocol::{Action, Fleet, Mode, Request, Resource, Sentinel, Targets, Terms, Token};
use crate::wire::{Decimal, put_argument};

/// The name of one wait for a write lock: the marks that keep new readers out contain it.
///
/// It is not secret, and is not derived from a token, since any client that can read the mark sees
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Wish([u8; Self::BYTES]);

impl Wish {
    /// Its random bytes.
    pub(crate) const BYTES: usize = 16;

    pub(crate) const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// RESP arguments in the order of the scripts.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct AllClaim {
    /// Resources that are written, then those that are read.
    resources: Box<[Resource]>,
    written: usize,
    /// The keys of all targets: one of each that is written, two of each that is read.
    targets: Box<[u8]>,
    /// The marks of resources that are written, if the attempt may wait for readers; for seats, the
    /// mark that reserves the next one.
    marks: Box<[u8]>,
    /// The counters of all targets, if grants are numbered.
    counters: Box<[u8]>,
    token: Box<[u8]>,
    /// How many resources are written and how many are read, and the sentinels of those that are
    /// read.
    shape: Box<[u8]>,
    wish: Option<Wish>,
    /// How many of the targets an acquisition takes; zero for all.
    takes: u16,
}

impl AllClaim {
    pub(super) fn new(targets: &Targets, token: Token, fenced: bool, wish: Option<Wish>) -> Self {
        let written = targets.iter().filter_map(|(resource, mode)| match mode {
            Mode::Exclusive => Some(resource),
            Mode::Shared(_) | Mode::Permit { .. } => None,
        });
        let written: Vec<_> = written.collect();
        let read = targets.iter().filter_map(|(resource, mode)| match mode {
            Mode::Shared(group) => Some((resource, group)),
            // A permit's claim names the seat that it gets.
            Mode::Exclusive | Mode::Permit { .. } => None,
        });
        let read: Vec<_> = read.collect();
        let mut keys = Vec::new();
        for resource in &written {
            put_argument(&mut keys, resource.key());
        }
        let mut shape = Vec::new();
        put_argument(&mut shape, Decimal::new(written.len() as u64).as_bytes());
        put_argument(&mut shape, Decimal::new(read.len() as u64).as_bytes());
        for (resource, group) in &read {
            put_argument(&mut keys, resource.key());
            put_argument(&mut keys, &resource.want_key());
            put_argument(&mut shape, &Sentinel::of(group.name()));
        }
        let resources: Box<[_]> =
            written.iter().copied().chain(read.iter().map(|(resource, _)| *resource)).cloned().collect();
        let (mut marks, mut counters) = (Vec::new(), Vec::new());
        if wish.is_some() {
            written.iter().for_each(|resource| put_argument(&mut marks, &resource.want_key()));
        }
        if fenced {
            resources.iter().for_each(|resource| put_argument(&mut counters, &resource.counter_key()));
        }
        let mut secret = Vec::new();
        put_argument(&mut secret, &token.to_hex());
        let boxed = |bytes: Vec<u8>| Box::from(&*bytes);
        Self {
            written: written.len(),
            resources,
            targets: boxed(keys),
            marks: boxed(marks),
            counters: boxed(counters),
            token: boxed(secret),
            shape: boxed(shape),
            wish,
            takes: 0,
        }
    }

    pub(super) fn of_seats(
        name: &Resource,
        seats: &[Resource],
        take: u16,
        token: Token,
        fenced: bool,
        wish: Option<Wish>,
    ) -> Self {
        let (mut keys, mut counters, mut secret) = (Vec::new(), Vec::new(), Vec::new());
        let mut marks = Vec::new();
        put_argument(&mut marks, &name.next_seat_key());
        for seat in seats {
            put_argument(&mut keys, seat.key());
            if fenced {
                put_argument(&mut counters, &seat.counter_key());
            }
        }
        put_argument(&mut secret, &token.to_hex());
        let mut shape = Vec::new();
        put_argument(&mut shape, Decimal::new(seats.len() as u64).as_bytes());
        let boxed = |bytes: Vec<u8>| Box::from(&*bytes);
        Self {
            resources: seats.into(),
            written: seats.len(),
            targets: boxed(keys),
            marks: boxed(marks),
            counters: boxed(counters),
            token: boxed(secret),
            shape: boxed(shape),
            wish,
            takes: take,
        }
    }

    pub(super) fn reads(&self) -> bool {
        self.written < self.resources.len()
    }

    /// Whether an acquisition takes only some of the targets.
    pub(crate) fn takes_some(&self) -> bool {
        self.takes > 0
    }

    pub(super) fn resources(&self) -> &[Resource] {
        &self.resources
    }

    pub(super) fn token(&self) -> &[u8] {
        &self.token
    }

    pub(super) fn is_fenced(&self) -> bool {
        !self.counters.is_empty()
    }

    /// The keys and values of a request.
    pub(crate) fn arguments(&self, request: &Request, fleet: Option<Fleet>) -> Arguments<'_> {
        let &Request { action, insists, waited, watch, .. } = request;
        let acquires = action == Action::Acquire;
        // A request that gives seats back names no mark, since marks expire soon. An undo keeps the
        // marks: the wait may go on, and without them new readers would come in meanwhile.
        let may_wish = match action {
            Action::Acquire => waited.is_some(),
            Action::Release => !self.takes_some(),
            _ => false,
        };
        Arguments {
            claim: self,
            wish: self.wish.filter(|_| may_wish),
            waited: waited.unwrap_or_default(),
            counts: self.is_fenced() && !action.clears(),
            terms: Terms::of(action, fleet),
            insists: insists && acquires,
            tells: action == Action::Undo,
            watches: watch && acquires && self.takes_some(),
            takes: if acquires { self.takes } else { 0 },
        }
    }
}

/// The keys and values of one request.
pub(crate) struct Arguments<'a> {
    claim: &'a AllClaim,
    wish: Option<Wish>,
    waited: Duration,
    counts: bool,
    terms: Terms,
    insists: bool,
    tells: bool,
    watches: bool,
    /// For the script that takes seats: how many it takes.
    takes: u16,
}

impl Arguments<'_> {
    pub(crate) fn keys(&self) -> u64 {
        let AllClaim { resources, written, .. } = self.claim;
        let read = resources.len() - written;
        let marks = if self.takes > 0 { 1 } else { self.wish.map_or(0, |_| *written) };
        let counters = if self.counts { resources.len() } else { 0 };
        (written + 2 * read + marks + counters + usize::from(self.terms.are_of_marker())) as u64
    }

    pub(crate) fn values(&self) -> u64 {
        let read = self.claim.resources.len() - self.claim.written;
        let shape = if self.takes > 0 { 1 } else { 2 + read };
        let wish = if self.takes > 0 { 2 } else { 1 };
        (4 + shape + self.wish.map_or(0, |_| wish)) as u64 + self.terms.values()
    }

    /// Appends all keys, then all values.
    pub(crate) fn put(&self, ttl: u64, number: u64, out: &mut Vec<u8>) {
        let claim = self.claim;
        out.extend_from_slice(&claim.targets);
        if self.takes == 0 && self.wish.is_some() {
            out.extend_from_slice(&claim.marks);
        }
        if self.counts {
            out.extend_from_slice(&claim.counters);
        }
        if self.takes > 0 {
            out.extend_from_slice(&claim.marks);
        }
        if self.terms.are_of_marker() {
            put_argument(out, Fleet::MARKER.as_bytes());
        }
        out.extend_from_slice(&claim.token);
        put_argument(out, Decimal::new(ttl).as_bytes());
        let number = if self.takes > 0 { self.takes.into() } else { number };
        put_argument(out, Decimal::new(number).as_bytes());
        put_argument(out, self.flags().as_bytes());
        out.extend_from_slice(&claim.shape);
        if claim.takes_some() && self.takes == 0 {
            // The script expects the number of resources that are read: none.
            put_argument(out, b"0");
        }
        if let Some(wish) = self.wish {
            put_argument(out, wish.to_hex().as_bytes());
            if self.takes > 0 {
                let waited = u64::try_from(self.waited.as_millis()).unwrap_or(u64::MAX);
                put_argument(out, Decimal::new(waited).as_bytes());
            }
        }
        self.terms.put(out);
    }

    fn flags(&self) -> String {
        let all = [
            ('f', self.counts),
            ('g', self.terms.are_of_marker()),
            ('m', self.wish.is_some()),
            ('i', self.insists),
            ('t', self.tells),
            ('w', self.watches),
        ];
        let flags: String = all.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| *flag).collect();
        if flags.is_empty() { "-".to_owned() } else { flags }
    }
}
