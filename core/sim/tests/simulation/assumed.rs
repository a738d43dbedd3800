//! Inside the assumptions.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use quorlock_sim::{Plan, strategies};

/// Small enough for a build without optimisation; the command `simulate` runs any number of
/// worlds.
const ACQUISITIONS: u64 = 1_500;

#[test]
fn no_promise_is_broken_in_random_worlds() {
    let (mut acquisitions, mut faults, mut seed) = (0, 0, 0);
    while acquisitions < ACQUISITIONS {
        let plan = Plan::random(seed);
        faults += plan.faults.len();
        match plan.run() {
            Ok(report) => acquisitions += report.acquisitions,
            Err(failure) => {
                let (smaller, failure) = plan.shrink().unwrap_or((plan, failure));
                let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("random-world-{seed}.svg"));
                let drawn = fs::write(&file, failure.to_svg()).map(|()| file.display().to_string());
                panic!("seed {seed}\n{smaller:#?}\n{failure}drawn: {drawn:?}");
            }
        }
        seed += 1;
    }
    println!("{acquisitions} acquisitions in {seed} worlds with {faults} faults");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_promise_is_broken_in_worlds_that_shrink(plan in strategies::plans()) {
        plan.run().map_err(|failure| TestCaseError::fail(failure.to_string()))?;
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..12 {
        let (first, second) = (Plan::random(seed).trace(), Plan::random(seed).trace());
        assert!(first.1.len() > 100, "seed {seed}: {} things happened", first.1.len());
        assert!(first == second, "seed {seed}");
    }
}

#[test]
fn runs_with_and_without_a_timeline_are_the_same() {
    for seed in 0..10 {
        let plan = Plan::random(seed);
        let (traced, _) = plan.trace();
        assert_eq!(plan.run().unwrap(), traced.unwrap(), "seed {seed}");
    }
}
