//! Pictures of small worlds, as files. `QUORLOCK_SNAPSHOTS=write cargo test -p quorlock-core --test picture` writes them anew; look at
//! what has changed before you keep it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use quorlock_core::sim::{ClientPlan, Fault, Keep, Plan, Refusal, Step, When};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Fails unless the file of this name holds this picture.
#[track_caller]
fn assert_drawn(name: &str, svg: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/picture").join(name);
    if std::env::var_os("QUORLOCK_SNAPSHOTS").is_some_and(|value| value == "write") {
        fs::write(&file, svg).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    let place = expected.lines().zip(svg.lines()).position(|(a, b)| a != b);
    assert!(
        expected == svg,
        "{name} is drawn otherwise, from line {} on; see the head of core/tests/picture/main.rs",
        place.unwrap_or_else(|| expected.lines().count().min(svg.lines().count())) + 1
    );
}

fn lock(ttl: Duration, fenced: bool) -> Step {
    Step::Lock {
        resource: 0,
        ttl,
        within: ms(2_000),
        renewed: false,
        fenced,
        healing: false,
        dropped_after: None,
    }
}

fn plan(seed: u64, steps: &[Step], clients: usize, faults: &[(u64, Fault)]) -> Plan {
    let mut plan = Plan::new(seed, 3, vec![ClientPlan::new(steps.to_vec()); clients]);
    plan.faults = faults.iter().map(|(at, fault)| (When::At(ms(*at)), *fault)).collect();
    plan
}

#[test]
fn one_client() {
    let steps = [
        lock(ms(500), true),
        Step::Hold(ms(20)),
        Step::Extend { ttl: ms(900), dropped_after: None },
        Step::Release,
    ];
    let (outcome, timeline) = plan(1, &steps, 1, &[]).trace();
    outcome.unwrap();
    assert_drawn("one_client.svg", &timeline.last(usize::MAX).picture("One client, well").to_svg());
}

#[test]
fn masters_that_restart_empty() {
    let steps = [lock(ms(2_000), false), Step::Hold(ms(1_900)), Step::Release];
    let empty = |master| Fault::Crash { master, span: ms(5), keep: Keep::Nothing };
    let (_, failure) = plan(4, &steps, 2, &[(300, empty(0)), (600, empty(1))]).shrink().expect("two holders");
    assert_drawn("restarts_empty.svg", &failure.to_svg());
}

#[test]
fn faults_of_many_kinds() {
    let steps = [lock(ms(300), true), Step::Hold(ms(40)), Step::Release].repeat(2);
    let faults = [
        (5, Fault::Pause { client: 0, span: ms(60) }),
        (6, Fault::Hang { master: 1, span: ms(50) }),
        (30, Fault::Refuse { master: 2, reason: Refusal::OutOfMemory, span: ms(90) }),
        (80, Fault::Cut { client: 1, master: 0 }),
        (90, Fault::MasterDrift { master: 0, gain_ppm: -4_000 }),
        (100, Fault::Partition { client: 0, master: 1, span: ms(70) }),
    ];
    let (outcome, timeline) = plan(2, &steps, 2, &faults).trace();
    outcome.unwrap();
    assert_drawn("faults.svg", &timeline.picture("Faults of many kinds").to_svg());
}
