//! Events that must not make a waiter sleep while its lock is free.

use quorlock_core::{Acquire, AcquireError, Event, LockId, Resource, Ttl};

use super::world::master::wall_clock;
use super::world::{Flow, KEY, World, ms, settings, wanted};

/// Another client takes the key on a master, also from its holder.
fn take(world: &mut World, master: usize, holder: &str, life: u64) {
    by_hand(world, master, &format!("SET {KEY} {holder} PX {life}\r\n"));
}

fn free(world: &mut World, master: usize) {
    by_hand(world, master, &format!("DEL {KEY}\r\n"));
}

fn by_hand(world: &mut World, master: usize, command: &str) {
    let now = wall_clock(world.now);
    let server = &mut world.masters[master].server;
    let mut session = server.accept();
    let _ = server.serve(&mut session, command.as_bytes(), now, &mut Vec::new());
}

fn patient(ttl: u64) -> Acquire {
    Acquire { timeout: None, ..wanted(ms(ttl)) }
}

fn next_grant(world: &mut World) -> LockId {
    loop {
        match world.next_event() {
            Event::Granted { lock, .. } => return lock,
            Event::Released { .. } => {}
            event => panic!("{event:?}"),
        }
    }
}

#[test]
fn a_new_waiter_does_not_watch_only_a_first_master_that_stays_held() {
    for (masters, stuck) in [(3, 0), (3, 1), (3, 2), (5, 0), (5, 2), (5, 4)] {
        let mut world = World::of(masters);
        (0..masters).for_each(|master| take(&mut world, master, "another", 600_000));
        let early = world.acquire(&wanted(ms(10_000)));
        world.pass(ms(100));
        world.cancel(early);
        (0..masters).filter(|master| *master != stuck).for_each(|master| free(&mut world, master));
        world.pump();
        let start = world.now;
        world.acquire(&patient(10_000));
        next_grant(&mut world);
        assert!(world.now.since(start) <= ms(160), "{stuck} of {masters}: {:?}", world.now.since(start));
    }
}

#[test]
fn a_first_master_that_keeps_changing_does_not_stop_a_waiter_from_asking_the_others() {
    for busy in 0..3 {
        let mut world = World::of(3);
        (0..3).for_each(|master| take(&mut world, master, "another", 60_000));
        world.acquire(&patient(10_000));
        world.pass(ms(300));
        (0..3).filter(|master| *master != busy).for_each(|master| free(&mut world, master));
        let start = world.now;
        while world.nodes[0].events.is_empty() {
            let holder = format!("holder{}", world.now.since(start).as_millis());
            take(&mut world, busy, &holder, 60_000);
            world.pass(ms(20));
            // This is long before the waiter insists.
            assert!(world.now.since(start) < ms(240), "master {busy}");
        }
    }
}

#[test]
fn endless_notifications_do_not_delay_the_next_attempt() {
    let mut world = World::of(3);
    take(&mut world, 0, "another", 600_000);
    take(&mut world, 2, "another", 600_000);
    world.masters[1].flow = Flow::Stopped;
    world.acquire(&patient(10_000));
    world.pass(ms(2_000));
    free(&mut world, 2);
    world.pump();
    world.masters[1].flow = Flow::Free;
    let start = world.now;
    while world.nodes[0].events.is_empty() {
        world.inject(2, b">2\r\n$10\r\ninvalidate\r\n_\r\n");
        world.pass(ms(40));
        assert!(world.now.since(start) < ms(1_000));
    }
}

#[test]
fn other_locks_do_not_make_a_waiter_miss_notifications() {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 7);
    world.pump();
    let held = world.hold(&wanted(ms(30_000)));
    world.acquire_by(1, &patient(10_000));
    world.pass(ms(6_000));
    // No lock was watched for the whole linger time, so the connection ends tracking now.
    let other = Acquire::new(Resource::new("other").unwrap(), Ttl::new(ms(10_000)).unwrap());
    world.acquire_by(1, &other);
    world.pump();
    world.nodes[1].events.clear();
    world.release(held);
    let start = world.now;
    while world.nodes[1].events.is_empty() {
        assert!(world.jump());
    }
    assert!(world.now.since(start) <= ms(160), "{:?}", world.now.since(start));
}

#[test]
fn a_slow_release_of_the_same_process_wakes_a_waiter() {
    let mut world = World::of(3);
    (0..3).for_each(|master| take(&mut world, master, "another", 1_040));
    world.acquire(&wanted(ms(30_000)));
    let first = next_grant(&mut world);
    world.take(first);
    let second = world.acquire(&patient(30_000));
    world.each(|master| master.fails("RELEASE", "MISCONF Redis is configured to save RDB snapshots"));
    let start = world.now;
    world.cancel(first);
    world.pass(ms(100));
    world.each(|master| master.mends("RELEASE"));
    assert_eq!(next_grant(&mut world), second);
    assert!(world.now.since(start) <= ms(5_000), "{:?}", world.now.since(start));
}

#[test]
fn a_key_that_was_healed_and_then_given_up_is_taken_back() {
    let mut world = World::of(3);
    (0..2).for_each(|master| take(&mut world, master, "another", 1_040));
    take(&mut world, 2, "another", 2_000);
    world.acquire(&Acquire { healing: true, renew_for: Some(ms(60_000)), ..patient(3_000) });
    let lock = next_grant(&mut world);
    let token = world.expose(lock);
    world.pass(ms(3_500));
    assert_eq!(world.masters[2].value(KEY, world.now), Some(token.as_str()), "it is healed");
    // The grant is not taken, and its validity ends.
    (0..2).for_each(|master| world.masters[master].flow = Flow::Stopped);
    world.pass(ms(3_500));
    let executed = &world.masters[2].executed;
    assert!(executed.iter().any(|(_, name, of)| ["UNDO", "RELEASE"].contains(name) && *of == token));
}

#[test]
fn a_caller_with_time_for_one_answer_gets_the_answers_of_all_masters() {
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(KEY, None));
    for limit in [300, 60, 80, 100, 120] {
        world.acquire(&Acquire { timeout: Some(ms(limit)), ..wanted(ms(10_000)) });
        let error = world.refusal();
        assert!(matches!(error, AcquireError::HeldByAnother(_)), "{limit}: {error}");
    }
}

#[test]
fn a_caller_that_does_not_wait_is_never_delayed() {
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(KEY, None));
    for _ in 0..6 {
        let start = world.now;
        world.acquire(&Acquire { attempts: Some(1), ..wanted(ms(10_000)) });
        world.refusal();
        assert_eq!(world.now, start);
    }
}

#[test]
fn waiting_for_others_does_not_count_as_a_turn() {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 7);
    world.pump();
    let held = world.acquire_by(1, &wanted(ms(10_000)));
    world.pump();
    let first = world.acquire(&wanted(ms(10_000)));
    let second = world.acquire(&wanted(ms(10_000)));
    world.pass(ms(500));
    world.release_by(1, held);
    assert_eq!(next_grant(&mut world), first);
    world.take(first);
    let start = world.now;
    world.cancel(first);
    assert_eq!(next_grant(&mut world), second);
    assert_eq!(world.now, start, "handed over at once");
}

#[test]
fn a_waiter_that_leaves_during_the_pause_passes_the_pause_to_the_next_waiter() {
    let mut world = World::of(3);
    let first = world.hold(&wanted(ms(10_000)));
    let second = world.acquire(&wanted(ms(10_000)));
    let third = world.acquire(&wanted(ms(10_000)));
    world.pass(ms(150));
    let start = world.now;
    world.cancel(first);
    world.cancel(second);
    assert_eq!(next_grant(&mut world), third);
    assert!(world.now.since(start) >= ms(1), "others had their turn");
}
