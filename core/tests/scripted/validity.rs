//! How long a grant may be relied on.

use std::time::Duration;

use quorlock_core::{AcquireError, Event, Instant, LossCause, Ttl};

use super::world::{Flow, World, ms, one_try, settings, wanted};

fn validity(ttl: Duration) -> Duration {
    ttl - ttl / 100 - ms(2)
}

#[test]
fn validity_counts_from_before_the_first_send_and_not_from_the_reply() {
    let mut world = World::of(3);
    world.each(|master| master.delay = ms(40));
    let start = world.now;
    world.acquire(&one_try());
    let event = world.next_event();
    let Event::Granted { valid_until, .. } = event else { panic!("{event:?}") };
    assert_eq!(world.now, start + ms(40));
    assert_eq!(valid_until, start + validity(ms(10_000)));
}

#[test]
fn the_wait_for_a_connection_counts_as_elapsed_too() {
    let mut world = World::cold(settings(3));
    let start = world.now;
    world.acquire(&one_try());
    world.suspend(ms(200));
    let event = world.next_event();
    assert!(
        matches!(event, Event::Granted { valid_until, .. } if valid_until == start + validity(ms(10_000)))
    );
}

#[test]
fn a_quorum_after_the_end_of_validity_is_not_a_grant_and_is_undone() {
    let mut world = World::of(3);
    world.each(|master| master.flow = Flow::RepliesHeld);
    world.acquire(&Acquire1::short());
    world.suspend(ms(199));
    for master in 0..3 {
        world.deliver(0, master);
    }
    world.each(|master| master.flow = Flow::Free);
    let error = world.refusal();
    assert!(matches!(error, AcquireError::TooLate(_)), "{error}");
    world.pump();
    assert!(world.holders().is_empty());
    assert!(world.masters.iter().all(|master| master.count("UNDO") == 1));
}

/// One try with a TTL of 200 ms.
struct Acquire1;

impl Acquire1 {
    fn short() -> quorlock_core::Acquire {
        quorlock_core::Acquire { attempts: Some(1), timeout: None, ..wanted(ms(200)) }
    }
}

#[test]
fn all_masters_stopped_for_longer_than_the_ttl_give_no_guard() {
    let mut world = World::of(3);
    world.each(|master| master.flow = Flow::Stopped);
    world.acquire(&quorlock_core::Acquire { attempts: None, ..wanted(ms(200)) });
    world.pass(ms(1_000));
    world.each(|master| master.flow = Flow::Free);
    let event = world.next_event();
    let Event::Granted { lock, valid_until } = event else { panic!("{event:?}") };
    assert!(valid_until <= world.now + validity(ms(200)));
    let token = world.expose(lock);
    let keeps = |world: &World| {
        world.masters.iter().filter(|m| m.value("invoice:42", world.now) == Some(&token)).count()
    };
    assert!(keeps(&world) >= 2, "the guard has its own keys, not those of an attempt that was stopped");
}

#[test]
fn validity_is_checked_again_when_the_grant_is_taken() {
    let mut world = World::of(3);
    let lock = world.acquire(&Acquire1::short());
    assert!(matches!(world.events_now()[..], [Event::Granted { .. }]));
    world.suspend(ms(195));
    assert_eq!(world.take(lock), None);
    let error = world.refusal();
    assert!(matches!(error, AcquireError::TooLate(_)), "{error}");
    world.pump();
    assert!(world.holders().is_empty());
}

#[test]
fn a_grant_that_was_not_taken_in_time_is_requested_again_with_another_token() {
    let mut world = World::of(3);
    let lock = world.acquire(&quorlock_core::Acquire { timeout: None, ..wanted(ms(200)) });
    let first = world.expose(lock);
    assert!(matches!(world.events_now()[..], [Event::Granted { .. }]));
    assert!(matches!(world.next_event(), Event::Granted { .. }));
    assert_ne!(world.expose(lock), first);
    assert!(world.take(lock).is_some());
}

#[test]
fn a_grant_that_was_not_taken_names_only_the_masters_that_granted_it() {
    let mut world = World::of(3);
    world.masters[2].flow = Flow::Stopped;
    world.acquire(&Acquire1::short());
    assert!(matches!(world.next_event(), Event::Granted { .. }));
    let error = world.refusal();
    let AcquireError::TooLate(ballot) = &error else { panic!("{error}") };
    assert_eq!(ballot.granted(), 2, "{error}");
}

#[test]
fn a_loss_is_reported_no_later_than_the_end_of_validity() {
    let mut world = World::of(3);
    world.acquire(&wanted(ms(1_000)));
    let event = world.next_event();
    let Event::Granted { lock, valid_until } = event else { panic!("{event:?}") };
    world.take(lock);
    assert_eq!(world.next_event(), Event::Lost { lock, cause: LossCause::Expired });
    assert!(world.now <= valid_until);
    assert!(world.now + ms(3) >= valid_until, "and not much earlier either");
    world.pump();
    assert!(world.holders().is_empty(), "what is left is cleared away");
}

#[test]
fn after_a_suspension_the_first_clock_reading_reports_the_loss() {
    let mut world = World::of(3);
    let lock = world.hold(&quorlock_core::Acquire { renew_for: Some(ms(60_000)), ..wanted(ms(1_000)) });
    world.suspend(ms(5_000));
    world.wake_the_due();
    assert_eq!(world.next_event(), Event::Lost { lock, cause: LossCause::Expired });
}

#[test]
fn the_longest_and_the_shortest_ttl_never_underflow_or_overflow() {
    for ttl in [Ttl::MAX, ms(55)] {
        let mut world = World::of(3);
        let start = world.now;
        world.acquire(&quorlock_core::Acquire { timeout: Some(Duration::MAX), ..wanted(ttl) });
        let event = world.next_event();
        let Event::Granted { valid_until, .. } = event else { panic!("{event:?}") };
        assert_eq!(valid_until.since(start), validity(ttl));
    }
    for millis in 1..100 {
        let sent = Instant::from_nanos(7);
        let end = Ttl::new(ms(millis)).unwrap().valid_until(sent);
        assert!(end >= sent && end.since(sent) < ms(millis));
    }
}
