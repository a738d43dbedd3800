//! Waiting fairly where masters deny what their queues need: those masters wait without a place,
//! and are asked once for each connection.

use quorlock_core::{Acquire, MasterState, Warning};

use super::fair::{fair, granted, processes};
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

#[test]
fn without_a_queue_a_fair_waiter_asks_as_often_as_any_other() {
    let asked = |is_fair| {
        let mut world = processes(3, 2);
        deny(&mut world, 3, REFUSALS[0]);
        world.hold(&Acquire { fair: false, ..fair() });
        world.acquire_by(1, &Acquire { fair: is_fair, ..fair() });
        world.pass(ms(5_000));
        world.masters.iter().map(|master| master.attempts().len()).sum::<usize>()
    };
    let (fair_one, plain) = (asked(true), asked(false));
    // It asks all masters, and another one asks the first of them before the others.
    assert!(fair_one <= 3 * (plain + 2), "{fair_one}, {plain}");
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
