//! Waiting fairly where masters deny what their queues need: those masters wait without a place,
//! and are asked once for each connection.

use quorlock_core::{Acquire, Instant, MasterState, Warning};

use super::fair::{fair, granted, places, processes};
use super::world::{Flow, KEY, Master, World, ms};

/// What servers say if a command of the script, a key of the queue, or the command itself is
/// missing.
const REFUSALS: [&str; 4] = [
    "NOPERM this user has no permissions to run the 'zadd' command",
    "NOPERM this user has no permissions to access one of the keys used as arguments",
    "ERR Unknown Redis command called from script script: 1ed76cf7, on @user_script:8.",
    "@user_script: 8: Unknown Redis command called from Lua script",
];

fn warnings(world: &World, node: usize) -> Vec<Vec<Warning>> {
    let warned = |(_, state)| match state {
        MasterState::Ready { warnings } => warnings,
        _ => panic!("not ready"),
    };
    world.nodes[node].machine.masters().map(warned).collect()
}

fn deny(world: &mut World, denied: usize, text: &str) {
    for master in &mut world.masters[..denied] {
        master.fails("ENTER", text);
    }
}

fn is_gone(master: &Master, world: &World) -> bool {
    master.value(KEY, world.now).is_none()
}

#[test]
fn a_queue_that_is_denied_is_waited_for_without_a_place_and_asked_for_once() {
    for text in REFUSALS {
        for denied in 1..=3 {
            let mut world = processes(3, 2);
            deny(&mut world, denied, text);
            let held = world.hold(&fair());
            let waits = world.acquire_by(1, &fair());
            world.pass(ms(1_500));
            assert_eq!(granted(&mut world), [], "{denied}: {text}");
            world.release(held);
            world.pass(ms(200));
            assert_eq!(granted(&mut world), [1], "{denied}: {text}");
            assert!(world.nodes[1].machine.take(waits, world.now).is_some());
            world.drain(1);
            world.release_by(1, waits);
            world.pass(ms(10));
            assert!(world.masters.iter().all(|master| is_gone(master, &world)), "{denied}: {text}");
            for node in 0..2 {
                let expected: Vec<_> = (0..3)
                    .map(|master| if master < denied { vec![Warning::QueueDenied] } else { vec![] })
                    .collect();
                assert_eq!(warnings(&world, node), expected, "{denied}: {text}");
            }
            for master in &world.masters[..denied] {
                assert_eq!(master.count("ENTER"), 2, "once for each connection, {denied}: {text}");
            }
        }
    }
}

/// What each master executed for a client that comes back at once each time, and for another one
/// before it.
fn executed(denied: usize, is_fair: bool) -> Vec<Vec<(Instant, &'static str)>> {
    let mut world = processes(3, 2);
    deny(&mut world, denied, REFUSALS[0]);
    // Its first request finds out.
    let first = world.acquire_by(1, &Acquire { fair: true, ..fair() });
    world.pass(ms(10));
    world.release_by(1, first);
    let held = world.hold(&Acquire { fair: false, ..fair() });
    let wanted = Acquire { fair: is_fair, ..fair() };
    let mut waits = world.acquire_by(1, &wanted);
    world.pass(ms(1_000));
    world.release(held);
    for _ in 0..50 {
        world.pass(ms(5));
        if granted(&mut world) == [1] {
            world.release_by(1, waits);
            waits = world.acquire_by(1, &wanted);
        }
    }
    let executed = |master: &Master| master.executed.iter().map(|(at, name, _)| (*at, *name)).collect();
    world.masters.iter().map(executed).collect()
}

#[test]
fn where_a_quorum_denies_its_queues_a_fair_client_asks_exactly_as_any_other() {
    for denied in 2..=3 {
        let [fair_one, plain] = [true, false].map(|is_fair| executed(denied, is_fair));
        assert!(fair_one == plain, "{denied}: {fair_one:?}\n{plain:?}");
        assert!(plain.iter().all(|executed| executed.len() > 60), "{plain:?}");
    }
    assert_ne!(executed(1, true), executed(1, false));
}

#[test]
fn a_wait_without_a_queue_can_be_cancelled_and_leaves_no_key() {
    for denied in 1..=3 {
        let mut world = processes(3, 2);
        deny(&mut world, denied, REFUSALS[0]);
        world.each(|master| master.delay = ms(20));
        // Its release is behind its acquisition, which is refused then.
        let lock = world.acquire(&fair());
        world.pass(ms(10));
        world.cancel(lock);
        world.pass(ms(1_000));
        assert!(world.masters.iter().all(|master| is_gone(master, &world)), "{denied}");
    }
}

#[test]
fn a_waiter_hears_of_a_release_from_masters_that_keep_no_places() {
    let mut world = processes(3, 2);
    world.masters[2].fails("ENTER", REFUSALS[0]);
    let held = world.hold(&fair());
    world.acquire_by(1, &fair());
    world.pass(ms(10));
    // The release does not reach one of those that keep places.
    world.cut(0, 0);
    world.masters[0].flow = Flow::Stopped;
    world.release(held);
    world.pass(ms(100));
    assert_eq!(granted(&mut world), [1]);
}

#[test]
fn a_waiter_takes_a_place_once_new_connections_may_keep_it() {
    for allowed in 0..=3 {
        let mut world = processes(3, 2);
        deny(&mut world, 3, REFUSALS[0]);
        world.hold(&Acquire { fair: false, ..fair() });
        world.acquire_by(1, &fair());
        world.pass(ms(1_000));
        assert!((0..3).all(|master| places(&world, master) == 0));
        for master in 0..allowed {
            world.masters[master].mends("ENTER");
            world.cut(1, master);
        }
        world.pass(ms(1_000));
        let kept = (0..3).filter(|&master| places(&world, master) > 0).count();
        assert_eq!(kept, if allowed >= 2 { allowed } else { 0 });
    }
}
