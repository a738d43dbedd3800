//! The observer's record of masters that have lost their data, under the restart guard.

use std::time::Duration;

use super::assumed::ASSUMED_DRIFT_PPM;
use super::clock::TrueTime;
use super::random::nanos;

#[derive(Debug)]
pub(super) struct Outages {
    /// The longest TTL of the fleet, if the guard is on.
    longest: Option<u64>,
    /// Whether the masters were told that nothing could be locked yet.
    pub(super) opened: bool,
    masters: Vec<Outage>,
}

#[derive(Clone, Debug, Default)]
struct Outage {
    /// When it lost its data, in true time.
    lost_at: Option<TrueTime>,
    /// Until when it must not vote, on its own clock.
    silent_until: u64,
}

impl Outages {
    pub(super) fn new(masters: usize) -> Self {
        Self { longest: None, opened: false, masters: vec![Outage::default(); masters] }
    }

    /// Clients have the guard on. `clocks` are the present times of the masters' clocks, and
    /// whether each is a master from the beginning.
    pub(super) fn guard(&mut self, longest: Duration, clocks: impl Iterator<Item = (u64, bool)>) {
        let longest = nanos(longest);
        if self.longest.replace(longest).is_some() {
            return;
        }
        for (outage, (clock, is_founder)) in self.masters.iter_mut().zip(clocks) {
            if !self.opened || !is_founder {
                outage.silent_until = clock + longest;
            }
        }
    }

    /// Whether every lock that was granted before `since` has ended, by any clock.
    pub(super) fn has_passed_since(&self, since: TrueTime, now: TrueTime) -> bool {
        self.longest.is_some_and(|longest| now > since + longest + longest / 50)
    }

    pub(super) fn is_guarded(&self) -> bool {
        self.longest.is_some()
    }

    /// A master has lost its data. `clock` is its own clock if it votes; a replica does not.
    pub(super) fn lost(&mut self, master: usize, now: TrueTime, clock: Option<u64>) {
        let longest = self.longest.unwrap_or(0);
        if let Some(outage) = self.masters.get_mut(master) {
            outage.lost_at = Some(now);
            outage.silent_until = clock.map_or(0, |clock| clock + longest);
        }
    }

    /// A master was told that nothing can be locked yet: it votes from now on.
    pub(super) fn told(&mut self, master: usize) {
        if let Some(outage) = self.masters.get_mut(master) {
            *outage = Outage::default();
        }
    }

    /// Whether a master must not vote yet. Scripts see whole milliseconds.
    pub(super) fn is_silent(&self, master: usize, clock: u64) -> bool {
        self.masters.get(master).is_some_and(|outage| clock + MILLI < outage.silent_until)
    }

    /// Whether a master that may have lost the key votes for no other client until then, in true
    /// time.
    pub(super) fn is_silent_until(&self, master: usize, ends: TrueTime) -> bool {
        let Some(longest) = self.longest else { return false };
        // The quarantine may end by the fastest clock that a master may have.
        let fastest = 1_000_000 + u64::from(ASSUMED_DRIFT_PPM.unsigned_abs());
        let least = longest.saturating_mul(1_000_000) / fastest;
        let lost_at = self.masters.get(master).and_then(|outage| outage.lost_at);
        lost_at.is_some_and(|lost_at| ends <= lost_at + least)
    }
}

const MILLI: u64 = 1_000_000;
