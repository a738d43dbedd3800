//! Processes that wait fairly agree on one order, even if messages come late.

use quorlock_core::{Acquire, AcquireError, Event, LockId, Ttl};

use super::fair::{fair, granted, places, processes};
use super::world::{Flow, Reach, World, ms, settings};

/// A stopped master answers only one process.
fn serve_all(world: &mut World, node: usize, master: usize) {
    world.serve(node, master);
    while world.deliver(node, master) {
        world.serve(node, master);
    }
}

/// On the last master the second process enters the queue behind the third one. On the other
/// masters it is ahead of the third one.
fn crossed() -> (World, [LockId; 3]) {
    let mut world = processes(3, 3);
    let held = world.hold(&fair());
    world.masters[2].flow = Flow::Stopped;
    let second = world.acquire_by(1, &fair());
    // The second process ends its round without the last master.
    world.pass(ms(26));
    let third = world.acquire_by(2, &fair());
    world.pump();
    serve_all(&mut world, 2, 2);
    world.masters[2].flow = Flow::Free;
    world.pass(ms(10));
    (world, [held, second, third])
}

#[test]
fn a_place_that_reached_a_master_late_gets_the_number_of_the_quorum() {
    let (mut world, [held, ..]) = crossed();
    // Two masters are left, on which the two waiters must not block each other.
    world.masters[0].flow = Flow::BlackHole;
    world.masters[0].reach = Reach::Ignores;
    world.release(held);
    world.pass(ms(200));
    assert_eq!(granted(&mut world), [1]);
}

#[test]
fn a_place_lives_on_while_a_master_is_waited_for() {
    let mut world = World::ready(settings(3).request_timeout(ms(3_000)));
    world.add_node(settings(3).request_timeout(ms(3_000)).build().unwrap(), 7);
    world.pump();
    world.hold(&fair());
    world.masters[2].flow = Flow::Stopped;
    world.acquire_by(1, &fair());
    // The holder's place has ended by then.
    world.pass(ms(1_001));
    for _ in 0..40 {
        assert!((0..2).all(|master| places(&world, master) == 1));
        world.pass(ms(50));
    }
}

/// Two processes over masters of which the last one does not answer the second; the first one holds
/// the lock, and the second one has been refused by the others.
fn refused_beside_a_silent_master() -> (World, LockId) {
    let mut world = processes(3, 2);
    let held = world.hold(&fair());
    world.masters[2].flow = Flow::Stopped;
    world.acquire_by(1, &fair());
    world.pass(ms(2));
    assert_eq!(granted(&mut world), []);
    (world, held)
}

#[test]
fn a_release_ends_a_lost_round_that_waits_for_a_silent_master() {
    let (mut world, held) = refused_beside_a_silent_master();
    world.release(held);
    assert_eq!(granted(&mut world), [1], "at once");
}

#[test]
fn a_release_on_too_few_masters_does_not_end_a_lost_round() {
    let (mut world, held) = refused_beside_a_silent_master();
    world.masters[1].flow = Flow::Stopped;
    let asked = world.masters[0].count("ENTER");
    world.release(held);
    world.pump();
    assert_eq!(world.masters[0].count("ENTER"), asked);
    world.masters[1].flow = Flow::Free;
    assert_eq!(granted(&mut world), [1]);
}

#[test]
fn a_single_try_does_not_wait_for_a_silent_master() {
    let mut world = processes(3, 2);
    world.hold(&fair());
    world.masters[2].flow = Flow::Stopped;
    world.acquire_by(1, &Acquire { attempts: Some(1), ..fair() });
    world.pump();
    let (_, event) = world.nodes[1].events.pop_front().expect("an end at once");
    assert!(matches!(event, Event::NotAcquired { error: AcquireError::HeldByAnother(_), .. }), "{event:?}");
    world.masters[2].flow = Flow::Free;
    world.pump();
    assert!((0..3).all(|master| places(&world, master) == 1), "the holder's");
}

#[test]
fn a_waiter_with_a_slow_link_keeps_its_place_while_a_master_is_down() {
    let mut world = World::cold(settings(3));
    world.masters[2].reach = Reach::Refuses;
    // Longer than half of the timeout of requests, after which a lost round ends.
    world.masters[1].delay = ms(40);
    world.pump();
    world.pass(ms(200));
    world.add_node(settings(3).build().unwrap(), 7);
    world.pass(ms(200));
    world.hold(&Acquire { fair: false, ttl: Ttl::new(ms(60_000)).unwrap(), ..fair() });
    world.acquire_by(1, &fair());
    world.pass(ms(100));
    for _ in 0..20 {
        world.pass(ms(100));
        assert_eq!((places(&world, 0), places(&world, 1)), (1, 1));
    }
    assert_eq!(world.masters[0].count("LEAVE"), 0);
}

#[test]
fn a_waiter_that_asks_again_before_a_quorum_has_answered_keeps_its_place() {
    let mut world = processes(3, 1);
    let hasty = settings(3).retry_delay(ms(5)..=ms(10));
    world.add_node(hasty.build().unwrap(), 8);
    world.pump();
    let held = world.hold(&Acquire { fair: false, ttl: Ttl::new(ms(60_000)).unwrap(), ..fair() });
    world.masters[2].reach = Reach::Refuses;
    world.cut(1, 2);
    // Longer than a lost round and the pause after it, shorter than the timeout of requests.
    world.masters[1].delay = ms(45);
    world.acquire_by(1, &fair());
    world.pass(ms(1_000));
    assert_eq!((places(&world, 0), world.masters[0].count("LEAVE")), (1, 0));
    world.release(held);
    world.pass(ms(100));
    assert_eq!(granted(&mut world), [1]);
}

/// The marker of the restart guard is checked after the place was entered.
#[test]
fn a_release_leaves_the_queue_on_a_master_in_quarantine() {
    let guarded = || settings(3).ttl(ms(3_000)).restart_guard(ms(5_000));
    let mut world = World::ready(guarded());
    world.pass(ms(5_000));
    world.cut(0, 2);
    world.masters[2].server.restart(102, |_| false);
    world.pass(ms(50));
    world.each(|master| master.delay = ms(10));
    world.masters[2].delay = ms(0);
    let lock = world.hold(&Acquire { ttl: Ttl::new(ms(3_000)).unwrap(), ..fair() });
    assert_eq!(world.holders(), [0, 1]);
    assert!((0..3).all(|master| places(&world, master) == 1));
    world.release(lock);
    world.pass(ms(50));
    assert!((0..3).all(|master| places(&world, master) == 0));
}

#[test]
fn a_waiter_leaves_the_queue_where_only_its_number_could_not_be_sent() {
    let mut world = processes(3, 3);
    world.hold(&Acquire { fair: false, ..fair() });
    // Another waiter has come to the first master only, so the next one gets a larger number there.
    for master in [1, 2] {
        world.cut(2, master);
        world.masters[master].reach = Reach::Ignores;
    }
    world.acquire_by(2, &fair());
    world.pump();
    world.masters[0].delay = ms(10);
    let waits = world.acquire_by(1, &fair());
    world.pass(ms(5));
    assert_eq!(places(&world, 2), 1);
    // The others must have the number of the first master, but one cannot be told.
    world.masters[2].reach = Reach::Refuses;
    world.cut(1, 2);
    world.pass(ms(6));
    assert_eq!((world.masters[1].count("ENTER"), world.masters[2].count("ENTER")), (2, 1));
    world.nodes[1].machine.cancel(waits, world.now);
    world.drain(1);
    world.nodes.truncate(2);
    world.masters[2].reach = Reach::Accepts;
    world.pass(ms(500));
    assert_eq!(places(&world, 2), 0);
}
