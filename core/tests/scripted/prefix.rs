//! Keys with a prefix, which applications that share masters give their resources.

use quorlock_core::{Acquire, Config, Event, Ttl};

use super::wake_ups::is_granted;
use super::world::{KEY, World, ms, settings};

/// A request for the resource `KEY` under a configuration.
fn wanted(config: &Config) -> Acquire {
    let resource = config.resource(KEY).unwrap();
    Acquire { timeout: Some(ms(10_000)), ..Acquire::new(resource, Ttl::new(ms(10_000)).unwrap()) }
}

fn with_prefix(prefix: &str) -> Config {
    settings(3).prefix(prefix).build().unwrap()
}

/// Two processes with the same prefix, and one with another.
fn world() -> World {
    let mut world = World::ready(settings(3).prefix("app:"));
    world.add_node(with_prefix("app:"), 7);
    world.add_node(with_prefix("other:"), 9);
    world.pump();
    world
}

#[test]
fn keys_and_counters_have_the_prefix_and_the_resource_does_not() {
    let mut world = world();
    let fenced = Acquire { fenced: true, ..wanted(&with_prefix("app:")) };
    let lock = world.hold(&fenced);
    let named = format!("app:{KEY}");
    for master in &world.masters {
        assert!(master.value(&named, world.now).is_some());
        assert_eq!(master.value(&format!("quorlock:fence/{{{named}}}"), world.now), Some("1"));
        assert_eq!(master.value(KEY, world.now), None);
    }
    world.release(lock);
    assert!(matches!(world.next_event(), Event::Released { .. }));
    assert!(world.masters.iter().all(|master| master.value(&named, world.now).is_none()));
}

#[test]
fn other_prefixes_do_not_exclude_each_other() {
    let mut world = world();
    world.hold(&wanted(&with_prefix("app:")));
    world.acquire_by(2, &wanted(&with_prefix("other:")));
    assert!(is_granted(&mut world, 2));
}

#[test]
fn the_same_prefix_excludes_and_a_release_wakes_the_waiter() {
    let mut world = world();
    let config = with_prefix("app:");
    let held = world.hold(&wanted(&config));
    world.acquire_by(1, &wanted(&config));
    world.pass(ms(1_000));
    assert!(world.nodes[1].events.is_empty());
    let before = world.now;
    world.release(held);
    assert!(is_granted(&mut world, 1));
    assert_eq!(world.now, before, "at once");
}

#[test]
fn a_waiter_behind_another_of_its_process_names_the_holder_when_it_gives_up() {
    let mut world = world();
    let config = with_prefix("app:");
    world.hold(&wanted(&config));
    world.acquire_by(1, &wanted(&config));
    world.pump();
    world.acquire_by(1, &Acquire { timeout: Some(ms(500)), ..wanted(&config) });
    match world.next_event_of(1) {
        Event::NotAcquired { error, .. } => {
            let said = error.to_string();
            assert!(
                said.contains("held by another") && said.contains(KEY) && !said.contains("app:"),
                "{said}"
            );
        }
        event => panic!("{event:?}"),
    }
}
