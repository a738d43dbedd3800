//! How a plan is carried out.

use std::rc::Rc;
use std::time::Duration;

use super::access::{Access, RESOURCES, one};
use super::ending::must_get;
use super::fault::Fault;
use super::groups::Groups;
use super::locked::Letterbox;
use super::outcome::{Failure, Report};
use super::plan::{ClientPlan, Plan};
use super::program::Program;
use super::step::Step;
use super::violation::Violation;
use super::world::{LARGEST_SKEW, World};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The prefix of the keys of a client that has one.
const PREFIX: &str = "app:";

/// The longest backoff of the clients' connections.
const LONGEST_RECONNECT: Duration = ms(500);

/// The time for every run to end, in addition to its faults and TTLs.
const PATIENCE: Duration = Duration::from_secs(30);

impl Plan {
    pub(super) fn carry_out(&self, keeps_timeline: bool) -> Result<Report, Box<Failure>> {
        let mut world = self.world(keeps_timeline);
        self.carry_out_in(&mut world)
    }

    pub(super) fn world(&self, keeps_timeline: bool) -> World {
        let skew = self.restart_guard.map_or(LARGEST_SKEW, |longest| longest.min(LARGEST_SKEW));
        let mut groups = Groups::new(1, self.replicas.into(), self.declared);
        groups.spares = self.spares.into();
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
        for (at, fault) in &self.faults {
            world.inject(*at, *fault);
        }
        world
    }

    pub(super) fn carry_out_in(&self, world: &mut World) -> Result<Report, Box<Failure>> {
        // While a replica hangs, a vote is confirmed after its answer, which is a second wait.
        let waits = if self.declared > Some(0) { 2 } else { 1 };
        let answer_limit = self.connect_timeout + self.request_timeout * waits;
        let (mut clients, letterbox) = (Vec::new(), Letterbox::default());
        for plan in &self.clients {
            let until = plan.starts_at.saturating_sub(world.report().took);
            world.pass(until)?;
            let client = world.client_of(plan.spare_for, |settings| {
                let settings = match self.restart_guard {
                    Some(longest) => settings.ttl(longest).restart_guard(longest),
                    None => settings,
                };
                let settings = if plan.has_prefix { settings.prefix(PREFIX) } else { settings };
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
            let owner = plan.is_owner.then(|| client.locker().owner());
            for steps in [&plan.steps, &plan.beside] {
                let program = Program {
                    client: client.clone(),
                    owner: owner.clone(),
                    is_fair: plan.is_fair,
                    answer_limit,
                    letterbox: Rc::clone(&letterbox),
                };
                world.spawn(&client, program.run(steps.clone()));
            }
            drop(owner);
            if plan.gain_ppm != 0 {
                let (client, gain_ppm) = (client.number(), plan.gain_ppm);
                world.inject(Duration::ZERO, Fault::ClientDrift { client, gain_ppm });
            }
            clients.push(client);
        }
        // No step waits longer than its limit, so the programs end.
        let longest = self.clients.iter().map(|client| client.all_steps().map(Step::limit).sum()).max();
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
}

fn crowd(clients: &[super::Client]) -> u32 {
    u32::try_from(clients.len()).unwrap_or(u32::MAX)
}
