//! Code that asks again for a lock that it holds, and so waits for itself.

use quorlock_core::{Acquire, Event};

use super::world::{World, ms, wanted};

fn patient() -> Acquire {
    Acquire { timeout: None, ..wanted(ms(60_000)) }
}

#[test]
fn a_wait_for_a_lock_of_the_same_process_is_reported_once_after_a_second() {
    let mut world = World::of(3);
    let outer = world.hold(&patient());
    let inner = world.acquire(&patient());
    world.pass(ms(999));
    assert_eq!(world.events_now(), []);
    world.pass(ms(2));
    assert_eq!(world.events_now(), [Event::WaitsForOwn { lock: inner }]);
    world.pass(ms(10_000));
    assert_eq!(world.events_now(), []);
    world.cancel(outer);
    assert!(matches!(world.next_event(), Event::Granted { lock, .. } if lock == inner));
}

#[test]
fn a_wait_behind_locks_that_come_and_go_is_not_reported() {
    let mut world = World::of(3);
    let first = world.hold(&patient());
    let second = world.acquire(&patient());
    world.acquire(&patient());
    world.pass(ms(600));
    world.cancel(first);
    assert!(matches!(world.next_event(), Event::Granted { lock, .. } if lock == second));
    assert!(world.take(second).is_some());
    world.pass(ms(3_000));
    assert_eq!(world.events_now(), []);
}

#[test]
fn a_wait_behind_a_lock_that_another_process_holds_is_not_reported() {
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(super::world::KEY, None));
    world.acquire(&patient());
    world.acquire(&patient());
    world.pass(ms(3_000));
    assert_eq!(world.events_now(), []);
}

#[test]
fn a_waiter_whose_timeout_is_shorter_than_a_second_ends_with_it() {
    let mut world = World::of(3);
    world.hold(&patient());
    let inner = world.acquire(&Acquire { timeout: Some(ms(500)), ..patient() });
    world.pass(ms(3_000));
    let events = world.events_now();
    assert!(matches!(&*events, [Event::NotAcquired { lock, .. }] if *lock == inner), "{events:?}");
}
