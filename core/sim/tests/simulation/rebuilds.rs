//! Masters that come back with older data, or with the data of another master, under the restart
//! guard.

use std::time::Duration;

use quorlock_sim::{ClientPlan, Fault, Plan, Step, Violation};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const TTL: Duration = ms(3_000);

fn lock(timeout: Duration) -> Step {
    Step::Lock {
        resource: 0,
        ttl: TTL,
        timeout,
        renewed: false,
        fenced: false,
        healing: false,
        dropped_after: None,
    }
}

/// The first client gives a copy of its lock away and releases the lock. The second one gets the
/// lock, and then masters come back with the keys of the first one. The third one resumes the copy.
fn late_copy(seed: u64, masters: usize, replicas: u8) -> Plan {
    let first = ClientPlan::new(vec![lock(ms(500)), Step::Copy, Step::Hold(ms(100)), Step::Release]);
    let second =
        ClientPlan::new(vec![Step::Rest(ms(250)), lock(ms(500)), Step::Hold(ms(2_000)), Step::Release]);
    let resume = Step::Resume { ttl: ms(1_000), renewed: false, healing: false };
    let third = ClientPlan::new(vec![Step::Rest(ms(900)), resume, Step::Hold(ms(500))]);
    let mut plan = Plan::new(seed, masters, vec![first, second, third]);
    (plan.restart_guard, plan.bootstrapped) = (Some(ms(3_100)), true);
    (plan.replicas, plan.declared) = (replicas, Some(replicas));
    for master in (0..masters).map(|master| master * (1 + usize::from(replicas))) {
        plan.faults.push((ms(80).into(), Fault::Save { master }));
        plan.faults.push((ms(600).into(), Fault::Restore { master, span: ms(5) }));
    }
    plan
}

#[test]
fn a_copy_of_a_lock_is_not_resumed_on_masters_that_were_restored() {
    for (masters, replicas) in [(1, 0), (3, 0), (1, 1), (3, 1), (1, 2)] {
        for seed in 0..5 {
            let outcome = late_copy(seed, masters, replicas).run();
            outcome.unwrap_or_else(|failure| panic!("{masters} masters, {replicas} replicas: {failure}"));
        }
        let unguarded = |seed| {
            let mut plan = late_copy(seed, masters, replicas);
            // Replicas are only declared with the guard.
            (plan.restart_guard, plan.declared) = (None, None);
            plan
        };
        let found = (0..5).find_map(|seed| unguarded(seed).run().err());
        let found = found.map(|failure| failure.violation);
        assert!(matches!(found, Some(Violation::TwoHolders { .. })), "{found:?}");
    }
}

/// Small enough for a build without optimisation; `simulate --rebuilds` runs any number.
const ACQUISITIONS: u64 = 2_000;

#[test]
fn no_promise_is_broken_where_masters_are_restored_and_rebuilt() {
    let (mut acquisitions, mut seed) = (0, 0);
    while acquisitions < ACQUISITIONS {
        let report = super::run(Plan::random_rebuilds(seed), "rebuild");
        acquisitions += report.unwrap_or_else(|story| panic!("{story}")).acquisitions;
        seed += 1;
    }
}

#[test]
fn masters_that_are_restored_and_rebuilt_let_two_clients_in_without_the_restart_guard() {
    let is_broken = |seed: &u64| {
        let mut plan = Plan::random_rebuilds(*seed);
        (plan.restart_guard, plan.declared) = (None, None);
        let failure = plan.run().err();
        failure.is_some_and(|failure| matches!(failure.violation, Violation::TwoHolders { .. }))
    };
    assert!((0..60).filter(is_broken).count() >= 3);
}

#[test]
fn the_same_seed_gives_the_same_rebuilds_with_and_without_a_timeline() {
    for seed in 0..8 {
        let plan = Plan::random_rebuilds(seed);
        let (first, second) = (plan.trace(), plan.trace());
        assert!(first == second, "seed {seed}");
        assert_eq!(plan.run().unwrap(), first.0.unwrap(), "seed {seed}");
    }
}

#[test]
fn a_group_that_is_rebuilt_gets_the_other_groups_data_and_votes_for_no_other_client() {
    let holder = ClientPlan::new(vec![lock(ms(500)), Step::Hold(ms(1_500)), Step::Release]);
    let other = ClientPlan::new(vec![Step::Rest(ms(400)), lock(ms(2_000)), Step::Hold(ms(500))]);
    for seed in 0..5 {
        let mut plan = Plan::new(seed, 3, vec![holder.clone(), other.clone()]);
        (plan.restart_guard, plan.bootstrapped) = (Some(ms(3_100)), true);
        (plan.replicas, plan.declared) = (1, Some(1));
        // The third group has missed the lock, and two others become copies of it.
        plan.faults = vec![
            (ms(0).into(), Fault::Hang { master: 4, span: ms(60) }),
            (ms(150).into(), Fault::Flush { master: 4 }),
            (ms(200).into(), Fault::Resync { master: 0, further: 1, span: ms(100) }),
        ];
        let (outcome, timeline) = plan.trace();
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
        let told = timeline.to_string();
        for line in [
            "master0             is a replica of master4",
            "master0             is promoted",
            "master1             is a replica of master0",
        ] {
            assert!(told.contains(line), "{told}");
        }
    }
}
