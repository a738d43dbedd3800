//! Pictures of small worlds, as files. `QUORLOCK_SNAPSHOTS=write cargo test -p quorlock-sim --test
//! picture` writes them again; check what has changed before you keep it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use quorlock_sim::picture::{
    Exchange, Lane, LaneKind, Mark, MarkKind, Outcome, Picture, Span, SpanKind, Thing,
};
use quorlock_sim::{ClientPlan, Fault, Keep, Plan, Refusal, Step, When};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Fails unless the file of this name holds this picture.
#[track_caller]
fn assert_drawn(name: &str, svg: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/picture").join(name);
    if std::env::var_os("QUORLOCK_SNAPSHOTS").is_some_and(|value| value == "write") {
        fs::write(&file, svg).expect("the directory of this test can be written");
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    let place = expected.lines().zip(svg.lines()).position(|(a, b)| a != b);
    assert!(
        expected == svg,
        "{name} is drawn differently, from line {} on; see the head of core/sim/tests/picture/main.rs",
        place.unwrap_or_else(|| expected.lines().count().min(svg.lines().count())) + 1
    );
}

fn lock(ttl: Duration, fenced: bool) -> Step {
    Step::Lock {
        resource: 0,
        ttl,
        timeout: ms(2_000),
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
fn a_world_with_one_client_is_drawn() {
    let steps = [
        lock(ms(500), true),
        Step::Hold(ms(20)),
        Step::Extend { ttl: ms(900), dropped_after: None },
        Step::Release,
    ];
    let (outcome, timeline) = plan(1, &steps, 1, &[]).trace();
    outcome.unwrap();
    assert_drawn("one_client.svg", &timeline.picture("One client, well").to_svg());
}

#[test]
fn masters_that_restart_empty_are_drawn() {
    let steps = [lock(ms(2_000), false), Step::Hold(ms(1_900)), Step::Release];
    let empty = |master| Fault::Crash { master, span: ms(5), keep: Keep::Nothing };
    let (_, failure) = plan(4, &steps, 2, &[(300, empty(0)), (600, empty(1))]).shrink().expect("two holders");
    assert_drawn("restarts_empty.svg", &failure.to_svg());
}

#[test]
fn faults_of_many_kinds_are_drawn() {
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

/// A picture that is not from a simulation: two processes and two servers seen from outside, where
/// it is not known when a command was carried out.
fn seen_from_outside() -> Picture {
    let lanes = [
        ("app <1>", LaneKind::Client),
        ("app & 2", LaneKind::Client),
        ("redis-a", LaneKind::Master),
        ("a name that is too long", LaneKind::Master),
    ];
    let exchange = |from, to, sent, answered: Option<u64>, outcome| {
        let answered = answered.map(ms);
        let label = "lock".to_owned();
        Thing::Exchange(Exchange { from, to, label, sent: ms(sent), arrived: None, outcome, answered })
    };
    let span = |lane, from, until, kind, label: &str| {
        Thing::Span(Span { lane, from: ms(from), until: ms(until), kind, label: label.to_owned() })
    };
    let mark =
        |lane, at, kind, label: &str| Thing::Mark(Mark { lane, at: ms(at), kind, label: label.to_owned() });
    Picture {
        title: "Seen from \"outside\"".into(),
        lanes: lanes.map(|(name, kind)| Lane::new(name, kind)).to_vec(),
        things: vec![
            exchange(0, 2, 1, Some(3), Some(Outcome::Granted)),
            exchange(0, 3, 1, Some(4), Some(Outcome::Granted)),
            span(0, 4, 500, SpanKind::Valid, "holds"),
            mark(0, 4, MarkKind::Quorum, ""),
            exchange(1, 2, 6, Some(8), Some(Outcome::Refused)),
            exchange(1, 3, 6, None, None),
            span(3, 5, 5_000, SpanKind::Fault, "hangs"),
            mark(1, 9, MarkKind::Note, "says </svg>\u{1b}[2J"),
            mark(9, 9, MarkKind::Note, "of no lane"),
        ],
        until: Some(ms(700)),
        notes: vec!["The moments of execution are not known.".into()],
        ..Picture::default()
    }
}

#[test]
fn a_picture_of_events_recorded_outside_is_drawn() {
    let svg = seen_from_outside().to_svg();
    assert!(
        !svg.contains("of no lane") && !svg.contains("</svg>\u{1b}") && svg.contains("says &lt;/svg&gt; [2J")
    );
    assert_drawn("outside.svg", &svg);
}

#[test]
fn a_picture_with_any_contents_is_drawn() {
    assert!(Picture::default().to_svg().ends_with("</svg>\n"));
    let mut picture = seen_from_outside();
    let far = Mark { lane: 0, at: Duration::MAX / 2, kind: MarkKind::Broken, label: "x".repeat(500) };
    picture.things.extend(vec![Thing::Mark(far); 300]);
    picture.until = None;
    let svg = picture.to_svg();
    assert!(svg.contains("The first 148 things are left out."), "{svg}");
    picture.things.push(Thing::Span(Span {
        lane: 1,
        from: ms(0),
        until: Duration::MAX,
        kind: SpanKind::Fault,
        label: "lasts on".into(),
    }));
    assert!(picture.to_svg().contains(">lasts on<"));
    assert!(svg.len() < 200_000, "{} bytes", svg.len());
}
