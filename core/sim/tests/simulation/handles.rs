//! Locks with several handles or holders, force-releases and prefixes.

use std::time::Duration;

use quorlock_sim::{Access, ClientPlan, Plan, RESOURCES, Step, Timeline};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn lock(timeout: Duration) -> Step {
    Step::Lock {
        resource: 0,
        ttl: ms(5_000),
        timeout,
        renewed: false,
        fenced: false,
        healing: false,
        dropped_after: None,
    }
}

const RESUME: Step = Step::Resume { ttl: ms(5_000), renewed: false, healing: false };

/// Runs a plan in which no promise is broken.
fn run(plan: &Plan) -> (u64, Timeline) {
    let (outcome, timeline) = plan.trace();
    let report = outcome.expect("no promise is broken");
    (report.acquisitions, timeline)
}

/// At which lines of a timeline this happens.
fn lines(timeline: &Timeline, what: &str) -> Vec<usize> {
    let told = timeline.to_string();
    told.lines().enumerate().filter(|(_, line)| line.contains(what)).map(|(place, _)| place).collect()
}

#[test]
fn clients_with_different_prefixes_hold_one_name_at_the_same_time() {
    let holder = ClientPlan::new(vec![lock(ms(500)), Step::Hold(ms(300)), Step::Release]);
    let mut plan = Plan::new(3, 3, vec![holder.clone(), holder]);
    plan.clients[1].has_prefix = true;
    let (_, timeline) = run(&plan);
    let (held, gone) = (lines(&timeline, " holds resource0 "), lines(&timeline, " has resource0 no longer"));
    assert!(held[1] < gone[0], "{timeline}");
}

#[test]
fn an_owner_keeps_its_lock_until_its_last_handle_is_released() {
    let nested = [lock(ms(500)), Step::Nest, Step::Share, Step::Release, Step::Release, Step::Hold(ms(200))];
    let mut plan = Plan::new(4, 3, vec![ClientPlan::new([&nested[..], &[Step::Release]].concat())]);
    plan.clients[0].is_owner = true;
    // Without a request to any master, and with the grants at the end.
    let (acquisitions, timeline) = run(&plan);
    assert_eq!(acquisitions, 1 + 2, "{timeline}");
    assert_eq!(lines(&timeline, "client0             has resource0 no longer").len(), 2, "{timeline}");
}

#[test]
fn a_lock_that_is_delivered_twice_has_one_token_and_excludes_others() {
    let giver = ClientPlan::new(vec![lock(ms(500)), Step::Hold(ms(20)), Step::HandOn, Step::Repeat]);
    let receiver = ClientPlan::new(vec![Step::Rest(ms(100)), RESUME, Step::Hold(ms(300)), Step::Release]);
    let rival = ClientPlan::new(vec![Step::Rest(ms(200)), lock(ms(2_000)), Step::Hold(ms(10))]);
    let (_, timeline) = run(&Plan::new(5, 3, vec![giver, receiver.clone(), receiver, rival]));
    assert_eq!(lines(&timeline, "holds resource0 with token 1,").len(), 3, "{timeline}");
}

#[test]
fn a_force_released_lock_is_granted_to_another_client() {
    let holder = ClientPlan::new(vec![lock(ms(500)), Step::Hold(ms(1_000))]);
    let force = Step::ForceRelease { resource: 0, is_permit: false };
    let other = ClientPlan::new(vec![Step::Rest(ms(100)), force, lock(ms(500)), Step::Hold(ms(100))]);
    let (_, timeline) = run(&Plan::new(6, 3, vec![holder, other]));
    assert!(lines(&timeline, "client1             holds resource0")[0] > 0, "{timeline}");
}

#[test]
fn several_permits_are_held_at_once_and_handed_over() {
    let permits = |take| {
        let accesses: [Access; RESOURCES] =
            [Access::Permits { of: 3, take }, Access::None, Access::None, Access::None];
        Step::LockAll {
            accesses,
            once: false,
            ttl: ms(5_000),
            timeout: ms(2_000),
            renewed: false,
            fenced: false,
            healing: false,
            dropped_after: None,
        }
    };
    let giver = ClientPlan::new(vec![permits(2), Step::Hold(ms(20)), Step::HandOn, Step::Rest(ms(500))]);
    let receiver = ClientPlan::new(vec![Step::Rest(ms(100)), RESUME, Step::Hold(ms(300)), Step::Release]);
    let (_, timeline) = run(&Plan::new(7, 3, vec![giver, receiver]));
    assert_eq!(lines(&timeline, "holds permit 0 of 3 of resource0, permit 1 of 3").len(), 2, "{timeline}");
}

/// Small enough for a build without optimisation; `simulate --handovers` runs any number.
const WORLDS: u64 = 60;

#[test]
fn no_key_outlives_the_release_of_a_lock_that_was_handed_over() {
    for seed in 0..WORLDS {
        super::run(Plan::random_handovers(seed), "handover").unwrap_or_else(|story| panic!("{story}"));
    }
}
