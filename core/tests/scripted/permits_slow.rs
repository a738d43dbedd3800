//! Requests for a permit, with masters that answer later than a head start, or not at all.

use quorlock_core::Acquire;

use super::permits::{granted, wanted};
use super::permits_behind::single_try;
use super::world::{Flow, World, ms, settings};

/// Two permits. This master has missed the acquisition of the first one and the release of the
/// other, which is free on the two other masters. `delays` says after how many milliseconds each
/// master answers.
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

/// Checks how often the masters have been asked to assign permits after some milliseconds.
fn assert_asked(world: &mut World, asked: &[(u64, usize)]) {
    let start = world.now;
    for (after, expected) in asked {
        world.pass((start + ms(*after)).since(world.now));
        let asked: usize = world.masters.iter().map(|master| master.count("TAKE")).sum();
        assert_eq!(asked, *expected, "after {after} ms");
    }
}

#[test]
fn each_master_is_asked_to_assign_a_permit_one_head_start_after_the_one_before_it() {
    // A head start of 10 ms.
    let mut world = World::ready(settings(3).request_timeout(ms(160)));
    world.each(|master| master.flow = Flow::RepliesHeld);
    world.acquire(&wanted(4));
    assert_asked(&mut world, &[(0, 1), (9, 1), (10, 2), (19, 2), (20, 3), (90, 3)]);
}

#[test]
fn a_master_that_falls_silent_at_its_second_window_has_another_head_start() {
    let mut world = World::ready(settings(3).request_timeout(ms(160)));
    for master in &mut world.masters {
        (0..64).for_each(|seat| master.hold_by_another(&format!("quorlock:seat:{seat}/{{gpu}}"), None));
        master.flow = Flow::RepliesHeld;
    }
    world.acquire(&wanted(65));
    assert_asked(&mut world, &[(0, 1), (5, 1)]);
    let first = (0..3).find(|master| world.masters[*master].count("TAKE") > 0).unwrap();
    assert!(world.deliver(0, first));
    assert_asked(&mut world, &[(0, 2), (9, 2), (10, 3)]);
}

#[test]
fn waiters_do_not_take_votes_of_each_other_forever() {
    let silent_and_delay =
        [None, Some(0), Some(1), Some(2)].map(|silent| [4, 9, 20].map(|delay| (silent, delay)));
    for (silent, delay) in silent_and_delay.into_iter().flatten() {
        for (processes, each) in [(1, 2), (2, 1), (3, 1), (2, 2)] {
            for freed_after in 0..25 {
                let mut world = World::ready(settings(3).request_timeout(ms(200)));
                for process in 1..processes {
                    world.add_node(settings(3).request_timeout(ms(200)).build().unwrap(), 7 * process);
                }
                world.pump();
                let until = world.now + ms(freed_after);
                for master in &mut world.masters {
                    master.hold_by_another("quorlock:seat:1/{gpu}", None);
                    master.hold("quorlock:seat:0/{gpu}", "a", until);
                    master.delay = ms(delay);
                }
                if let Some(silent) = silent {
                    world.masters[silent].flow = Flow::BlackHole;
                }
                for process in 0..world.nodes.len() {
                    for _ in 0..each {
                        world.acquire_by(process, &wanted(2));
                    }
                }
                world.pass(ms(600));
                let got: usize =
                    (0..world.nodes.len()).map(|process| granted(&mut world, process).len()).sum();
                assert_eq!(
                    got, 1,
                    "{processes} processes with {each} each, freed after {freed_after} ms, replies take {delay} \
                     ms, {silent:?} is silent"
                );
            }
        }
    }
}
