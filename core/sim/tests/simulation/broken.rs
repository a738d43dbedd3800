//! Outside the assumptions: the same observer must see promises broken.

use std::time::Duration;

use quorlock_sim::{ClientPlan, Fault, Keep, Plan, Step, Violation};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn lock(ttl: Duration) -> Step {
    Step::Lock {
        resource: 0,
        ttl,
        timeout: ms(2_000),
        renewed: false,
        fenced: false,
        healing: false,
        dropped_after: None,
    }
}

/// Two clients that want the same lock for long.
fn rivals(seed: u64) -> Plan {
    let one = ClientPlan::new(vec![lock(ms(2_000)), Step::Hold(ms(1_900)), Step::Release]);
    Plan::new(seed, 3, vec![one.clone(), one])
}

/// The first violation among a few seeds.
fn violation(plan: impl Fn(u64) -> Plan) -> Option<Violation> {
    (0..10).find_map(|seed| plan(seed).run().err()).map(|failure| failure.violation)
}

fn with_faults(seed: u64, faults: &[(Duration, Fault)]) -> Plan {
    let mut plan = rivals(seed);
    plan.faults = faults.iter().map(|(at, fault)| ((*at).into(), *fault)).collect();
    plan
}

#[test]
fn without_faults_the_rival_clients_break_no_promise() {
    assert_eq!(violation(rivals), None);
}

#[test]
fn masters_that_restart_empty_let_two_clients_in() {
    let empty = |master| Fault::Crash { master, span: ms(5), keep: Keep::Nothing };
    let found = violation(|seed| with_faults(seed, &[(ms(300), empty(0)), (ms(600), empty(1))]));
    assert!(matches!(found, Some(Violation::TwoHolders { .. })), "{found:?}");
}

#[test]
fn masters_that_restart_with_all_their_keys_let_only_one_client_in() {
    let kept = |master| Fault::Crash { master, span: ms(5), keep: Keep::Everything };
    assert_eq!(violation(|seed| with_faults(seed, &[(ms(300), kept(0)), (ms(600), kept(1))])), None);
}

/// The rivals with the restart guard on.
fn guarded_with(seed: u64, faults: &[(Duration, Fault)]) -> Plan {
    let mut plan = with_faults(seed, faults);
    (plan.restart_guard, plan.bootstrapped) = (Some(ms(2_100)), true);
    plan
}

/// Two masters, one after the other, lose their data in the way that `fault` returns.
fn losses(fault: impl Fn(usize) -> Fault) -> [(Duration, Fault); 2] {
    [(ms(300), fault(0)), (ms(600), fault(1))]
}

#[test]
fn masters_that_lose_their_data_let_two_clients_in_only_without_the_restart_guard() {
    let faults: [fn(usize) -> Fault; 4] = [
        |master| Fault::Crash { master, span: ms(5), keep: Keep::Nothing },
        |master| Fault::Crash { master, span: ms(5), keep: Keep::Half },
        |master| Fault::Flush { master },
        // Master 0 becomes a copy of master 1, which has its own copy of the received keys.
        |master| Fault::Resync { master, further: 1, span: ms(5) },
    ];
    for (place, fault) in faults.into_iter().enumerate() {
        let faults = losses(fault);
        assert_eq!(violation(|seed| guarded_with(seed, &faults)), None, "fault {place}");
        // A copy of a master that holds the lock loses nothing, and half of a few keys may be
        // all.
        if matches!(faults[0].1, Fault::Crash { keep: Keep::Nothing, .. } | Fault::Flush { .. }) {
            let found = violation(|seed| with_faults(seed, &faults));
            assert!(matches!(found, Some(Violation::TwoHolders { .. })), "fault {place}: {found:?}");
        }
    }
}

#[test]
fn a_master_that_copies_one_without_the_key_lets_two_clients_in_unless_guarded() {
    // The first holder has masters 0 and 1 only; master 0 takes over what master 2 knows.
    let faults = [
        (ms(0), Fault::Hang { master: 2, span: ms(200) }),
        (ms(400), Fault::Flush { master: 2 }),
        (ms(500), Fault::Resync { master: 0, further: 1, span: ms(5) }),
    ];
    let found = violation(|seed| with_faults(seed, &faults));
    assert!(matches!(found, Some(Violation::TwoHolders { .. })), "{found:?}");
    assert_eq!(violation(|seed| guarded_with(seed, &faults)), None);
}

/// One client's locks, numbered, one after the other.
fn numbered(seed: u64) -> Plan {
    let step = Step::Lock {
        resource: 0,
        ttl: ms(1_000),
        timeout: ms(4_000),
        renewed: false,
        fenced: true,
        healing: false,
        dropped_after: None,
    };
    let one = ClientPlan::new([step, Step::Hold(ms(20)), Step::Release].repeat(40));
    Plan::new(seed, 3, vec![one])
}

#[test]
fn counters_that_are_lost_give_numbers_twice_only_without_the_restart_guard() {
    // The third master, which knows the numbers, is away until the other two vote again. Both times
    // are tried, because early numbers may come from its clock, which may be ahead of theirs.
    for at in [ms(60), ms(300)] {
        let lossy = |seed| {
            let mut plan = numbered(seed);
            plan.faults = [0, 1].map(|master| (at.into(), Fault::Flush { master })).to_vec();
            plan.faults.push((at.into(), Fault::Hang { master: 2, span: ms(2_000) }));
            plan
        };
        let found = violation(lossy);
        let is_known =
            matches!(found, Some(Violation::NumberTwice { .. } | Violation::NumberTooSmall { .. }));
        assert!(is_known, "{found:?}");
        let guarded = |seed| {
            let mut plan = lossy(seed);
            (plan.restart_guard, plan.bootstrapped) = (Some(ms(1_000)), true);
            plan
        };
        assert_eq!(violation(guarded), None);
    }
    assert_eq!(violation(numbered), None);
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
fn a_failure_is_shrunk_and_printed_with_its_timeline() {
    let empty = |master| Fault::Crash { master, span: ms(5), keep: Keep::Nothing };
    let noise = Fault::ForgetScripts { master: 2 };
    let faults = [(ms(100), noise), (ms(300), empty(0)), (ms(500), noise), (ms(600), empty(1))];
    let (plan, failure) = (0..20).find_map(|seed| with_faults(seed, &faults).shrink()).expect("a failure");
    // One of the two faults may be enough, if the second client already holds the third master.
    assert!(plan.faults.iter().all(|(_, fault)| *fault != noise), "{plan:#?}");
    let text = failure.to_string();
    assert!(text.contains("hold valid guards of one resource at once"), "{text}");
    assert!(text.contains("is back, keys kept: Nothing"), "{text}");
    let drawn = failure.timeline.to_mermaid();
    assert!(drawn.starts_with("sequenceDiagram\n    participant client0\n"), "{drawn}");
    assert!(drawn.contains("client1->>master0:"), "{drawn}");
}
