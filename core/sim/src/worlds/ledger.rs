//! The numbers of grants, as the observer keeps account of them: which were given, and what the
//! masters' counters have been.

use std::collections::BTreeMap;

use quorlock_core::internals::seats_of;
use quorlock_core::{FencingToken, Mode, Resource, Targets};

use super::clock::TrueTime;
use super::violation::Violation;

/// The hexadecimal digits of a token.
pub(super) type Hex = [u8; 40];

/// What has its own fencing tokens: a resource, or one permit of a semaphore.
type Numbered = (Resource, Option<u16>);

/// The largest numbers at some time.
#[derive(Clone, Copy, Debug, Default)]
struct Largest {
    decided: TrueTime,
    /// Of exclusive grants.
    written: u64,
    /// Of all grants.
    number: u64,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// In the order in which the grants were decided.
    largest: BTreeMap<Numbered, Vec<Largest>>,
    /// The tokens of exclusive grants, by what was granted and number.
    owners: BTreeMap<(Numbered, u64), Hex>,
    numbers: BTreeMap<Hex, u64>,
    counters: BTreeMap<(usize, Vec<u8>), u64>,
}

impl Ledger {
    /// Records that a lock is held with this number, granted to an attempt whose first request was
    /// sent at `first_sent`. Returns whether the grant was not known yet.
    ///
    /// An exclusive grant must have a larger number than all earlier grants; a shared one must not
    /// have a smaller number than an earlier exclusive grant. A permit is an exclusive grant.
    pub(super) fn granted(
        &mut self,
        targets: &Targets,
        token: Hex,
        number: FencingToken,
        (first_sent, now): (TrueTime, TrueTime),
    ) -> Result<bool, Violation> {
        let number = number.get();
        let known = self.numbers.insert(token, number);
        let seats = seats_of(targets);
        // Each permit has its own numbers. Other locks have one number for each resource.
        let seats: Vec<_> = if seats.is_empty() { vec![None] } else { seats.into_iter().map(Some).collect() };
        let parts = || {
            let each = targets.iter();
            each.flat_map(|(resource, mode)| seats.iter().map(move |seat| (resource, mode, *seat)))
        };
        for (resource, mode, seat) in parts() {
            let is_of_another = !matches!(mode, Mode::Shared(_))
                && *self.owners.entry(((resource.clone(), seat), number)).or_insert(token) != token;
            if is_of_another || known.is_some_and(|known| known != number) {
                return Err(Violation::NumberTwice { resource: resource.clone(), number });
            }
        }
        if known.is_some() {
            // The lock was handed over, so its number is known.
            return Ok(false);
        }
        for (resource, mode, seat) in parts() {
            let largest = self.largest.entry((resource.clone(), seat)).or_default();
            let before = largest.partition_point(|grant| grant.decided < first_sent);
            let earlier = before.checked_sub(1).and_then(|place| largest.get(place));
            let earlier = earlier.copied().unwrap_or_default();
            let so_far = largest.last().copied().unwrap_or_default();
            let is_written = !matches!(mode, Mode::Shared(_));
            largest.push(Largest {
                decided: now,
                written: if is_written { number.max(so_far.written) } else { so_far.written },
                number: number.max(so_far.number),
            });
            let (is_enough, earlier) = if is_written {
                (number > earlier.number, earlier.number)
            } else {
                (number >= earlier.written, earlier.written)
            };
            if !is_enough {
                return Err(Violation::NumberTooSmall { resource: resource.clone(), number, earlier });
            }
        }
        Ok(true)
    }

    /// Checks a master's counter after a script: it must not expire, and must not be smaller than
    /// before.
    pub(super) fn counted(
        &mut self,
        master: usize,
        counter: &[u8],
        text: &[u8],
        has_end: bool,
    ) -> Result<(), Violation> {
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok());
        let before = self.counters.entry((master, counter.to_vec())).or_default();
        match number {
            Some(number) if number >= *before && !has_end => {
                *before = number;
                Ok(())
            }
            _ => Err(Violation::CounterBroken { master }),
        }
    }

    /// A master has lost its counters, or has those of another.
    pub(super) fn lost(&mut self, master: usize) {
        self.counters.retain(|(other, _), _| *other != master);
    }
}
