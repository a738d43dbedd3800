//! Requests over connections that something in between has forgotten while they were idle, such as
//! a load balancer: whatever is asked, the outcome is that of a fresh connection.

use std::time::Duration;

use quorlock_core::{Acquire, Event, LockId, ReleaseOutcome, Resource};

use super::fair::fair;
use super::world::{Flow, KEY, REQUEST_TIMEOUT, World, ms, wanted};

/// How the connection ends once the next request has been written to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// What is written vanishes.
    Silence,
    Reset,
    /// The servers have executed the request, and their answers are lost.
    ResetBehindTheServer,
}

/// A held lock, and the connections to all masters have been idle and are forgotten.
fn idle(asked: &Acquire, end: End) -> (World, LockId) {
    let mut world = World::of(3);
    let lock = world.hold(asked);
    world.pass(ms(7_000));
    if end != End::ResetBehindTheServer {
        (0..3).for_each(|master| forget(&mut world, master));
    }
    world.each(|master| master.flow = Flow::RepliesHeld);
    (world, lock)
}

fn forget(world: &mut World, master: usize) {
    let generation = world.generation(master);
    world.dead.insert((master, generation));
}

/// The requests have been written.
fn written(world: &mut World, end: End) {
    world.drain(0);
    for master in 0..3 {
        match end {
            End::Silence => {}
            End::Reset => world.cut(0, master),
            End::ResetBehindTheServer => {
                world.serve(0, master);
                world.cut(0, master);
            }
        }
    }
    world.each(|master| master.flow = Flow::Free);
}

/// The TTL: no key ends during a test.
const LONG: Duration = ms(60_000);

#[test]
fn an_extension_succeeds() {
    for end in [End::Silence, End::Reset, End::ResetBehindTheServer] {
        let (mut world, lock) = idle(&wanted(LONG), end);
        let asked_at = world.now;
        let extension = world.extend(lock, LONG);
        written(&mut world, end);
        let event = world.next_event();
        let valid_until = asked_at + ms(59_398);
        assert_eq!(event, Event::Extended { lock, extension, result: Ok(valid_until) }, "{end:?}");
        assert!(world.now.since(asked_at) <= REQUEST_TIMEOUT, "{end:?}");
        world.pass(ms(1_000));
        for master in &world.masters {
            assert!(master.end(KEY, world.now) >= Some(asked_at + LONG), "{end:?}");
        }
    }
}

#[test]
fn a_renewal_succeeds_in_the_first_round() {
    for end in [End::Silence, End::Reset, End::ResetBehindTheServer] {
        let (mut world, lock) = idle(&Acquire { renew_for: Some(2 * LONG), ..wanted(LONG) }, end);
        let before = world.nodes[0].writes[0];
        while world.nodes[0].writes[0] == before {
            assert!(world.jump());
        }
        let asked_at = world.now;
        written(&mut world, end);
        let event = world.next_event();
        let valid_until = asked_at + ms(59_398);
        assert_eq!(event, Event::Renewed { lock, valid_until }, "{end:?}");
    }
}

#[test]
fn a_release_deletes_the_keys_and_says_so() {
    for end in [End::Silence, End::Reset] {
        let (mut world, lock) = idle(&wanted(LONG), end);
        let asked_at = world.now;
        world.release(lock);
        written(&mut world, end);
        let outcome = ReleaseOutcome::StillOurs;
        assert_eq!(world.next_event(), Event::Released { lock, outcome }, "{end:?}");
        assert!(world.now.since(asked_at) <= REQUEST_TIMEOUT, "{end:?}");
        assert_eq!(world.holders(), [0; 0], "{end:?}");
        assert!(world.nodes[0].machine.is_idle(), "{end:?}");
    }
}

#[test]
fn a_release_that_may_have_been_executed_before_is_not_called_lost() {
    let (mut world, lock) = idle(&wanted(LONG), End::ResetBehindTheServer);
    world.release(lock);
    written(&mut world, End::ResetBehindTheServer);
    let event = world.next_event();
    assert!(
        matches!(&event, Event::Released { outcome: ReleaseOutcome::Unknown(_), .. }),
        "nobody knows whether the first try deleted the key: {event:?}"
    );
    assert_eq!(world.holders(), [0; 0]);
}

#[test]
fn a_release_that_keeps_the_keys_says_so() {
    for end in [End::Silence, End::Reset, End::ResetBehindTheServer] {
        let (mut world, lock) = idle(&wanted(LONG), end);
        world.nodes[0].machine.release_after(lock, LONG, world.now).unwrap();
        written(&mut world, end);
        let event = world.next_event();
        let Event::Released { outcome, .. } = &event else { panic!("{end:?}: {event:?}") };
        match end {
            End::ResetBehindTheServer => {
                assert!(matches!(outcome, ReleaseOutcome::Unknown(_)), "{outcome:?}");
            }
            _ => assert_eq!(*outcome, ReleaseOutcome::StillOurs, "{end:?}"),
        }
        world.pass(LONG);
        assert_eq!(world.holders(), [0; 0], "{end:?}");
    }
}

#[test]
fn a_resumed_lock_is_granted() {
    for end in [End::Silence, End::Reset, End::ResetBehindTheServer] {
        let (mut world, lock) = idle(&wanted(LONG), end);
        let handed = world.nodes[0].machine.hand_over(lock, world.now).unwrap();
        let lock = world.acquire(&Acquire { resumption: Some(handed), ..wanted(LONG) });
        written(&mut world, end);
        let event = world.next_event();
        assert!(
            matches!(event, Event::Granted { lock: granted, .. } if granted == lock),
            "{end:?}: {event:?}"
        );
    }
}

#[test]
fn a_fair_attempt_that_is_repeated_stays_in_the_queue() {
    let (mut world, end) = (World::of(3), End::ResetBehindTheServer);
    world.pass(ms(7_000));
    world.each(|master| master.flow = Flow::RepliesHeld);
    let lock = world.acquire(&fair());
    written(&mut world, end);
    let event = world.next_event();
    assert!(matches!(event, Event::Granted { lock: granted, .. } if granted == lock), "{event:?}");
    for master in &world.masters {
        let counts = ["ENTER", "RELEASE", "LEAVE"].map(|command| master.count(command));
        assert_eq!(counts, [2, 1, 0], "the first grant is released, but not the place");
    }
}

#[test]
fn an_inspection_and_a_forced_release_reach_the_masters() {
    for end in [End::Silence, End::Reset] {
        let (mut world, _) = idle(&wanted(LONG), end);
        let key = Resource::new(KEY).unwrap();
        world.nodes[0].machine.inspect(&key, None, world.now).unwrap();
        written(&mut world, end);
        let Event::Inspected { inspection, .. } = world.next_event() else { panic!("{end:?}") };
        let seen = inspection.to_string();
        assert!(seen.starts_with("ours on 3 of 3 masters"), "{end:?}: {seen}");

        let (mut world, _) = idle(&wanted(LONG), end);
        world.nodes[0].machine.force_release(&key, world.now).unwrap();
        written(&mut world, end);
        let Event::ForceReleased { outcome, .. } = world.next_event() else { panic!("{end:?}") };
        assert_eq!(outcome.deleted(), 3, "{end:?}");
    }
}
