//! A process that comes back at once for a lock that others want.

use std::time::Duration;

use quorlock_core::{Acquire, Event, LockId};

use super::world::{KEY, World, ms, settings, wanted};

/// Processes that hold the lock for so long at each grant and come back at once, with timers that
/// are late by a millisecond: the idle time before each of the grants.
fn pace(processes: usize, grants: usize, hold: impl Fn(usize) -> Duration) -> Vec<Duration> {
    let mut world = World::of(3);
    for node in 1..processes {
        world.add_node(settings(3).build().unwrap(), 7 * node as u64);
    }
    world.pump();
    world.each(|master| master.delay = Duration::from_micros(100));
    world.timers_are_late_by = ms(1);
    let asks = Acquire { timeout: None, ..wanted(ms(10_000)) };
    let mut locks: Vec<LockId> = (0..processes).map(|node| world.acquire_by(node, &asks)).collect();
    let mut idle = Vec::new();
    let mut released = world.now;
    while idle.len() < grants {
        world.pump();
        let next = (0..processes).find_map(|node| Some((node, world.nodes[node].events.pop_front()?.1)));
        let node = match next {
            Some((node, Event::Granted { .. })) => node,
            Some((node, Event::Released { .. })) => {
                locks[node] = world.acquire_by(node, &asks);
                continue;
            }
            Some((_, event)) => panic!("{event:?}"),
            None => {
                assert!(world.jump(), "nobody gets it");
                continue;
            }
        };
        let now = world.now;
        assert!(world.nodes[node].machine.take(locks[node], now).is_some());
        world.drain(node);
        idle.push(now.since(released));
        world.pass(hold(idle.len()));
        released = world.now;
        world.release_by(node, locks[node]);
    }
    idle
}

#[test]
fn two_processes_hand_the_lock_to_each_other_without_a_pause() {
    let idle = pace(2, 200, |_| ms(1));
    let mean = idle.iter().sum::<Duration>() / 200;
    // The message, and all masters at once. The first of them before the others would take 290.
    assert!(mean <= Duration::from_micros(220), "{mean:?}");
}

#[test]
fn one_long_turn_does_not_slow_the_turns_behind_it_for_ever() {
    let idle = pace(2, 200, |grant| if grant == 40 { ms(12) } else { ms(1) });
    let behind = &idle[100..];
    let mean = behind.iter().sum::<Duration>() / 100;
    assert!(mean <= Duration::from_micros(400), "{mean:?}");
}

#[test]
fn a_lock_that_nobody_else_asks_for_any_more_is_taken_when_the_pause_is_over() {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 7);
    world.pump();
    let held = world.hold(&wanted(ms(10_000)));
    let other = world.acquire_by(1, &wanted(ms(10_000)));
    world.pump();
    world.release(held);
    assert!(matches!(world.next_event_of(1), Event::Granted { .. }));
    world.release_by(1, other);
    world.nodes[1].events.clear();
    let start = world.now;
    world.acquire_by(1, &wanted(ms(10_000)));
    assert!(matches!(world.next_event_of(1), Event::Released { .. } | Event::Granted { .. }));
    while world.holders().is_empty() {
        assert!(world.jump());
    }
    assert!(world.now.since(start) <= ms(5), "{:?}", world.now.since(start));
    assert_eq!(world.masters[0].value(KEY, world.now).map(str::len), Some(40));
}
