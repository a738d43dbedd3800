//! A dead master is replaced by a spare, in the safe order and in others.

use quorlock_sim::{Plan, Replacement, Violation};

/// Among this many seeds, a wrong order must show two holders.
const SEEDS: u64 = 200;

#[test]
fn a_dead_master_that_is_replaced_in_order_breaks_no_promise() {
    let mut acquisitions = 0;
    for seed in 0..SEEDS {
        let plan = Plan::random_replacement(seed, Replacement::InOrder);
        let report = super::run(plan, "replacement").unwrap_or_else(|story| panic!("{story}"));
        acquisitions += report.acquisitions;
    }
    println!("{acquisitions} acquisitions");
}

#[test]
fn each_wrong_order_of_replacing_a_master_lets_two_clients_in() {
    for order in Replacement::ALL.into_iter().filter(|order| !order.is_safe()) {
        let failures = (0..SEEDS).filter_map(|seed| {
            let failure = Plan::random_replacement(seed, order).run().err()?;
            Some((seed, failure.violation))
        });
        let mut two = failures.filter(|(_, found)| matches!(found, Violation::TwoHolders { .. }));
        let first = two.next();
        println!("{order:?}: {first:?}, and {} more", two.count());
        assert!(first.is_some(), "{order:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_replacement() {
    for order in Replacement::ALL {
        let plan = Plan::random_replacement(1, order);
        assert!(plan.trace() == plan.trace(), "{order:?}");
    }
}
