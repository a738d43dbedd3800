//! Plans in which locks of every kind meet on the same resources.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::access::{Access, RESOURCES};
use super::plan::Plan;
use super::random::Random;
use super::step::Step;

/// How long a lock is held before it is downgraded.
const SOME_TIME: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_millis(60);

/// Separates its random choices from those of the plan that it changes.
const MIX: u64 = 0x6b69_6e64_7321;

impl Plan {
    /// Creates a run with locks of every kind: [`Plan::random`] with this seed, in which most
    /// requests are for several resources, for shared ones or for permits, all of them among up to
    /// four names.
    pub fn random_mixed(seed: u64) -> Self {
        let mut plan = Self::random(seed);
        let mut random = Random::new(seed ^ MIX);
        let resources = 2 + random.below(RESOURCES - 1);
        // With more shared locks, more of them are held at the same time, and writers wait for
        // them.
        let mostly_shared = random.one_in(3);
        let permits = Permits { of: 1 + random.below(3), agreed: !random.one_in(3) };
        for steps in plan.steps_mut() {
            for mut step in std::mem::take(steps) {
                let is_lock = matches!(step, Step::Lock { .. });
                step.mix(&mut random, resources, mostly_shared, permits);
                steps.push(step);
                if is_lock && random.one_in(2) {
                    steps.extend([Step::Hold(random.spread(SOME_TIME)), Step::Downgrade]);
                }
            }
        }
        plan
    }
}

/// How many permits the semaphores have, and whether all requests name that number.
#[derive(Clone, Copy)]
struct Permits {
    of: usize,
    agreed: bool,
}

impl Step {
    /// Turns a lock of one resource into any lock of these resources.
    fn mix(&mut self, random: &mut Random, resources: usize, mostly_shared: bool, permits: Permits) {
        let Self::Lock { ttl, timeout, renewed, fenced, healing, dropped_after, .. } = *self else { return };
        let shared = match random.below(5) {
            0 | 1 => Access::Share(0),
            2 => Access::Share(1),
            _ => Access::Read,
        };
        let mut accesses = [Access::None; RESOURCES];
        let first = random.below(resources);
        let (written, read) = match random.below(12) {
            10..=11 => {
                let of = if permits.agreed { permits.of } else { 1 + random.below(4) };
                let permit = Access::Permit(u8::try_from(of).unwrap_or(1));
                accesses.iter_mut().skip(first).take(1).for_each(|access| *access = permit);
                (0, 0)
            }
            _ if mostly_shared && random.one_in(2) => (0, 1 + random.below(2)),
            0 => {
                let resource = u8::try_from(random.below(resources)).unwrap_or(0);
                *self = Self::Lock { resource, ttl, timeout, renewed, fenced, healing, dropped_after };
                return;
            }
            1..=3 => (0, 1 + random.below(2)),
            4..=5 => (2 + random.below(2), 0),
            _ => (1 + random.below(2), 1 + random.below(2)),
        };
        // Neighbouring resources. If any should be shared, at least one is.
        let wanted = std::iter::repeat_n(Access::Write, written.min(resources - read.min(1)));
        for (place, access) in wanted.chain(std::iter::repeat_n(shared, read)).take(resources).enumerate() {
            if let Some(place) = accesses.get_mut((first + place) % resources) {
                *place = access;
            }
        }
        let once = random.one_in(6);
        *self = Self::LockAll { accesses, once, ttl, timeout, renewed, fenced, healing, dropped_after };
    }
}
