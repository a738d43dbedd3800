//! Locks that are released with a hold time, under faults. The observer reports a guard of a lock
//! that is kept.

use std::time::Duration;

use quorlock_sim::{Plan, Step};

const LEAST: Duration = Duration::from_millis(300);

/// A random plan in which every release keeps others out for a while.
fn keeping(seed: u64) -> Plan {
    let mut plan = Plan::random(seed);
    let least = plan.restart_guard.map_or(LEAST, |longest| longest.min(LEAST));
    for client in &mut plan.clients {
        for step in client.steps.iter_mut().chain(&mut client.beside) {
            if *step == Step::Release {
                *step = Step::ReleaseAfter(least);
            }
        }
    }
    plan
}

#[test]
fn a_lock_that_is_kept_excludes_others_in_random_worlds() {
    for seed in 0..150 {
        if let Err(failure) = keeping(seed).run() {
            panic!("seed {seed}: {failure}");
        }
    }
}
