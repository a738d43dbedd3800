//! Extensions: which votes count, that nothing is shortened, and what ends a guard.

use quorlock_core::{Acquire, Event, ExtendError, LossCause, ReleaseOutcome};

use super::world::{Flow, KEY, World, ms, settings, wanted};

fn extended(event: &Event) -> bool {
    matches!(event, Event::Extended { result: Ok(_), .. })
}

fn no_quorum(event: &Event) -> bool {
    matches!(event, Event::Extended { result: Err(ExtendError::NoQuorum(_)), .. })
}

/// Five masters of which three hold the lock.
fn held_on_three_of_five() -> (World, quorlock_core::LockId) {
    let mut world = World::of(5);
    for master in 3..5 {
        world.masters[master].fails("SET", "OOM command not allowed when used memory > 'maxmemory'.");
    }
    let lock = world.hold(&wanted(ms(10_000)));
    world.each(|master| master.server.clear_failures());
    assert_eq!(world.holders(), [0, 1, 2]);
    (world, lock)
}

#[test]
fn an_extension_moves_the_end_and_counts_from_before_its_first_send() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(1_000)));
    world.pass(ms(500));
    world.each(|master| master.delay = ms(30));
    let sent = world.now;
    let id = world.extend(lock, ms(1_000));
    let result = Ok(sent + ms(988));
    assert_eq!(world.next_event(), Event::Extended { lock, extension: id, result });
}

#[test]
fn the_keys_are_extended_by_as_much_as_the_guard_counts_on() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    world.pass(ms(100));
    let sent = world.now;
    world.extend(lock, ms(60_000));
    assert!(extended(&world.next_event()));
    assert!(world.masters.iter().all(|master| master.end(KEY, sent) == Some(sent + ms(60_000))));
}

#[test]
fn an_extension_needs_a_quorum_of_all_masters_and_not_of_those_that_granted() {
    // Fault 9: two of the three that granted are a majority of three and no majority of five.
    let (mut world, lock) = held_on_three_of_five();
    world.masters[2].forget_keys();
    world.extend(lock, ms(10_000));
    assert_eq!(world.events_now()[0], Event::Lost { lock, cause: LossCause::NotHeld });
}

#[test]
fn an_extension_never_recreates_a_key() {
    let (mut world, lock) = held_on_three_of_five();
    world.masters[0].forget_keys();
    world.masters[1].flow = Flow::Stopped;
    world.extend(lock, ms(10_000));
    world.next_event();
    assert!(!world.holders().contains(&0));
    assert_eq!(world.masters[0].count("SET"), 1);
}

#[test]
fn a_shorter_extension_that_reaches_one_of_five_masters_admits_no_second_holder() {
    let (mut world, lock) = held_on_three_of_five();
    world.add_node(settings(5).build().unwrap(), 2);
    world.pump();
    for master in 1..5 {
        world.masters[master].flow = Flow::Stopped;
    }
    world.extend(lock, ms(100));
    let event = world.next_event();
    assert!(no_quorum(&event), "{event:?}");
    world.each(|master| master.flow = Flow::Free);
    world.acquire_by(1, &Acquire { timeout: Some(ms(3_000)), ..wanted(ms(1_000)) });
    let event = world.next_event_of(1);
    assert!(matches!(event, Event::NotAcquired { .. }), "{event:?}");
    assert!(world.holders().len() >= 3);
    assert!(world.nodes[0].events.is_empty(), "the first holder has lost nothing");
}

#[test]
fn a_shorter_extension_does_not_shorten_the_guard_either() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    let granted = world.take(lock).unwrap();
    let id = world.extend(lock, ms(100));
    assert_eq!(world.events_now(), [Event::Extended { lock, extension: id, result: Ok(granted) }]);
    world.pass(ms(500));
    assert_eq!(world.holders(), [0, 1, 2]);
}

#[test]
fn missing_answers_leave_the_guard_as_valid_as_it_was_and_delete_nothing() {
    // Fault 7: two masters pause, the extension fails, and the lock stays.
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    let granted = world.take(lock).unwrap();
    for master in 0..2 {
        world.masters[master].flow = Flow::Stopped;
    }
    world.extend(lock, ms(20_000));
    let event = world.next_event();
    assert!(no_quorum(&event), "{event:?}");
    world.pass(ms(700));
    world.each(|master| master.flow = Flow::Free);
    world.pass(ms(300));
    assert_eq!(world.take(lock), Some(granted));
    assert_eq!(world.holders(), [0, 1, 2]);
    world.extend(lock, ms(20_000));
    let event = world.next_event();
    assert!(extended(&event), "{event:?}");
}

#[test]
fn a_majority_that_answers_not_yours_ends_the_guard_at_once_and_is_reported() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    for master in 0..2 {
        world.masters[master].forget_keys();
        world.masters[master].hold_by_another(KEY, None);
    }
    let start = world.now;
    let extension = world.extend(lock, ms(10_000));
    let cause = LossCause::NotHeld;
    let told = [
        Event::Lost { lock, cause },
        Event::Extended { lock, extension, result: Err(ExtendError::Lost(cause)) },
    ];
    assert_eq!(world.events_now(), told);
    assert_eq!(world.now, start);
    assert_eq!(world.masters[2].value(KEY, world.now), None, "what is left is cleared away");
    world.release(lock);
    assert_eq!(world.events_now(), [Event::Released { lock, outcome: ReleaseOutcome::NotOurs }]);
}

#[test]
fn a_failed_extension_still_listens_for_masters_that_say_not_yours() {
    let mut world = World::of(5);
    let lock = world.hold(&wanted(ms(10_000)));
    world.each(|master| master.flow = Flow::RepliesHeld);
    world.each(|master| master.forget_keys());
    world.extend(lock, ms(10_000));
    for master in 0..3 {
        world.masters[master].fails("EXTEND", "BUSY Redis is busy running a script.");
    }
    for master in 0..5 {
        world.deliver(0, master);
    }
    let events = world.events_now();
    assert!(
        matches!(events[..], [Event::Extended { result: Err(ExtendError::NoQuorum(_)), .. }]),
        "{events:?}"
    );
}

#[test]
fn an_extension_that_is_decided_after_validity_ended_revives_nothing() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(1_000)));
    world.pass(ms(900));
    world.each(|master| master.flow = Flow::RepliesHeld);
    let extension = world.extend(lock, ms(5_000));
    world.pump();
    world.suspend(ms(95));
    for master in 0..3 {
        world.deliver(0, master);
    }
    world.each(|master| master.flow = Flow::Free);
    let cause = LossCause::Expired;
    let told = [
        Event::Lost { lock, cause },
        Event::Extended { lock, extension, result: Err(ExtendError::Lost(cause)) },
    ];
    assert_eq!(world.events_now(), told);
    assert!(world.holders().is_empty());
}

#[test]
fn a_master_on_which_a_parting_release_was_written_is_never_counted() {
    // The third master executes the acquisition, its reply is lost with the silent connection, and
    // the release is still on its way.
    let mut world = World::of(3);
    world.masters[2].flow = Flow::Stopped;
    let lock = world.hold(&wanted(ms(10_000)));
    world.serve(0, 2);
    assert!(world.masters[2].value(KEY, world.now).is_some());
    while world.nodes[0].opened[2] < 2 {
        assert!(world.jump());
    }
    world.masters[2].forget_scripts();
    world.masters[0].forget_keys();
    // The new connection is served before the old one, on which the release waits.
    world.masters[2].flow = Flow::Free;
    world.extend(lock, ms(10_000));
    let events = world.events_now();
    assert_eq!(events[0], Event::Lost { lock, cause: LossCause::NotHeld }, "{events:?}");
}

#[test]
fn an_extension_that_was_given_up_and_succeeds_late_is_reported_once() {
    // The connections are slow but flowing, so that answers still come after they were counted as
    // missing.
    let mut world = World::of(5);
    let lock = world.hold(&wanted(ms(10_000)));
    for master in 3..5 {
        world.masters[master].reach = super::world::Reach::Ignores;
        world.cut(0, master);
    }
    world.each(|master| master.flow = Flow::RepliesHeld);
    let sent = world.now;
    let extension = world.extend(lock, ms(20_000));
    world.pass(ms(30));
    for master in 0..3 {
        world.inject(master, b">1\r\n+sign of life\r\n");
    }
    world.pass(ms(25));
    let events = world.events_now();
    assert!(matches!(&events[..], [told] if no_quorum(told)), "{events:?}");
    for master in 0..3 {
        world.deliver(0, master);
    }
    let valid_until = sent + ms(20_000) - ms(202);
    assert_eq!(world.events_now(), [Event::Renewed { lock, valid_until }], "not {extension:?} again");
}

#[test]
fn an_extension_under_way_ends_when_the_lock_is_released() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    world.each(|master| master.delay = ms(10));
    let extension = world.extend(lock, ms(10_000));
    world.release(lock);
    let result = Err(ExtendError::Lost(LossCause::Released));
    assert_eq!(world.next_event(), Event::Extended { lock, extension, result });
    assert_eq!(world.next_event(), Event::Released { lock, outcome: ReleaseOutcome::StillOurs });
}

#[test]
fn after_a_longer_extension_the_release_is_owed_for_as_long_as_the_key_lives() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(1_000)));
    world.extend(lock, ms(60_000));
    assert!(extended(&world.next_event()));
    world.masters[2].reach = super::world::Reach::Refuses;
    world.cut(0, 2);
    world.pump();
    world.release(lock);
    world.pass(ms(20_000));
    world.masters[2].reach = super::world::Reach::Accepts;
    world.pass(ms(3_000));
    assert!(world.holders().is_empty());
}

#[test]
fn too_many_extensions_at_once_are_refused_and_the_others_go_on() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    world.each(|master| master.flow = Flow::RepliesHeld);
    for _ in 0..8 {
        world.extend(lock, ms(10_000));
    }
    let ttl = quorlock_core::Ttl::new(ms(10_000)).unwrap();
    let refused = world.nodes[0].machine.extend(lock, ttl, world.now);
    assert_eq!(refused, Err(ExtendError::TooManyExtensions));
    world.each(|master| master.flow = Flow::Free);
    let events = world.events_now();
    assert_eq!(events.iter().filter(|event| extended(event)).count(), 8);
}

#[test]
fn a_master_whose_vote_was_lost_counts_for_the_next_holder_once_it_confirms_an_extension() {
    let mut world = World::of(3);
    world.masters[2].flow = Flow::RepliesHeld;
    let lock = world.hold(&wanted(ms(10_000)));
    let counts_all = |world: &mut World| world.nodes[0].machine.resumption(lock).unwrap().counts_all();
    world.cut(0, 2);
    world.masters[2].flow = Flow::Free;
    world.pass(ms(20));
    world.masters[2].delay = ms(5);
    world.extend(lock, ms(10_000));
    assert!(extended(&world.next_event()));
    assert!(!counts_all(&mut world), "the others were faster");
    world.pass(ms(5));
    assert!(counts_all(&mut world));
}
