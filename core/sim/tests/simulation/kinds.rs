//! Locks of several resources and of shared ones, and permits, beside plain locks of the same
//! names.

use std::time::Duration;

use proptest::prelude::*;
use quorlock_sim::{
    Access, ClientPlan, Fault, Keep, Kinds, Plan, RESOURCES, Step, Violation, When, strategies,
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Small enough for a build without optimisation; `simulate --mixed` runs any number.
const OF_EACH_KIND: u64 = 150;

#[test]
fn no_promise_is_broken_where_locks_of_every_kind_meet() {
    let (mut kinds, mut seed) = (Kinds::default(), 0);
    while kinds.least() < OF_EACH_KIND {
        let plan = Plan::random_mixed(seed);
        let report = super::run(plan, "mixed").unwrap_or_else(|story| panic!("{story}"));
        kinds += report.kinds;
        seed += 1;
    }
    println!("{seed} worlds; {kinds}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_promise_is_broken_in_mixed_worlds_that_shrink(plan in strategies::mixed_plans()) {
        plan.run().map_err(|failure| TestCaseError::fail(failure.to_string()))?;
    }
}

#[test]
fn the_same_seed_gives_the_same_mixed_run_with_and_without_a_timeline() {
    for seed in 0..8 {
        let plan = Plan::random_mixed(seed);
        let (first, second) = (plan.trace(), plan.trace());
        assert!(first == second, "seed {seed}");
        assert_eq!(plan.run().unwrap(), first.0.unwrap(), "seed {seed}");
    }
}

const WRITES: [Access; RESOURCES] = [Access::Write, Access::None, Access::None, Access::None];
const READS: [Access; RESOURCES] = [Access::Read, Access::None, Access::None, Access::None];
const GROUP: [Access; RESOURCES] = [Access::Share(1), Access::None, Access::None, Access::None];
const BATCH: [Access; RESOURCES] = [Access::Write, Access::Write, Access::None, Access::None];
const MIXED: [Access; RESOURCES] = [Access::Read, Access::Write, Access::None, Access::None];

/// A permit of a semaphore that has `of` of them.
const fn permit(of: u8) -> [Access; RESOURCES] {
    [Access::Permit(of), Access::None, Access::None, Access::None]
}

/// A client that locks in this way for long.
fn holder(accesses: [Access; RESOURCES], fenced: bool) -> ClientPlan {
    let lock = Step::LockAll {
        accesses,
        once: false,
        ttl: ms(2_000),
        timeout: ms(2_000),
        renewed: false,
        fenced,
        healing: false,
        dropped_after: None,
    };
    ClientPlan::new(vec![lock, Step::Hold(ms(1_900)), Step::Release])
}

/// Two masters, one after the other, lose their data.
fn forgetful(seed: u64, one: [Access; RESOURCES], other: [Access; RESOURCES]) -> Plan {
    let mut plan = Plan::new(seed, 3, vec![holder(one, false), holder(other, false)]);
    let empty = |master| Fault::Crash { master, span: ms(5), keep: Keep::Nothing };
    plan.faults = vec![(ms(300).into(), empty(0)), (ms(600).into(), empty(1))];
    plan
}

#[test]
fn the_observer_detects_two_conflicting_holders_of_every_kind() {
    let pairs = [(BATCH, BATCH), (BATCH, WRITES), (WRITES, READS), (READS, GROUP), (MIXED, BATCH)];
    // A semaphore with a single permit must not have a second holder either.
    for (one, other) in pairs.into_iter().chain([(permit(1), permit(1))]) {
        let found = (0..10).find_map(|seed| forgetful(seed, one, other).run().err());
        let found = found.map(|failure| failure.violation);
        let is_seen = matches!(found, Some(Violation::TwoHolders { .. } | Violation::TooManyPermits { .. }));
        assert!(is_seen, "{one:?} {other:?}: {found:?}");
        let mut guarded = forgetful(0, one, other);
        (guarded.restart_guard, guarded.bootstrapped) = (Some(ms(2_100)), true);
        guarded.run().unwrap_or_else(|failure| panic!("{one:?} {other:?}: {failure}"));
    }
}

#[test]
fn readers_of_one_resource_hold_it_at_the_same_time() {
    let plan = Plan::new(5, 3, vec![holder(READS, true), holder(READS, true), holder(READS, false)]);
    let (outcome, timeline) = plan.trace();
    assert_eq!(outcome.unwrap().kinds.readers, 3 + 1);
    let lines = timeline.to_string();
    let of = |what: &str| {
        let lines = lines.lines().enumerate().filter(move |(_, line)| line.contains(what));
        lines.map(|(place, _)| place).collect::<Vec<_>>()
    };
    let (granted, gone) =
        (of(" holds resource0 shared by readers"), of(" has resource0 shared by readers no"));
    assert!(granted[2] < gone[0], "{lines}");
}

#[test]
fn the_observer_detects_one_valid_permit_too_many() {
    let found = (0..10).find_map(|seed| {
        let mut plan = forgetful(seed, permit(2), permit(2));
        plan.clients.push(holder(permit(2), false));
        plan.run().err()
    });
    let found = found.map(|failure| failure.violation);
    assert!(matches!(found, Some(Violation::TooManyPermits { valid: 3, of: 2, .. })), "{found:?}");
}

#[test]
fn clients_that_disagree_hold_as_many_permits_as_the_largest_number_of_them() {
    let clients = [3, 3, 2, 3].map(|of| holder(permit(of), true));
    let (outcome, timeline) = Plan::new(1, 3, clients.to_vec()).trace();
    outcome.unwrap();
    let lines = timeline.to_string();
    for seat in 0..3 {
        let held = format!(" holds permit {seat} of ");
        assert!(lines.contains(&held), "{lines}");
    }
    assert!(!lines.contains(" holds permit 3 of "), "{lines}");
}

#[test]
fn counters_that_are_lost_give_a_writer_the_number_of_an_earlier_reader() {
    let turn = |accesses| {
        let mut steps = holder(accesses, true).steps;
        steps[1] = Step::Hold(ms(20));
        steps
    };
    let found = (0..10).find_map(|seed| {
        let steps = [turn(WRITES), turn(WRITES), turn(READS), turn(READS), turn(WRITES)].concat();
        let mut plan = Plan::new(seed, 3, vec![ClientPlan::new(steps)]);
        // Only the third master knows the reader's number, and it is away when the writer comes.
        plan.faults = [0, 1].map(|master| (ms(90).into(), Fault::Flush { master })).to_vec();
        plan.faults.push((ms(90).into(), Fault::Hang { master: 2, span: ms(2_000) }));
        plan.run().err()
    });
    let found = found.map(|failure| failure.violation);
    let is_known = matches!(found, Some(Violation::NumberTwice { .. } | Violation::NumberTooSmall { .. }));
    assert!(is_known, "{found:?}");
}

#[test]
fn a_fault_timed_at_a_grant_also_counts_grants_of_permits() {
    let mut plan = Plan::new(3, 3, vec![holder(permit(2), false)]);
    let when = When::AtGrant { number: 2, delay: ms(0) };
    plan.faults = vec![(when, Fault::ForgetScripts { master: 0 })];
    let (outcome, timeline) = plan.trace();
    outcome.unwrap();
    assert!(timeline.to_string().contains("ForgetScripts"), "{timeline}");
}
