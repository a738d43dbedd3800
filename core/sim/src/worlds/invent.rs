//! Random plans.

use std::time::Duration;

use super::assumed::ASSUMED_DRIFT_PPM;
use super::fault::{Fault, PushFate, Refusal};
use super::plan::{ClientPlan, Plan};
use super::random::Random;
use super::step::Step;
use super::when::When;
use crate::master::Keep;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Separates its random choices from those of the plan that it changes.
const SECURED: u64 = 0x0073_6563_7572_6564;
const FAIR: u64 = 0x6661_6972;

/// The approximate number of events for each step of a client's program.
const EVENTS_A_STEP: u64 = 50;

impl Plan {
    /// Any run that Redlock must withstand, with faults of every kind within its assumptions. In
    /// every third run the restart guard is on, and masters lose their data.
    pub fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let masters = [3, 3, 3, 3, 5, 1, 2, 4].get(random.below(8)).copied().unwrap_or(3);
        let clients = 2 + random.below(3);
        let resources = if random.one_in(3) { 2 } else { 1 };
        let guarded = random.one_in(3);
        let request_timeout = random.spread(ms(15)..=ms(100));
        let steps = 8 + random.below(40);
        let clients = (0..clients)
            .map(|_| ClientPlan {
                steps: random_steps(&mut random, steps, resources, request_timeout),
                beside: if random.one_in(3) {
                    random_steps(&mut random, steps / 2, resources, request_timeout)
                } else {
                    Vec::new()
                },
                gain_ppm: random_gain(&mut random),
                ..ClientPlan::new(Vec::new())
            })
            .collect();
        let mut plan = Self::new(random.next(), masters, clients);
        plan.masters = (0..masters).map(|_| random_gain(&mut random)).collect();
        plan.request_timeout = request_timeout;
        plan.connect_timeout = random.spread(ms(15)..=ms(200));
        plan.retry_delay = random.spread(ms(4)..=ms(100));
        let horizon = ms(60) * u32::try_from(steps).unwrap_or(1);
        let faults = random.below(2 + steps);
        plan.faults = (0..faults)
            .map(|_| {
                let when = if random.one_in(3) {
                    When::At(random.within(Duration::ZERO..=horizon))
                } else {
                    When::AfterEvents(random.next() % (steps as u64 * EVENTS_A_STEP))
                };
                (when, random_fault(&mut random, guarded))
            })
            .collect();
        if random.one_in(2) {
            plan.focus(&mut random);
        }
        if guarded {
            // At the end, every client must get a lock with that TTL.
            let longest = plan.longest_ttl().max(plan.request_timeout * 10);
            plan.restart_guard = Some(longest + random.spread(ms(1)..=ms(500)));
            plan.bootstrapped = !random.one_in(4);
        }
        // These choices are made last, so that a seed still gives the same remaining plan as before
        // there were pushes.
        if random.one_in(2) {
            for _ in 0..1 + random.below(4) {
                let when = When::AfterEvents(random.next() % (steps as u64 * EVENTS_A_STEP));
                let fate = [PushFate::Lost, PushFate::Late, PushFate::Repeated].get(random.below(3));
                let (master, span) = (random.below(8), random.spread(ms(1)..=ms(3_000)));
                let fate = fate.copied().unwrap_or(PushFate::Lost);
                plan.faults.push((when, Fault::Pushes { master, fate, span }));
            }
        }
        // These choices are made later still, so that a seed still gives the same remaining plan as
        // before openings could fail at once.
        if random.one_in(3) {
            for _ in 0..1 + random.below(3) {
                // From the start, or from the end of the present connection.
                let when = match random.below(3) {
                    0 => When::At(Duration::ZERO),
                    _ => When::AfterEvents(random.next() % (steps as u64 * EVENTS_A_STEP)),
                };
                let (client, master) = (random.below(8), random.below(8));
                let span = random.spread(ms(1)..=ms(1_500));
                plan.faults.push((when, Fault::Unreachable { client, master, span }));
                plan.faults.push((when, Fault::Cut { client, master }));
            }
        }
        // These choices are made later still, so that a seed still gives the same remaining plan as
        // before locks could be kept after their release.
        if random.one_in(4) {
            let longest = plan.longest_ttl().min(ms(1_500));
            for step in plan.steps_mut().flatten() {
                if *step == Step::Release && random.one_in(3) {
                    *step = Step::ReleaseAfter(random.spread(ms(1)..=longest));
                }
            }
        }
        plan
    }

    /// Creates a run in which most clients wait fairly: [`Plan::random`] with this seed, with more
    /// clients on one resource.
    pub fn random_fair(seed: u64) -> Self {
        let mut random = Random::new(seed ^ FAIR);
        let mut plan = Self::random(seed);
        for _ in 0..random.below(4) {
            let another = plan.clients.get(random.below(plan.clients.len())).cloned();
            plan.clients.extend(another);
        }
        for client in &mut plan.clients {
            client.is_fair = !random.one_in(5);
        }
        for step in plan.steps_mut().flatten() {
            if let Step::Lock { resource, .. } = step {
                *resource = 0;
            }
        }
        plan
    }

    /// Creates a run over encrypted channels, in which clients log in again: [`Plan::random`] or
    /// [`Plan::random_mixed`] with this seed, with [`Step::Reauthenticate`] sometimes.
    pub fn random_secured(seed: u64) -> Self {
        let mut random = Random::new(seed ^ SECURED);
        let mut plan = if random.one_in(2) { Self::random(seed) } else { Self::random_mixed(seed) };
        plan.secured = true;
        for steps in plan.steps_mut() {
            for step in std::mem::take(steps) {
                steps.extend(random.one_in(8).then_some(Step::Reauthenticate));
                steps.push(step);
            }
        }
        plan
    }

    /// One client extends a long lock repeatedly while several faults happen at once, with spans
    /// around its timeout.
    fn focus(&mut self, random: &mut Random) {
        let unit = self.request_timeout;
        let mut steps = Vec::new();
        for _ in 0..2 + random.below(4) {
            let ttl = random.spread(unit * 8..=unit * 8 + ms(5_000));
            let renewed = random.one_in(2);
            let (fenced, healing) = (random.one_in(2), random.one_in(2));
            let timeout = ms(3_000);
            steps.push(Step::Lock {
                resource: 0,
                ttl,
                timeout,
                renewed,
                fenced,
                healing,
                dropped_after: None,
            });
            for _ in 0..4 + random.below(10) {
                steps.push(Step::Hold(random.spread(ms(1)..=unit * 2)));
                steps.push(Step::Extend { ttl, dropped_after: None });
            }
            steps.push(Step::Release);
        }
        let steps_count = steps.len() as u64;
        let events = steps.len() as u64 * EVENTS_A_STEP;
        let holder = random.below(self.clients.len());
        if let Some(client) = self.clients.get_mut(holder) {
            client.steps = steps;
        }
        self.faults.truncate(random.below(6));
        for _ in 0..1 + random.below(8) {
            let (start, first) = (random.next() % events, random.below(8));
            if !random.one_in(3) {
                // The client does not learn of a grant, and then another master fails.
                let number = random.next() % (steps_count / 4).max(4);
                let at = |delay| When::AtGrant { number, delay };
                let span = random.spread(unit / 2..=unit * 8);
                self.faults.push((
                    at(Duration::ZERO),
                    match random.below(4) {
                        0 => Fault::HalfOpen { client: 0, master: 0 },
                        1 => Fault::Cut { client: 0, master: 0 },
                        _ => Fault::Partition { client: 0, master: 0, span },
                    },
                ));
                let delay = random.within(ms(1)..=span * 2);
                let span = random.spread(unit..=unit * 16);
                self.faults.push((
                    at(delay),
                    match random.below(3) {
                        0 => Fault::Hang { master: 1, span },
                        1 => Fault::Crash { master: 1, span, keep: Keep::Everything },
                        _ => Fault::Partition { client: 0, master: 1, span },
                    },
                ));
                continue;
            }
            for place in 0..2 + random.below(2) {
                let when = When::AfterEvents(start + random.next() % 60);
                let span = random.spread(unit / 2..=unit * 16);
                let (client, master) = (holder, first + place);
                let fault = match random.below(10) {
                    0..=3 => Fault::Partition { client, master, span },
                    4 => Fault::Slow { client, master, delay: random.spread(unit / 4..=unit * 2), span },
                    5..=6 => Fault::Hang { master, span },
                    7 => Fault::Crash { master, span, keep: Keep::Everything },
                    8 => Fault::HalfOpen { client, master },
                    _ => Fault::Cut { client, master },
                };
                self.faults.push((when, fault));
            }
        }
    }
}

fn random_gain(random: &mut Random) -> i32 {
    match random.below(4) {
        0 => ASSUMED_DRIFT_PPM,
        1 => -ASSUMED_DRIFT_PPM,
        2 => 0,
        _ => {
            let width = usize::try_from(2 * ASSUMED_DRIFT_PPM).unwrap_or(1);
            i32::try_from(random.below(width)).unwrap_or(0) - ASSUMED_DRIFT_PPM
        }
    }
}

fn random_steps(random: &mut Random, count: usize, resources: usize, request_timeout: Duration) -> Vec<Step> {
    // A TTL must outlast its drift and the slowest answer that counts.
    let shortest_ttl = request_timeout * 21 / 20 + ms(3);
    let mut steps = Vec::new();
    while steps.len() < count {
        let cancelled =
            |random: &mut Random, often| random.one_in(often).then(|| random.spread(ms(1)..=ms(200)));
        steps.push(Step::Lock {
            resource: u8::try_from(random.below(resources)).unwrap_or(0),
            ttl: random_ttl(random, shortest_ttl),
            timeout: random.spread(ms(5)..=ms(1_500)),
            renewed: random.one_in(3),
            fenced: random.one_in(2),
            healing: random.one_in(3),
            dropped_after: cancelled(random, 8),
        });
        for _ in 0..random.below(4) {
            steps.push(match random.below(8) {
                0..=3 => Step::Hold(random.spread(ms(1)..=ms(400))),
                4..=6 => Step::Extend {
                    ttl: random_ttl(random, shortest_ttl),
                    dropped_after: cancelled(random, 6),
                },
                _ => Step::StopRenewal,
            });
        }
        if random.one_in(6) {
            steps.push(Step::HandOn);
        }
        if random.one_in(5) {
            steps.push(match random.below(4) {
                0 => Step::ReleaseHanded,
                _ => Step::Resume {
                    ttl: random_ttl(random, shortest_ttl),
                    renewed: random.one_in(3),
                    healing: random.one_in(3),
                },
            });
            steps.push(Step::Hold(random.spread(ms(1)..=ms(200))));
        }
        steps.push(match random.below(6) {
            0..=3 => Step::Release,
            4 => Step::Drop,
            _ if random.one_in(8) => Step::Rest(random.spread(ms(5_000)..=ms(8_000))),
            _ => Step::Rest(random.spread(ms(1)..=ms(500))),
        });
    }
    steps
}

/// Generates mostly short TTLs: a key that a client leaves behind keeps all others out for its TTL,
/// and they would only retry.
fn random_ttl(random: &mut Random, shortest: Duration) -> Duration {
    let longest = if random.one_in(8) { ms(6_000) } else { ms(900) };
    random.spread(shortest..=longest)
}

/// A fault of any kind inside the assumptions.
fn random_fault(random: &mut Random, guarded: bool) -> Fault {
    let (client, master) = (random.below(8), random.below(8));
    let brief = random.spread(ms(1)..=ms(1_500));
    if guarded && random.one_in(8) {
        return match random.below(5) {
            0 | 1 => Fault::Crash { master, span: brief, keep: Keep::Nothing },
            2 => Fault::Crash { master, span: brief, keep: Keep::Half },
            3 => Fault::Flush { master },
            _ => Fault::Resync { master, further: random.below(4), span: brief },
        };
    }
    match random.below(32) {
        0..=3 => Fault::Hang { master, span: brief },
        4..=5 => Fault::Crash { master, span: brief, keep: Keep::Everything },
        6 => Fault::Refuse { master, reason: Refusal::OutOfMemory, span: brief },
        7 => Fault::Refuse { master, reason: Refusal::ReadOnly, span: brief },
        8 => Fault::Refuse { master, reason: Refusal::Loading, span: brief },
        9 => Fault::Refuse { master, reason: Refusal::NoAuth, span: brief },
        10 => Fault::ForgetScripts { master },
        11..=12 => Fault::Cut { client, master },
        13 => Fault::HangUp { client, master },
        14..=15 => Fault::HalfOpen { client, master },
        16..=17 => Fault::Partition { client, master, span: brief },
        18..=19 => Fault::Slow { client, master, delay: random.spread(ms(1)..=ms(150)), span: brief },
        20..=22 => Fault::Pause { client, span: random.spread(Duration::from_micros(100)..=ms(3_000)) },
        23 => Fault::Slow { client, master, delay: random.spread(ms(10)..=ms(400)), span: brief },
        24 => Fault::ClientJump { client, by: brief },
        25 => Fault::ClientDrift { client, gain_ppm: random_gain(random) },
        26 => Fault::MasterDrift { master, gain_ppm: random_gain(random) },
        27..=28 => Fault::Mute { client, master, span: brief },
        29..=30 => Fault::Clog { client, master, span: brief },
        _ => Fault::Kill { client },
    }
}
