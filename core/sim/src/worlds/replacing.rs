//! Plans in which a dead master is replaced by a spare.

use std::time::Duration;

use super::fault::Fault;
use super::plan::{ClientPlan, Plan};
use super::random::Random;
use super::step::Step;
use super::when::When;
use crate::master::Keep;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Separates its random choices from those of other plans.
const REPLACEMENTS: u64 = 0x7265_706c_6163_6521;

/// The number of masters that vote together.
const MASTERS: usize = 3;

/// The order in which a dead master is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Replacement {
    /// The safe one: the old master is off. When the longest TTL has passed, one successor is named
    /// to all clients, which are restarted one after the other.
    InOrder,
    /// Clients that have the successor start while the old master still votes for others, so the
    /// successor's quarantine ends too early.
    TooEarly,
    /// The old master comes back for clients that still have it.
    OldReturns,
    /// Some clients have one successor, and others another one.
    TwoSpares,
    /// All masters lose their data while a lock is held, and are told that nothing can be locked
    /// yet ([`Locker::bootstrap`](quorlock_core::front::Locker::bootstrap)).
    BootstrapWhileHeld,
}

impl Replacement {
    /// Every order, the safe one first.
    pub const ALL: [Self; 5] =
        [Self::InOrder, Self::TooEarly, Self::OldReturns, Self::TwoSpares, Self::BootstrapWhileHeld];

    /// Returns whether no two guards may be valid at once.
    pub fn is_safe(self) -> bool {
        self == Self::InOrder
    }
}

impl Plan {
    /// Creates a run with three masters, the restart guard and two spares, in which a master leaves
    /// and is replaced in this order. In half of the plans, masters have replicas, all of which
    /// clients declare.
    ///
    /// Clients contend for one lock. Each reaches some masters only for some of the time, so that
    /// two of them often have different quorums.
    pub fn random_replacement(seed: u64, order: Replacement) -> Self {
        let mut random = Random::new(seed ^ REPLACEMENTS);
        let longest = random.within(ms(600)..=ms(1_500));
        let mut plan = Self::new(random.next(), MASTERS, Vec::new());
        (plan.restart_guard, plan.bootstrapped) = (Some(longest), true);
        plan.replicas = u8::from(random.one_in(2));
        plan.declared = Some(plan.replicas).filter(|replicas| *replicas > 0 || random.one_in(2));
        plan.spares = 2;
        plan.request_timeout = random.within(ms(20)..=ms(50));
        let replaced = random.below(MASTERS);
        let leaves_at = random.within(ms(300)..=longest);
        // By the slowest clock that a master may have.
        let waits = longest + longest / 50;
        let begins = match order {
            Replacement::TooEarly => leaves_at.saturating_sub(longest * 9 / 10),
            _ => leaves_at + waits,
        };
        let returns_at = leaves_at + waits;
        let clients = 2 + random.below(2);
        let old_ends = |random: &mut Random, begins: Duration| match order {
            Replacement::InOrder | Replacement::TwoSpares => begins,
            _ => begins + longest * 4 + random.within(Duration::ZERO..=longest),
        };
        if order == Replacement::BootstrapWhileHeld {
            for _ in 0..clients {
                plan.clients.push(contender(&mut random, longest));
            }
            plan.lose_all(&mut random, leaves_at, longest);
            return plan;
        }
        plan.faults.push((When::At(leaves_at), Fault::Leave { master: plan.server_of(replaced) }));
        if order == Replacement::OldReturns {
            let (master, keep) = (plan.server_of(replaced), Keep::Everything);
            plan.faults.push((When::At(returns_at), Fault::Return { master, keep }));
        }
        let mut restarts_at = begins;
        for client in 0..clients {
            plan.clients.push(contender(&mut random, longest));
            let ends_at = old_ends(&mut random, restarts_at);
            plan.faults.push((When::At(ends_at), Fault::Kill { client }));
            restarts_at += random.within(ms(1)..=longest / 2);
        }
        let mut restarts_at = begins;
        for client in 0..clients {
            let spare = if order == Replacement::TwoSpares { client % 2 } else { 0 };
            let mut next = contender(&mut random, longest);
            (next.starts_at, next.spare_for) = (restarts_at, Some((replaced, spare)));
            plan.clients.push(next);
            restarts_at += random.within(ms(1)..=longest / 2);
        }
        let horizon = restarts_at + longest * 3;
        for _ in 0..4 + random.below(8) {
            let (client, master) = (random.below(clients * 2), plan.server_of(random.below(MASTERS + 1)));
            let span = random.spread(ms(20)..=longest);
            let at = random.within(leaves_at..=horizon);
            plan.faults.push((When::At(at), Fault::Partition { client, master, span }));
        }
        plan
    }

    /// The first server of a group.
    fn server_of(&self, group: usize) -> usize {
        group * (1 + usize::from(self.replicas))
    }

    /// All masters lose their data, and one client tells them that nothing can be locked yet,
    /// and requests the lock.
    fn lose_all(&mut self, random: &mut Random, at: Duration, longest: Duration) {
        for master in 0..MASTERS * (1 + usize::from(self.replicas)) {
            let crash = Fault::Crash { master, span: ms(5), keep: Keep::Nothing };
            self.faults.push((When::At(at), crash));
        }
        let told = at + random.within(ms(30)..=ms(200));
        // Clients that waited before know of the quarantine, and ask when it ends.
        let mut declares = contender(random, longest).steps;
        declares.splice(0..0, [Step::Rest(told), Step::Bootstrap]);
        self.clients.push(ClientPlan::new(declares));
    }
}

/// A client that wants the lock again and again, for about as long as it lives.
fn contender(random: &mut Random, longest: Duration) -> ClientPlan {
    let mut steps = Vec::new();
    for _ in 0..8 {
        let ttl = random.within(longest / 2..=longest);
        let (renewed, fenced, healing) = (random.one_in(2), random.one_in(4), random.one_in(4));
        let timeout = longest * 3;
        steps.push(Step::Lock { resource: 0, ttl, timeout, renewed, fenced, healing, dropped_after: None });
        steps.push(Step::Hold(random.within(ttl / 4..=ttl)));
        steps.push(Step::Release);
    }
    ClientPlan::new(steps)
}
