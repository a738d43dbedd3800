//! Requests for a permit, with masters that answer later than a head start, or not at all.

use quorlock_core::Acquire;

use super::permits::{granted, wanted, writes};
use super::permits_behind::single_try;
use super::world::{Flow, World, ms, settings};

/// Two permits. This master has missed the acquisition of the first one and the release of the
/// other, which is free on the two other masters. Each master answers after so many milliseconds.
fn with_one_behind(behind: usize, delays: [u64; 3]) -> World {
    let mut world = World::ready(settings(3).request_timeout(ms(200)));
    for (place, delay) in delays.into_iter().enumerate() {
        let held = usize::from(place == behind);
        world.masters[place].hold_by_another(&format!("quorlock:seat:{held}/{{gpu}}"), None);
        world.masters[place].delay = ms(delay);
    }
    world
}

/// A head start is 12.5 ms. So before the first master has answered, others are asked to assign,
/// too.
fn gets_the_permit(wanted: &Acquire, slow: &[[u64; 3]]) {
    for delays in slow {
        for behind in 0..3 {
            let mut world = with_one_behind(behind, *delays);
            let lock = world.acquire(wanted);
            world.pass(ms(1_000));
            assert_eq!(granted(&mut world, 0), [(lock, 1)], "{behind} is behind, replies take {delays:?} ms");
        }
    }
}

const ALL_SLOW: [[u64; 3]; 4] = [[13; 3], [26; 3], [40; 3], [60; 3]];
const ONE_FAST: [[u64; 3]; 6] =
    [[1, 30, 60], [1, 60, 30], [30, 1, 60], [60, 1, 30], [30, 60, 1], [60, 30, 1]];

#[test]
fn a_waiter_asks_each_slow_master_to_assign_a_permit() {
    gets_the_permit(&wanted(2), &ALL_SLOW);
}

#[test]
fn a_single_try_asks_each_slow_master_to_assign_a_permit() {
    gets_the_permit(&single_try(2), &ALL_SLOW);
}

#[test]
fn a_fast_master_does_not_assign_a_permit_that_others_refused_again_and_again() {
    gets_the_permit(&wanted(2), &ONE_FAST);
    gets_the_permit(&single_try(2), &ONE_FAST);
}

#[test]
fn waiters_do_not_take_one_anothers_votes_forever() {
    for freed_after in 0..25 {
        for (silent, delay) in [(0, 4), (1, 4), (2, 4), (0, 9), (1, 9), (2, 9)] {
            let mut world = World::ready(settings(3).request_timeout(ms(200)));
            let until = world.now + ms(freed_after);
            for master in &mut world.masters {
                master.hold_by_another("quorlock:seat:1/{gpu}", None);
                master.hold("quorlock:seat:0/{gpu}", "a", until);
                master.delay = ms(delay);
            }
            world.masters[silent].flow = Flow::BlackHole;
            let waiters = [world.acquire(&wanted(2)), world.acquire(&wanted(2))];
            world.pass(ms(500));
            let asked = writes(&world);
            let got = granted(&mut world, 0);
            let (lock, seat) =
                *got.first().unwrap_or_else(|| panic!("freed after {freed_after} ms: {asked} writes"));
            assert!(waiters.contains(&lock) && seat == 0);
        }
    }
}
