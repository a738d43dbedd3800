//! How long the turn of a place in the queues of the masters lasts, and that no living waiter loses
//! it.

use std::time::Duration;

use quorlock_core::Acquire;

use super::fair::{fair, granted, places, processes, queue};
use super::wake_ups::is_granted;
use super::world::{Flow, World, ms, settings, wall_clock};

const NO_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// Processes that wait for their answers, and are notified or not.
fn patient(count: u64, is_told: bool) -> World {
    let settings = || settings(3).request_timeout(ms(1_000)).wake_ups(is_told).retry_delay(ms(100)..=ms(150));
    let mut world = World::ready(settings());
    (1..count).for_each(|number| world.add_node(settings().build().unwrap(), 7 + number));
    world.pump();
    world
}

/// The turns of all places on a master, in milliseconds.
fn turns(world: &World, master: usize) -> Vec<u64> {
    let keys = world.masters[master].server.keys(wall_clock(world.now));
    let keys = keys.filter(|held| held.key.starts_with(b"quorlock:place"));
    let names: Vec<_> = keys.map(|held| String::from_utf8(held.key.to_vec()).unwrap()).collect();
    let value = |name: &String| world.masters[master].value(name, world.now).unwrap().parse().unwrap();
    names.iter().map(value).collect()
}

/// The time that a request takes, the longest pause if nothing is notified, and the turn.
const TURNS: [(u64, bool, u64); 6] = [
    (0, true, 50),
    (20, true, 80),
    (80, true, 200),
    (0, false, 50 + 150),
    (20, false, 80 + 150),
    (80, false, 200 + 150),
];

#[test]
fn masters_know_how_long_a_turn_the_waiter_needs_once_it_knows_it() {
    for (round, is_told, turn) in TURNS {
        let mut world = patient(2, is_told);
        world.hold(&Acquire { fair: false, ..fair() });
        world.each(|master| master.delay = ms(round));
        world.acquire_by(1, &fair());
        // One request, and for a turn longer than the shortest another one.
        world.pass(ms(2 * round + 5));
        for master in 0..3 {
            assert_eq!(turns(&world, master), [turn], "{round} ms, told: {is_told}");
        }
    }
}

#[test]
fn a_living_waiter_does_not_lose_its_turn() {
    for (round, is_told, turn) in TURNS {
        let mut world = patient(3, is_told);
        let held = world.hold(&fair());
        world.each(|master| master.delay = ms(round));
        for node in [1, 2] {
            world.acquire_by(node, &fair());
            world.pass(ms(2 * round + 5));
        }
        // It may be released at any time, also while a renewal is under way.
        for wait in [0, 150, 250, 300] {
            let mut world = world.clone();
            world.pass(ms(wait));
            world.release(held);
            let end = world.now + ms(round + turn + 2 * round);
            while world.now < end && !is_granted(&mut world, 1) {
                assert_eq!(granted(&mut world), [], "{round} ms, told: {is_told}, {wait} ms");
                world.pass(ms(5));
            }
            let both = (world.now < end, places(&world, 0));
            assert_eq!(both, (true, 2), "{round} ms, told: {is_told}, {wait} ms");
        }
    }
}

#[test]
fn a_waiter_that_is_told_by_too_few_masters_keeps_its_place_there() {
    // The second time, its renewal is under way to the others.
    for waits in [10, 330] {
        let mut world = patient(2, true);
        let held = world.hold(&fair());
        world.acquire_by(1, &fair());
        world.pass(ms(waits));
        for master in [1, 2] {
            world.masters[master].flow = Flow::Stopped;
        }
        world.pass(ms(10));
        world.release(held);
        for _ in 0..20 {
            world.pass(ms(10));
            assert_eq!(places(&world, 0), 1, "{waits} ms");
        }
        for master in [1, 2] {
            world.masters[master].flow = Flow::Free;
        }
        assert_eq!(granted(&mut world), [1], "{waits} ms");
    }
}

#[test]
fn any_number_of_dead_places_costs_a_waiter_little_time() {
    let mut world = processes(3, 252);
    let held = world.hold(&Acquire { fair: false, ..fair() });
    let before = world.nodes.len() - 1;
    for node in 1..before {
        world.acquire_by(node, &fair());
    }
    world.pump();
    world.acquire_by(before, &fair());
    world.pump();
    let last = world.nodes.pop().unwrap();
    world.nodes.truncate(1);
    world.nodes.push(last);
    world.pass(ms(700));
    world.release(held);
    let (died, mut waited) = (Duration::from_millis(310), Duration::ZERO);
    while !is_granted(&mut world, 1) {
        assert!(waited < died + ms(50), "{waited:?}");
        waited += ms(5);
        world.pass(ms(5));
    }
}

#[test]
fn a_plain_caller_asks_after_what_a_fair_one_got_is_taken_back() {
    let mut world = patient(1, true);
    let fair_one = world.acquire(&fair());
    world.acquire(&Acquire { fair: false, ..fair() });
    // The masters grant it, and the process does not know yet.
    world.each(|master| master.flow = Flow::Stopped);
    world.nodes[0].machine.cancel(fair_one, world.now);
    world.drain(0);
    world.each(|master| master.flow = Flow::Free);
    world.pump();
    for master in &world.masters {
        let commands: Vec<_> = master.executed.iter().map(|(_, name, _)| *name).collect();
        let place = |name| commands.iter().position(|command| *command == name);
        let (leave, set) = (place("LEAVE").unwrap(), place("SET").unwrap());
        assert!(leave < set, "{commands:?}");
    }
}

#[test]
fn a_waiter_that_is_told_of_its_turn_asks_as_any_other_client_does() {
    let (mut world, locks) = queue(3, 2);
    world.pass(ms(10));
    let asked = |world: &World, name| world.masters.iter().map(|master| master.count(name)).sum::<usize>();
    let before = ["SET", "ENTER"].map(|name| asked(&world, name));
    world.release(locks[0]);
    world.pump();
    assert_eq!(granted(&mut world), [1]);
    let after = ["SET", "ENTER"].map(|name| asked(&world, name));
    assert_eq!((after[0] - before[0], after[1] - before[1]), (3, 0));
}

#[test]
fn a_turn_that_is_not_granted_is_asked_for_again_after_a_pause_and_keeps_its_place() {
    let (mut world, locks) = queue(3, 3);
    world.pass(ms(10));
    world.each(|master| master.fails("SET", NO_MEMORY));
    world.release(locks[0]);
    world.pass(ms(1));
    assert_eq!(granted(&mut world), []);
    // With its place it is granted the lock by a script, which does not fail here.
    world.pass(ms(1_000));
    assert_eq!(granted(&mut world), [1], "the first one of the queue");
    for (master, at) in world.masters.iter().zip(0..) {
        assert_eq!(master.count("SET"), 1);
        assert_eq!(places(&world, at), 2);
    }
}

#[test]
fn a_turn_that_is_not_decided_soon_does_not_cost_the_place() {
    let mut world = patient(3, true);
    let held = world.hold(&fair());
    for node in 1..3 {
        world.acquire_by(node, &fair());
        world.pass(ms(10));
    }
    // One master refuses it, and one is silent for longer than a turn.
    world.masters[0].fails("SET", NO_MEMORY);
    world.masters[2].flow = Flow::Stopped;
    world.release(held);
    for _ in 0..9 {
        world.pass(ms(100));
        assert_eq!(granted(&mut world), []);
        assert!((0..2).all(|master| places(&world, master) == 2));
    }
    world.masters[2].flow = Flow::Free;
    world.pass(ms(10));
    assert_eq!(granted(&mut world), [1]);
}
