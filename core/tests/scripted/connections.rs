//! Connections that open, end and open again.

use quorlock_core::{Acquire, AcquireError, Cause, Event, MasterState, ReleaseOutcome, WakeReason};

use super::world::{Flow, KEY, Reach, World, ms, one_try, settings, wanted};

#[test]
fn the_first_lock_after_the_start_waits_for_the_connections() {
    let mut world = World::cold(settings(3));
    let lock = world.acquire(&one_try());
    world.pump();
    assert!(matches!(world.events_now()[..], [Event::Granted { lock: other, .. }] if other == lock));
}

#[test]
fn a_first_lock_whose_masters_do_not_connect_ends_with_the_connect_timeout() {
    let mut world = World::cold(settings(3));
    world.each(|master| master.reach = Reach::Ignores);
    let start = world.now;
    world.acquire(&one_try());
    let error = world.refusal();
    assert_eq!(world.now, start + ms(250));
    assert!(error.to_string().contains("a:6379 no connection in 250 ms"), "{error}");
}

#[test]
fn reconnects_back_off_up_to_their_cap_and_no_further() {
    let mut world = World::of(1);
    world.masters[0].reach = Reach::Refuses;
    world.cut(0, 0);
    let mut pauses = Vec::new();
    for _ in 0..14 {
        let (opened, before) = (world.nodes[0].opened[0], world.now);
        while world.nodes[0].opened[0] == opened {
            assert!(world.jump());
        }
        pauses.push(world.now.since(before));
    }
    assert!(pauses[0] <= ms(13), "{pauses:?}");
    assert!(pauses[5] > pauses[0] * 8, "{pauses:?}");
    assert!(pauses[10..].iter().all(|pause| (ms(2_000)..=ms(2_500)).contains(pause)), "{pauses:?}");
}

#[test]
fn an_idle_machine_makes_only_one_attempt_per_cap_for_each_dead_master() {
    let mut world = World::of(3);
    world.masters[2].reach = Reach::Refuses;
    world.cut(0, 2);
    world.pass(ms(10_000));
    let wakes = world.nodes[0].wakes;
    world.pass(ms(3_600_000));
    let woken = world.nodes[0].wakes - wakes;
    assert!((1_400..=1_800).contains(&woken), "{woken}");
    assert!(world.nodes[0].wake.is_some_and(|wake| wake.reason == WakeReason::Master(world.id(2))));
    world.masters[2].reach = Reach::Accepts;
    world.pass(ms(3_000));
    assert_eq!(world.nodes[0].wake, None);
}

#[test]
fn a_hung_master_is_asked_for_a_connection_no_oftener_than_a_dead_one() {
    let mut world = World::of(3);
    world.masters[2].flow = Flow::Stopped;
    let lock = world.hold(&one_try());
    world.release(lock);
    world.pass(ms(10_000));
    let opened = world.nodes[0].opened[2];
    world.pass(ms(60_000));
    assert!(world.nodes[0].opened[2] - opened <= 30);
}

#[test]
fn a_hung_master_that_goes_on_votes_at_once_on_the_connection_that_waited() {
    for stopped_for in [100, 1_000, 1_900, 2_100, 5_000] {
        let mut world = World::of(3);
        world.masters[2].flow = Flow::Stopped;
        let lock = world.hold(&one_try());
        world.release(lock);
        world.pass(ms(stopped_for));
        let opened = world.nodes[0].opened[2];
        world.masters[2].flow = Flow::Free;
        world.pump();
        let states: Vec<_> = world.nodes[0].machine.masters().map(|(_, state)| state).collect();
        assert!(matches!(states[2], MasterState::Ready { .. }), "after {stopped_for} ms: {states:?}");
        assert_eq!(world.nodes[0].opened[2], opened);
    }
}

#[test]
fn input_from_an_old_connection_generation_is_dropped() {
    let mut world = World::of(1);
    let old = world.generation(0);
    world.cut(0, 0);
    world.pass(ms(1_000));
    world.masters[0].flow = Flow::RepliesHeld;
    world.acquire(&one_try());
    let (id, now) = (world.id(0), world.now);
    let machine = &mut world.nodes[0].machine;
    machine.received(id, old, b"+OK\r\n", now);
    machine.received(id, old, b"garbage", now);
    machine.connected(id, old, now);
    machine.closed(id, old, Cause::Closed, now);
    world.drain(0);
    assert_eq!(world.events_now(), []);
    world.deliver(0, 0);
    assert!(matches!(world.events_now()[..], [Event::Granted { .. }]));
}

#[test]
fn a_connection_that_ends_during_a_request_is_reopened_at_once_and_the_release_follows() {
    let mut world = World::of(3);
    let lock = world.hold(&one_try());
    world.masters[2].reach = Reach::Ignores;
    world.cut(0, 2);
    world.release(lock);
    assert_eq!(world.next_event(), Event::Released { lock, outcome: ReleaseOutcome::StillOurs });
    assert_eq!(world.holders(), [2]);
    world.masters[2].reach = Reach::Accepts;
    world.pump();
    assert!(world.holders().is_empty());
}

#[test]
fn a_release_that_waited_for_a_connection_is_sent_when_the_master_is_back_at_last() {
    for reach in [Reach::Refuses, Reach::Ignores] {
        let mut world = World::of(3);
        let lock = world.hold(&wanted(ms(60_000)));
        world.masters[2].reach = Reach::Ignores;
        world.cut(0, 2);
        // The release waits for the connection that is being opened, and then opening it fails.
        world.release(lock);
        world.masters[2].reach = reach;
        world.pass(ms(1_000));
        world.masters[2].reach = Reach::Accepts;
        world.pass(ms(3_000));
        assert!(world.holders().is_empty(), "{reach:?}");
    }
}

#[test]
fn a_master_that_was_down_during_the_release_is_cleared_when_it_is_back() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(60_000)));
    world.masters[2].reach = Reach::Refuses;
    world.cut(0, 2);
    world.pass(ms(500));
    world.release(lock);
    world.pass(ms(5_000));
    world.masters[2].reach = Reach::Accepts;
    world.pass(ms(3_000));
    assert!(world.holders().is_empty());
}

#[test]
fn a_release_is_not_owed_for_longer_than_its_key_can_live() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(1_000)));
    world.masters[2].reach = Reach::Refuses;
    world.cut(0, 2);
    world.pass(ms(100));
    world.release(lock);
    world.pass(ms(5_000));
    world.masters[2].reach = Reach::Accepts;
    world.pass(ms(3_000));
    assert_eq!(world.masters[2].count("RELEASE"), 0);
}

#[test]
fn servers_that_end_idle_connections_do_not_count_as_down() {
    let mut world = World::of(3);
    for _ in 0..20 {
        world.pass(ms(60_000));
        for master in 0..3 {
            world.cut(0, master);
        }
    }
    let start = world.now;
    world.hold(&one_try());
    assert_eq!(world.now, start);
}

#[test]
fn a_server_that_closes_every_connection_at_once_is_not_reconnected_in_a_tight_loop() {
    let mut world = World::of(1);
    let start = world.now;
    let mut cuts = 0;
    while world.now.since(start) < ms(10_000) {
        world.pump();
        if world.nodes[0].opened[0] > cuts {
            cuts = world.nodes[0].opened[0];
            world.cut(0, 0);
        } else {
            world.jump();
        }
    }
    assert!(cuts < 20, "{cuts} connections in 10 s");
}

#[test]
fn a_cut_in_the_middle_of_a_round_counts_as_no_vote_and_the_round_goes_on() {
    let mut world = World::of(3);
    world.each(|master| master.flow = Flow::RepliesHeld);
    world.acquire(&one_try());
    world.cut(0, 0);
    world.deliver(0, 1);
    world.deliver(0, 2);
    assert!(matches!(world.events_now()[..], [Event::Granted { .. }]));
}

#[test]
fn a_restarted_master_that_lost_its_keys_does_not_count_as_a_holder() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    for master in 0..2 {
        world.masters[master].forget_keys();
        world.masters[master].forget_scripts();
        world.cut(0, master);
    }
    world.pump();
    world.extend(lock, ms(10_000));
    assert!(matches!(world.events_now()[0], Event::Lost { .. }));
}

#[test]
fn all_connections_cut_at_once_do_not_lose_a_retrying_caller() {
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(KEY, None));
    world.acquire(&Acquire { timeout: Some(ms(5_000)), ..wanted(ms(10_000)) });
    world.pass(ms(500));
    for master in 0..3 {
        world.cut(0, master);
    }
    world.pass(ms(500));
    world.each(|master| master.forget_keys());
    let event = world.next_event();
    assert!(matches!(event, Event::Granted { .. }), "{event:?}");
    assert!(!matches!(event, Event::NotAcquired { error: AcquireError::NoQuorum(_), .. }));
}

#[test]
fn a_machine_is_not_idle_while_a_release_waits_for_a_connection_that_may_open() {
    let mut world = World::of(3);
    let lock = world.hold(&one_try());
    world.masters[2].reach = Reach::Ignores;
    world.cut(0, 2);
    world.cancel(lock);
    world.pump();
    assert!(!world.nodes[0].machine.is_idle());
    // But the machine does not wait for a connection that does not open.
    let mut dead = world.clone();
    dead.pass(ms(250));
    assert!(dead.nodes[0].machine.is_idle());
    world.masters[2].reach = Reach::Accepts;
    world.pump();
    assert!(world.nodes[0].machine.is_idle());
    assert!(world.holders().is_empty());
}

#[test]
fn one_server_behind_two_addresses_is_not_counted_twice_as_a_holder() {
    // Both connections are opened again in the middle of everything, and the server's other address
    // gets the vote.
    let mut world = World::cold(settings(3));
    world.masters[1].server = world.masters[0].server.clone();
    world.masters[1].flow = Flow::RepliesHeld;
    let lock = world.acquire(&wanted(ms(10_000)));
    world.pump();
    assert!(matches!(world.events_now()[..], [Event::Granted { .. }]));
    assert!(world.take(lock).is_some());
    // Masters 0 and 1 are one server: they have one set of keys.
    world.masters[1].server = world.masters[0].server.clone();
    world.masters[2].forget_keys();
    world.masters[0].flow = Flow::RepliesHeld;
    world.extend(lock, ms(60_000));
    world.deliver(0, 0);
    world.masters[2].flow = Flow::Free;
    world.masters[0].reach = Reach::Refuses;
    world.cut(0, 0);
    world.masters[1].flow = Flow::Free;
    let events = world.events_now();
    assert!(!events.iter().any(|event| matches!(event, Event::Extended { result: Ok(_), .. })), "{events:?}");
}

#[test]
fn a_release_is_not_owed_forever_to_a_server_that_ends_every_connection() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    world.masters[2].flow = Flow::RepliesHeld;
    world.release(lock);
    world.events_now();
    world.cut(0, 2);
    let end = world.now + ms(60_000);
    let mut last = world.now;
    let mut seen = world.masters[2].count("RELEASE");
    while world.now < end {
        // The handshake is answered and the release is not.
        let before = world.masters[2].count("RELEASE");
        if before > seen {
            seen = before;
            last = world.now;
            world.cut_if_it_is_open(0, 2);
        }
        world.pump();
        if world.masters[2].count("RELEASE") == before && !world.deliver(0, 2) {
            world.jump_until(end);
        }
    }
    assert!(seen > 2);
    assert!(last <= end - ms(40_000), "{last:?}");
}
