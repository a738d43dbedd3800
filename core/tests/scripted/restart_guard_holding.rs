//! Held locks under the restart guard: extension and healing on masters that may have forgotten
//! locks, or have copies of other masters' keys.

use std::time::Duration;

use quorlock_core::{Acquire, Event, ExtendError, Instant, LockId, Target, Ttl};

use super::restart_guard::{LONGEST, guarded, lock, open, restart};
use super::world::{Flow, KEY, Reach, World, ms, wanted};

/// It may have lost a vote for another client, which then gets the lock from the silent master when
/// the key there has expired.
#[test]
fn a_master_that_has_become_a_replica_of_another_one_does_not_extend_its_copy() {
    let config = guarded(3).build().unwrap();
    let several = config.targets(["order:7", "stock:3"].map(Target::write)).unwrap();
    let read = config.targets([Target::read("tariff")]).unwrap();
    let ttl = Ttl::new(ms(3_000)).unwrap();
    let claims = [several, read].map(|targets| Acquire { attempts: Some(1), ..Acquire::new(targets, ttl) });
    for wanted in claims.into_iter().chain([lock(), Acquire { fenced: true, ..lock() }]) {
        let mut world = open(3);
        let held = world.hold(&wanted);
        world.pass(ms(2_000));
        world.masters[1].flow = Flow::Stopped;
        world.masters[2].flow = Flow::Stopped;
        world.extend(held, ms(3_000));
        world.pump();
        let primary = world.masters[0].server.clone();
        world.masters[2].server.resync_from(&primary);
        world.masters[2].flow = Flow::Free;
        let event = world.next_event();
        assert!(matches!(event, Event::Extended { result: Err(ExtendError::NoQuorum(_)), .. }), "{event:?}");
    }
}

/// Lets one master answer what it has got from a client so far.
fn answers(world: &mut World, node: usize, master: usize) {
    world.serve(node, master);
    while world.deliver(node, master) {}
}

/// A guarded world of two clients, in which masters answer only when they are told to.
fn two_clients() -> World {
    let mut world = World::ready(guarded(3));
    world.add_node(guarded(3).request_timeout(ms(200)).build().unwrap(), 2);
    world.pass(LONGEST);
    world
}

#[test]
fn a_key_that_was_restored_in_the_quarantine_does_not_count_before_its_end() {
    for fenced in [false, true] {
        let mut world = two_clients();
        world.each(|master| master.flow = Flow::Stopped);
        // Only master 0 executes the request of the other client, which has a longer TTL.
        world.acquire_by(1, &Acquire { fenced, ..wanted(ms(5_000)) });
        answers(&mut world, 1, 0);
        let held = world.acquire(&Acquire { healing: true, fenced, ..wanted(ms(600)) });
        for master in [0, 1, 2, 1, 2] {
            answers(&mut world, 0, master);
        }
        assert!(world.take(held).is_some());
        world.masters[0].forget_keys();
        world.extend(held, ms(600));
        for master in [1, 2, 0, 0] {
            answers(&mut world, 0, master);
        }
        assert_eq!(world.holders(), [0, 1, 2], "it is restored");
        world.suspend(ms(300));
        world.nodes[0].events.clear();
        world.extend(held, ms(600));
        answers(&mut world, 0, 0);
        answers(&mut world, 0, 1);
        // The key on master 2 expires, and the other client gets its vote: else both would hold it.
        world.suspend(ms(301));
        let events = &world.nodes[0].events;
        let extended = |(_, event): &(_, Event)| matches!(event, Event::Extended { result: Ok(_), .. });
        assert!(!events.iter().any(extended), "{events:?}");
        for master in [2, 0, 2] {
            answers(&mut world, 1, master);
        }
        let granted = |(_, event): &(_, Event)| matches!(event, Event::Granted { .. });
        assert!(fenced || world.nodes[1].events.iter().any(granted), "{:?}", world.nodes[1].events);
    }
}

#[test]
fn a_key_that_was_restored_in_the_quarantine_counts_after_its_end() {
    let mut world = open(3);
    restart(&mut world, 0, false);
    let held = world.hold(&Acquire { renew_for: Some(ms(60_000)), healing: true, ..lock() });
    assert_eq!(world.holders(), [1, 2]);
    world.pass(ms(3_000));
    assert_eq!(world.holders(), [0, 1, 2], "it is restored in the quarantine");
    world.pass(LONGEST);
    world.masters[1].flow = Flow::Stopped;
    world.pass(ms(6_000));
    assert!(!world.events_now().iter().any(|event| matches!(event, Event::Lost { .. })));
    world.release(held);
}

#[test]
fn the_copy_of_a_key_does_not_count_on_a_promoted_server() {
    for fenced in [false, true] {
        let mut world = two_clients();
        let held = world.hold(&Acquire { fenced, ..lock() });
        let now = world.now.since(Instant::ORIGIN);
        world.suspend(ms(2_000));
        // The key has expired on a master that the holder has not reached for long.
        world.masters[2].server.remove(0, KEY.as_bytes(), now);
        world.nodes[0].events.clear();
        for _ in 0..2 {
            world.masters[2].flow = Flow::Stopped;
            world.extend(held, ms(3_000));
            assert!(matches!(world.next_event(), Event::Extended { result: Ok(_), .. }));
            world.suspend(ms(1_500));
        }
        world.each(|master| master.flow = Flow::Stopped);
        let primary = world.masters[0].server.clone();
        world.masters[2].server.resync_from(&primary);
        world.masters[2].server.promote();
        world.extend(held, ms(3_000));
        for master in [0, 2, 2, 2] {
            answers(&mut world, 0, master);
        }
        let events = &world.nodes[0].events;
        let extended = |(_, event): &(_, Event)| matches!(event, Event::Extended { result: Ok(_), .. });
        assert!(!events.iter().any(extended), "{events:?}");
    }
}

#[test]
fn held_locks_continue_while_masters_are_quarantined() {
    let mut world = open(5);
    let held = world.hold(&Acquire { renew_for: Some(ms(60_000)), healing: true, ..lock() });
    for master in 0..5 {
        restart(&mut world, master, false);
        world.pass(ms(2_100));
        assert_eq!(world.holders().len(), 5, "master {master}");
    }
    assert!(!world.events_now().iter().any(|event| matches!(event, Event::Lost { .. })));
    world.release(held);
    assert!(matches!(world.next_event(), Event::Released { .. }));
}

/// Its answers come when the quorum has already confirmed the extension.
#[test]
fn the_slowest_master_counts_in_a_quarantine_like_the_others() {
    for healing in [false, true] {
        let mut world = open(3);
        world.masters[2].delay = ms(5);
        let held = world.hold(&Acquire { renew_for: Some(ms(60_000)), healing, ..lock() });
        world.pass(ms(6_000));
        // It was restarted with its data, so its key was never missing.
        restart(&mut world, 2, true);
        world.pass(ms(1_200));
        world.masters[1].reach = Reach::Refuses;
        world.cut(0, 1);
        world.pass(ms(3_500));
        assert!(!world.events_now().iter().any(|event| matches!(event, Event::Lost { .. })));
        world.release(held);
    }
}

/// What a master has last said yes to.
#[derive(Clone, Copy, Debug)]
enum SaidYes {
    /// To the acquisition, as one of the quorum.
    AsOneOfTheQuorum,
    /// To the acquisition, after the others had granted the lock.
    Late,
    /// To an extension, as one of the quorum.
    Extended,
    /// To an extension, after the others had confirmed it.
    ExtendedLate,
}

/// Three masters, of which the last one says yes for the last time. Returns when it was asked, and
/// for which TTL.
fn said_yes(said: SaidYes, slow: Duration) -> (World, LockId, Instant, Duration) {
    let mut world = open(3);
    let is_late = matches!(said, SaidYes::Late | SaidYes::ExtendedLate);
    let slow_down = |world: &mut World| {
        world.masters[2].delay = slow;
        if !is_late {
            // The others answer after it, so it is one of the quorum.
            world.masters[1].delay = slow;
            world.masters[0].delay = slow + ms(1);
        }
    };
    if matches!(said, SaidYes::AsOneOfTheQuorum | SaidYes::Late) {
        slow_down(&mut world);
    }
    let (mut asked_at, mut ttl) = (world.now, ms(3_000));
    let held = world.hold(&lock());
    if matches!(said, SaidYes::Extended | SaidYes::ExtendedLate) {
        world.pass(ms(1_000));
        slow_down(&mut world);
        // Longer than the TTL of the lock itself.
        (asked_at, ttl) = (world.now, ms(4_000));
        world.extend(held, ttl);
    }
    world.pass(slow + ms(1));
    world.each(|master| master.delay = Duration::ZERO);
    (world, held, asked_at, ttl)
}

/// Whether an extension is confirmed at this instant by two masters, of which one is quarantined
/// and has had the key without a gap.
fn is_confirmed_at(world: &mut World, held: LockId, at: Instant) -> bool {
    // The other two keep the lock valid meanwhile.
    world.cut(0, 2);
    world.masters[2].reach = Reach::Refuses;
    world.masters[2].server.restart(102, |_| true);
    world.pass(ms(1_500));
    world.extend(held, ms(5_000));
    world.pass(ms(10));
    world.masters[2].reach = Reach::Accepts;
    world.pass(at.since(world.now));
    assert!(world.holders().contains(&2), "its key has not expired");
    world.masters[1].flow = Flow::Stopped;
    world.events_now();
    world.extend(held, ms(5_000));
    world.events_now().iter().any(|event| matches!(event, Event::Extended { result: Ok(_), .. }))
}

/// Its marker is gone until the quarantine ends, and so nothing but the time tells whether it may
/// have voted for another client in between.
#[test]
fn a_quarantined_master_counts_until_the_ttl_less_drift_has_passed_since_its_last_yes_was_asked_for() {
    use SaidYes::{AsOneOfTheQuorum, Extended, ExtendedLate, Late};
    for said in [AsOneOfTheQuorum, Late, Extended, ExtendedLate] {
        for slow in [ms(0), ms(1), ms(20)] {
            for (early, counts) in [(ms(1), true), (Duration::from_nanos(1), true), (ms(0), false)] {
                let (mut world, held, asked_at, ttl) = said_yes(said, slow);
                let end = asked_at + (ttl - ttl / 100 - ms(2));
                let confirmed = is_confirmed_at(&mut world, held, end - early);
                assert_eq!(confirmed, counts, "{said:?}, {slow:?} later, {early:?} before the end");
            }
        }
    }
}

#[test]
fn a_master_that_hangs_does_not_keep_extensions_from_being_made() {
    let mut world = open(3);
    let held = world.hold(&lock());
    world.masters[2].flow = Flow::Stopped;
    for _ in 0..20 {
        world.extend(held, ms(3_000));
        assert!(matches!(world.next_event(), Event::Extended { result: Ok(_), .. }));
    }
    world.release(held);
}
