//! Seats that one master assigns and others refuse, or that are assigned too late.

use quorlock_core::{Acquire, AcquireError, Event, LockId, ReleaseOutcome};

use super::permits::{granted, seat_of, wanted, writes};
use super::world::{Flow, KEY, REQUEST_TIMEOUT, Reach, World, ms, settings};

fn renewed() -> Acquire {
    Acquire { renew_for: Some(ms(3_600_000)), ..wanted(4) }
}

/// The permit that the first machine gets.
fn first_granted(world: &mut World, wanted: &Acquire) -> (LockId, u16) {
    world.acquire(wanted);
    loop {
        if let [one] = granted(world, 0)[..] {
            break one;
        }
        assert!(world.jump());
    }
}

#[test]
fn a_waiter_pauses_if_the_assigning_master_knows_no_holder_of_a_seat_that_the_others_refuse() {
    for behind in 0..3 {
        let mut world = World::of(3);
        for seat in 0..4 {
            for master in (0..3).filter(|master| seat > 0 || *master != behind) {
                world.masters[master].hold_by_another(&format!("quorlock:seat:{seat}/{{gpu}}"), None);
            }
        }
        world.acquire(&wanted(4));
        let before = writes(&world);
        world.pass(ms(5_000));
        assert!(granted(&mut world, 0).is_empty());
        // Two attempts for each pause of 100 ms, with two writes for each master.
        let writes = writes(&world) - before;
        assert!(writes < 1_500, "{writes}");
    }
}

#[test]
fn a_master_that_took_another_seat_never_counts_as_a_holder_of_the_chosen_one() {
    let mut took_another = 0;
    for slow in 0..3 {
        let mut world = World::of(3);
        world.masters[slow].flow = Flow::Stopped;
        // Elsewhere the first seat is taken, so that the slow master assigns another one.
        for master in (0..3).filter(|master| *master != slow) {
            world.masters[master].hold_by_another("quorlock:seat:0/{gpu}", None);
        }
        let healed = Acquire { healing: true, ..renewed() };
        let (_, seat) = first_granted(&mut world, &healed);
        world.masters[slow].flow = Flow::Free;
        world.pump();
        if seat_of(&world, slow, seat).is_none() {
            took_another += 1;
            world.pass(ms(30_000));
            assert!(seat_of(&world, slow, seat).is_none(), "slow: {slow}, seat {seat}");
        }
    }
    assert!(took_another > 0);
}

#[test]
fn another_master_is_asked_for_all_seats_and_not_only_for_the_last_window() {
    for full in 0..3 {
        let mut world = World::of(3);
        for master in 0..3 {
            // The other masters know a free seat, which is not in the last window.
            for seat in (0..130).filter(|seat| master == full || *seat != 5) {
                world.masters[master].hold_by_another(&format!("quorlock:seat:{seat}/{{gpu}}"), None);
            }
        }
        let lock = world.acquire(&Acquire { attempts: Some(1), ..wanted(130) });
        assert_eq!(granted(&mut world, 0), [(lock, 5)], "full: {full}");
    }
}

#[test]
fn a_master_that_assigned_without_an_answer_and_holds_the_seat_counts_at_the_release() {
    for slow in 0..3 {
        let mut world = World::of(3);
        world.masters[slow].flow = Flow::RepliesHeld;
        let (lock, seat) = first_granted(&mut world, &renewed());
        world.cut(0, slow);
        world.masters[slow].flow = Flow::Free;
        world.pass(ms(5_000));
        assert!(seat_of(&world, slow, seat).is_some(), "slow: {slow}");
        // One of the two masters that granted it is gone.
        world.masters[(slow + 1) % 3].flow = Flow::BlackHole;
        world.pass(ms(5_000));
        world.events_now();
        world.release(lock);
        let event = world.next_event();
        let is_ours = matches!(event, Event::Released { outcome: ReleaseOutcome::StillOurs, .. });
        assert!(is_ours, "slow: {slow}: {event:?}");
    }
}

#[test]
fn a_permit_that_a_master_assigned_without_an_answer_stays_as_long_as_those_of_the_others() {
    for slow in 0..3 {
        let mut world = World::of(3);
        world.masters[slow].flow = Flow::RepliesHeld;
        let (lock, seat) = first_granted(&mut world, &renewed());
        world.cut(0, slow);
        world.masters[slow].flow = Flow::Free;
        // Long enough for a new connection, and too short for a renewal.
        world.pass(ms(2_000));
        world.events_now();
        let kept = world.nodes[0].machine.release_after(lock, ms(60_000), world.now).unwrap();
        assert!(kept.is_some());
        world.drain(0);
        world.pass(ms(40_000));
        assert!((0..3).all(|master| seat_of(&world, master, seat).is_some()), "slow: {slow}");
        world.pass(ms(20_000));
        assert!((0..3).all(|master| world.masters[master].is_empty(world.now)), "slow: {slow}");
    }
}

#[test]
fn a_permit_that_healing_restored_without_an_answer_is_released() {
    let mut restored = 0;
    for slow in 0..3 {
        let mut world = World::of(3);
        // The slow master takes a seat of its first window; elsewhere all of these are taken.
        for master in (0..3).filter(|master| *master != slow) {
            for seat in 0..64 {
                world.masters[master].hold_by_another(&format!("quorlock:seat:{seat}/{{gpu}}"), None);
            }
        }
        world.masters[slow].flow = Flow::RepliesHeld;
        let healed = Acquire { healing: true, renew_for: renewed().renew_for, ..wanted(128) };
        let (lock, seat) = first_granted(&mut world, &healed);
        world.cut(0, slow);
        world.masters[slow].flow = Flow::Free;
        world.masters[slow].delay = ms(2);
        let end = world.now + ms(5_000);
        while seat_of(&world, slow, seat).is_none() && world.jump_until(end) {}
        restored += usize::from(seat_of(&world, slow, seat).is_some());
        world.cut(0, slow);
        world.release(lock);
        world.pass(ms(1_000));
        assert!((0..128).all(|seat| seat_of(&world, slow, seat).is_none()), "slow: {slow}");
    }
    assert!(restored > 0);
}

#[test]
fn a_permit_that_is_handed_over_leaves_no_other_one_behind() {
    let mut took_another = 0;
    for slow in 0..3 {
        let mut world = World::of(3);
        world.masters[slow].flow = Flow::RepliesHeld;
        // Elsewhere the first seat is taken, so that the slow master assigns another one.
        for master in (0..3).filter(|master| *master != slow) {
            world.masters[master].hold_by_another("quorlock:seat:0/{gpu}", None);
        }
        let (lock, seat) = first_granted(&mut world, &renewed());
        took_another += usize::from(seat_of(&world, slow, 0).is_some());
        world.cut(0, slow);
        world.masters[slow].flow = Flow::Free;
        assert!(world.nodes[0].machine.hand_over(lock, world.now).is_some());
        world.drain(0);
        world.pass(ms(1_000));
        assert!(seat_of(&world, slow, 0).is_none(), "slow: {slow}");
        let holders = (0..3).filter(|master| seat_of(&world, *master, seat).is_some()).count();
        assert!(holders >= 2, "slow: {slow}");
    }
    assert!(took_another > 0);
}

#[test]
fn a_seat_that_is_assigned_late_is_taken_back() {
    for (slow, full) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
        let mut world = World::of(3);
        for seat in 0..4 {
            world.masters[full].hold_by_another(&format!("quorlock:seat:{seat}/{{gpu}}"), None);
        }
        world.masters[slow].flow = Flow::Stopped;
        let lock = world.acquire(&wanted(4));
        world.pass(ms(30));
        world.masters[slow].flow = Flow::Free;
        world.pump();
        world.pass(ms(5));
        world.cancel(lock);
        world.pass(ms(500));
        for master in (0..3).filter(|master| *master != full) {
            assert!(world.masters[master].is_empty(world.now), "{master}: slow {slow}, full {full}");
        }
    }
}

#[test]
fn a_release_takes_back_the_seat_that_another_master_may_still_assign() {
    for slow in 0..3 {
        let mut world = World::of(3);
        world.masters[slow].flow = Flow::Stopped;
        let lock = world.acquire(&wanted(4));
        while granted(&mut world, 0).is_empty() {
            assert!(world.jump());
        }
        world.release(lock);
        world.pump();
        world.masters[slow].flow = Flow::Free;
        world.pass(ms(500));
        assert!((0..3).all(|master| world.masters[master].is_empty(world.now)), "slow: {slow}");
    }
}

#[test]
fn a_master_that_goes_through_its_windows_is_not_overtaken_by_the_others() {
    for behind in 0..4 {
        let mut world = World::of(3);
        for master in &mut world.masters {
            // The head start of the first master is three milliseconds.
            master.delay = ms(2);
            for seat in 0..behind * 64 {
                master.hold_by_another(&format!("quorlock:seat:{seat}/{{gpu}}"), None);
            }
        }
        // Another lock is due when the first head start would have ended.
        world.each(|master| master.hold_by_another(KEY, None));
        let head_start = Some(REQUEST_TIMEOUT / 16);
        world.acquire(&Acquire { timeout: head_start, ..super::world::wanted(ms(10_000)) });
        let lock = world.acquire(&Acquire { attempts: Some(1), ..wanted(256) });
        world.pass(ms(40));
        world.nodes[0].events.retain(|(_, event)| !matches!(event, Event::NotAcquired { .. }));
        assert_eq!(granted(&mut world, 0), [(lock, behind * 64)]);
        assert_eq!(
            world.masters.iter().map(|master| master.count("TAKE")).sum::<usize>(),
            behind as usize + 1
        );
    }
}

#[test]
fn a_master_that_refused_a_window_is_asked_for_the_seat_that_another_one_chose() {
    let mut world = World::of(3);
    for master in &mut world.masters {
        for seat in 0..64 {
            master.hold_by_another(&format!("quorlock:seat:{seat}/{{gpu}}"), None);
        }
    }
    // Each master is the first of some semaphore: whichever it is here answers late.
    for slow in 0..3 {
        let mut world = world.clone();
        world.masters[slow].delay = ms(5);
        for other in (0..3).filter(|other| *other != slow) {
            world.masters[other].delay = ms(4);
        }
        let lock = world.acquire(&Acquire { attempts: Some(1), ..wanted(128) });
        world.pass(ms(40));
        assert_eq!(granted(&mut world, 0), [(lock, 64)], "slow: {slow}");
    }
}

#[test]
fn a_lost_attempt_is_not_concluded_before_a_connecting_master_has_answered() {
    for held in 1..4 {
        // Before there is a connection, the first of all masters is to assign.
        let mut world = World::cold(settings(4));
        world.masters[0].reach = Reach::Ignores;
        for seat in 0..2 {
            world.masters[held].hold_by_another(&format!("quorlock:seat:{seat}/{{gpu}}"), None);
        }
        world.masters[1 + held % 3].reach = Reach::Refuses;
        world.acquire(&Acquire { attempts: Some(1), ..wanted(2) });
        world.pass(ms(60));
        let events = world.events_now();
        assert!(events.is_empty(), "held: {held}: {events:?}");
    }
}

#[test]
fn a_permit_that_a_slow_master_gives_to_a_caller_whose_time_is_over_goes_to_another_one() {
    let mut world = World::of(3);
    for master in &mut world.masters {
        master.hold_by_another("quorlock:seat:0/{gpu}", None);
        master.delay = ms(10);
    }
    world.acquire(&Acquire { timeout: Some(ms(5)), ..wanted(2) });
    let waits = world.acquire(&wanted(2));
    world.refusal();
    world.pass(ms(400));
    assert_eq!(granted(&mut world, 0), [(waits, 1)]);
}

/// A master that refuses to assign permits, but executes undos, knows no holder. Another knows none
/// either and grants a permit that the third refuses.
#[test]
fn the_undo_of_a_window_does_not_wake_its_own_lock() {
    for failing in 0..3 {
        for behind in (0..3).filter(|behind| *behind != failing) {
            let mut world = World::of(3);
            for seat in 0..4 {
                for master in (0..3).filter(|master| *master != behind) {
                    let key = format!("quorlock:seat:{seat}/{{gpu}}");
                    world.masters[master].hold_by_another(&key, None);
                }
            }
            let no_memory = "OOM command not allowed when used memory > 'maxmemory'.";
            world.masters[failing].server.fail("TAKE", Some(no_memory));
            world.each(|master| master.delay = ms(1));
            world.acquire(&wanted(4));
            let before = writes(&world);
            world.pass(ms(5_000));
            assert!(granted(&mut world, 0).is_empty());
            let writes = writes(&world) - before;
            assert!(writes < 1_500, "master {failing} fails, {behind} is behind: {writes} requests");
        }
    }
}

#[test]
fn a_master_that_connects_late_decides_that_all_permits_are_held() {
    for free in 0..4 {
        for down in (0..4).filter(|down| *down != free) {
            for late in (0..4).filter(|late| ![free, down].contains(late)) {
                let mut world = World::cold(settings(4));
                for master in (0..4).filter(|master| *master != free) {
                    for seat in 0..4 {
                        let key = format!("quorlock:seat:{seat}/{{gpu}}");
                        world.masters[master].hold_by_another(&key, None);
                    }
                }
                world.masters[down].reach = Reach::Refuses;
                world.masters[late].reach = Reach::Ignores;
                // Each master is asked to assign before the first one has done so.
                world.each(|master| master.delay = ms(15));
                world.masters[free].delay = ms(10);
                world.pass(ms(100));
                world.acquire(&Acquire { attempts: Some(1), timeout: None, ..wanted(4) });
                world.pass(ms(60));
                assert!(world.nodes[0].events.is_empty());
                world.masters[late].reach = Reach::Accepts;
                let error = world.refusal();
                assert!(matches!(error, AcquireError::HeldByAnother(_)), "{free}, {down}, {late}: {error}");
            }
        }
    }
}
