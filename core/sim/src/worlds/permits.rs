//! The observer's record of permits: how many of a semaphore are valid at once.

use std::collections::BTreeMap;

use quorlock_core::internals::seats_of;

use super::access::semaphore;
use super::observer::Observer;
use super::state::State;
use super::violation::Violation;

impl State {
    /// At most as many permits of a semaphore may be valid as the largest number that a holder
    /// names, and each holder's permit is within its own number.
    pub(super) fn look_at_permits(&mut self) {
        let mut semaphores = BTreeMap::new();
        let mut is_out_of_range = false;
        let Observer { held, delivered, .. } = &self.observer;
        let valid = held.iter().filter(|held| self.now < held.ends && !delivered.is_undermined(held));
        // Several guards of one token are one holder.
        let valid: BTreeMap<_, _> = valid.map(|held| (held.token, held)).collect();
        for held in valid.into_values() {
            let Some((resource, of)) = semaphore(&held.targets) else { continue };
            let (valid, most) = semaphores.entry(resource).or_insert((0, 0));
            let seats = seats_of(&held.targets);
            (*valid, *most) = (*valid + seats.len(), of.max(*most));
            is_out_of_range |= seats.is_empty() || seats.iter().any(|seat| *seat >= of);
        }
        let too_many =
            semaphores.into_iter().find(|(_, (valid, most))| *valid > usize::from(*most) || is_out_of_range);
        let violation = too_many.map(|(resource, (valid, of))| {
            let resource = resource.clone();
            Violation::TooManyPermits { resource, valid, of }
        });
        if let Some(violation) = violation {
            self.observer.report(violation);
        }
    }
}
