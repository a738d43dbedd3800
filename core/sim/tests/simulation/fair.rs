//! Clients that wait fairly, beside some that do not, under every fault that Redlock must stand.

use std::fs;
use std::path::Path;

use quorlock_sim::Plan;

/// Small enough for a build without optimisation; `simulate --fair` runs as many as one likes.
const GRANTS: u64 = 1_500;

#[test]
fn no_promise_is_broken_where_clients_wait_fairly() {
    let (mut grants, mut seed) = (0, 0);
    while grants < GRANTS {
        let plan = Plan::random_fair(seed);
        match plan.run() {
            Ok(report) => grants += report.acquisitions,
            Err(failure) => {
                let (smaller, failure) = plan.shrink().unwrap_or((plan, failure));
                let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fair-world-{seed}.svg"));
                let drawn = fs::write(&file, failure.to_svg()).map(|()| file.display().to_string());
                panic!("seed {seed}\n{smaller:#?}\n{failure}drawn: {drawn:?}");
            }
        }
        seed += 1;
    }
    println!("{grants} grants in {seed} worlds");
}

#[test]
fn the_same_seed_gives_the_same_fair_run_with_and_without_a_timeline() {
    for seed in 0..8 {
        let plan = Plan::random_fair(seed);
        let (first, second) = (plan.trace(), plan.trace());
        assert!(first == second, "seed {seed}");
        assert_eq!(plan.run().unwrap(), first.0.unwrap(), "seed {seed}");
    }
}
