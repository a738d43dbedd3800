//! Masters that are nodes of clusters: all keys of one begin with its tag.

use quorlock_core::{
    Acquire, AcquireError, Cause, ConfigBuilder, Event, MasterState, ReleaseOutcome, Resource, Target,
    Targets, Warning,
};
use quorlock_sim::Slot;

use super::world::{Flow, KEY, Master, Reach, World, ms, one_try, wanted};

fn urls(masters: usize, more: &str) -> ConfigBuilder {
    let names = ["a", "b", "c"].iter().take(masters);
    quorlock_core::Config::builder(
        names.map(|name| format!("redis+cluster://{name}:7000?tag=q0&failover=durable{more}")),
    )
    .request_timeout(ms(50))
}

/// Masters that own the slot of the tag and nothing else.
fn owners(settings: ConfigBuilder) -> World {
    let mut world = World::cold(settings);
    world.each(|master| master.server.set_slot(Slot::Owned("q0".to_owned())));
    world.pump();
    world
}

fn names(master: &Master, world: &World) -> Vec<String> {
    let now = super::world::wall_clock(world.now);
    master.server.keys(now).map(|held| String::from_utf8_lossy(held.key).into_owned()).collect()
}

/// The targets of one lock of each kind.
fn kinds(settings: &quorlock_core::Config) -> Vec<Targets> {
    let all = |targets: &[Target]| settings.targets(targets.iter().cloned()).unwrap();
    vec![
        Resource::new(KEY).unwrap().into(),
        all(&[Target::write("x"), Target::write("{y}"), Target::write("}{z")]),
        all(&[Target::read("x")]),
        all(&[Target::read("x"), Target::write("y")]),
        settings.permits("gpu", 4).unwrap(),
    ]
}

#[test]
fn every_kind_of_lock_is_granted_extended_inspected_and_released_in_one_slot() {
    for (fenced, guarded) in [(false, false), (true, false), (false, true), (true, true)] {
        let settings = || {
            let settings = urls(3, "");
            if guarded { settings.restart_guard(ms(20_000)) } else { settings }
        };
        let mut world = owners(settings());
        world.pass(ms(20_000));
        for targets in kinds(&settings().build().unwrap()) {
            let lock = world.hold(&Acquire { targets: targets.clone(), fenced, ..wanted(ms(10_000)) });
            let all: Vec<_> = world.masters.iter().flat_map(|master| names(master, &world)).collect();
            assert!(!all.is_empty() && all.iter().all(|name| name.starts_with("{q0}")), "{all:?}");
            world.extend(lock, ms(10_000));
            assert!(matches!(world.next_event(), Event::Extended { .. }), "{targets:?}");
            world.release(lock);
            let released = Event::Released { lock, outcome: ReleaseOutcome::StillOurs };
            assert_eq!(world.next_event(), released, "{targets:?}");
        }
    }
}

#[test]
fn a_client_without_the_restart_guard_looks_for_a_marker_with_its_tag() {
    let mut world = owners(urls(1, "").restart_guard(ms(20_000)));
    assert_eq!(names(&world.masters[0], &world), ["{q0}quorlock:restart-guard"]);
    world.add_node(urls(1, "").build().unwrap(), 2);
    world.pump();
    let state = world.nodes[1].machine.masters().next().unwrap().1;
    assert_eq!(state, MasterState::Ready { warnings: vec![Warning::NoRestartGuard] });
}

#[test]
fn inspections_and_clearings_name_the_keys_with_their_tag() {
    let mut world = owners(urls(3, ""));
    let read = urls(3, "").build().unwrap().targets([Target::read("x")]).unwrap();
    let lock = world.hold(&Acquire { targets: read, ..wanted(ms(10_000)) });
    let resource = Resource::new("x").unwrap();
    world.nodes[0].machine.inspect(&resource, None, world.now).unwrap();
    world.drain(0);
    let Event::Inspected { inspection, .. } = world.next_event() else { panic!("it is told") };
    let text = inspection.to_string();
    assert!(text.starts_with("1 reader, which is ours"), "{text}");
    world.nodes[0].machine.force_release(&resource, world.now).unwrap();
    world.drain(0);
    let cleared = world.next_event();
    assert!(matches!(cleared, Event::ForceReleased { .. }), "{cleared:?}");
    assert!(world.masters.iter().all(|master| master.is_empty(world.now)));
    world.release(lock);
    world.next_event();
}

#[test]
fn waiters_are_woken_by_changes_of_keys_with_their_tag() {
    let mut world = owners(urls(3, ""));
    world.add_node(urls(3, "").build().unwrap(), 7);
    world.pump();
    let lock = world.hold(&wanted(ms(10_000)));
    world.acquire_by(1, &wanted(ms(10_000)));
    world.pass(ms(500));
    let start = world.now;
    world.release(lock);
    assert!(matches!(world.next_event_of(1), Event::Granted { .. }));
    assert_eq!(world.now, start);
}

#[test]
fn a_node_that_no_longer_owns_the_slot_is_left_at_once() {
    let mut world = owners(urls(1, ""));
    let lock = world.hold(&wanted(ms(10_000)));
    world.masters[0].server.set_slot(Slot::Elsewhere("b:7001".to_owned()));
    world.masters[0].flow = Flow::RepliesHeld;
    world.release(lock);
    world.pump();
    // This world has one server behind all addresses: it has taken the slot over by now.
    world.masters[0].server.set_slot(Slot::Owned("q0".to_owned()));
    world.masters[0].flow = Flow::Free;
    world.pass(ms(10));
    assert_eq!(world.nodes[0].opened[0], 2);
    assert!(world.masters[0].is_empty(world.now), "what was owed was paid");
}

#[test]
fn a_slot_that_is_being_moved_grants_nothing() {
    let mut world = owners(urls(1, "").restart_guard(ms(20_000)));
    world.pass(ms(20_000));
    let moving = Slot::Moving("q0".to_owned(), "b:7001".to_owned());
    world.masters[0].server.set_slot(moving);
    world.acquire(&one_try());
    let AcquireError::NoQuorum(ballot) = world.refusal() else { panic!("no vote") };
    assert!(ballot.to_string().contains("the slot of its tag is being moved to another node"), "{ballot}");
    // The node has forgotten the marker, and begins with a quarantine if the move is given up.
    assert!(world.masters[0].is_empty(world.now));
    world.masters[0].server.set_slot(Slot::Owned("q0".to_owned()));
    world.acquire(&one_try());
    let AcquireError::Quarantined(ballot) = world.refusal() else { panic!("no vote") };
    assert!(ballot.to_string().contains("quarantined for 20 s more"), "{ballot}");
}

/// The state of the second master.
fn state(world: &World) -> MasterState {
    world.nodes[0].machine.masters().nth(1).unwrap().1
}

#[test]
fn two_tags_on_one_server_are_one_vote_and_no_configuration_error() {
    let mut world = owners(urls(3, ""));
    world.masters[1].server = world.masters[0].server.clone();
    world.cut(0, 1);
    world.pass(ms(3_000));
    let lock = world.hold(&one_try());
    assert_eq!(world.holders().len(), 0, "all keys have the tag");
    let cause = Cause::SharedServer { other: world.id(0) };
    assert_eq!(state(&world), MasterState::Down(cause));
    assert!(!cause.is_configuration());

    // The second master votes as soon as one of the two tags is on another server.
    world.masters[1].server = Master::new(1).server;
    world.masters[1].server.set_slot(Slot::Owned("q0".to_owned()));
    world.pass(ms(3_000));
    assert!(matches!(state(&world), MasterState::Ready { .. }));
    world.release(lock);
    world.next_event();
}

/// Servers that do not say whether they are nodes of a cluster.
#[test]
fn a_server_that_one_master_names_with_a_tag_and_another_one_without_is_a_configuration_error() {
    let names = ["redis+cluster://a:7000?tag=q0&failover=durable", "redis://b:6379", "redis://c:6379"];
    let mut world = World::cold(quorlock_core::Config::builder(names).request_timeout(ms(50)));
    world.each(|master| master.fails("HELLO", "ERR unknown command 'HELLO'"));
    world.masters[1].server = world.masters[0].server.clone();
    world.masters[1].reach = Reach::Ignores;
    world.pump();
    world.masters[1].reach = Reach::Accepts;
    world.pump();
    let cause = Cause::SameServer { other: world.id(0) };
    assert_eq!(state(&world), MasterState::Down(cause));
    assert!(cause.is_configuration());
}
