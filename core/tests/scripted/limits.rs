//! Bounds, and the caller's mistakes.

use quorlock_core::{Acquire, AcquireError, Event, ExtendError, LossCause, Resource, Ttl};

use super::world::{Flow, World, ms, one_try, settings, wanted};

fn numbered(number: usize) -> Acquire {
    Acquire { targets: Resource::new(format!("job:{number}")).unwrap().into(), ..one_try() }
}

#[test]
fn too_many_requests_in_flight_are_refused_with_a_clear_error() {
    let builders = [settings(3).max_in_flight_requests(4), settings(3).max_in_flight_bytes(4 * 140)];
    for builder in builders {
        let mut world = World::ready(builder);
        world.each(|master| master.flow = Flow::RepliesHeld);
        for number in 0..10 {
            world.acquire(&numbered(number));
        }
        let events = world.events_now();
        let refused: Vec<_> = events
            .iter()
            .map(|event| match event {
                Event::NotAcquired { error: error @ AcquireError::NoQuorum(_), .. } => error.to_string(),
                event => panic!("{event:?}"),
            })
            .collect();
        assert!((4..=6).contains(&refused.len()), "{}", refused.len());
        assert!(refused[0].contains("a:6379 not asked: too many requests in flight"), "{}", refused[0]);
        world.each(|master| master.flow = Flow::Free);
        assert!(world.events_now().iter().all(|event| matches!(event, Event::Granted { .. })));
    }
}

#[test]
fn releases_that_found_no_room_are_sent_as_soon_as_there_is_some() {
    let mut world = World::ready(settings(3).max_in_flight_requests(2));
    let locks: Vec<_> = (0..6).map(|number| world.hold(&numbered(number))).collect();
    let now = world.now;
    world.each(|master| master.flow = Flow::RepliesHeld);
    for lock in locks {
        world.release(lock);
    }
    world.each(|master| master.flow = Flow::Free);
    world.pump();
    assert_eq!(world.now, now);
    assert!(world.masters.iter().all(|master| master.is_empty(world.now)));
}

#[test]
fn the_queue_for_a_connection_that_is_being_opened_is_bounded_too() {
    let mut world = World::cold(settings(3).max_in_flight_requests(4));
    for number in 0..10 {
        world.acquire(&numbered(number));
    }
    let refused = world.nodes[0].events.len();
    assert_eq!(refused, 6);
    world.nodes[0].events.clear();
    assert_eq!(world.events_now().len(), 4);
}

#[test]
fn more_locks_than_the_limit_are_refused_and_room_comes_back() {
    let mut world = World::ready(settings(3).max_locks(2));
    let first = world.hold(&numbered(1));
    world.hold(&numbered(2));
    let refused = world.nodes[0].machine.acquire(&numbered(3), world.now);
    assert_eq!(refused, Err(AcquireError::TooManyLocks { limit: 2 }));
    world.release(first);
    world.events_now();
    world.hold(&numbered(3));
}

#[test]
fn two_hundred_and_fifty_six_locks_share_one_connection_to_each_master() {
    let mut world = World::of(5);
    for number in 0..256 {
        world.acquire(&numbered(number));
    }
    let events = world.events_now();
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Granted { .. })).count(), 256);
    assert_eq!(world.nodes[0].opened, [1; 5]);
}

#[test]
fn the_callers_mistakes_are_errors_and_change_nothing() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    let valid_until = world.take(lock);
    let gone = world.hold(&numbered(1));
    world.release(gone);
    world.events_now();
    let (now, writes) = (world.now, world.nodes[0].writes.clone());
    let machine = &mut world.nodes[0].machine;
    let ttl = Ttl::new(ms(10_000)).unwrap();
    let short = Ttl::new(ms(52)).unwrap();

    assert_eq!(machine.extend(gone, ttl, now), Err(ExtendError::Lost(LossCause::Released)));
    assert!(matches!(machine.extend(lock, short, now), Err(ExtendError::Invalid(_))));
    assert!(matches!(
        machine.acquire(&Acquire { ttl: short, ..one_try() }, now),
        Err(AcquireError::Invalid(_))
    ));
    assert_eq!(machine.take(gone, now), None);
    machine.release(gone, now);
    machine.cancel(gone, now);
    assert_eq!(machine.token(gone), None);
    world.drain(0);

    assert_eq!(world.events_now(), []);
    assert_eq!(world.nodes[0].writes, writes);
    assert_eq!(world.take(lock), valid_until);
}

#[test]
fn a_lock_that_is_released_twice_is_released_once() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    world.each(|master| master.delay = ms(10));
    world.release(lock);
    world.release(lock);
    assert!(matches!(world.next_event(), Event::Released { .. }));
    world.release(lock);
    world.pass(ms(100));
    assert_eq!(world.events_now(), []);
    assert_eq!(world.masters[0].count("RELEASE"), 1);
}

#[test]
fn queued_requests_meet_the_bound_on_bytes_when_the_connection_opens() {
    let mut world = World::cold(settings(1).max_in_flight_bytes(4 * 140));
    for number in 0..20 {
        world.acquire(&numbered(number));
    }
    let events = world.events_now();
    let granted = events.iter().filter(|event| matches!(event, Event::Granted { .. })).count();
    assert!((4..=6).contains(&granted), "{granted} granted");
    let refused: Vec<_> = events.iter().filter(|event| matches!(event, Event::NotAcquired { .. })).collect();
    assert_eq!(granted + refused.len(), 20);
    assert!(format!("{:?}", refused[0]).contains("too many requests in flight"), "{:?}", refused[0]);
}

#[test]
fn releases_that_are_owed_meet_the_bound_too_and_all_are_sent_in_the_end() {
    let mut world = World::ready(settings(1).max_in_flight_requests(8).max_in_flight_bytes(2 * 140));
    let locks: Vec<_> = (0..8).map(|number| world.hold(&numbered(number))).collect();
    world.masters[0].reach = super::world::Reach::Refuses;
    world.cut(0, 0);
    world.pump();
    for lock in locks {
        world.release(lock);
    }
    world.masters[0].reach = super::world::Reach::Accepts;
    world.masters[0].flow = Flow::RepliesHeld;
    world.pass(ms(100));
    while world.deliver(0, 0) && world.masters[0].count("RELEASE") == 0 {}
    assert!((1..=5).contains(&world.masters[0].count("RELEASE")), "{}", world.masters[0].count("RELEASE"));
    world.masters[0].flow = Flow::Free;
    world.pump();
    assert!(world.masters[0].is_empty(world.now));
}

#[test]
fn a_lock_cancelled_after_its_last_event_keeps_its_number_until_the_event_is_taken() {
    let mut world = World::of(3);
    world.each(|master| master.reach = super::world::Reach::Refuses);
    for master in 0..3 {
        world.cut(0, master);
    }
    world.pump();
    let now = world.now;
    let machine = &mut world.nodes[0].machine;
    // All masters are known to be down, so it ends at once; the event has not been taken yet.
    let first = machine.acquire(&one_try(), now).unwrap();
    machine.cancel(first, now);
    let second = machine.acquire(&wanted(ms(10_000)), now).unwrap();
    assert_ne!(first.index(), second.index());
}

#[test]
fn thousands_of_locks_that_come_and_go_leave_the_deadlines_of_the_others_as_they_were() {
    let mut world = World::of(3);
    world.masters[2].reach = super::world::Reach::Refuses;
    world.cut(0, 2);
    world.pass(ms(1_000));
    let start = world.now;
    let lock = world.hold(&wanted(ms(10_000)));
    for number in 0..1_000 {
        let lock = world.hold(&numbered(number));
        world.release(lock);
        world.events_now();
        world.now = world.now + std::time::Duration::from_micros(1);
    }
    world.masters[2].reach = super::world::Reach::Accepts;
    world.pass(ms(2_500));
    let (_, state) = world.nodes[0].machine.masters().last().unwrap();
    assert!(matches!(state, quorlock_core::MasterState::Ready { .. }), "{state:?}");
    assert!(matches!(world.next_event(), Event::Lost { lock: lost, .. } if lost == lock));
    assert_eq!(world.now, start + ms(10_000 - 102 - 2));
}
