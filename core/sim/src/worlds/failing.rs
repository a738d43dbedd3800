//! Plans in which masters have replicas and fail over.

use std::time::Duration;

use super::fault::Fault;
use super::plan::Plan;
use super::random::Random;
use super::step::Step;
use super::when::When;
use crate::master::Keep;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Separates its random choices from those of the plan that it changes.
const FAILOVERS: u64 = 0x6661_696c_6f76_6572;

/// A failover that follows a grant follows one of the first 40 in its world.
const GRANTS: u64 = 40;

impl Plan {
    /// Creates a run in which every master has one or two replicas, all clients declare them, and
    /// masters fail over: [`Plan::random`] or [`Plan::random_mixed`] with this seed, with the
    /// restart guard.
    ///
    /// Most failovers are sequences of several faults: a primary hangs or is cut off from its
    /// replicas, one of these is promoted, the others follow it soon or late, and so does the
    /// former primary, which may continue for a while with clients that still use it.
    pub fn random_failovers(seed: u64) -> Self {
        let mut random = Random::new(seed ^ FAILOVERS);
        let mut plan = if random.one_in(3) { Self::random_mixed(seed) } else { Self::random(seed) };
        plan.replicas = if random.one_in(3) { 2 } else { 1 };
        plan.declared = Some(plan.replicas);
        plan.masters.truncate([1, 1, 2, 3].get(random.below(4)).copied().unwrap_or(1));
        let kind = random.below(4);
        if kind < 3 {
            plan.contend(&mut random);
        }
        if kind == 0 {
            plan.masters.truncate(1);
            plan.go_on(&mut random);
        }
        let longest = plan.longest_ttl().max(plan.request_timeout * 10);
        plan.restart_guard = Some(longest + random.spread(ms(1)..=ms(500)));
        plan.bootstrapped = !random.one_in(8);
        // With all faults between clients and servers, too few failovers would happen.
        let most = plan.faults.len() / 2;
        if random.one_in(2) {
            plan.faults.truncate(most);
        }
        let horizon = plan.longest_ttl() * 3;
        let failovers = if kind == 0 { random.below(2) } else { 1 + random.below(3) };
        for _ in 0..failovers {
            let start = Start::choose(&mut random, horizon);
            plan.fail_over(&mut random, start);
        }
        for _ in 0..random.below(4) {
            let when = When::At(random.within(Duration::ZERO..=horizon));
            let fault = plan.disturb(&mut random);
            plan.faults.push((when, fault));
        }
        plan
    }

    /// Makes clients hold locks for as long as a new primary does not vote, and longer, while
    /// others request them.
    fn contend(&mut self, random: &mut Random) {
        let ttl = random.spread(self.request_timeout * 5..=self.request_timeout * 10);
        for client in &mut self.clients {
            (client.steps, client.beside) = (Vec::new(), Vec::new());
            for _ in 0..4 + random.below(6) {
                let timeout = random.spread(ttl / 2..=ttl * 4);
                let (renewed, fenced) = (!random.one_in(4), random.one_in(2));
                let (healing, dropped_after) = (random.one_in(4), None);
                let lock = Step::Lock { resource: 0, ttl, timeout, renewed, fenced, healing, dropped_after };
                client.steps.extend([lock, Step::Hold(random.spread(ttl / 2..=ttl * 3))]);
                if !renewed {
                    client.steps.push(Step::Extend { ttl, dropped_after });
                    client.steps.push(Step::Hold(random.spread(ttl / 4..=ttl)));
                }
                client.steps.push(if random.one_in(4) { Step::Drop } else { Step::Release });
            }
        }
    }

    /// The first client holds a lock on a primary that continues while a replica is promoted, and
    /// the other clients move to the new primary. The replica's acknowledgements are in the
    /// primary's buffers or recent, so that the primary counts it as following.
    fn go_on(&mut self, random: &mut Random) {
        let ttl = self.request_timeout * 10;
        let at = |millis: Duration| When::At(ms(30) + millis);
        self.faults.truncate(random.below(3));
        let lock = |renewed, timeout| {
            let (fenced, healing, dropped_after) = (false, false, None);
            Step::Lock { resource: 0, ttl, timeout, renewed, fenced, healing, dropped_after }
        };
        let (others, hold) = (self.clients.len(), random.within(ttl / 4..=ttl * 3 / 4));
        let promoted = random.within(ms(1)..=ttl / 8);
        let (new, learned_within) = (1 + random.below(usize::from(self.replicas)), ms(10));
        let renewed = random.one_in(2);
        let ends = if renewed {
            // The primary and the promoted replica are cut off from each other, so the primary does
            // not learn of the promotion.
            let span = random.within(ttl / 2..=ttl * 3 / 2);
            self.faults.push((at(Duration::ZERO), Fault::Isolate { master: new, span }));
            span
        } else {
            // The primary hangs. When it continues, it executes the request that arrived just
            // before that.
            let span = hold - ms(20) + random.within(Duration::ZERO..=self.request_timeout);
            self.faults.push((at(Duration::ZERO), Fault::Hang { master: 0, span }));
            span
        };
        self.faults.push((at(promoted), Fault::Promote { master: new, learned_within }));
        for client in 1..others {
            self.faults.push((at(promoted + learned_within), Fault::Cut { client, master: 0 }));
        }
        for server in (0..=usize::from(self.replicas)).filter(|server| *server != new) {
            let later = random.within(ms(1)..=ttl / 2);
            let follow = Fault::Follow { master: server, closes: random.one_in(2) };
            self.faults.push((at(ends + later), follow));
        }
        let extends = [Step::Hold(hold), Step::Extend { ttl, dropped_after: None }, Step::Hold(ttl)];
        for (client, plan) in self.clients.iter_mut().enumerate() {
            let rest = Step::Rest(ms(40));
            let wanted = [lock(true, ttl * 4), Step::Hold(ttl / 2), Step::Release];
            let steps = if client == 0 { Vec::new() } else { vec![rest] };
            plan.steps.splice(0..0, steps.into_iter().chain(wanted));
        }
        if let Some(first) = self.clients.first_mut() {
            let held = if renewed { vec![Step::Hold(ends)] } else { extends.to_vec() };
            first.steps.splice(0..2, std::iter::once(lock(renewed, ttl)).chain(held));
        }
    }

    fn servers(&self) -> usize {
        self.masters.len() * (1 + usize::from(self.replicas))
    }

    /// A fault between the servers of a group, or a part of a failover without the rest.
    fn disturb(&self, random: &mut Random) -> Fault {
        let master = random.below(self.servers());
        let span = random.spread(ms(1)..=ms(2_500));
        match random.below(8) {
            0 => Fault::Promote { master, learned_within: random.spread(ms(1)..=span) },
            1 => Fault::Follow { master, closes: random.one_in(2) },
            2..=4 => Fault::Isolate { master, span },
            5 => Fault::Crash { master, span, keep: Keep::Everything },
            _ => Fault::SlowReplication { master, delay: random.spread(ms(1)..=ms(300)), span },
        }
    }

    /// One failover of one group, from its beginning to its end.
    fn fail_over(&mut self, random: &mut Random, start: Start) {
        let servers = 1 + usize::from(self.replicas);
        // If the failover begins with a grant, servers are counted from the one that granted, which
        // is usually the first of its group.
        let first = if start.number.is_some() { 0 } else { random.below(self.masters.len()) * servers };
        let old = first + if random.one_in(4) { random.below(servers) } else { 0 };
        let new = first + (old - first + 1 + random.below(servers - 1)) % servers;
        let brief = random.spread(ms(1)..=ms(400));
        let long = random.spread(ms(1)..=ms(3_000));
        match random.below(6) {
            // The primary hangs, or its event loop is busy, and it continues after the promotion.
            0..=1 => self.add(start, Duration::ZERO, Fault::Hang { master: old, span: brief + long }),
            2 => {
                let master = if random.one_in(2) { old } else { new };
                self.add(start, Duration::ZERO, Fault::Isolate { master, span: brief + long });
            }
            3 => {
                let keep = if random.one_in(3) { Keep::Nothing } else { Keep::Everything };
                self.add(start, Duration::ZERO, Fault::Crash { master: old, span: brief + long, keep });
            }
            4 => {
                let delay = random.spread(ms(1)..=ms(200));
                let slow = Fault::SlowReplication { master: old, delay, span: brief + long };
                self.add(start, Duration::ZERO, slow);
            }
            _ => {}
        }
        let learned_within = random.spread(ms(1)..=ms(1_500));
        self.add(start, brief, Fault::Promote { master: new, learned_within });
        for other in (first..first + servers).filter(|other| ![old, new].contains(other)) {
            let later = random.spread(ms(1)..=ms(1_500));
            self.add(start, brief + later, Fault::Follow { master: other, closes: random.one_in(2) });
        }
        // Some clients have to find the primary.
        for client in 0..self.clients.len() {
            if random.one_in(2) {
                let later = random.spread(ms(1)..=ms(1_500));
                self.add(start, brief + later, Fault::Cut { client, master: old });
            }
        }
        if !random.one_in(4) {
            let later = random.spread(ms(1)..=ms(5_000));
            self.add(start, brief + later, Fault::Follow { master: old, closes: random.one_in(2) });
        }
    }

    fn add(&mut self, start: Start, delay: Duration, fault: Fault) {
        let when = match start.number {
            Some(number) => When::AtGrant { number, delay },
            None => When::At(start.at + delay),
        };
        self.faults.push((when, fault));
    }
}

/// When a failover begins: at a time, or with a grant.
#[derive(Clone, Copy)]
struct Start {
    at: Duration,
    number: Option<u64>,
}

impl Start {
    fn choose(random: &mut Random, horizon: Duration) -> Self {
        let at = random.within(Duration::ZERO..=horizon);
        let number = random.next() % GRANTS;
        Self { at, number: random.one_in(2).then_some(number) }
    }
}
