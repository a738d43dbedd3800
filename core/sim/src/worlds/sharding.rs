//! Plans in which masters are tags of clusters, whose slots move from one group to another.

use std::time::Duration;

use super::fault::Fault;
use super::plan::Plan;
use super::random::Random;
use super::when::When;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Separates its random choices from those of the plan that it changes.
const SLOTS: u64 = 0x736c_6f74_732e_2e2e;

/// A move that follows a grant follows one of the first 40 in its world.
const GRANTS: u64 = 40;

impl Plan {
    /// Creates a run in which every master is a tag of a cluster: [`Plan::random_failovers`] with
    /// this seed, in which the slot of each master also moves among two or three groups of servers,
    /// at once or key by key. A move often meets a failover of one of the two groups, or servers
    /// that hang. In a quarter of the plans, groups have no replicas, and clients may declare that.
    ///
    /// Moves are not abandoned halfway.
    pub fn random_clusters(seed: u64) -> Self {
        let mut random = Random::new(seed ^ SLOTS);
        let mut plan = Self::random_failovers(seed);
        plan.shards = if random.one_in(3) { 3 } else { 2 };
        if random.one_in(4) {
            (plan.replicas, plan.declared) = (0, random.one_in(2).then_some(0));
        }
        plan.lead_elsewhere(&mut random);
        let horizon = plan.longest_ttl() * 3;
        for _ in 0..1 + random.below(5) {
            plan.move_slot(&mut random, horizon);
        }
        plan
    }

    /// A client whose connection is cut would come back to the node that it knows, which may not
    /// know of its successor. Half of the clients do not reach that node, and ask another one.
    fn lead_elsewhere(&mut self, random: &mut Random) {
        let cuts = self.faults.iter().filter_map(|(when, fault)| match fault {
            Fault::Cut { client, master } if random.one_in(2) => {
                let span = random.spread(ms(50)..=ms(3_000));
                Some((*when, Fault::Unreachable { client: *client, master: *master, span }))
            }
            _ => None,
        });
        let unreachable: Vec<_> = cuts.collect();
        // These faults come before the cuts, because connections are reopened at once.
        self.faults.splice(0..0, unreachable);
    }

    /// One move, and the faults around it.
    fn move_slot(&mut self, random: &mut Random, horizon: Duration) {
        let is_after_grant = random.one_in(2);
        let at = random.within(Duration::ZERO..=horizon);
        let number = random.next() % GRANTS;
        let servers = 1 + usize::from(self.replicas);
        let all = self.masters.len() * servers * usize::from(self.shards);
        // The server is counted from the one that granted, or chosen from all.
        let server = if is_after_grant { 0 } else { random.below(all) };
        let when = |delay: Duration| {
            if is_after_grant { When::AtGrant { number, delay } } else { When::At(at + delay) }
        };
        let begins = random.spread(ms(1)..=ms(300));
        let pace = random.spread(ms(1)..=ms(150));
        let (master, further) = (server, random.below(2));
        let moves = if random.one_in(3) {
            Fault::MoveSlot { master, further }
        } else {
            Fault::Reshard { master, further, pace, is_given_up: false }
        };
        self.faults.push((when(begins), moves));
        for _ in 0..random.below(3) {
            // Usually a server of the group that grants, otherwise one of the next group.
            let other = server + random.below(2 * servers);
            let beside = begins + random.spread(ms(1)..=pace * 6);
            let span = random.spread(ms(1)..=ms(1_500));
            let fault = match random.below(6) {
                0..=2 => Fault::Promote { master: other, learned_within: span },
                3 => Fault::Hang { master: other, span },
                4 => Fault::Isolate { master: other, span },
                _ => Fault::Crash { master: other, span, keep: crate::master::Keep::Everything },
            };
            self.faults.push((when(beside), fault));
        }
    }
}
