//! Masters that are reached over encrypted channels, and whose password changes.

use quorlock_sim::{Plan, Step};

/// Small enough for a build without optimisation; `simulate --secured` runs any number.
const ACQUISITIONS: u64 = 1_500;

#[test]
fn no_promise_is_broken_over_channels_and_with_logins_that_change() {
    let (mut acquisitions, mut logins, mut seed) = (0, 0, 0);
    while acquisitions < ACQUISITIONS {
        let plan = Plan::random_secured(seed);
        let steps = plan.clients.iter().flat_map(|client| client.steps.iter().chain(&client.beside));
        logins += steps.filter(|step| **step == Step::Reauthenticate).count();
        let report = super::run(plan, "secured").unwrap_or_else(|story| panic!("{story}"));
        acquisitions += report.acquisitions;
        seed += 1;
    }
    assert!(logins > 100);
    println!("{acquisitions} acquisitions in {seed} worlds with {logins} changes of the password");
}

#[test]
fn clients_log_in_when_greeting_and_again_later_and_are_sometimes_refused() {
    let told: String = (0..20).map(|seed| Plan::random_secured(seed).trace().1.to_string()).collect();
    for part in [" HELLO: answered", " HELLO: -WRONGPASS", " AUTH: OK", " AUTH: -WRONGPASS"] {
        assert!(told.contains(part), "{part}");
    }
}

#[test]
fn the_same_seed_gives_the_same_secured_run_with_and_without_a_timeline() {
    for seed in 0..8 {
        let plan = Plan::random_secured(seed);
        let (first, second) = (plan.trace(), plan.trace());
        assert!(first == second, "seed {seed}");
        assert_eq!(plan.run().unwrap(), first.0.unwrap(), "seed {seed}");
    }
}
