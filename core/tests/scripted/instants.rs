//! The exact instants at which decisions change, tested a nanosecond before and at them.

use std::time::Duration;

use quorlock_core::{Acquire, Event, ExtendError, Instant, LossCause};

use super::world::{Flow, World, ms, wanted};

/// How long before the end of validity a loss is reported. No holder gets less.
const NOTICE: Duration = ms(2);
const NANO: Duration = Duration::from_nanos(1);

fn one_try(ttl: Duration) -> Acquire {
    Acquire { attempts: Some(1), timeout: None, ..wanted(ttl) }
}

/// The end of validity of a lock that was first asked for at `start`.
fn end(start: Instant, ttl: Duration) -> Instant {
    start + (ttl - ttl / 100 - ms(2))
}

#[test]
fn a_quorum_is_a_grant_until_the_notice_before_the_end_and_not_afterwards() {
    for (early, granted) in [(NANO, true), (Duration::ZERO, false)] {
        let mut world = World::of(3);
        let end = end(world.now, ms(200));
        world.each(|master| master.flow = Flow::RepliesHeld);
        world.acquire(&one_try(ms(200)));
        world.pump();
        world.now = end - NOTICE - early;
        world.deliver(0, 0);
        world.deliver(0, 1);
        let told = world.nodes[0].events.pop_front();
        assert_eq!(matches!(told, Some((_, Event::Granted { .. }))), granted, "{early:?}: {told:?}");
    }
}

#[test]
fn a_grant_is_taken_up_to_the_notice_before_its_end_and_not_from_then_on() {
    for (early, taken) in [(NANO, true), (Duration::ZERO, false)] {
        let mut world = World::of(3);
        let end = end(world.now, ms(200));
        let lock = world.acquire(&one_try(ms(200)));
        world.events_now();
        world.now = end - NOTICE - early;
        assert_eq!(world.take(lock), taken.then_some(end), "{early:?}");
    }
}

#[test]
fn an_extension_counts_up_to_the_notice_before_the_end_and_not_from_then_on() {
    for (early, counts) in [(NANO, true), (Duration::ZERO, false)] {
        let mut world = World::of(3);
        let lost_at = end(world.now, ms(1_000)) - NOTICE;
        let lock = world.hold(&wanted(ms(1_000)));
        world.pass(ms(900));
        world.each(|master| master.flow = Flow::RepliesHeld);
        let sent = world.now;
        let extension = world.extend(lock, ms(5_000));
        world.pump();
        world.now = lost_at - early;
        world.deliver(0, 0);
        world.deliver(0, 1);
        let told: Vec<_> = world.nodes[0].events.drain(..).map(|(_, event)| event).collect();
        let cause = LossCause::Expired;
        let expected = if counts {
            vec![Event::Extended { lock, extension, result: Ok(end(sent, ms(5_000))) }]
        } else {
            let result = Err(ExtendError::Lost(cause));
            vec![Event::Lost { lock, cause }, Event::Extended { lock, extension, result }]
        };
        assert_eq!(told, expected, "{early:?}");
    }
}

#[test]
fn a_loss_is_reported_at_the_notice_before_the_end_and_not_earlier() {
    let mut world = World::of(3);
    let end = end(world.now, ms(1_000));
    let lock = world.hold(&wanted(ms(1_000)));
    world.now = end - NOTICE - NANO;
    world.nodes[0].machine.time_passed(world.now);
    world.drain(0);
    assert_eq!(world.events_now(), []);
    assert_eq!(world.next_event(), Event::Lost { lock, cause: LossCause::Expired });
    assert_eq!(world.now, end - NOTICE);
}

#[test]
fn a_machine_holds_locks_from_a_grant_to_its_end() {
    let mut world = World::of(3);
    let holds = |world: &World| world.nodes[0].machine.holds_locks();
    world.each(|master| master.flow = Flow::RepliesHeld);
    let first = world.acquire(&wanted(ms(1_000)));
    assert!(!holds(&world));
    world.each(|master| master.flow = Flow::Free);
    world.pump();
    assert!(holds(&world));
    world.release(first);
    assert!(!holds(&world));
    world.events_now();
    let second = world.hold(&wanted(ms(1_000)));
    assert!(holds(&world));
    assert_eq!(world.next_event(), Event::Lost { lock: second, cause: LossCause::Expired });
    assert!(!holds(&world));
}
