//! Clients that wait fairly, beside some that do not, under every fault that Redlock must
//! withstand.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use quorlock_sim::{Plan, World};

/// Small enough for a build without optimisation; `simulate --fair` runs any number.
const GRANTS: u64 = 1_500;

#[test]
fn no_promise_is_broken_where_clients_wait_fairly() {
    let (mut grants, mut seed) = (0, 0);
    while grants < GRANTS {
        let plan = Plan::random_fair(seed);
        let report = super::run(plan, "fair").unwrap_or_else(|story| panic!("{story}"));
        grants += report.acquisitions;
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

/// Each client takes its turns, one after the other, and must be granted each in time.
fn take_turns(seed: u64, masters: usize, clients: usize) -> usize {
    const TURNS: usize = 40;
    let mut world = World::with_masters(seed, masters).without_timeline();
    let log = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..clients {
        let client = world.client_with(|config| config).expect("a configuration");
        let log = Rc::clone(&log);
        world.spawn(&client.clone(), async move {
            for _ in 0..TURNS {
                let asked = client.true_time();
                let guard = client.locker().lock("wanted").fair().timeout(Duration::from_secs(5)).await;
                let guard = guard.expect("no client waits that long without faults");
                log.borrow_mut().push((asked, client.true_time()));
                client.sleep(Duration::from_millis(1)).await;
                let _ = guard.release().await;
            }
        });
    }
    world.run(Duration::from_secs(600)).expect("no promise is broken");
    let log = log.take();
    assert_eq!(log.len(), clients * TURNS);
    let passed_over =
        log.iter().map(|turn| log.iter().filter(|other| other.0 > turn.0 && other.1 < turn.1).count());
    passed_over.max().unwrap_or_default()
}

#[test]
fn fair_waiters_are_never_stuck_and_hardly_ever_passed_over() {
    for seed in 0..4 {
        for (masters, clients) in [(1, 3), (2, 3), (3, 2), (3, 5), (4, 2), (4, 4), (5, 5)] {
            let passed_over = take_turns(seed, masters, clients);
            // Only clients may pass it that came while the request for its place was on its way, up
            // to 40 ms.
            assert!(passed_over <= 16, "{masters} masters, {clients} clients, seed {seed}: {passed_over}");
        }
    }
}
