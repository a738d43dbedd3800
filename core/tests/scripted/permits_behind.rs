//! Requests for a permit, with masters that do not know of all acquisitions and releases.

use quorlock_core::{Acquire, AcquireError};

use super::permits::{granted, wanted};
use super::world::{World, ms, settings};

fn writes(world: &World) -> usize {
    world.nodes[0].writes.iter().sum()
}

/// Fewer than half of the masters have any state, as if they had missed acquisitions and releases.
/// The others agree, and `free` says which permit is free on them, if one is.
fn with_a_minority_of_any_state(masters: usize, of: u16, free: Option<u16>, mut check: impl FnMut(World)) {
    let states: u32 = 1 << of;
    let held = states - 1 - free.map_or(0, |free| 1 << free);
    let minority = (masters - 1) / 2;
    for first_behind in 0..masters {
        for mut known in 0..states.pow(u32::try_from(minority).unwrap()) {
            let mut world = World::of(masters);
            for place in 0..masters {
                let state = if place < minority { known % states } else { held };
                known /= states;
                for seat in (0..of).filter(|seat| state >> seat & 1 == 1) {
                    let key = format!("quorlock:seat:{seat}/{{gpu}}");
                    world.masters[(first_behind + place) % masters].hold_by_another(&key, None);
                }
            }
            check(world);
        }
    }
}

fn single_try(of: u32) -> Acquire {
    Acquire { attempts: Some(1), timeout: None, ..wanted(of) }
}

#[test]
fn a_single_try_gets_a_permit_that_is_free_on_a_majority_whatever_the_other_masters_know() {
    for (masters, of) in [(3, 1), (3, 2), (3, 3), (4, 3), (5, 2), (5, 3)] {
        for free in 0..of {
            with_a_minority_of_any_state(masters, of, Some(free), |mut world| {
                let lock = world.acquire(&single_try(of.into()));
                world.pass(ms(50));
                assert_eq!(granted(&mut world, 0), [(lock, free)], "{masters} masters, {of} permits");
            });
        }
    }
}

#[test]
fn a_single_try_soon_says_that_a_majority_has_no_permit_whatever_the_other_masters_know() {
    for (masters, of) in [(3, 1), (3, 2), (3, 3), (4, 3), (5, 2), (5, 3)] {
        with_a_minority_of_any_state(masters, of, None, |mut world| {
            let before = writes(&world);
            let start = world.now;
            world.acquire(&single_try(of.into()));
            let error = world.refusal();
            assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
            assert!(world.now.since(start) < ms(20), "{:?}", world.now.since(start));
            // At most as many rounds as masters, each with a request and an undo for each of them.
            let writes = writes(&world) - before;
            assert!(writes <= 2 * masters * masters, "{writes} requests: {masters} masters, {of} permits");
        });
    }
}

#[test]
fn a_waiter_soon_gets_a_permit_that_is_free_on_a_majority_whatever_the_other_masters_know() {
    for (masters, of) in [(3, 1), (3, 2), (3, 3), (4, 3), (5, 2), (5, 3)] {
        for free in 0..of {
            with_a_minority_of_any_state(masters, of, Some(free), |mut world| {
                let start = world.now;
                let lock = world.acquire(&wanted(of.into()));
                let mut got = granted(&mut world, 0);
                while got.is_empty() && world.jump() {
                    got = granted(&mut world, 0);
                }
                assert_eq!(got, [(lock, free)], "{masters} masters, {of} permits");
                // A first master that has missed releases has a second to notify of a free permit.
                assert!(world.now.since(start) < ms(1_010), "{:?}", world.now.since(start));
            });
        }
    }
}

/// Each master has a free permit, and no majority has the same one.
#[test]
fn a_waiter_pauses_if_no_master_knows_what_the_others_have() {
    for masters in [3, 4, 5] {
        let mut world = World::of(masters);
        for (place, master) in world.masters.iter_mut().enumerate() {
            for seat in (0..masters).filter(|seat| *seat != place) {
                master.hold_by_another(&format!("quorlock:seat:{seat}/{{gpu}}"), None);
            }
        }
        world.acquire(&wanted(u32::try_from(masters).unwrap()));
        let before = writes(&world);
        world.pass(ms(5_000));
        assert!(granted(&mut world, 0).is_empty());
        // As many attempts as masters for each pause of 100 ms, with two writes for each master.
        let writes = writes(&world) - before;
        assert!(writes < 120 * masters * masters, "{writes} writes with {masters} masters");
    }
}

#[test]
fn a_waiter_asks_the_master_that_notified_it_and_no_other_one_to_assign() {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 7);
    world.pump();
    let held = world.acquire(&wanted(1));
    assert_eq!(granted(&mut world, 0), [(held, 0)]);
    let waits = world.acquire_by(1, &wanted(1));
    world.pass(ms(20));
    world.release(held);
    world.pass(ms(20));
    assert_eq!(granted(&mut world, 1), [(waits, 0)]);
    let asked = world.masters.iter().filter(|master| master.count("TAKE") > 0).count();
    assert_eq!(asked, 1);
}

#[test]
fn a_request_that_waited_less_does_not_get_a_permit_from_a_master_without_the_mark() {
    let mut kept_out = 0;
    for marked in 0..3 {
        let mut world = World::of(3);
        // The longer waiter renews its mark in time, on the first master of some semaphore.
        let mark = |world: &mut World| {
            let until = world.now + ms(400);
            world.masters[marked].hold("quorlock:seat:next/{gpu}", "1 1 ab", until);
        };
        mark(&mut world);
        world.acquire(&wanted(1));
        for _ in 0..10 {
            world.pass(ms(300));
            mark(&mut world);
        }
        kept_out += usize::from(granted(&mut world, 0).is_empty());
    }
    assert_eq!(kept_out, 1);
}
