//! Masters notify waiters of other processes when a lock becomes free.

use std::time::Duration;

use quorlock_core::{Acquire, Event, LockId, MasterState, Warning};

use super::world::{Flow, KEY, REQUEST_TIMEOUT, World, ms, settings, wanted};

/// One process that holds the lock for `ttl`, and one that waits for it, with notifications if
/// `wake_ups`.
pub fn held_and_awaited(masters: usize, ttl: Duration, wake_ups: bool) -> (World, LockId, LockId) {
    let mut world = World::of(masters);
    world.add_node(settings(masters).wake_ups(wake_ups).build().unwrap(), 7);
    world.pump();
    let held = world.hold(&wanted(ttl));
    let awaited = world.acquire_by(1, &Acquire { timeout: None, ..wanted(ms(10_000)) });
    world.pump();
    (world, held, awaited)
}

pub fn is_granted(world: &mut World, node: usize) -> bool {
    world.pump();
    matches!(world.nodes[node].events.pop_front(), Some((_, Event::Granted { .. })))
}

fn executed(world: &World) -> usize {
    world.masters.iter().map(|master| master.executed.len()).sum()
}

#[test]
fn a_waiter_asks_once_and_then_only_when_the_lock_is_released() {
    for masters in [1, 3, 5] {
        let (mut world, held, awaited) = held_and_awaited(masters, ms(10_000), true);
        let before = executed(&world);
        world.pass(ms(5_000));
        assert_eq!(executed(&world), before, "nothing is asked meanwhile");
        let first = world.masters[0].executed.len();
        world.release(held);
        assert!(is_granted(&mut world, 1), "at once");
        let names: Vec<_> = world.masters[0].executed[first..].iter().map(|(_, name, _)| *name).collect();
        assert_eq!(names, ["RELEASE", "ACQUIRE READING"]);
        assert!(world.nodes[1].machine.take(awaited, world.now).is_some());
    }
}

#[test]
fn a_waiter_has_asked_with_three_requests_for_each_master() {
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(KEY, None));
    let before = world.masters[0].executed.len();
    world.acquire(&wanted(ms(10_000)));
    world.pump();
    let names: Vec<_> = world.masters[0].executed[before..].iter().map(|(_, name, _)| *name).collect();
    assert_eq!(names, ["SET", "CLIENT", "UNDO"]);
}

/// How often `CLIENT` is in the greeting, for the library's name and version.
const GREETING: usize = 2;

#[test]
fn a_lock_without_waiters_is_not_watched() {
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(KEY, None));
    let tries = Acquire { attempts: Some(1), ..wanted(ms(10_000)) };
    world.acquire(&tries);
    world.refusal();
    assert_eq!(world.masters[0].count("CLIENT"), GREETING);
}

#[test]
fn a_deletion_of_the_key_by_any_client_wakes_the_waiter() {
    let (mut world, ..) = held_and_awaited(3, ms(10_000), true);
    world.each(delete_the_key);
    assert!(is_granted(&mut world, 1));
}

/// `DEL` by a client that does not know locks.
pub fn delete_the_key(master: &mut super::world::Master) {
    let mut session = master.server.accept();
    let command = format!("DEL {KEY}\r\n");
    let mut replies = Vec::new();
    let _ = master.server.serve(&mut session, command.as_bytes(), ms(1_000), &mut replies);
    assert_eq!(replies, b":1\r\n");
}

#[test]
fn a_flush_of_all_keys_is_a_notification_too() {
    let (mut world, ..) = held_and_awaited(3, ms(10_000), true);
    world.each(|master| {
        let mut session = master.server.accept();
        let _ = master.server.serve(&mut session, b"FLUSHALL\r\n", ms(1_000), &mut Vec::new());
    });
    assert!(is_granted(&mut world, 1));
}

#[test]
fn a_renewal_is_a_notification_and_costs_one_request_to_one_master() {
    let (mut world, held, _) = held_and_awaited(5, ms(10_000), true);
    let before = executed(&world);
    world.extend(held, ms(20_000));
    world.pump();
    assert_eq!(executed(&world) - before, 5 + 1);
    // The registration by that request is enough to be notified of the release.
    world.release(held);
    assert!(is_granted(&mut world, 1));
}

#[test]
fn a_waiter_that_is_passed_over_repeatedly_asks_all_masters_at_once() {
    let (mut world, ..) = held_and_awaited(3, ms(10_000), true);
    let mut asked = Vec::new();
    for holder in 0..20 {
        let before = executed(&world);
        world.each(|master| {
            let mut session = master.server.accept();
            let command = format!("SET {KEY} holder{holder} PX 10000\r\n");
            let _ = master.server.serve(&mut session, command.as_bytes(), ms(1_000), &mut Vec::new());
        });
        world.pump();
        asked.push(executed(&world) - before);
    }
    // The first of these holders is not compared with another; a round that two masters refused
    // takes back the request to the third.
    assert_eq!(asked, [[1; 17].as_slice(), &[4; 3]].concat());
    world.pass(ms(1_000));
    world.each(delete_the_key);
    assert!(is_granted(&mut world, 1));
}

#[test]
fn a_holder_that_renews_has_passed_over_no_waiter() {
    let (mut world, held, _) = held_and_awaited(3, ms(10_000), true);
    for longer in 1..40 {
        let before = executed(&world);
        world.extend(held, ms(10_000 + 100 * longer));
        world.pump();
        assert_eq!(executed(&world) - before, 3 + 1);
    }
}

#[test]
fn a_lock_whose_holder_is_gone_is_taken_when_its_keys_expire_even_without_a_notification() {
    for lost in [false, true] {
        let (mut world, held, _) = held_and_awaited(3, ms(2_000), true);
        let end = world.masters[0].end(KEY, world.now).unwrap();
        assert!(world.nodes[0].machine.hand_over(held, world.now).is_some());
        if lost {
            world.each(|master| master.loses_pushes = true);
        }
        while world.nodes[1].events.is_empty() {
            assert!(world.jump());
        }
        assert!(world.now >= end && world.now.since(end) <= ms(10), "{:?}", world.now.since(end));
        assert!(is_granted(&mut world, 1));
    }
}

#[test]
fn without_notifications_a_held_lock_is_requested_repeatedly() {
    for denied in [false, true] {
        let mut world = World::of(3);
        world.each(|master| master.hold_by_another(KEY, None));
        if denied {
            world.each(|master| master.fails("CLIENT", "NOPERM no permissions to run the 'client' command"));
        } else {
            world.nodes.clear();
            world.add_node(settings(3).wake_ups(false).build().unwrap(), 3);
            world.pump();
        }
        world.acquire(&wanted(ms(60_000)));
        world.pass(ms(1_600));
        let attempts = world.masters[0].attempts().len();
        assert!((10..=33).contains(&attempts), "{attempts}");
        if denied {
            let states: Vec<_> = world.nodes[0].machine.masters().map(|(_, state)| state).collect();
            let warned = MasterState::Ready { warnings: vec![Warning::TrackingDenied] };
            assert_eq!(states, [warned.clone(), warned.clone(), warned]);
        }
    }
}

#[test]
fn a_waiter_that_cannot_be_notified_any_more_asks_again() {
    let (mut world, held, _) = held_and_awaited(3, ms(60_000), true);
    for master in 0..2 {
        world.cut(1, master);
    }
    world.pass(ms(200));
    let before = executed(&world);
    // The waiter has asked again by now, and is notified again.
    world.pass(ms(5_000));
    assert_eq!(executed(&world), before);
    world.release(held);
    assert!(is_granted(&mut world, 1));
}

#[test]
fn a_first_master_that_is_silent_is_not_waited_for() {
    for silent in 0..3 {
        let (mut world, held, _) = held_and_awaited(3, ms(10_000), true);
        world.release(held);
        world.masters[silent].flow = Flow::Stopped;
        let start = world.now;
        world.pump();
        while world.nodes[1].events.is_empty() {
            assert!(world.jump());
        }
        assert!(is_granted(&mut world, 1));
        assert!(world.now.since(start) <= ms(13), "{:?}", world.now.since(start));
    }
}

#[test]
fn a_first_master_that_goes_silent_after_its_notification_is_not_waited_for() {
    let mut waited = Vec::new();
    for silent in 0..3 {
        let (mut world, ..) = held_and_awaited(3, ms(10_000), true);
        let push = format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n${}\r\n{KEY}\r\n", KEY.len());
        world.inject_to(1, silent, push.as_bytes());
        world.masters[silent].flow = Flow::Stopped;
        for free in (0..3).filter(|master| *master != silent) {
            delete_the_key(&mut world.masters[free]);
        }
        let start = world.now;
        world.pump();
        while world.nodes[1].events.is_empty() {
            assert!(world.jump());
        }
        waited.push(world.now.since(start));
        assert!(is_granted(&mut world, 1));
    }
    waited.sort_unstable();
    assert_eq!(waited, [Duration::ZERO, Duration::ZERO, REQUEST_TIMEOUT / 16]);
}

#[test]
fn one_master_that_stays_held_blocks_no_waiter() {
    for stuck in 0..3 {
        let (mut world, held, _) = held_and_awaited(3, ms(10_000), true);
        world.masters[stuck].hold_by_another(KEY, None);
        world.pump();
        let start = world.now;
        world.release(held);
        world.pump();
        while world.nodes[1].events.is_empty() {
            assert!(world.jump());
        }
        assert!(is_granted(&mut world, 1));
        assert!(world.now.since(start) <= ms(300), "{:?}", world.now.since(start));
    }
}

#[test]
fn a_master_without_a_notification_makes_a_quorum_with_one_that_reports_a_release() {
    for silent in 0..3 {
        let (stuck, freed) = ((silent + 1) % 3, (silent + 2) % 3);
        let mut world = World::of(3);
        let end = world.now + ms(60_000);
        for held in [stuck, freed] {
            world.masters[held].hold_by_another(KEY, Some(end));
        }
        world.masters[silent].flow = Flow::Stopped;
        world.acquire(&Acquire { timeout: None, ..wanted(ms(10_000)) });
        world.pass(ms(1_000));
        // The master is up again, and no client holds anything on it.
        world.masters[silent].flow = Flow::Free;
        world.pass(ms(3_000));
        assert!(world.nodes[0].events.is_empty());
        let start = world.now;
        delete_the_key(&mut world.masters[freed]);
        world.pump();
        while world.nodes[0].events.is_empty() {
            assert!(world.jump());
        }
        assert!(is_granted(&mut world, 0));
        assert!(world.now.since(start) <= ms(300), "{:?}", world.now.since(start));
    }
}

#[test]
fn a_lock_that_is_released_between_the_refusal_and_the_read_is_requested_at_once() {
    let mut world = World::of(3);
    let end = world.now + ms(60_000);
    world.each(|master| {
        master.hold_by_another(KEY, Some(end));
        master.flow = Flow::RepliesHeld;
    });
    world.acquire(&wanted(ms(10_000)));
    world.pump();
    world.each(|master| {
        delete_the_key(master);
        master.flow = Flow::Free;
    });
    let start = world.now;
    world.pump();
    while world.nodes[0].events.is_empty() {
        assert!(world.jump());
    }
    assert!(is_granted(&mut world, 0));
    assert!(world.now.since(start) <= ms(10), "{:?}", world.now.since(start));
}

#[test]
fn a_release_that_is_notified_before_the_round_is_lost_is_not_forgotten() {
    for stuck in 0..3 {
        let (taken, free) = ((stuck + 1) % 3, (stuck + 2) % 3);
        let mut world = World::of(3);
        let end = world.now + ms(60_000);
        world.each(|master| master.hold_by_another(KEY, Some(end)));
        world.acquire(&wanted(ms(10_000)));
        world.pump();
        delete_the_key(&mut world.masters[free]);
        delete_the_key(&mut world.masters[taken]);
        world.masters[taken].hold_by_another(KEY, Some(end));
        world.masters[stuck].flow = Flow::RepliesHeld;
        world.pump();
        // One master has granted the lock, and the refusal that decides is on its way.
        delete_the_key(&mut world.masters[taken]);
        world.pump();
        world.masters[stuck].flow = Flow::Free;
        let start = world.now;
        world.pump();
        while world.nodes[0].events.is_empty() {
            assert!(world.jump());
        }
        assert!(is_granted(&mut world, 0));
        assert!(world.now.since(start) <= ms(10), "{:?}", world.now.since(start));
    }
}

#[test]
fn a_first_master_that_reports_late_that_it_stays_held_blocks_no_waiter() {
    for stuck in 0..3 {
        let mut world = World::of(3);
        let end = world.now + ms(60_000);
        world.each(|master| master.hold_by_another(KEY, Some(end)));
        world.masters[stuck].flow = Flow::RepliesHeld;
        world.acquire(&wanted(ms(10_000)));
        world.pump();
        for free in (0..3).filter(|master| *master != stuck) {
            delete_the_key(&mut world.masters[free]);
        }
        world.pump();
        world.masters[stuck].flow = Flow::Free;
        let start = world.now;
        world.pump();
        while world.nodes[0].events.is_empty() {
            assert!(world.jump());
        }
        assert!(is_granted(&mut world, 0));
        assert!(world.now.since(start) <= ms(10), "{:?}", world.now.since(start));
    }
}

#[test]
fn a_lock_that_one_process_takes_repeatedly_is_not_watched() {
    let mut world = World::of(3);
    for _ in 0..100 {
        let lock = world.hold(&wanted(ms(10_000)));
        world.release(lock);
        world.pass(ms(1));
        world.events_now();
    }
    assert_eq!(world.masters[0].count("CLIENT"), GREETING);
}

#[test]
fn nothing_is_watched_when_no_caller_has_waited_for_a_while() {
    let (mut world, held, awaited) = held_and_awaited(3, ms(10_000), true);
    world.release(held);
    assert!(is_granted(&mut world, 1));
    let clients = world.masters[0].count("CLIENT");
    world.pass(ms(6_000));
    world.release_by(1, awaited);
    world.pump();
    assert_eq!(world.masters[0].count("CLIENT"), clients + 1);
    world.pass(ms(10));
    let (before, other) = (executed(&world), Acquire { attempts: Some(1), ..wanted(ms(10_000)) });
    let lock = world.acquire_by(1, &other);
    world.release_by(1, lock);
    world.pump();
    assert_eq!(executed(&world) - before, 2 * 3);
}

#[test]
fn endless_notifications_of_a_master_do_not_make_a_waiter_spin() {
    let (mut world, ..) = held_and_awaited(3, ms(60_000), true);
    let before = executed(&world);
    for _ in 0..100 {
        for master in 0..3 {
            let push = format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n${}\r\n{KEY}\r\n", KEY.len());
            world.inject_to(1, master, push.as_bytes());
        }
        world.pump();
    }
    assert!(executed(&world) - before <= 3 * 100 * 2, "{}", executed(&world) - before);
}
