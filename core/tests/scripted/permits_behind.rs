//! Requests for a permit, with masters that do not know of all acquisitions and releases.

use quorlock_core::{Acquire, AcquireError, Event, LockId, Ttl};

use super::permits::{granted, wanted, writes};
use super::world::{World, ms, settings};

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

/// The permits that are granted at the first instant at which any are.
fn first_granted(world: &mut World) -> Vec<(LockId, u16)> {
    let mut got = granted(world, 0);
    while got.is_empty() && world.jump() {
        got = granted(world, 0);
    }
    got
}

pub fn single_try(of: u32) -> Acquire {
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
                let got = first_granted(&mut world);
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
        for node in 1..3 {
            world.add_node(settings(masters).build().unwrap(), 7 * node);
        }
        world.pump();
        for (place, master) in world.masters.iter_mut().enumerate() {
            for seat in (0..masters).filter(|seat| *seat != place) {
                master.hold_by_another(&format!("quorlock:seat:{seat}/{{gpu}}"), None);
            }
            master.delay = ms(1);
        }
        for node in 0..3 {
            world.acquire_by(node, &wanted(u32::try_from(masters).unwrap()));
        }
        let before = writes(&world);
        world.pass(ms(5_000));
        assert!(granted(&mut world, 0).is_empty());
        // As many attempts as masters for each pause of 100 ms, with two writes for each master.
        let writes = writes(&world) - before;
        assert!(writes < 120 * masters * masters, "{writes} writes with {masters} masters");
    }
}

/// Each of them takes back what one master assigns to it, and that master notifies the others.
#[test]
fn waiters_do_not_wake_one_another_with_a_permit_that_only_one_master_assigns() {
    for (masters, behind) in
        [3, 5].into_iter().flat_map(|masters| (0..masters).map(move |one| (masters, one)))
    {
        let mut world = World::of(masters);
        for node in 1..3 {
            world.add_node(settings(masters).build().unwrap(), 7 * node);
        }
        world.pump();
        for seat in 0..2 {
            for master in (0..masters).filter(|master| seat > 0 || *master != behind) {
                world.masters[master].hold_by_another(&format!("quorlock:seat:{seat}/{{gpu}}"), None);
            }
        }
        world.each(|master| master.delay = ms(1));
        for node in 0..3 {
            world.acquire_by(node, &wanted(2));
        }
        let before = writes(&world);
        world.pass(ms(5_000));
        assert!(granted(&mut world, 0).is_empty());
        // Two attempts for each pause of 100 ms, with two writes for each master.
        let writes = writes(&world) - before;
        assert!(writes < 250 * masters, "{behind} of {masters} is behind: {writes} writes");
    }
}

/// One master shows a permit as free that the others hold, and holds one that becomes free on them.
#[test]
fn a_master_that_assigns_the_wrong_permit_again_does_not_delay_the_right_one() {
    for behind in 0..3 {
        let mut world = World::of(3);
        world.masters[behind].hold_by_another("quorlock:seat:1/{gpu}", None);
        for master in (0..3).filter(|master| *master != behind) {
            world.masters[master].hold_by_another("quorlock:seat:0/{gpu}", None);
            world.masters[master].hold("quorlock:seat:1/{gpu}", "a", world.now + ms(500));
        }
        let start = world.now;
        let waits = world.acquire(&wanted(2));
        let got = first_granted(&mut world);
        assert_eq!(got, [(waits, 1)], "{behind} is behind");
        let took = world.now.since(start);
        assert!(took < ms(520), "{behind} is behind: {took:?}");
    }
}

#[test]
fn a_master_whose_permit_others_did_not_grant_assigns_another_only_after_all_others() {
    for wrong in 0..5 {
        for full in (0..5).filter(|full| *full != wrong) {
            let mut world = World::of(5);
            for master in (0..5).filter(|master| *master != wrong) {
                world.masters[master].hold_by_another("quorlock:seat:0/{gpu}", None);
            }
            for master in [wrong, full] {
                world.masters[master].hold_by_another("quorlock:seat:1/{gpu}", None);
            }
            let lock = world.acquire(&single_try(2));
            world.pass(ms(50));
            assert_eq!(granted(&mut world, 0), [(lock, 1)], "{wrong} is wrong, {full} is full");
            let asked = world.masters[wrong].count("TAKE");
            assert!(asked <= 1, "{wrong} is wrong, {full} is full: {asked}");
        }
    }
}

/// Without notifications a waiter asks when the key that it was refused for expires.
#[test]
fn a_master_that_assigns_the_wrong_permit_whenever_it_is_asked_does_not_add_a_pause() {
    for behind in 0..3 {
        for freed_after in (500..700).step_by(5) {
            let mut world = World::of(3);
            world.each(|master| master.fails("CLIENT", "NOPERM no permissions to run the 'client' command"));
            world.masters[behind].hold_by_another("quorlock:seat:1/{gpu}", None);
            let until = world.now + ms(freed_after);
            for master in (0..3).filter(|master| *master != behind) {
                world.masters[master].hold_by_another("quorlock:seat:0/{gpu}", None);
                world.masters[master].hold("quorlock:seat:1/{gpu}", "a", until);
            }
            let waits = world.acquire(&wanted(2));
            let got = first_granted(&mut world);
            assert_eq!(got, [(waits, 1)], "{behind} is behind");
            let took = world.now.since(until);
            assert!(took < ms(10), "{behind} is behind: {took:?} after {freed_after} ms");
        }
    }
}

#[test]
fn masters_that_agree_on_no_permit_are_asked_again_after_a_pause() {
    let mut world = World::of(3);
    // The first two assign different permits, and the third one has none.
    for (master, held) in [(0, 1), (1, 0), (2, 0), (2, 1)] {
        world.masters[master].hold_by_another(&format!("quorlock:seat:{held}/{{gpu}}"), None);
    }
    world.acquire(&wanted(2));
    let before = writes(&world);
    world.pass(ms(1_000));
    let writes = writes(&world) - before;
    assert!(writes <= 200, "{writes} requests");
}

/// Each renewal is notified by all masters.
#[test]
fn a_renewal_of_a_permit_costs_a_waiter_one_request() {
    let mut world = World::of(3);
    for node in 1..3 {
        world.add_node(settings(3).build().unwrap(), 7 * node);
    }
    world.each(|master| master.delay = ms(1));
    world.pass(ms(50));
    let renewed = Acquire {
        renew_for: Some(ms(3_600_000)),
        ..Acquire::new(wanted(4).targets, Ttl::new(ms(900)).unwrap())
    };
    for _ in 0..4 {
        world.acquire_by(1, &renewed);
        world.pass(ms(50));
    }
    assert_eq!(granted(&mut world, 1).len(), 4);
    world.acquire(&wanted(4));
    world.acquire_by(2, &wanted(4));
    world.pass(ms(3_000));
    let renewals = |world: &World| world.masters[0].count("EXTEND");
    let (before, renewed_before) = (writes(&world), renewals(&world));
    world.pass(ms(5_000));
    let (writes, renewals) = (writes(&world) - before, renewals(&world) - renewed_before);
    assert!(renewals > 40, "{renewals}");
    // Beside them it asks all masters each second.
    assert!(writes < renewals + 40, "{writes} writes, {renewals} renewals");
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

/// The only permit is held by a second machine, and two masters keep an outdated key of it.
#[test]
fn the_first_master_alone_tells_a_waiter_that_has_asked_others_of_a_free_permit() {
    for outdated in (0..5).flat_map(|one| (0..one).map(move |other| [one, other])) {
        for waited in [300, 1_100, 1_500, 2_700] {
            let mut world = World::of(5);
            world.add_node(settings(5).build().unwrap(), 7);
            world.pump();
            let held = world.acquire_by(1, &wanted(1));
            assert_eq!(granted(&mut world, 1), [(held, 0)]);
            for master in outdated {
                world.masters[master].hold_by_another("quorlock:seat:0/{gpu}", None);
            }
            let asked_first = (0..5).find(|master| world.masters[*master].count("TAKE") > 0).unwrap();
            let waits = world.acquire(&wanted(1));
            world.pass(ms(waited));
            world.release_by(1, held);
            let released = world.now;
            let got = first_granted(&mut world);
            assert_eq!(got, [(waits, 0)]);
            let took = world.now.since(released);
            // A first master with an outdated key does not notify.
            let most = if outdated.contains(&asked_first) { ms(1_010) } else { ms(10) };
            assert!(took < most, "{outdated:?}, released after {waited} ms: {took:?}");
        }
    }
}

/// On the first master no permit is free. It notifies of each renewal of one of them.
#[test]
fn a_waiter_soon_asks_other_masters_however_often_the_first_one_notifies() {
    let mut notified = 0;
    for (full, freed) in (0..3).flat_map(|full| [5, 800, 2_300, 2_900].map(|freed| (full, freed))) {
        let mut world = World::of(3);
        world.add_node(settings(3).build().unwrap(), 7);
        world.pump();
        world.masters[full].hold_by_another("quorlock:seat:0/{gpu}", None);
        for master in (0..3).filter(|master| *master != full) {
            world.masters[master].hold("quorlock:seat:0/{gpu}", "a", world.now + ms(freed));
        }
        let renewed = Acquire {
            renew_for: Some(ms(3_600_000)),
            ..Acquire::new(wanted(2).targets, Ttl::new(ms(900)).unwrap())
        };
        let held = world.acquire_by(1, &renewed);
        assert_eq!(granted(&mut world, 1), [(held, 1)]);
        let start = world.now;
        let waits = world.acquire(&wanted(2));
        let got = first_granted(&mut world);
        assert_eq!(got, [(waits, 0)]);
        let took = world.now.since(start);
        assert!(took < ms(freed + 1_010), "full: {full}, freed after {freed} ms: {took:?}");
        notified += usize::from(world.masters[full].count("TAKE") > 3);
    }
    assert!(notified > 0);
}

#[test]
fn a_waiter_asks_a_majority_each_second_whatever_one_master_notifies() {
    for notifies in [None, Some(0), Some(1), Some(2)] {
        let mut world = World::of(3);
        world.each(|master| master.hold_by_another("quorlock:seat:0/{gpu}", None));
        world.acquire(&wanted(1));
        for _ in 0..35 {
            world.pass(ms(300));
            if let Some(master) = notifies {
                world.masters[master].hold_by_another("quorlock:seat:0/{gpu}", None);
            }
        }
        let mut asked: Vec<_> = world.masters.iter().map(|master| master.count("TAKE")).collect();
        asked.sort_unstable();
        assert!((10..=12).contains(&asked[1]), "{notifies:?}: {asked:?}");
    }
}

#[test]
fn the_next_waiter_of_a_process_asks_other_masters_as_soon_as_the_one_before_it_would_have() {
    for (full, notifies) in (0..3).flat_map(|full| [(full, false), (full, true)]) {
        let mut world = World::of(3);
        world.masters[full].hold_by_another("quorlock:seat:0/{gpu}", None);
        for master in (0..3).filter(|master| *master != full) {
            world.masters[master].hold("quorlock:seat:0/{gpu}", "a", world.now + ms(500));
        }
        let start = world.now;
        let gone = world.acquire(&wanted(1));
        let waits = world.acquire(&wanted(1));
        world.pass(ms(300));
        world.cancel(gone);
        world.pass(ms(300));
        if notifies {
            world.masters[full].hold_by_another("quorlock:seat:0/{gpu}", None);
        }
        let got = first_granted(&mut world);
        assert_eq!(got, [(waits, 0)]);
        let took = world.now.since(start);
        assert!(took < ms(1_010), "full: {full}, it notifies: {notifies}: {took:?}");
    }
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

/// Three masters that know of different holders, in each order in which they are asked to assign:
/// what is free on a majority is no master's first choice in its turn.
#[test]
fn masters_that_assign_in_turns_do_not_miss_the_same_free_permit_forever() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let one = [&[0, 2, 3][..], &[1, 3], &[1, 2]];
    let two = [&[0, 1, 3][..], &[3], &[1]];
    let both = settings(3).build().unwrap().permits_at_once("gpu", 4, 2).unwrap();
    let both = Acquire { timeout: Some(ms(60_000)), ..Acquire::new(both, Ttl::new(ms(10_000)).unwrap()) };
    for (held, asked) in [(one, wanted(4)), (two, both)] {
        for order in orders {
            let mut world = World::of(3);
            for (place, seats) in order.into_iter().zip(held) {
                for seat in seats {
                    world.masters[place].hold_by_another(&format!("quorlock:seat:{seat}/{{gpu}}"), None);
                }
                world.masters[place].delay = ms(1);
            }
            let end = world.now + ms(10_000);
            world.acquire(&asked);
            while world.nodes[0].events.is_empty() && world.jump_until(end) {}
            let event = world.next_event();
            assert!(matches!(event, Event::Granted { .. }), "{held:?}, {order:?}: {event:?}");
        }
    }
}
