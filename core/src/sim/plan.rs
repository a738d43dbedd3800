//! A whole run as a value: who does what, what goes wrong, and the seed for everything else.

use std::time::Duration;

use super::fault::{ASSUMED_DRIFT_PPM, Fault, Keep, Refusal, When};
use super::program::{self, Step};
use super::random::Random;
use super::violation::Violation;
use super::world::{Failure, Report, World};

/// What a client is and does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct ClientPlan {
    /// What it does, in this order.
    pub steps: Vec<Step>,
    /// What another task of it does at the same time.
    pub beside: Vec<Step>,
    /// How much its clock gains, in parts in a million.
    pub gain_ppm: i32,
}

impl ClientPlan {
    /// A client with a true clock.
    pub fn new(steps: Vec<Step>) -> Self {
        Self { steps, beside: Vec::new(), gain_ppm: 0 }
    }

    fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(&self.beside)
    }
}

/// A run in a world, as a value: it can be made up at random, looked at, shrunk, and run again.
///
/// [`Plan::run`] carries it out in three parts: the clients' steps while faults come about; after the last of them all faults end, and
/// **every client must get one more lock**, within the longest TTL of the plan and 2.5 s, and 2 s more for each client; then no key that
/// nobody holds may be left after 5 s, and nothing may happen any more.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// For tokens, delays, and all else that is left to chance.
    pub seed: u64,
    /// How much each master's clock gains, in parts in a million. There are as many masters.
    pub masters: Vec<i32>,
    /// The clients.
    pub clients: Vec<ClientPlan>,
    /// What goes wrong, and when.
    pub faults: Vec<(When, Fault)>,
    /// [`ConfigBuilder::request_timeout`](crate::ConfigBuilder::request_timeout) of every client.
    pub request_timeout: Duration,
    /// [`ConfigBuilder::connect_timeout`](crate::ConfigBuilder::connect_timeout) of every client.
    pub connect_timeout: Duration,
    /// The shortest pause between two attempts of every client; the longest is twice that.
    pub retry_delay: Duration,
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The longest back-off of the clients' connections.
const LONGEST_RECONNECT: Duration = ms(500);

/// About so much happens in a world for each step of one of its clients' programs.
const EVENTS_A_STEP: u64 = 50;

/// What every run is given beyond its faults and the TTLs in it before it must have ended.
const PATIENCE: Duration = Duration::from_secs(30);

impl Plan {
    /// Masters with true clocks, and no faults.
    pub fn new(seed: u64, masters: usize, clients: Vec<ClientPlan>) -> Self {
        Self {
            seed,
            masters: vec![0; masters],
            clients,
            faults: Vec::new(),
            request_timeout: ms(50),
            connect_timeout: ms(100),
            retry_delay: ms(20),
        }
    }

    /// Any run that Redlock must stand, with faults of every kind that lies inside its assumptions.
    pub fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let masters = [3, 3, 3, 3, 5, 1, 2, 4].get(random.below(8)).copied().unwrap_or(3);
        let clients = 2 + random.below(3);
        let resources = if random.one_in(3) { 2 } else { 1 };
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
                (when, random_fault(&mut random))
            })
            .collect();
        if random.one_in(2) {
            plan.focus(&mut random);
        }
        plan
    }

    /// One client extends a long lock over and over while several things go wrong at once, with spans around its time-out.
    fn focus(&mut self, random: &mut Random) {
        let unit = self.request_timeout;
        let mut steps = Vec::new();
        for _ in 0..2 + random.below(4) {
            let ttl = random.spread(unit * 8..=unit * 8 + ms(5_000));
            let renewed = random.one_in(2);
            steps.push(Step::Lock { resource: 0, ttl, within: ms(3_000), renewed, dropped_after: None });
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
                // What was granted is not learnt, and then another master fails.
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

    /// Carries it out.
    ///
    /// # Errors
    /// [`Failure`] with the timeline if a promise was broken.
    pub fn run(&self) -> Result<Report, Box<Failure>> {
        // Timelines cost more than the run; the same run once more gives the one that is wanted.
        self.carry_out(false).map_err(|first| self.carry_out(true).err().unwrap_or(first))
    }

    /// Carries it out and tells everything that happened, with or without a failure.
    pub fn trace(&self) -> (Result<Report, Box<Failure>>, super::Timeline) {
        let mut world = self.world(true);
        let outcome = self.carry_out_in(&mut world);
        (outcome, world.timeline())
    }

    /// The smallest plan that fails in the same way that can be found by leaving things out, with its failure. `None` if this one does not
    /// fail.
    pub fn shrink(&self) -> Option<(Self, Box<Failure>)> {
        let mut best = self.clone();
        let mut failure = self.carry_out(false).err()?;
        let mut is_smaller = true;
        while is_smaller {
            is_smaller = false;
            let mut place = 0;
            while let Some(candidate) = best.without(place) {
                match candidate.carry_out(false) {
                    Err(other) if same_kind(&other.violation, &failure.violation) => {
                        (best, failure, is_smaller) = (candidate, other, true);
                    }
                    _ => place += 1,
                }
            }
        }
        let failure = best.carry_out(true).err().unwrap_or(failure);
        Some((best, failure))
    }

    /// This plan without its fault or step of that number, counted over all; `None` behind the last.
    fn without(&self, mut place: usize) -> Option<Self> {
        let mut smaller = self.clone();
        if place < smaller.faults.len() {
            smaller.faults.remove(place);
            return Some(smaller);
        }
        place -= smaller.faults.len();
        let lists = smaller.clients.iter_mut().flat_map(|client| [&mut client.steps, &mut client.beside]);
        for steps in lists {
            if place < steps.len() {
                steps.remove(place);
                place = usize::MAX;
                break;
            }
            place -= steps.len();
        }
        (place == usize::MAX).then_some(smaller)
    }

    fn carry_out(&self, keeps_timeline: bool) -> Result<Report, Box<Failure>> {
        let mut world = self.world(keeps_timeline);
        self.carry_out_in(&mut world)
    }

    fn world(&self, keeps_timeline: bool) -> World {
        let mut world = World::build(self.seed, self.masters.len(), keeps_timeline);
        for (master, gain_ppm) in self.masters.iter().enumerate().filter(|(_, gain)| **gain != 0) {
            world.inject(Duration::ZERO, Fault::MasterDrift { master, gain_ppm: *gain_ppm });
        }
        for (client, plan) in self.clients.iter().enumerate().filter(|(_, plan)| plan.gain_ppm != 0) {
            world.inject(Duration::ZERO, Fault::ClientDrift { client, gain_ppm: plan.gain_ppm });
        }
        for (at, fault) in &self.faults {
            world.inject(*at, *fault);
        }
        world
    }

    fn carry_out_in(&self, world: &mut World) -> Result<Report, Box<Failure>> {
        let answer_limit = self.connect_timeout + self.request_timeout;
        let mut clients = Vec::new();
        for plan in &self.clients {
            let client = world.client_with(|settings| {
                settings
                    .request_timeout(self.request_timeout)
                    .connect_timeout(self.connect_timeout)
                    .retry_delay(self.retry_delay..=self.retry_delay * 2)
                    .reconnect_delay(ms(5)..=LONGEST_RECONNECT)
            });
            let client = match client {
                Ok(client) => client,
                Err(error) => return Err(world.failure(Violation::Reported(error.to_string()))),
            };
            for steps in [&plan.steps, &plan.beside] {
                world.spawn(&client, program::run(client.clone(), steps.clone(), answer_limit));
            }
            clients.push(client);
        }
        // Nothing here waits for longer than it was told to, so the programs end.
        let longest = self.clients.iter().map(|client| client.all_steps().map(longest_of).sum()).max();
        let longest: Duration = longest.unwrap_or_default();
        let last_fault = self.faults.iter().map(|(when, fault)| when.at_latest(longest) + fault.span()).max();
        let last_fault = last_fault.unwrap_or_default();
        world.run((longest + last_fault) * 2 + PATIENCE)?;
        world.forget_faults();
        world.heal();
        let within = self.longest_ttl() + LONGEST_RECONNECT + Duration::from_secs(2) * (1 + crowd(&clients));
        for client in &clients {
            let ttl = self.request_timeout * 10;
            world.spawn(client, program::must_get(client.clone(), 0, ttl, within));
        }
        world.run(within * 2 + PATIENCE)?;
        world.settle()
    }

    /// The longest life that any key may have been given.
    fn longest_ttl(&self) -> Duration {
        let ttls = self.clients.iter().flat_map(ClientPlan::all_steps).map(|step| match step {
            Step::Lock { ttl, .. } | Step::Extend { ttl, .. } => *ttl + *ttl / 50,
            _ => Duration::ZERO,
        });
        ttls.max().unwrap_or_default()
    }
}

fn crowd(clients: &[super::Client]) -> u32 {
    u32::try_from(clients.len()).unwrap_or(u32::MAX)
}

fn same_kind(one: &Violation, other: &Violation) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// How long a step may take.
fn longest_of(step: &Step) -> Duration {
    match step {
        Step::Lock { within, .. } => *within,
        Step::Hold(span) | Step::Rest(span) => *span,
        Step::Extend { .. } | Step::Release => Duration::from_secs(1),
        Step::StopRenewal | Step::Drop => Duration::ZERO,
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
            within: random.spread(ms(5)..=ms(1_500)),
            renewed: random.one_in(3),
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
        steps.push(match random.below(6) {
            0..=3 => Step::Release,
            4 => Step::Drop,
            _ if random.one_in(8) => Step::Rest(random.spread(ms(5_000)..=ms(8_000))),
            _ => Step::Rest(random.spread(ms(1)..=ms(500))),
        });
    }
    steps
}

/// Mostly short: what a client leaves behind keeps all others out for as long, and they would do nothing but ask.
fn random_ttl(random: &mut Random, shortest: Duration) -> Duration {
    let longest = if random.one_in(8) { ms(6_000) } else { ms(900) };
    random.spread(shortest..=longest)
}

/// A fault of any kind inside the assumptions.
fn random_fault(random: &mut Random) -> Fault {
    let (client, master) = (random.below(8), random.below(8));
    let brief = random.spread(ms(1)..=ms(1_500));
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
