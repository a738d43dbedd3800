//! The requests of locks of several and of shared resources, and their times.

use std::collections::BTreeSet;

use quorlock_core::{Acquire, AcquireError, Event, Group, LockId, Target, Ttl};

use super::world::master::wall_clock;
use super::world::{Flow, Master, World, ms, settings};

pub fn wanted(all: &[Target]) -> Acquire {
    let targets = settings(3).build().unwrap().targets(all.iter().cloned()).unwrap();
    Acquire { timeout: Some(ms(60_000)), ..Acquire::new(targets, Ttl::new(ms(10_000)).unwrap()) }
}

pub fn write(names: &[&str]) -> Acquire {
    wanted(&names.iter().map(Target::write).collect::<Vec<_>>())
}

pub fn read(name: &str) -> Acquire {
    wanted(&[Target::read(name)])
}

fn share(name: &str, group: &str) -> Acquire {
    wanted(&[Target::share(name, Group::new(group).unwrap())])
}

pub fn two_processes() -> World {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 7);
    world.pump();
    world
}

/// A process reads `x`, and another one wants this.
fn behind_a_reader(wanted: &Acquire) -> (World, LockId) {
    let mut world = two_processes();
    let reader = world.acquire(&read("x"));
    assert_eq!(next_granted(&mut world, 0), reader);
    world.acquire_by(1, wanted);
    (world, reader)
}

/// Waits until a process is granted a lock, and takes it.
pub fn next_granted(world: &mut World, node: usize) -> LockId {
    loop {
        match world.next_event_of(node) {
            Event::Granted { lock, .. } => {
                let now = world.now;
                assert!(world.nodes[node].machine.take(lock, now).is_some());
                world.drain(node);
                return lock;
            }
            Event::Released { .. } | Event::WaitsForOwn { .. } => {}
            event => panic!("{event:?}"),
        }
    }
}

/// How many acquisitions each master has been asked for by script.
fn asked(world: &World) -> Vec<usize> {
    world.masters.iter().map(|master| master.count("ACQUIRE ALL")).collect()
}

/// The masters with the mark of a waiting writer.
pub fn marked(world: &World) -> usize {
    let is_marked = |master: &&Master| master.value("quorlock:want/{x}", world.now).is_some();
    world.masters.iter().filter(is_marked).count()
}

#[test]
fn a_group_behind_another_in_its_process_asks_no_master() {
    let mut world = World::of(3);
    let reader = world.acquire(&read("x"));
    assert_eq!(next_granted(&mut world, 0), reader);
    let other = world.acquire(&share("x", "g"));
    world.pass(ms(900));
    assert_eq!(asked(&world), [1, 1, 1]);
    world.release(reader);
    assert_eq!(next_granted(&mut world, 0), other);
    assert_eq!(asked(&world), [2, 2, 2]);
}

#[test]
fn a_lock_of_several_resources_asks_no_master_before_it_is_in_front_for_all() {
    let mut world = World::of(3);
    let [x, y] = ["x", "y"].map(|name| {
        let lock = world.acquire(&write(&[name]));
        assert_eq!(next_granted(&mut world, 0), lock);
        lock
    });
    let both = world.acquire(&write(&["x", "y"]));
    world.release(x);
    world.pass(ms(900));
    assert_eq!(asked(&world), [0, 0, 0]);
    world.release(y);
    assert_eq!(next_granted(&mut world, 0), both);
    assert_eq!(asked(&world), [1, 1, 1]);
}

#[test]
fn readers_that_were_kept_out_ask_all_masters_at_once() {
    let mut world = two_processes();
    let writer = world.acquire(&write(&["x"]));
    assert_eq!(next_granted(&mut world, 0), writer);
    let reader = world.acquire_by(1, &read("x"));
    world.pass(ms(300));
    // The answer of one master is there only after the others should have been asked.
    world.each(|master| master.delay = ms(5));
    world.release(writer);
    assert_eq!(next_granted(&mut world, 1), reader);
    let last = |master: &Master| master.attempts().last().map(|(at, _)| *at);
    let asked_at: BTreeSet<_> = world.masters.iter().map(last).collect();
    assert_eq!(asked_at.len(), 1, "{asked_at:?}");
}

#[test]
fn a_writer_behind_readers_keeps_its_mark_on_a_quorum() {
    let (mut world, reader) = behind_a_reader(&write(&["x"]));
    // Each extension is a notification that a master may be free.
    for _ in 0..8 {
        world.pass(ms(400));
        world.extend(reader, ms(10_000));
        assert!(marked(&world) >= 2, "at {:?}", world.now);
    }
}

#[test]
fn a_writer_that_loses_rounds_keeps_its_marks() {
    let (mut world, reader) = behind_a_reader(&write(&["x"]));
    world.pass(ms(100));
    assert_eq!(marked(&world), 3);
    // Each round is lost, and undone, before another one of the masters answers.
    for slow in 0..3 {
        world.each(|master| master.delay = ms(1));
        world.masters[slow].delay = ms(8);
        world.extend(reader, ms(10_000));
        world.pass(ms(50));
    }
    assert!(world.masters.iter().all(|master| master.count("RELEASE ALL") > 0), "no round was undone");
    assert_eq!(marked(&world), 3);
}

#[test]
fn a_writer_that_gives_up_removes_its_marks() {
    let (mut world, _) = behind_a_reader(&Acquire { timeout: Some(ms(700)), ..write(&["x"]) });
    world.pass(ms(600));
    assert_eq!(marked(&world), 3);
    assert!(matches!(world.next_event_of(1), Event::NotAcquired { .. }));
    world.pass(ms(10));
    assert_eq!(marked(&world), 0, "after its timeout");

    let writer = world.acquire_by(1, &write(&["x"]));
    world.pass(ms(600));
    assert_eq!(marked(&world), 3);
    let now = world.now;
    world.nodes[1].machine.cancel(writer, now);
    world.drain(1);
    world.pass(ms(10));
    assert_eq!(marked(&world), 0, "after it was cancelled");
}

#[test]
fn notifications_of_a_shared_key_do_not_set_its_mark_again() {
    let (mut world, reader) = behind_a_reader(&write(&["x"]));
    world.pass(ms(100));
    let marks = |world: &World| {
        let ends = world.masters.iter().map(|master| master.end("quorlock:want/{x}", world.now));
        ends.collect::<Vec<_>>()
    };
    let asked = |world: &World| world.masters.iter().map(|master| master.attempts().len()).sum::<usize>();
    let (marked, before) = (marks(&world), asked(&world));
    assert!(marked.iter().flatten().count() >= 2, "{marked:?}");
    for _ in 0..3 {
        world.extend(reader, ms(10_000));
        world.pass(ms(50));
    }
    assert!(asked(&world) > before, "the writer asks when it is told");
    assert_eq!(marks(&world), marked, "each change of it notifies the readers that it keeps out");
}

#[test]
fn a_reader_is_granted_once_a_quorum_has_counted_up_to_its_number() {
    let mut world = World::of(3);
    let counted = |world: &World| {
        let counters = world.masters.iter().map(|master| master.value("quorlock:fence/{x}", world.now));
        counters.map(|text| text.map_or(0, |text| text.parse::<u64>().unwrap())).collect::<Vec<_>>()
    };
    // Only the first master has counted so far.
    world.masters[0].server.hold(0, b"quorlock:fence/{x}", b"7", None);
    let reader = world.acquire(&Acquire { fenced: true, ..read("x") });
    assert_eq!(next_granted(&mut world, 0), reader);
    let number = world.nodes[0].machine.resumption(reader).unwrap().fencing_token.unwrap().get();
    let counters = counted(&world);
    assert!(counters.iter().filter(|counter| **counter >= number).count() >= 2, "{number}: {counters:?}");
    world.release(reader);
    let writer = world.acquire(&Acquire { fenced: true, ..write(&["x"]) });
    assert_eq!(next_granted(&mut world, 0), writer);
    let later = world.nodes[0].machine.resumption(writer).unwrap().fencing_token.unwrap().get();
    assert!(later > number, "{later} after {number}");
}

#[test]
fn a_reader_leaves_nothing_and_takes_no_other_readers_entry_away() {
    let mut world = two_processes();
    let [first, second] = [0, 1].map(|node| {
        let lock = world.acquire_by(node, &read("x"));
        assert_eq!(next_granted(&mut world, node), lock);
        lock
    });
    world.release(first);
    world.pass(ms(100));
    world.acquire(&Acquire { attempts: Some(1), ..write(&["x"]) });
    let event = loop {
        match world.next_event() {
            Event::Released { .. } => {}
            event => break event,
        }
    };
    assert!(matches!(event, Event::NotAcquired { error: AcquireError::HeldByAnother(_), .. }), "{event:?}");
    world.release_by(1, second);
    world.pass(ms(100));
    assert!((0..3).all(|master| world.masters[master].is_empty(world.now)));
}

#[test]
fn readers_that_marks_keep_out_for_too_long_are_granted_despite_them() {
    let mut world = two_processes();
    let reader = world.acquire(&read("x"));
    assert_eq!(next_granted(&mut world, 0), reader);
    // A mark that is always there, as with writers that arrive one after the other.
    let start = world.now;
    let wish = |world: &mut World| {
        let until = wall_clock(world.now) + ms(1_000);
        world.each(|master| master.server.hold(0, b"quorlock:want/{x}", b"another", Some(until)));
    };
    wish(&mut world);
    world.acquire_by(1, &read("x"));
    while world.nodes[1].events.is_empty() && world.now.since(start) < ms(30_000) {
        wish(&mut world);
        world.pass(ms(500));
    }
    next_granted(&mut world, 1);
    let waited = world.now.since(start);
    assert!(waited >= ms(15_000) && waited <= ms(20_000), "{waited:?}");
}

#[test]
fn answers_to_a_writer_are_ignored_after_its_downgrade_to_a_reader() {
    let mut world = World::of(3);
    let lock = world.acquire(&write(&["x"]));
    assert_eq!(next_granted(&mut world, 0), lock);
    world.masters.iter_mut().for_each(|master| master.flow = Flow::Stopped);
    world.extend(lock, ms(10_000));
    // The writer's extension is repeated behind the reader's, and finds no key of a writer.
    world.masters.iter_mut().for_each(Master::forget_scripts);
    let now = world.now;
    assert!(world.nodes[0].machine.downgrade(lock, now));
    world.drain(0);
    world.masters.iter_mut().for_each(|master| master.flow = Flow::Free);
    let event = world.next_event();
    assert!(matches!(event, Event::Extended { result: Ok(_), .. }), "{event:?}");
    world.pass(ms(1_000));
    assert_eq!(world.nodes[0].events.pop_front(), None, "the lock is held");
}

#[test]
fn a_writer_that_becomes_a_reader_lets_others_in_at_once() {
    let (mut world, reader) = behind_a_reader(&write(&["x"]));
    world.pass(ms(300));
    assert_eq!(marked(&world), 3);
    world.release(reader);
    let writer = next_granted(&mut world, 1);
    let waits = world.acquire(&read("x"));
    world.pass(ms(50));
    let now = world.now;
    assert!(world.nodes[1].machine.downgrade(writer, now));
    world.drain(1);
    world.pump();
    assert_eq!(marked(&world), 0);
    world.pass(ms(200));
    assert_eq!(world.granted(0), [waits]);
    assert!(world.nodes[1].machine.resumption(writer).is_some(), "the lock is held");
}

/// The locks of a process that have been granted by now. Its caller takes them.
pub fn granted_beside_a_renewal(world: &mut World) -> Vec<LockId> {
    world.pump();
    world.nodes[0].events.retain(|(_, event)| !matches!(event, Event::Renewed { .. }));
    world.granted(0)
}

#[test]
fn a_writer_that_becomes_a_reader_lets_in_the_readers_behind_it_in_its_own_process() {
    for readers in 0..4 {
        let mut world = World::of(3);
        let writer = world.acquire(&write(&["x"]));
        assert_eq!(next_granted(&mut world, 0), writer);
        let waiting: Vec<_> = (0..readers).map(|_| world.acquire(&read("x"))).collect();
        let next = world.acquire(&write(&["x"]));
        let behind = world.acquire(&read("x"));
        world.pass(ms(50));
        let now = world.now;
        assert!(world.nodes[0].machine.downgrade(writer, now));
        world.drain(0);
        let granted = granted_beside_a_renewal(&mut world);
        assert_eq!(granted, waiting, "the next writer waits, and so does the reader behind it");
        granted.into_iter().chain([writer]).for_each(|lock| world.release(lock));
        assert_eq!(next_granted(&mut world, 0), next);
        world.release(next);
        assert_eq!(next_granted(&mut world, 0), behind);
    }
}

#[test]
fn waiters_of_every_kind_are_notified_from_their_first_refusal_on() {
    let kinds = [
        Acquire { fenced: true, ..write(&["x"]) },
        read("x"),
        write(&["x", "y"]),
        wanted(&[Target::write("y"), Target::read("x")]),
    ];
    for (place, kind) in kinds.iter().enumerate() {
        let mut world = two_processes();
        let held = world.acquire(&write(&["x"]));
        assert_eq!(next_granted(&mut world, 0), held);
        let waits = world.acquire_by(1, kind);
        world.pass(ms(10));
        world.release(held);
        world.pump();
        assert_eq!(world.granted(1), [waits], "{place}");
    }
}

/// A server that tracks what scripts read does not notify of the end of a mark that the read of a
/// resource has not looked at.
#[test]
fn readers_wait_for_the_end_of_a_dead_writers_mark_only() {
    for wanted in [read("x"), wanted(&[Target::read("x"), Target::read("z")])] {
        let mut world = two_processes();
        world.each(|master| master.server.set_tracks_scripts(true));
        let reader = world.acquire(&read("x"));
        assert_eq!(next_granted(&mut world, 0), reader);
        let until = wall_clock(world.now) + ms(1_000);
        world.each(|master| master.server.hold(0, b"quorlock:want/{x}", b"another", Some(until)));
        let start = world.now;
        let attempts = |world: &World| world.masters.iter().map(|m| m.attempts().len()).sum::<usize>();
        let before = attempts(&world);
        let waits = world.acquire_by(1, &wanted);
        world.pass(ms(20));
        // A read would say that no writer holds it, and would be followed by another attempt.
        assert_eq!(attempts(&world) - before, 3);
        assert_eq!(next_granted(&mut world, 1), waits);
        let waited = world.now.since(start);
        assert!(waited < ms(1_100), "{waited:?}");
    }
}

/// A master does not notify of the end of a mark. So one that notifies may make a quorum together
/// with the end of a mark elsewhere, long before the key that it had would have expired.
#[test]
fn a_reader_that_one_master_has_freed_waits_only_for_the_mark_on_another_one() {
    for wanted in [read("x"), wanted(&[Target::read("x"), Target::read("z")])] {
        for tracks_scripts in [false, true] {
            let mut world = World::ready(settings(2));
            world.each(|master| master.server.set_tracks_scripts(tracks_scripts));
            let (held, marked) = (world.now + ms(4_000), world.now + ms(800));
            world.masters[0].hold_by_another("x", Some(held));
            world.masters[1].server.hold(0, b"quorlock:want/{x}", b"another", Some(wall_clock(marked)));
            // The refusal because of the mark decides the round, so the mark is not read again.
            world.masters[0].delay = ms(1);
            let reader = world.acquire(&wanted);
            world.pass(ms(5));
            let now = wall_clock(world.now);
            assert!(world.masters[0].server.remove(0, b"x", now));
            assert_eq!(next_granted(&mut world, 0), reader);
            let waited = world.now.since(marked);
            assert!(waited <= ms(300), "{waited:?} after the mark has ended");
        }
    }
}
