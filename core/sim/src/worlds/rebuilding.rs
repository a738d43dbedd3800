//! Plans in which masters come back with older data or with the data of another one, while locks
//! have several holders.

use std::time::Duration;

use super::access::Access;
use super::fault::Fault;
use super::plan::{ClientPlan, Plan};
use super::random::Random;
use super::step::Step;
use super::when::When;
use crate::master::Keep;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Separates its random choices from those of the plan that it changes.
const REBUILDS: u64 = 0x0072_6562_7569_6c64;

/// A loss that follows a grant follows one of the first 60 in its world.
const GRANTS: u64 = 60;

impl Plan {
    /// Creates a run with the restart guard in which masters are restored from snapshots, rebuilt
    /// as copies of other masters, or lose their data: [`Plan::random_mixed`] with this seed. In
    /// most plans masters have replicas, all of which clients declare; where they have none, half
    /// of the plans declare that.
    ///
    /// Clients give copies of their locks away, which are delivered twice and late, request locks
    /// as owners, make further handles, and force-release locks. Some have a prefix.
    pub fn random_rebuilds(seed: u64) -> Self {
        let mut random = Random::new(seed ^ REBUILDS);
        let mut plan = Self::random_mixed(seed);
        plan.replicas = [0, 1, 1, 2].get(random.below(4)).copied().unwrap_or(0);
        plan.declared = Some(plan.replicas).filter(|replicas| *replicas > 0 || random.one_in(2));
        if plan.replicas > 0 {
            plan.masters.truncate([1, 2, 3, 3].get(random.below(4)).copied().unwrap_or(3));
        }
        plan.widen(&mut random);
        let life = random.spread(ms(1_000)..=ms(4_000));
        if random.one_in(2) {
            plan.live_for(life);
        }
        if random.one_in(2) {
            plan.faults.truncate(plan.faults.len() / 2);
        }
        for _ in 0..1 + random.below(3) {
            plan.lose(&mut random);
        }
        if random.one_in(3) {
            plan.recall(&mut random);
        }
        let longest = plan.longest_ttl().max(plan.request_timeout * 10);
        plan.restart_guard = Some(longest + random.spread(ms(1)..=ms(500)));
        plan.bootstrapped = !random.one_in(8);
        plan
    }

    /// Lets locks have several handles and several holders.
    pub(super) fn widen(&mut self, random: &mut Random) {
        if random.one_in(4) {
            // A forgotten waiter is noticed before it gives up.
            for step in self.steps_mut().flatten() {
                if let Step::Lock { timeout, .. } | Step::LockAll { timeout, .. } = step {
                    *timeout = ms(15_000);
                }
            }
        }
        for client in &mut self.clients {
            client.is_owner = random.one_in(3);
            client.has_prefix = random.one_in(10);
        }
        let lives = self.request_timeout * 2..=self.request_timeout * 20;
        for steps in self.steps_mut() {
            for mut step in std::mem::take(steps) {
                if let Step::LockAll { accesses, .. } = &mut step {
                    for access in accesses.iter_mut() {
                        match *access {
                            Access::Permit(of) if of > 1 && random.one_in(2) => {
                                *access = Access::Permits { of, take: 2 };
                            }
                            _ => {}
                        }
                    }
                }
                let is_lock = matches!(step, Step::Lock { .. } | Step::LockAll { .. });
                steps.push(step);
                if !is_lock {
                    continue;
                }
                steps.extend(random.one_in(4).then_some(Step::Nest));
                steps.extend(random.one_in(6).then_some(Step::Share));
                steps.extend(random.one_in(4).then_some(Step::Copy));
                steps.extend(random.one_in(6).then_some(Step::Repeat));
                if random.one_in(30) {
                    let (resource, is_permit) =
                        (u8::try_from(random.below(2)).unwrap_or(0), random.one_in(4));
                    steps.push(Step::ForceRelease { resource, is_permit });
                }
                if random.one_in(6) {
                    let ttl = random.spread(lives.clone());
                    let (renewed, healing) = (random.one_in(3), random.one_in(3));
                    steps.push(Step::Hold(random.spread(ms(1)..=ms(100))));
                    steps.push(Step::Resume { ttl, renewed, healing });
                    steps.push(Step::Hold(random.spread(ms(1)..=ms(200))));
                }
            }
        }
    }

    /// Gives keys long lives, so that those of a snapshot are still alive when it is restored,
    /// while locks are held for a short time.
    pub(super) fn live_for(&mut self, life: Duration) {
        for step in self.steps_mut().flatten() {
            match step {
                Step::Lock { ttl, .. }
                | Step::LockAll { ttl, .. }
                | Step::Extend { ttl, .. }
                | Step::Resume { ttl, .. } => *ttl = life,
                _ => {}
            }
        }
    }

    /// Begins with a client that gives copies of its lock away and releases the lock, and another
    /// one that gets the lock. Then masters have the first client's keys again, from a snapshot or
    /// from a master that has missed the release, and a third client resumes the copy.
    fn recall(&mut self, random: &mut Random) {
        let life = random.spread(ms(1_000)..=ms(3_000));
        let lock = |timeout| Step::Lock {
            resource: 0,
            ttl: life,
            timeout,
            renewed: false,
            fenced: false,
            healing: false,
            dropped_after: None,
        };
        let holds = random.within(ms(40)..=ms(300));
        let asks = holds + random.within(Duration::ZERO..=ms(100));
        let returns = asks + random.within(ms(20)..=life / 3);
        let resumes = returns + random.within(ms(50)..=life / 3);
        let mut first = vec![lock(ms(500)), Step::Copy];
        first.extend(random.one_in(3).then_some(Step::Share));
        first.extend([Step::Hold(holds), Step::Release, Step::Rest(life)]);
        let second = vec![Step::Rest(asks), lock(ms(1_000)), Step::Hold(life - ms(100)), Step::Release];
        let (renewed, healing) = (random.one_in(2), random.one_in(2));
        let resume = Step::Resume { ttl: life / 2, renewed, healing };
        let third = vec![Step::Rest(resumes), resume, Step::Hold(life / 2), Step::Release];
        let plans = std::iter::repeat_with(|| ClientPlan::new(Vec::new()));
        self.clients.extend(plans.take(3_usize.saturating_sub(self.clients.len())));
        for (client, steps) in self.clients.iter_mut().zip([first, second, third]) {
            client.steps.splice(0..0, steps);
            (client.beside, client.has_prefix) = (Vec::new(), false);
        }
        self.faults.truncate(random.below(4));
        let (masters, servers) = (self.masters.len(), 1 + usize::from(self.replicas));
        if masters < 2 || random.one_in(2) {
            for master in (0..masters).map(|group| group * servers) {
                let saved = random.within(ms(20)..=holds);
                let span = random.spread(ms(1)..=ms(50));
                self.faults.push((When::At(saved), Fault::Save { master }));
                self.faults.push((When::At(returns), Fault::Restore { master, span }));
            }
        } else {
            let (from, further) = (random.below(masters), random.below(masters - 1));
            // Counted from the one that is rebuilt.
            let other = (from + 1 + further) % masters * servers;
            let cut = Fault::Partition { client: 0, master: other, span: life };
            self.faults.push((When::At(holds - ms(10)), cut));
            let span = random.within(ms(20)..=ms(150));
            self.faults.push((When::At(returns), Fault::Resync { master: from * servers, further, span }));
        }
    }

    /// Some masters lose their data in one way, soon one after the other.
    fn lose(&mut self, random: &mut Random) {
        let servers = 1 + usize::from(self.replicas);
        let horizon = self.longest_ttl() * 2;
        let (at, number) = (random.within(Duration::ZERO..=horizon), random.next() % GRANTS);
        let is_after_grant = random.one_in(2);
        let when = |delay: Duration| {
            if is_after_grant { When::AtGrant { number, delay } } else { When::At(at + delay) }
        };
        let way = random.below(5);
        let age = random.spread(ms(5)..=ms(1_500));
        let masters = 1 + random.below(self.masters.len());
        let first = random.below(self.masters.len());
        for place in 0..masters {
            // If a grant begins it, servers are counted from the one that granted.
            let group = if is_after_grant { place } else { (first + place) % self.masters.len() };
            let master = group * servers;
            let later = random.spread(ms(1)..=ms(300));
            let span = random.spread(ms(1)..=ms(200));
            let fault = match way {
                0..=2 => {
                    self.faults.push((when(Duration::ZERO), Fault::Save { master }));
                    Fault::Restore { master, span }
                }
                3 => Fault::Resync { master, further: random.below(3), span },
                _ => Fault::Crash { master, span, keep: Keep::Nothing },
            };
            self.faults.push((when(age + later), fault));
        }
    }
}
