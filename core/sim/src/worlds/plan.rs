//! A whole run as a value: the steps of clients, the faults, and the seed for everything else.

use std::time::Duration;

use super::fault::Fault;
use super::outcome::{Failure, Report};
use super::step::Step;
use super::violation::Violation;
use super::when::When;

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
    /// Whether its two tasks are one [`Owner`](quorlock_core::front::Owner): a lock that one of
    /// them holds is granted to the other one, too.
    pub is_owner: bool,
    /// Whether its keys have a [prefix](quorlock_core::ConfigBuilder::prefix). Then it does not
    /// exclude clients without one, and gets none of the locks that these hand over.
    pub has_prefix: bool,
    /// When its process starts, in true time since the world began.
    pub starts_at: Duration,
    /// Of the masters from the beginning, the one that it does not have, and which of the
    /// [spares](Plan::spares) it has instead.
    pub spare_for: Option<(usize, usize)>,
}

impl ClientPlan {
    /// Creates a client with an exact clock and one task.
    pub fn new(steps: Vec<Step>) -> Self {
        Self {
            steps,
            beside: Vec::new(),
            gain_ppm: 0,
            is_fair: false,
            is_owner: false,
            has_prefix: false,
            starts_at: Duration::ZERO,
            spare_for: None,
        }
    }

    pub(super) fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(&self.beside)
    }
}

/// A whole run as a value, which can be generated at random, inspected, shrunk and repeated.
///
/// [`Plan::run`] has three parts:
///
/// 1. The clients start in the order of the plan and carry out their steps, while faults are
///    injected.
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
    /// The number of replicas that the clients' URLs declare (`replicas=`); `None` if they declare
    /// nothing.
    pub declared: Option<u8>,
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
    /// The number of further masters that no client has in its list, unless its plan says so. None
    /// in a cluster.
    ///
    /// With their replicas they have the highest numbers.
    pub spares: u8,
    /// Whether slots also move back to their old server before any request for a lock at the other
    /// one. This is outside all assumptions: if the other server lost keys meanwhile, no client
    /// notices it.
    pub returns_unasked: bool,
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

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
            declared: None,
            early_quarantine: false,
            shards: 1,
            spares: 0,
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

    /// The longest life that any key may have been given.
    pub(super) fn longest_ttl(&self) -> Duration {
        let ttls =
            self.clients.iter().flat_map(ClientPlan::all_steps).map(|step| step.ttl() + step.ttl() / 50);
        ttls.max().unwrap_or_default()
    }
}

fn same_kind(one: &Violation, other: &Violation) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}
