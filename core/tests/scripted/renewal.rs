//! Renewal in the background: when, how often, and until when.

use quorlock_core::{Acquire, AcquireError, Event, LossCause, Resource, Ttl};

use super::world::{Flow, KEY, World, ms, wanted};

fn renewed_for(ttl: u64, longest: u64) -> Acquire {
    Acquire { renew_for: Some(ms(longest)), ..wanted(ms(ttl)) }
}

#[test]
fn renewal_comes_at_a_third_of_the_ttl_or_a_little_earlier_and_not_in_step() {
    let mut pauses = Vec::new();
    for seed in 0..10 {
        let mut world = World::of(3);
        world.add_node(super::world::settings(3).build().unwrap(), seed + 10);
        world.pump();
        world.nodes.remove(0);
        world.hold(&renewed_for(3_000, 60_000));
        let mut last = world.now;
        for _ in 0..5 {
            assert!(matches!(world.next_event(), Event::Renewed { .. }));
            pauses.push(world.now.since(last));
            last = world.now;
        }
    }
    assert!(pauses.iter().all(|pause| (ms(900)..=ms(1_000)).contains(pause)), "{pauses:?}");
    assert!(pauses.windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn many_held_locks_are_renewed_with_few_wake_ups() {
    let mut world = World::of(3);
    for lock in 0..200 {
        let resource = Resource::new(format!("lock-{lock}")).unwrap();
        let ttl = Ttl::new(ms(6_000)).unwrap();
        world.hold(&Acquire { renew_for: Some(ms(60_000)), ..Acquire::new(resource, ttl) });
    }
    let wakes = world.nodes[0].wakes;
    world.pass(ms(2_000));
    assert_eq!(world.masters[0].count("EXTEND"), 200);
    let wakes = world.nodes[0].wakes - wakes;
    // Two hundred renewals in 200 ms, in steps of 4 ms.
    assert!(wakes <= 60, "{wakes} wake-ups");
}

#[test]
fn renewal_stops_with_the_release() {
    let mut world = World::of(3);
    let lock = world.hold(&renewed_for(1_000, 60_000));
    world.pass(ms(2_000));
    world.release(lock);
    world.pump();
    let renewals = world.masters[0].count("EXTEND");
    let wakes = world.nodes[0].wakes;
    world.pass(ms(60_000));
    assert_eq!(world.masters[0].count("EXTEND"), renewals);
    assert!(world.nodes[0].wakes <= wakes + 3, "{} wake-ups after the release", world.nodes[0].wakes - wakes);
    assert_eq!(world.nodes[0].wake, None);
}

#[test]
fn after_renewal_is_stopped_no_extension_starts_but_one_under_way_still_counts() {
    let mut world = World::of(3);
    let lock = world.hold(&renewed_for(3_000, 60_000));
    world.each(|master| master.flow = Flow::RepliesHeld);
    while world.masters[0].count("EXTEND") == 0 {
        assert!(world.jump());
    }
    let (machine, now) = (&mut world.nodes[0].machine, world.now);
    machine.stop_renewal(lock, now);
    world.drain(0);
    world.each(|master| master.flow = Flow::Free);
    assert!(matches!(world.events_now()[..], [Event::Renewed { .. }]));
    assert_eq!(world.next_event(), Event::Lost { lock, cause: LossCause::Expired });
    assert_eq!(world.masters[0].count("EXTEND"), 1);
}

#[test]
fn renewal_ends_with_the_longest_hold_and_the_guard_one_ttl_later_at_most() {
    let mut world = World::of(3);
    let start = world.now;
    let lock = world.hold(&renewed_for(1_000, 5_000));
    loop {
        match world.next_event() {
            Event::Renewed { .. } => assert!(world.now.since(start) <= ms(5_000)),
            Event::Lost { cause, .. } => {
                assert_eq!(cause, LossCause::Expired);
                break;
            }
            event => panic!("{event:?}"),
        }
    }
    assert!(world.now.since(start) > ms(5_000) && world.now.since(start) <= ms(6_000));
    world.release(lock);
}

#[test]
fn renewals_that_fail_are_tried_again_but_never_in_a_tight_loop() {
    // Fault 14: 27,000 scripts in 2 s at a TTL of 1 s.
    for error in ["MISCONF Redis is configured to save RDB snapshots", "NOPERM this user has no permissions"]
    {
        let mut world = World::of(3);
        world.each(|master| master.fails("EXTEND", error));
        let lock = world.hold(&renewed_for(1_000, 60_000));
        let start = world.now;
        assert_eq!(world.next_event(), Event::Lost { lock, cause: LossCause::Expired });
        assert!(world.now.since(start) <= ms(988));
        let scripts = world.masters[0].count("EXTEND");
        assert!((3..=20).contains(&scripts), "{scripts} scripts");
        assert!(world.nodes[0].wakes < 60);
    }
}

#[test]
fn failed_renewals_are_spread_between_a_twentieth_and_a_sixteenth_of_the_ttl() {
    let mut world = World::of(3);
    world.each(|master| master.fails("EXTEND", "MISCONF Redis is configured to save RDB snapshots"));
    world.hold(&renewed_for(1_600, 60_000));
    assert!(matches!(world.next_event(), Event::Lost { .. }));
    let tries: Vec<_> = world.masters[0].executed.iter().filter(|(_, name, _)| *name == "EXTEND").collect();
    let pauses: Vec<_> = tries.windows(2).map(|pair| pair[1].0.since(pair[0].0)).collect();
    assert!(pauses.len() > 3 && pauses.iter().all(|pause| (ms(80)..=ms(100)).contains(pause)), "{pauses:?}");
    assert!(pauses.windows(2).any(|pair| pair[0] != pair[1]), "{pauses:?}");
}

#[test]
fn renewal_waits_for_room_but_not_for_the_extensions_of_callers() {
    for (extensions, renewals) in [(1, 1), (7, 1), (8, 0)] {
        let mut world = World::ready(super::world::settings(3).request_timeout(ms(500)));
        let lock = world.hold(&renewed_for(3_000, 60_000));
        world.pass(ms(890));
        world.each(|master| master.flow = Flow::RepliesHeld);
        for _ in 0..extensions {
            world.extend(lock, ms(3_000));
        }
        world.pass(ms(120));
        assert_eq!(world.masters[0].count("EXTEND"), extensions + renewals);
        // The renewal is sent as soon as there is room.
        world.each(|master| master.flow = Flow::Free);
        world.pass(ms(1));
        assert_eq!(world.masters[0].count("EXTEND"), extensions + 1);
    }
}

#[test]
fn renewal_of_a_lock_whose_masters_are_down_neither_spins_nor_outlives_it() {
    let mut world = World::of(3);
    let lock = world.hold(&renewed_for(1_000, 60_000));
    world.each(|master| master.reach = super::world::Reach::Refuses);
    for master in 0..3 {
        world.cut(0, master);
    }
    assert_eq!(world.next_event(), Event::Lost { lock, cause: LossCause::Expired });
    assert!(world.nodes[0].wakes < 100, "{} wake-ups", world.nodes[0].wakes);
}

#[test]
fn a_renewal_that_succeeds_after_failures_keeps_the_guard() {
    let mut world = World::of(3);
    let lock = world.hold(&renewed_for(1_000, 60_000));
    world.each(|master| master.flow = Flow::Stopped);
    world.pass(ms(800));
    world.each(|master| master.flow = Flow::Free);
    assert!(matches!(world.next_event(), Event::Renewed { .. }));
    world.pass(ms(5_000));
    world.release(lock);
    assert!(world.nodes[0].events.iter().all(|(_, event)| matches!(event, Event::Renewed { .. })));
}

#[test]
fn renewal_that_meets_another_holder_reports_the_loss_at_once() {
    let mut world = World::of(3);
    let lock = world.hold(&renewed_for(3_000, 60_000));
    for master in 1..3 {
        world.masters[master].forget_keys();
        world.masters[master].hold_by_another(KEY, None);
    }
    let start = world.now;
    assert_eq!(world.next_event(), Event::Lost { lock, cause: LossCause::NotHeld });
    assert!(world.now.since(start) <= ms(1_000));
}

#[test]
fn a_grant_that_was_not_taken_and_that_masters_lost_is_requested_again() {
    let mut world = World::of(3);
    let lock = world.acquire(&renewed_for(3_000, 60_000));
    assert!(matches!(world.next_event(), Event::Granted { .. }));
    world.each(|master| master.forget_keys());
    let event = world.next_event();
    assert!(matches!(event, Event::Granted { .. }), "{event:?}");
    assert!(world.take(lock).is_some());
}

#[test]
fn a_grant_that_was_not_taken_and_that_masters_lost_ends_with_their_answers() {
    let mut world = World::of(3);
    world.acquire(&Acquire { attempts: Some(1), ..renewed_for(3_000, 60_000) });
    assert!(matches!(world.next_event(), Event::Granted { .. }));
    world.each(|master| master.forget_keys());
    let error = world.refusal();
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
}
