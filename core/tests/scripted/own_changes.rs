//! Keys that a waiter's own process changes: masters do not report them (`CLIENT TRACKING ON
//! NOLOOP`).

use quorlock_core::{Acquire, Event, LockId, Resource, Ttl};

use super::fair::{fair, processes};
use super::wake_ups::{held_and_awaited, is_granted};
use super::world::{KEY, World, ms, settings, wanted};

/// A process takes over a lock that one of its other callers waits for, and extends it; the server
/// does not report changes to the connection that made them.
#[test]
fn a_release_is_noticed_although_the_waiters_own_connection_has_extended_the_key() {
    for healing in [false, true] {
        let (mut world, held, _) = held_and_awaited(3, ms(10_000), true);
        let handed = world.nodes[0].machine.hand_over(held, world.now).unwrap();
        world.drain(0);
        let resumed = Acquire { resumption: Some(handed), healing, ..wanted(ms(20_000)) };
        let lock = world.acquire_by(1, &resumed);
        assert!(is_granted(&mut world, 1));
        assert!(world.nodes[1].machine.take(lock, world.now).is_some());
        for _ in 0..3 {
            world.pass(ms(500));
            world.nodes[1].machine.extend(lock, Ttl::new(ms(20_000)).unwrap(), world.now).unwrap();
            world.drain(1);
        }
        world.pass(ms(500));
        world.nodes[1].events.clear();
        // Another process that knows the token releases the lock.
        let resource = Resource::new(KEY).unwrap();
        world.nodes[0].machine.release_token(&resource.clone().into(), handed.token, world.now).unwrap();
        world.drain(0);
        let released = world.now;
        while !is_granted(&mut world, 1) {
            assert!(world.jump(), "nothing will ever happen");
        }
        assert!(world.now.since(released) < ms(100), "{:?}", world.now.since(released));
    }
}

/// Whether the first process has been granted this lock.
fn is_granted_to(world: &World, waiter: LockId) -> bool {
    let mut events = world.nodes[0].events.iter();
    events.any(|(_, event)| matches!(event, Event::Granted { lock, .. } if *lock == waiter))
}

/// A single try of the holder's own process has entered the queue before another of its callers,
/// and leaves it when that caller is there.
#[test]
fn a_fair_waiter_is_notified_when_a_single_try_of_its_own_process_leaves_the_queue() {
    for masters in [1, 3, 4, 5] {
        let mut world = processes(masters, 2);
        let held = world.hold(&fair());
        world.each(|master| master.delay = ms(5));
        world.acquire(&Acquire { attempts: Some(1), ..fair() });
        world.pass(ms(1));
        world.release(held);
        world.pass(ms(1));
        let waiter = world.acquire(&fair());
        world.pass(ms(30));
        assert!(is_granted_to(&world, waiter), "{masters} masters");
    }
}

/// Two masters do not carry out a release at first, but only after the next caller's request.
#[test]
fn a_fair_waiter_is_notified_when_an_owed_release_is_executed() {
    let pause = ms(40);
    let mut world = World::ready(settings(3).reconnect_delay(pause..=pause));
    let held = world.hold(&fair());
    let waiter = world.acquire(&fair());
    for master in [0, 1] {
        world.masters[master].fails("LEAVE", "MISCONF snapshots fail");
    }
    world.release(held);
    world.pump();
    for master in [0, 1] {
        world.masters[master].mends("LEAVE");
    }
    let released = world.now;
    while !is_granted_to(&world, waiter) {
        assert!(world.now < released + pause + ms(20), "{:?}", world.now.since(released));
        world.pass(ms(1));
    }
}
