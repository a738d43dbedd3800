//! Outside the assumptions: the same observer must see promises broken.

use std::time::Duration;

use quorlock_core::sim::{ClientPlan, Fault, Keep, Plan, Step, Violation};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn lock(ttl: Duration) -> Step {
    Step::Lock { resource: 0, ttl, within: ms(2_000), renewed: false, dropped_after: None }
}

/// Two clients that want the same lock for long.
fn rivals(seed: u64) -> Plan {
    let one = ClientPlan::new(vec![lock(ms(2_000)), Step::Hold(ms(1_900)), Step::Release]);
    Plan::new(seed, 3, vec![one.clone(), one])
}

/// The first violation among a few seeds.
fn violation(plan: impl Fn(u64) -> Plan) -> Option<Violation> {
    (0..20).find_map(|seed| plan(seed).run().err()).map(|failure| failure.violation)
}

fn with_faults(seed: u64, faults: &[(Duration, Fault)]) -> Plan {
    let mut plan = rivals(seed);
    plan.faults = faults.iter().map(|(at, fault)| ((*at).into(), *fault)).collect();
    plan
}

#[test]
fn the_rivals_alone_break_nothing() {
    assert_eq!(violation(rivals), None);
}

#[test]
fn masters_that_restart_empty_let_two_clients_in() {
    let empty = |master| Fault::Crash { master, span: ms(5), keep: Keep::Nothing };
    let found = violation(|seed| with_faults(seed, &[(ms(300), empty(0)), (ms(600), empty(1))]));
    assert!(matches!(found, Some(Violation::TwoHolders { .. })), "{found:?}");
}

#[test]
fn masters_that_restart_with_all_their_keys_do_not() {
    let kept = |master| Fault::Crash { master, span: ms(5), keep: Keep::Everything };
    assert_eq!(violation(|seed| with_faults(seed, &[(ms(300), kept(0)), (ms(600), kept(1))])), None);
}

#[test]
fn drift_beyond_the_bound_lets_two_clients_in() {
    let fast = |master| Fault::MasterDrift { master, gain_ppm: 100_000 };
    let found = violation(|seed| with_faults(seed, &[(ms(0), fast(0)), (ms(0), fast(1))]));
    assert!(matches!(found, Some(Violation::TwoHolders { .. })), "{found:?}");
}

#[test]
fn masters_whose_clocks_are_set_let_two_clients_in() {
    let set = |master| Fault::MasterJump { master, by_millis: 5_000 };
    let found = violation(|seed| with_faults(seed, &[(ms(300), set(0)), (ms(300), set(2))]));
    assert!(matches!(found, Some(Violation::TwoHolders { .. })), "{found:?}");
}

#[test]
fn a_failure_is_shrunk_and_tells_its_story() {
    let empty = |master| Fault::Crash { master, span: ms(5), keep: Keep::Nothing };
    let noise = Fault::ForgetScripts { master: 2 };
    let faults = [(ms(100), noise), (ms(300), empty(0)), (ms(500), noise), (ms(600), empty(1))];
    let (plan, failure) = (0..20).find_map(|seed| with_faults(seed, &faults).shrink()).expect("a failure");
    // One may be enough: who came second may hold the third master already.
    assert!(plan.faults.iter().all(|(_, fault)| *fault != noise), "{plan:#?}");
    let text = failure.to_string();
    assert!(text.contains("hold valid guards of one resource at once"), "{text}");
    assert!(text.contains("is back, keys kept: Nothing"), "{text}");
    let drawn = failure.timeline.to_mermaid();
    assert!(drawn.starts_with("sequenceDiagram\n    participant client0\n"), "{drawn}");
    assert!(drawn.contains("client1->>master0:"), "{drawn}");
}
