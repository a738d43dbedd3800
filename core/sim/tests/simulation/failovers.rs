//! Masters that fail over: what the restart guard alone lets happen, and what `replicas=` does not.

use std::time::Duration;

use quorlock_sim::{ClientPlan, Fault, Plan, Step, Violation, When};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One master with a replica that is promoted while the master goes on. The first client holds a lock
/// there and renews it; the second one moves to the replica.
fn split_brain(declared: u8) -> Plan {
    let lock = |timeout| Step::Lock {
        resource: 0,
        ttl: ms(1_000),
        timeout,
        renewed: true,
        fenced: false,
        healing: false,
        dropped_after: None,
    };
    let holder = ClientPlan::new(vec![lock(ms(1_000)), Step::Hold(ms(5_000)), Step::Release]);
    let other = ClientPlan::new(vec![Step::Rest(ms(500)), lock(ms(4_000)), Step::Hold(ms(500))]);
    let mut plan = Plan::new(7, 1, vec![holder, other]);
    plan.restart_guard = Some(ms(2_500));
    plan.bootstrapped = true;
    (plan.replicas, plan.declared) = (1, declared);
    let promoted = Fault::Promote { master: 1, learned_within: ms(5) };
    plan.faults =
        vec![(When::At(ms(300)), promoted), (When::At(ms(400)), Fault::Cut { client: 1, master: 0 })];
    plan
}

#[test]
fn an_old_primary_that_goes_on_is_a_second_one_with_the_guard_alone_and_none_with_its_replica() {
    let failure = split_brain(0).run().unwrap_err();
    assert_eq!(failure.violation, Violation::TwoHolders { first: 0, second: 1 }, "{failure}");
    split_brain(1).run().unwrap_or_else(|failure| panic!("{failure}"));
}
