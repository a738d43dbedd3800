//! Plans in which locks are handed over while requests for them are still under way.

use std::time::Duration;

use super::fault::Fault;
use super::plan::Plan;
use super::random::Random;
use super::step::Step;
use super::when::When;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Separates its random choices from those of the plan that it changes.
const HANDOVERS: u64 = 0x6861_6e64_6564_6f76;

/// A key that is left outlives the run.
const LIFE: Duration = Duration::from_secs(40);

impl Plan {
    /// Creates a run in which locks are handed over soon after their grant, while some masters are
    /// slow for the clients that hand them over: [`Plan::random`] or [`Plan::random_mixed`] with
    /// this seed. Every second client only resumes locks and releases them. No key may outlive the
    /// receiver's release, and keys live for long enough to be seen.
    pub fn random_handovers(seed: u64) -> Self {
        let mut random = Random::new(seed ^ HANDOVERS);
        let mut plan = if random.one_in(3) { Self::random_mixed(seed) } else { Self::random(seed) };
        plan.request_timeout = random.within(ms(100)..=ms(500));
        for (place, client) in plan.clients.iter_mut().enumerate() {
            if place % 2 == 1 {
                client.steps = receives(&mut random);
                client.beside.clear();
                continue;
            }
            for steps in [&mut client.steps, &mut client.beside] {
                for step in std::mem::take(steps) {
                    let is_lock = matches!(step, Step::Lock { .. } | Step::LockAll { .. });
                    steps.push(step);
                    if is_lock && !random.one_in(3) {
                        steps.extend(random.one_in(2).then(|| Step::Hold(random.spread(ms(1)..=ms(30)))));
                        steps.push(Step::HandOn);
                    }
                }
            }
        }
        plan.live_for(LIFE);
        plan.restart_guard = plan.restart_guard.map(|_| LIFE + ms(500));
        for _ in 0..2 + random.below(6) {
            let (client, master) = (random.below(8), random.below(8));
            let delay = random.within(ms(5)..=plan.request_timeout);
            let (at, span) = (random.within(Duration::ZERO..=ms(3_000)), random.spread(ms(100)..=ms(3_000)));
            plan.faults.push((When::At(at), Fault::Slow { client, master, delay, span }));
        }
        plan
    }
}

/// Steps that resume locks soon after they were handed over.
fn receives(random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..40 {
        let (renewed, healing) = (random.one_in(3), random.one_in(3));
        steps.push(Step::Rest(random.spread(ms(1)..=ms(100))));
        steps.push(Step::Resume { ttl: LIFE, renewed, healing });
        steps.push(Step::Hold(random.spread(ms(1)..=ms(50))));
        steps.push(Step::Release);
    }
    steps
}
