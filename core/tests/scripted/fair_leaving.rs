//! What becomes of a place in the queues of the masters when its caller is done with it.

use quorlock_core::{Acquire, AcquireError, Event, LockId, Resumption};

use super::fair::{fair, granted, places, processes};
use super::sharing::read;
use super::wake_ups::is_granted;
use super::world::{KEY, Master, World, ms, settings};

fn take(world: &mut World, node: usize, lock: LockId) {
    assert!(world.nodes[node].machine.take(lock, world.now).is_some());
    world.drain(node);
}

/// The first process holds the lock, and the second one waits for it.
fn one_waits() -> (World, LockId, LockId) {
    let mut world = processes(3, 3);
    let held = world.hold(&fair());
    let waits = world.acquire_by(1, &fair());
    world.pass(ms(10));
    (world, held, waits)
}

#[test]
fn the_next_caller_of_a_process_goes_on_with_the_place_of_one_that_gives_up() {
    for is_cancelled in [false, true] {
        let (mut world, held, waits) = one_waits();
        let impatient = world.acquire_by(2, &Acquire { timeout: Some(ms(300)), ..fair() });
        world.pass(ms(2));
        let next = world.acquire_by(2, &fair());
        // Another process comes behind the impatient caller.
        world.pass(ms(2));
        world.add_node(settings(3).build().unwrap(), 99);
        world.pump();
        world.acquire_by(3, &fair());
        world.pump();
        let before: Vec<_> = (0..3).map(|master| places(&world, master)).collect();
        if is_cancelled {
            world.nodes[2].machine.cancel(impatient, world.now);
            world.drain(2);
        }
        world.pass(ms(310));
        world.nodes[2].events.clear();
        let after: Vec<_> = (0..3).map(|master| places(&world, master)).collect();
        assert_eq!(before, after);
        world.release(held);
        assert_eq!(granted(&mut world), [1]);
        take(&mut world, 1, waits);
        world.release_by(1, waits);
        world.nodes[1].events.clear();
        assert_eq!(granted(&mut world), [2], "before the one that came later");
        take(&mut world, 2, next);
    }
}

#[test]
fn a_caller_that_gives_up_while_it_asks_leaves_no_key_and_its_place_to_the_next_one() {
    let (mut world, held, waits) = one_waits();
    let next = world.acquire_by(1, &fair());
    world.each(|master| master.delay = ms(20));
    world.release(held);
    // The waiter has been told of its turn, and the masters have granted it the lock.
    world.pass(ms(30));
    world.nodes[1].machine.cancel(waits, world.now);
    world.drain(1);
    world.pass(ms(200));
    assert!(is_granted(&mut world, 1));
    take(&mut world, 1, next);
    world.each(|master| master.delay = ms(0));
    world.release_by(1, next);
    world.pass(ms(10));
    for master in 0..3 {
        assert_eq!((world.masters[master].value(KEY, world.now), places(&world, master)), (None, 0));
    }
}

#[test]
fn a_lock_that_is_kept_for_a_while_leaves_the_queue() {
    let (mut world, held, _) = one_waits();
    assert!(world.nodes[0].machine.release_after(held, ms(100), world.now).is_ok_and(|kept| kept.is_some()));
    world.drain(0);
    world.pass(ms(80));
    assert_eq!(granted(&mut world), []);
    world.pass(ms(50));
    assert_eq!(granted(&mut world), [1]);
}

fn resumed(handed: Resumption) -> Acquire {
    Acquire { resumption: Some(handed), ..fair() }
}

#[test]
fn a_lock_that_is_handed_over_leaves_the_queue() {
    let (mut world, held, _) = one_waits();
    let handed = world.nodes[0].machine.hand_over(held, world.now).unwrap();
    world.drain(0);
    let lock = world.acquire_by(2, &resumed(handed));
    world.pass(ms(10));
    assert_eq!(granted(&mut world), [2]);
    take(&mut world, 2, lock);
    world.release_by(2, lock);
    world.nodes[2].events.clear();
    assert_eq!(granted(&mut world), [1], "at once");
}

#[test]
fn a_lock_that_is_downgraded_leaves_the_queue() {
    let (mut world, held, _) = one_waits();
    assert!(world.nodes[0].machine.downgrade(held, world.now));
    world.drain(0);
    world.pass(ms(10));
    world.release(held);
    world.pass(ms(60));
    assert_eq!(granted(&mut world), [1]);
}

/// A waiter that was killed.
#[test]
fn a_dead_waiter_costs_its_turn_and_a_renewal_whoever_held_the_lock() {
    for (is_fair, hold) in [(true, 50), (true, 2_000), (false, 50), (false, 2_000)] {
        let mut world = processes(3, 3);
        let held = world.hold(&Acquire { fair: is_fair, ..fair() });
        world.acquire_by(2, &fair());
        world.pass(ms(2));
        world.acquire_by(1, &fair());
        world.pass(ms(hold));
        world.nodes.truncate(2);
        world.release(held);
        let start = world.now;
        while !is_granted(&mut world, 1) {
            assert!(world.now < start + ms(600), "fair: {is_fair}, {hold} ms: {:?}", world.now);
            world.pass(ms(5));
        }
    }
}

/// On how many masters new readers are kept out.
fn marked(world: &World) -> usize {
    let want = format!("quorlock:want/{{{KEY}}}");
    world.masters.iter().filter(|master| master.value(&want, world.now).is_some()).count()
}

#[test]
fn the_mark_of_a_writer_ends_when_it_waits_in_the_queue() {
    let mut world = processes(3, 2);
    let reader = world.hold(&read(KEY));
    let writer = world.acquire_by(1, &fair());
    world.pass(ms(200));
    assert!(marked(&world) >= 2, "it waits for the reader");
    // Another writer comes before it.
    world.each(|master| master.hold_by_another(KEY, None));
    world.pass(ms(300));
    assert_eq!(marked(&world), 0);
    assert!((0..3).all(|master| places(&world, master) == 1));
    world.each(Master::forget_keys);
    world.pass(ms(400));
    assert_eq!(granted(&mut world), [1]);
    take(&mut world, 1, writer);
    world.cancel(reader);
}

#[test]
fn callers_that_can_draw_no_token_leave_the_place_that_they_go_on_with() {
    let (mut world, _held, waits) = one_waits();
    world.acquire_by(1, &fair());
    world.nodes[1].has_no_entropy.set(true);
    world.nodes[1].machine.cancel(waits, world.now);
    world.drain(1);
    world.pass(ms(10));
    let told = world.next_event_of(1);
    assert!(matches!(told, Event::NotAcquired { error: AcquireError::NoEntropy, .. }), "{told:?}");
    let left: Vec<_> = (0..3).map(|master| places(&world, master)).collect();
    assert_eq!(left, [1; 3], "the holder's");
}
