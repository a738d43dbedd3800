//! Minimum hold times of locks of several resources, of readers and of permits.

use std::time::Duration;

use quorlock_core::{Acquire, AcquireError, Event, LockId, ReleaseOutcome, Target, Targets, Ttl};

use super::world::{Flow, World, ms, settings};

const MINUTE: Duration = Duration::from_secs(60);

fn targets(all: &[Target]) -> Targets {
    settings(3).build().unwrap().targets(all.iter().cloned()).unwrap()
}

fn wanted(targets: Targets) -> Acquire {
    Acquire { timeout: Some(MINUTE * 2), ..Acquire::new(targets, Ttl::new(ms(10_000)).unwrap()) }
}

/// Two machines before three masters.
fn rivals() -> World {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 2);
    world.pump();
    world
}

fn keep(world: &mut World, lock: LockId, at_least: Duration) {
    assert!(world.nodes[0].machine.release_after(lock, at_least, world.now).unwrap().is_some());
    world.drain(0);
}

fn kept(world: &mut World, lock: LockId, at_least: Duration) {
    keep(world, lock, at_least);
    assert_eq!(world.next_event(), Event::Released { lock, outcome: ReleaseOutcome::StillOurs });
}

#[track_caller]
fn is_refused(world: &mut World, all: &[Target]) {
    world.acquire_by(1, &Acquire { attempts: Some(1), ..wanted(targets(all)) });
    let event = world.next_event_of(1);
    assert!(matches!(event, Event::NotAcquired { error: AcquireError::HeldByAnother(_), .. }), "{event:?}");
}

#[track_caller]
fn is_granted(world: &mut World, targets: Targets) -> LockId {
    let lock = world.acquire_by(1, &wanted(targets));
    let event = world.next_event_of(1);
    assert!(matches!(event, Event::Granted { .. }), "{event:?}");
    assert!(world.nodes[1].machine.take(lock, world.now).is_some());
    lock
}

#[test]
fn each_of_several_resources_stays_and_ends_by_itself() {
    for span in [ms(2_000), MINUTE] {
        let mut world = rivals();
        let both = targets(&[Target::write("x"), Target::write("y")]);
        let lock = world.hold(&wanted(both.clone()));
        let start = world.now;
        world.pass(ms(500));
        kept(&mut world, lock, span);
        for name in ["x", "y"] {
            is_refused(&mut world, &[Target::write(name)]);
            is_refused(&mut world, &[Target::read(name)]);
        }
        is_granted(&mut world, both);
        let took = world.now.since(start);
        assert!(took >= span && took < span + span / 50 + ms(20), "{took:?} of {span:?}");
    }
}

#[test]
fn a_kept_reader_stays_shared_and_keeps_writers_out() {
    let mut world = rivals();
    let lock = world.hold(&wanted(targets(&[Target::read("x")])));
    let start = world.now;
    kept(&mut world, lock, MINUTE);
    let reader = is_granted(&mut world, targets(&[Target::read("x")]));
    world.release_by(1, reader);
    assert!(matches!(world.next_event_of(1), Event::Released { outcome: ReleaseOutcome::StillOurs, .. }));
    is_refused(&mut world, &[Target::write("x")]);
    is_granted(&mut world, targets(&[Target::write("x")]));
    let took = world.now.since(start);
    assert!(took >= MINUTE && took < MINUTE + ms(1_000), "{took:?}");
}

#[test]
fn a_kept_reader_ends_after_the_minimum_hold_time_but_not_before_other_readers() {
    let mut world = rivals();
    let lock = world.hold(&wanted(targets(&[Target::read("x")])));
    let start = world.now;
    kept(&mut world, lock, ms(2_000));
    is_granted(&mut world, targets(&[Target::write("x")]));
    let took = world.now.since(start);
    assert!(took >= ms(2_000) && took < ms(2_100), "{took:?}");

    let mut world = rivals();
    is_granted(&mut world, targets(&[Target::read("x")]));
    let lock = world.hold(&wanted(targets(&[Target::read("x")])));
    kept(&mut world, lock, ms(2_000));
    world.pass(ms(9_000));
    let end = world.masters[0].end("x", world.now).unwrap();
    assert!(end.since(world.now) > ms(500), "the other reader's lock is as long as it was");
}

#[test]
fn a_writer_that_became_a_reader_is_kept_even_if_masters_do_not_know_of_it() {
    for knows in [false, true] {
        let mut world = rivals();
        let lock = world.hold(&wanted(targets(&[Target::write("x")])));
        let start = world.now;
        if !knows {
            world.each(|master| master.flow = Flow::Stopped);
        }
        assert!(world.nodes[0].machine.downgrade(lock, world.now));
        world.drain(0);
        world.pump();
        keep(&mut world, lock, MINUTE);
        world.each(|master| master.flow = Flow::Free);
        world.pump();
        is_refused(&mut world, &[Target::write("x")]);
        is_granted(&mut world, targets(&[Target::write("x")]));
        assert!(world.now.since(start) >= MINUTE);
    }
}

#[test]
fn a_lock_that_waited_for_readers_is_kept() {
    let mut world = rivals();
    let reader = is_granted(&mut world, targets(&[Target::read("x")]));
    let lock = world.acquire_by(0, &wanted(targets(&[Target::write("x")])));
    world.pass(ms(700));
    world.release_by(1, reader);
    assert!(matches!(world.next_event_of(1), Event::Released { .. }));
    assert!(matches!(world.next_event(), Event::Granted { .. }));
    assert!(world.nodes[0].machine.take(lock, world.now).is_some());
    world.drain(0);
    let start = world.now;
    kept(&mut world, lock, MINUTE);
    is_granted(&mut world, targets(&[Target::write("x")]));
    assert!(world.now.since(start) >= MINUTE - ms(10));
}

#[test]
fn permits_stay_taken() {
    let mut world = rivals();
    let config = settings(3).build().unwrap();
    let permits = |at_once| config.permits_at_once("gpu", 3, at_once).unwrap();
    let two = world.hold(&wanted(permits(2)));
    let one = world.hold(&wanted(permits(1)));
    let start = world.now;
    kept(&mut world, two, MINUTE);
    kept(&mut world, one, ms(20_000));
    world.acquire_by(1, &Acquire { attempts: Some(1), ..wanted(permits(1)) });
    assert!(matches!(world.next_event_of(1), Event::NotAcquired { .. }));
    let next = is_granted(&mut world, permits(1));
    assert_eq!(world.nodes[1].machine.seat(next), Some(2));
    let took = world.now.since(start);
    assert!(took >= ms(20_000) && took < ms(21_000), "{took:?}");
    world.release_by(1, next);
    assert!(matches!(world.next_event_of(1), Event::Released { .. }));
    is_granted(&mut world, permits(3));
    assert!(world.now.since(start) >= MINUTE);
}

#[test]
fn a_master_that_was_down_gets_the_rest_of_the_time() {
    let mut world = rivals();
    let both = targets(&[Target::write("x"), Target::read("y")]);
    let lock = world.hold(&wanted(both));
    world.masters[2].flow = Flow::Stopped;
    keep(&mut world, lock, MINUTE);
    assert_eq!(world.next_event(), Event::Released { lock, outcome: ReleaseOutcome::StillOurs });
    world.pass(ms(5_000));
    world.masters[2].flow = Flow::Free;
    world.pass(ms(2_000));
    for name in ["x", "y"] {
        let ends: Vec<_> = world.masters.iter().map(|master| master.end(name, world.now).unwrap()).collect();
        let (first, last) = (ends.iter().min().unwrap(), ends.iter().max().unwrap());
        assert!(first.since(world.now) > ms(50_000) && last.since(*first) < ms(1_000), "{name}: {ends:?}");
    }
}
