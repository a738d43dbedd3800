//! Two lockers that know one token: one has a copy of the other's resumption. What one does to a
//! key must not end what the other counts.

use std::time::Duration;

use quorlock_core::{Acquire, ConfigBuilder, Event, Instant, LockId, Resumption, Ttl};

use super::world::{Flow, Reach, World, ms, one_try, settings, wanted};

const LONGEST: Duration = ms(20_000);
const TTL: Duration = ms(10_000);

/// A holder, a second locker and a rival, and masters that vote. The holder has the lock.
fn three(settings: impl Fn() -> ConfigBuilder) -> (World, LockId) {
    let mut world = World::cold(settings());
    world.pump();
    world.pass(LONGEST + ms(10));
    for seed in 2..4 {
        world.add_node(settings().build().unwrap(), seed);
    }
    world.pump();
    let lock = world.hold(&Acquire { healing: true, ..wanted(TTL) });
    world.pump();
    (world, lock)
}

fn plain() -> ConfigBuilder {
    settings(3)
}

fn guarded() -> ConfigBuilder {
    settings(3).restart_guard(LONGEST)
}

/// The second locker resumes the lock from a copy, with healing.
fn resume(world: &mut World, copy: Resumption, ttl: Duration) -> LockId {
    let asked = Acquire { healing: true, resumption: Some(copy), ..wanted(ttl) };
    let lock = world.acquire_by(1, &asked);
    assert!(matches!(world.next_event_of(1), Event::Granted { .. }));
    world.nodes[1].machine.take(lock, world.now).unwrap();
    world.drain(1);
    world.pump();
    lock
}

/// The second locker extends the lock.
fn extend_theirs(world: &mut World, lock: LockId, ttl: Duration) {
    let now = world.now;
    // It may have lost the lock by now.
    let _ = world.nodes[1].machine.extend(lock, Ttl::new(ttl).unwrap(), now);
    world.drain(1);
}

/// The holder extends the lock. Returns until when it is valid.
fn extended(world: &mut World, lock: LockId) -> Instant {
    world.nodes[0].events.clear();
    world.extend(lock, TTL);
    world.pass(ms(10));
    match world.next_event() {
        Event::Extended { result: Ok(valid_until), .. } => valid_until,
        event => panic!("{event:?}"),
    }
}

/// The rival gets nothing while the holder is valid.
fn rival_is_kept_out(world: &mut World, valid_until: Instant) {
    let asked_at = world.now;
    world.acquire_by(2, &one_try());
    let event = world.next_event_of(2);
    assert!(asked_at < valid_until, "this test looks too late");
    assert!(
        !matches!(event, Event::Granted { .. }),
        "{event:?}, and the holder is valid until {valid_until:?}"
    );
}

/// One locker restores a key and does not hear of it, and the other one counts it.
#[test]
fn the_hand_over_of_a_copy_leaves_the_keys_that_the_holder_counts() {
    let (mut world, lock) = three(guarded);
    let copy = world.nodes[0].machine.resumption(lock).unwrap();
    (0..3).for_each(|node| world.cut_if_it_is_open(node, 2));
    world.masters[2].server.restart(102, |_| false);
    world.pass(ms(100));
    let theirs = resume(&mut world, copy, TTL);
    world.masters[2].delay = ms(20);
    extend_theirs(&mut world, theirs, TTL);
    world.pass(ms(25));
    assert_eq!(world.holders(), [0, 1, 2]);
    world.cut(1, 2);
    world.masters[2].delay = ms(0);
    world.pass(ms(100));
    for round in 0..12 {
        if round == 8 {
            world.masters[0].flow = Flow::Stopped;
        }
        extended(&mut world, lock);
        world.pass(ms(2_990));
        extend_theirs(&mut world, theirs, TTL);
        world.pump();
    }
    let valid_until = extended(&mut world, lock);
    assert!(world.nodes[1].machine.hand_over(theirs, world.now).is_some());
    world.drain(1);
    world.masters[0].flow = Flow::Free;
    world.pass(ms(500));
    rival_is_kept_out(&mut world, valid_until);
}

/// A master falls silent for the locker that restores a key there.
#[test]
fn no_release_follows_the_healing_of_a_lock_that_another_locker_may_count() {
    let (mut world, lock) = three(plain);
    let copy = world.nodes[0].machine.resumption(lock).unwrap();
    world.masters[2].flow = Flow::Stopped;
    for _ in 0..4 {
        extended(&mut world, lock);
        world.pass(ms(2_990));
    }
    extended(&mut world, lock);
    assert_eq!(world.holders(), [0, 1], "the key has expired on the third master");
    world.masters[0].reach = Reach::Ignores;
    world.cut(0, 0);
    world.masters[2].flow = Flow::Free;
    world.pass(ms(8_000));
    let theirs = resume(&mut world, copy, ms(1_000));
    world.masters[2].flow = Flow::RepliesHeld;
    extend_theirs(&mut world, theirs, ms(1_000));
    world.pump();
    assert!(world.deliver(1, 2));
    world.pump();
    assert_eq!(world.holders(), [0, 1, 2], "it is restored, and the answer is on its way");
    world.nodes[0].events.clear();
    world.extend(lock, TTL);
    world.pump();
    assert!(world.deliver(0, 2));
    world.pump();
    let event = world.next_event();
    let Event::Extended { result: Ok(valid_until), .. } = event else { panic!("{event:?}") };
    world.pass(ms(80));
    world.masters[2].flow = Flow::Free;
    world.pass(ms(2_500));
    world.masters[0].reach = Reach::Accepts;
    rival_is_kept_out(&mut world, valid_until);
}

/// The keys that it leaves expire with their TTL.
#[test]
fn a_locker_whose_copy_expires_releases_nothing_that_the_holder_counts() {
    let (mut world, lock) = three(plain);
    let copy = world.nodes[0].machine.resumption(lock).unwrap();
    resume(&mut world, copy, ms(1_000));
    let valid_until = extended(&mut world, lock);
    world.pass(ms(1_500));
    assert!(world.nodes[1].events.iter().any(|(_, event)| matches!(event, Event::Lost { .. })));
    assert_eq!(world.holders(), [0, 1, 2]);
    rival_is_kept_out(&mut world, valid_until);
}

/// Lets one master read what came from one client, and that client hear the answer.
fn answered(world: &mut World, node: usize, master: usize) {
    world.serve(node, master);
    assert!(world.deliver(node, master));
}

/// It may have lost the vote that another client got when the copy was released there.
#[test]
fn a_quarantined_master_proves_nothing_about_a_key_that_another_locker_may_have_released() {
    let (mut world, lock) = three(|| guarded().request_timeout(ms(2_000)));
    let copy = world.nodes[0].machine.resumption(lock).unwrap();
    world.each(|master| master.flow = Flow::Stopped);
    let targets = quorlock_core::Resource::new(super::world::KEY).unwrap().into();
    world.nodes[1].machine.release_token(&targets, copy.token, world.now).unwrap();
    world.drain(1);
    world.serve(1, 2);
    world.acquire_by(2, &one_try());
    answered(&mut world, 2, 2);
    // The third master forgets the rival's vote, and gets our key again.
    world.cut(0, 2);
    world.masters[2].server.restart(102, |_| false);
    world.masters[2].flow = Flow::Free;
    world.pass(ms(100));
    world.extend(lock, TTL);
    (0..2).for_each(|master| answered(&mut world, 0, master));
    world.pump();
    assert_eq!(world.holders(), [0, 1, 2], "restored in the quarantine");
    // The release reaches the second master, and then the rival's request.
    world.serve(1, 1);
    answered(&mut world, 2, 1);
    assert!(matches!(world.next_event_of(2), Event::Granted { .. }));
    world.nodes[0].events.clear();
    world.extend(lock, TTL);
    (0..2).for_each(|master| answered(&mut world, 0, master));
    world.pump();
    let events = &world.nodes[0].events;
    let is_extended = |event: &Event| matches!(event, Event::Extended { result: Ok(_), .. });
    assert!(!events.iter().any(|(_, event)| is_extended(event)), "{events:?}");
}
