//! A whole run as a value: the steps of clients, the faults, and the seed for everything else.

use std::rc::Rc;
use std::time::Duration;

use super::access::{Access, RESOURCES, one};
use super::ending::must_get;
use super::fault::Fault;
use super::groups::Groups;
use super::locked::Letterbox;
use super::program::{self, RESUMED_WITHIN, Step};
use super::violation::Violation;
use super::when::When;
use super::world::{Failure, LARGEST_SKEW, Report, World};

/// What one client of a [`Plan`] does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct ClientPlan {
    /// The steps of its first task, in order.
    pub steps: Vec<Step>,
    /// The steps of its second task, which runs at the same time.
    pub beside: Vec<Step>,
    /// How fast its clock gains, in parts per million.
    pub gain_ppm: i32,
    /// Whether it waits fairly for the locks of one resource.
    pub is_fair: bool,
}

impl ClientPlan {
    /// Creates a client with an exact clock and one task.
    pub fn new(steps: Vec<Step>) -> Self {
        Self { steps, beside: Vec::new(), gain_ppm: 0, is_fair: false }
    }

    fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(&self.beside)
    }
}

/// A whole run as a value, which can be generated at random, inspected, shrunk and repeated.
///
/// [`Plan::run`] has three parts:
///
/// 1. The clients carry out their steps while faults are injected.
/// 2. All faults end, and **every client must get one more lock**. In a plan with locks of several
///    or shared resources, each client requests one of another kind. The time limit is the longest
///    TTL of the plan plus 2.5 s, plus 2 s for each client, and with the restart guard also the
///    guard's TTL.
/// 3. After 5 s no key may remain of a lock that is not held, and nothing may happen any more.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// The seed for tokens, delays and everything else that is random.
    pub seed: u64,
    /// How fast the clock of each master gains, in parts per million. Its length is the number of
    /// masters.
    pub masters: Vec<i32>,
    /// The clients.
    pub clients: Vec<ClientPlan>,
    /// The faults, and when each is injected.
    pub faults: Vec<(When, Fault)>,
    /// The [`request_timeout`](quorlock_core::ConfigBuilder::request_timeout) of every client.
    pub request_timeout: Duration,
    /// The [`connect_timeout`](quorlock_core::ConfigBuilder::connect_timeout) of every client.
    pub connect_timeout: Duration,
    /// The shortest [`retry_delay`](quorlock_core::ConfigBuilder::retry_delay) of every client; the
    /// longest is twice that.
    pub retry_delay: Duration,
    /// The [`restart_guard`](quorlock_core::ConfigBuilder::restart_guard) of every client, at least
    /// the longest TTL of the plan.
    ///
    /// With the guard the masters' clocks differ by no more than this.
    pub restart_guard: Option<Duration>,
    /// Whether the masters are told at the start that nothing can be locked yet, so that they vote
    /// at once although the restart guard is on.
    pub bootstrapped: bool,
    /// Whether clients reach the masters over encrypted channels, and log in with a password that
    /// changes with each [`Step::Reauthenticate`].
    pub secured: bool,
    /// The number of replicas that each master has.
    ///
    /// All servers have consecutive numbers. With two replicas, server 3 is the second master's
    /// primary at the beginning, and 4 and 5 are its replicas, which follow it asynchronously.
    /// Clients open connections to the server that was promoted last, as soon as they know it.
    pub replicas: u8,
    /// The number of replicas that the clients' URLs declare (`replicas=`), 0 for none.
    pub declared: u8,
    /// Whether scripts begin a quarantine before all replicas are there, as in
    /// [`Master::set_early_quarantine`](crate::Master::set_early_quarantine). Then the confirmation
    /// of each vote by all replicas is the only defence against a former primary that continues.
    pub early_quarantine: bool,
    /// The number of groups of servers among which the slot of each master moves, as in a cluster;
    /// 1 if there is no cluster.
    ///
    /// All groups are made as [`Plan::replicas`] says. The servers of a master's groups are
    /// numbered side by side, and the first group has the slot at the beginning. Servers learn of a
    /// new owner at different times. Clients have URLs of a cluster, and find the owner themselves.
    pub shards: u8,
    /// Whether slots also move back to their old server before any request for a lock at the other
    /// one. This is outside all assumptions: if the other server lost keys meanwhile, no client
    /// notices it.
    pub returns_unasked: bool,
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The longest backoff of the clients' connections.
const LONGEST_RECONNECT: Duration = ms(500);

/// The time for every run to end, in addition to its faults and TTLs.
const PATIENCE: Duration = Duration::from_secs(30);

impl Plan {
    /// Creates a plan without faults, whose masters have exact clocks.
    pub fn new(seed: u64, masters: usize, clients: Vec<ClientPlan>) -> Self {
        Self {
            seed,
            masters: vec![0; masters],
            clients,
            faults: Vec::new(),
            request_timeout: ms(50),
            connect_timeout: ms(100),
            retry_delay: ms(20),
            restart_guard: None,
            bootstrapped: false,
            secured: false,
            replicas: 0,
            declared: 0,
            early_quarantine: false,
            shards: 1,
            returns_unasked: false,
        }
    }

    /// Runs the plan.
    ///
    /// # Errors
    /// Returns a [`Failure`] with the timeline if a promise is broken.
    pub fn run(&self) -> Result<Report, Box<Failure>> {
        // A timeline costs more than the run, so a failed run is repeated with a timeline.
        self.carry_out(false).map_err(|first| self.carry_out(true).err().unwrap_or(first))
    }

    /// Runs the plan and returns the timeline as well, whether or not a promise is broken.
    pub fn trace(&self) -> (Result<Report, Box<Failure>>, super::Timeline) {
        let mut world = self.world(true);
        let outcome = self.carry_out_in(&mut world);
        (outcome, world.timeline())
    }

    /// Leaves out as much as possible while the plan fails in the same way.
    ///
    /// Returns the smallest plan that was found and its failure, or `None` if this plan does not
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

    /// Returns this plan without one fault or step, or with one step in a simpler form. `place`
    /// numbers all these changes; the result is `None` after the last one.
    fn without(&self, mut place: usize) -> Option<Self> {
        let mut smaller = self.clone();
        if place < smaller.faults.len() {
            smaller.faults.remove(place);
            return Some(smaller);
        }
        place -= smaller.faults.len();
        let steps: usize = self.clients.iter().map(|client| client.all_steps().count()).sum();
        if place < steps {
            for steps in smaller.steps_mut() {
                if place < steps.len() {
                    steps.remove(place);
                    break;
                }
                place -= steps.len();
            }
            return Some(smaller);
        }
        let mut plainer = smaller.steps_mut().flatten().filter_map(Step::plainer);
        let (step, plain) = plainer.nth(place - steps)?;
        *step = plain;
        drop(plainer);
        Some(smaller)
    }

    pub(super) fn steps_mut(&mut self) -> impl Iterator<Item = &mut Vec<Step>> {
        self.clients.iter_mut().flat_map(|client| [&mut client.steps, &mut client.beside])
    }

    fn carry_out(&self, keeps_timeline: bool) -> Result<Report, Box<Failure>> {
        let mut world = self.world(keeps_timeline);
        self.carry_out_in(&mut world)
    }

    fn world(&self, keeps_timeline: bool) -> World {
        let skew = self.restart_guard.map_or(LARGEST_SKEW, |longest| longest.min(LARGEST_SKEW));
        let [replicas, declared] = [self.replicas, self.declared].map(usize::from);
        let groups = Groups::new(1, replicas, declared);
        let mut groups = groups.of(self.masters.len().clamp(1, 64), self.shards.into());
        groups.early_quarantine = self.early_quarantine;
        groups.returns_unasked = self.returns_unasked;
        let drifting = self.masters.iter().enumerate().filter(|(_, gain)| **gain != 0);
        let servers = |(number, gain): (usize, &i32)| (groups.servers_of(number), *gain);
        let drifting: Vec<_> = drifting.map(servers).collect();
        let mut world = World::build(self.seed, groups, skew, keeps_timeline);
        if let Some(longest) = self.restart_guard.filter(|_| self.bootstrapped) {
            world.bootstrap(longest);
        }
        if self.secured {
            world.secure();
        }
        for (master, gain_ppm) in drifting.into_iter().flat_map(|(all, gain)| all.map(move |one| (one, gain)))
        {
            world.inject(Duration::ZERO, Fault::MasterDrift { master, gain_ppm });
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
        // While a replica hangs, a vote is confirmed after its answer, which is a second wait.
        let waits = if self.declared > 0 { 2 } else { 1 };
        let answer_limit = self.connect_timeout + self.request_timeout * waits;
        let (mut clients, letterbox) = (Vec::new(), Letterbox::default());
        for plan in &self.clients {
            let client = world.client_with(|settings| {
                let settings = match self.restart_guard {
                    Some(longest) => settings.ttl(longest).restart_guard(longest),
                    None => settings,
                };
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
                world.spawn(
                    &client,
                    program::run(
                        client.clone(),
                        steps.clone(),
                        plan.is_fair,
                        answer_limit,
                        Rc::clone(&letterbox),
                    ),
                );
            }
            clients.push(client);
        }
        // No step waits longer than its limit, so the programs end.
        let longest = self.clients.iter().map(|client| client.all_steps().map(longest_of).sum()).max();
        let longest: Duration = longest.unwrap_or_default();
        let last_fault = self.faults.iter().map(|(when, fault)| when.at_latest(longest) + fault.span()).max();
        let last_fault = last_fault.unwrap_or_default();
        world.run((longest + last_fault) * 2 + PATIENCE)?;
        world.forget_faults();
        world.heal();
        // Keys that a master has copied from another one expire at the time that the other's clock
        // gave them.
        let quarantine = self.restart_guard.map_or(Duration::ZERO, |longest| longest + longest / 50);
        let has_copies = self.replicas > 0
            || self.shards > 1
            || self.faults.iter().any(|(_, fault)| matches!(fault, Fault::Resync { .. }));
        let skew = if has_copies { quarantine.min(LARGEST_SKEW) } else { Duration::ZERO };
        let crowd = Duration::from_secs(2) * (1 + crowd(&clients));
        let timeout = self.longest_ttl() + LONGEST_RECONNECT + crowd + quarantine + skew;
        for client in &clients {
            let ttl = self.request_timeout * 10;
            let wanted = self.last_wanted(client.number());
            world.spawn(client, must_get(client.clone(), wanted, ttl, timeout));
        }
        world.run(timeout * 2 + PATIENCE)?;
        world.settle()
    }

    /// The request that a client must be granted at the end. In a plan with locks of several or
    /// shared resources or with permits each client has another kind.
    fn last_wanted(&self, client: usize) -> [Access; RESOURCES] {
        use Access::{None, Permit, Read, Write};
        let mut steps = self.clients.iter().flat_map(ClientPlan::all_steps);
        if !steps.any(|step| matches!(step, Step::LockAll { .. })) {
            return one(0);
        }
        let kinds: [[Access; RESOURCES]; 5] = [
            [Read, None, None, None],
            [Write, Write, None, None],
            [Write, None, None, None],
            [Read, Write, None, None],
            [Permit(2), None, None, None],
        ];
        // There may be only two clients, so the first kind depends on the seed.
        let first = usize::try_from(self.seed % 5).unwrap_or(0);
        kinds.get((first + client) % kinds.len()).copied().unwrap_or_else(|| one(0))
    }

    /// The longest life that any key may have been given.
    pub(super) fn longest_ttl(&self) -> Duration {
        let ttls = self.clients.iter().flat_map(ClientPlan::all_steps).map(|step| match step {
            Step::Lock { ttl, .. }
            | Step::LockAll { ttl, .. }
            | Step::Extend { ttl, .. }
            | Step::Resume { ttl, .. } => *ttl + *ttl / 50,
            Step::ReleaseAfter(at_least) => *at_least + *at_least / 50,
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
        Step::Lock { timeout, .. } | Step::LockAll { timeout, .. } => *timeout,
        Step::Hold(span) | Step::Rest(span) => *span,
        Step::Resume { .. } => RESUMED_WITHIN,
        Step::Extend { .. } | Step::Release | Step::ReleaseAfter(_) | Step::ReleaseHanded => {
            Duration::from_secs(1)
        }
        Step::StopRenewal | Step::Drop | Step::HandOn | Step::Downgrade | Step::Reauthenticate => {
            Duration::ZERO
        }
    }
}
