//! Locks of several resources, and of resources that are shared.

use quorlock_core::{Acquire, AcquireError, Event, Group, LockId, Target, Targets, Ttl};

use super::world::{World, ms, settings};

fn targets(all: &[Target]) -> Targets {
    settings(3).build().unwrap().targets(all.iter().cloned()).unwrap()
}

fn wanted(all: &[Target]) -> Acquire {
    Acquire { timeout: Some(ms(60_000)), ..Acquire::new(targets(all), Ttl::new(ms(10_000)).unwrap()) }
}

fn write(names: &[&str]) -> Acquire {
    wanted(&names.iter().map(Target::write).collect::<Vec<_>>())
}

fn read(name: &str) -> Acquire {
    wanted(&[Target::read(name)])
}

fn two_processes() -> World {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 7);
    world.pump();
    world
}

/// Which locks of a process have been granted by now; the caller takes them.
fn granted(world: &mut World, node: usize) -> Vec<LockId> {
    world.pump();
    let now = world.now;
    let events = std::mem::take(&mut world.nodes[node].events);
    let mut granted = Vec::new();
    for (_, event) in events {
        match event {
            Event::Granted { lock, .. } => {
                assert!(world.nodes[node].machine.take(lock, now).is_some());
                granted.push(lock);
            }
            Event::Released { .. } => {}
            event => panic!("{event:?}"),
        }
    }
    world.drain(node);
    granted
}

fn next_granted(world: &mut World, node: usize) -> LockId {
    for _ in 0..1_000 {
        match granted(world, node)[..] {
            [] => assert!(world.jump(), "nothing will ever happen"),
            [lock] => return lock,
            ref more => panic!("{more:?}"),
        }
    }
    panic!("it is never granted");
}

#[test]
fn all_resources_are_held_under_one_token_and_released_together() {
    let mut world = World::of(3);
    let lock = world.acquire(&write(&["y", "x", "z"]));
    assert_eq!(granted(&mut world, 0), [lock]);
    let token = world.expose(lock);
    for master in 0..3 {
        for key in ["x", "y", "z"] {
            assert_eq!(world.masters[master].value(key, world.now), Some(token.as_str()));
        }
    }
    world.release(lock);
    assert_eq!(granted(&mut world, 0), []);
    assert!((0..3).all(|master| world.masters[master].is_empty(world.now)));
}

#[test]
fn a_lock_of_several_resources_waits_for_each_of_them_in_one_process() {
    let mut world = World::of(3);
    let x = world.acquire(&write(&["x"]));
    let y = world.acquire(&write(&["y"]));
    assert_eq!(granted(&mut world, 0), [x, y]);
    let both = world.acquire(&write(&["x", "y"]));
    let behind = world.acquire(&write(&["y"]));
    world.release(x);
    assert_eq!(granted(&mut world, 0), []);
    world.release(y);
    assert_eq!(next_granted(&mut world, 0), both);
    world.release(both);
    assert_eq!(next_granted(&mut world, 0), behind);
}

#[test]
fn locks_of_several_resources_in_any_order_do_not_wait_for_one_another_forever() {
    let mut world = World::of(3);
    let names = [["x", "y"], ["y", "z"], ["z", "x"]];
    let locks: Vec<_> = (0..30).map(|turn| world.acquire(&write(&names[turn % 3]))).collect();
    for lock in locks {
        assert_eq!(next_granted(&mut world, 0), lock, "in the order of their coming");
        world.release(lock);
    }
}

#[test]
fn a_lock_that_leaves_its_queues_lets_the_next_ones_come_to_the_front() {
    let mut world = World::of(3);
    let x = world.acquire(&write(&["x"]));
    assert_eq!(granted(&mut world, 0), [x]);
    let both = world.acquire(&write(&["x", "y"]));
    let y = world.acquire(&write(&["y"]));
    assert_eq!(granted(&mut world, 0), []);
    world.cancel(both);
    assert_eq!(next_granted(&mut world, 0), y);
}

/// How a waiter gives up.
#[derive(Clone, Copy, Debug)]
enum GivesUp {
    AtItsTimeout,
    Cancelled,
    Released,
}

#[test]
fn a_waiter_that_gives_up_lets_in_those_behind_it_for_which_there_is_room() {
    let permits = |at_once| {
        let targets = settings(3).build().unwrap().permits_at_once("x", 2, at_once).unwrap();
        Acquire { timeout: Some(ms(60_000)), ..Acquire::new(targets, Ttl::new(ms(10_000)).unwrap()) }
    };
    // Those that hold locks, the waiter that gives up, and one that fits beside the holders.
    let queues = [
        (vec![read("x")], write(&["x"]), read("x")),
        (vec![permits(1)], permits(2), permits(1)),
        (vec![write(&["x"])], write(&["x", "y"]), write(&["y"])),
        (vec![write(&["x"]), read("y")], write(&["x", "y"]), read("y")),
    ];
    for (holders, waiter, behind) in &queues {
        for gives_up in [GivesUp::AtItsTimeout, GivesUp::Cancelled, GivesUp::Released] {
            let mut world = World::of(3);
            let held: Vec<_> = holders.iter().map(|holder| world.acquire(holder)).collect();
            assert_eq!(granted(&mut world, 0), held);
            let waiter = world.acquire(&Acquire { timeout: Some(ms(500)), ..waiter.clone() });
            let fits = world.acquire(behind);
            world.pass(ms(499));
            assert_eq!(granted(&mut world, 0), [], "{behind:?} comes after {waiter:?}");
            match gives_up {
                GivesUp::AtItsTimeout => {
                    world.pass(ms(1));
                    let (_, event) = world.nodes[0].events.pop_front().unwrap();
                    let is_over = matches!(event, Event::NotAcquired { lock, .. } if lock == waiter);
                    assert!(is_over, "{event:?}");
                }
                GivesUp::Cancelled => world.cancel(waiter),
                GivesUp::Released => world.release(waiter),
            }
            assert_eq!(granted(&mut world, 0), [fits], "{gives_up:?} {waiter:?} before {behind:?}");
        }
    }
}

#[test]
fn several_resources_exclude_and_are_excluded_by_other_processes() {
    let mut world = two_processes();
    let both = world.acquire(&write(&["x", "y"]));
    assert_eq!(granted(&mut world, 0), [both]);
    for names in [&["x"][..], &["y"], &["y", "z"]] {
        world.acquire_by(1, &Acquire { attempts: Some(1), ..write(names) });
        let event = world.next_event_of(1);
        assert!(
            matches!(event, Event::NotAcquired { error: AcquireError::HeldByAnother(_), .. }),
            "{event:?}"
        );
    }
    let waits = world.acquire_by(1, &write(&["y", "z"]));
    world.pass(ms(300));
    world.release(both);
    let start = world.now;
    assert_eq!(next_granted(&mut world, 1), waits);
    assert!(world.now.since(start) < ms(10), "it is told");
}

#[test]
fn a_number_is_larger_than_every_earlier_one_of_each_resource() {
    let mut world = World::of(3);
    let fenced = |all: Acquire| Acquire { fenced: true, ..all };
    let mut last = 0;
    for names in [&["x", "y"][..], &["y"], &["y"], &["x", "y"], &["x"]] {
        let lock = world.acquire(&fenced(write(names)));
        assert_eq!(granted(&mut world, 0), [lock]);
        let number = world.nodes[0].machine.resumption(lock).unwrap().fencing_token.unwrap().get();
        assert!(number > last, "{names:?}: {number} after {last}");
        last = number;
        world.release(lock);
        assert_eq!(granted(&mut world, 0), []);
    }
}

#[test]
fn readers_hold_together_and_keep_writers_out() {
    let mut world = two_processes();
    let readers: Vec<_> = (0..3).map(|_| world.acquire(&read("x"))).collect();
    assert_eq!(granted(&mut world, 0), readers);
    let other = world.acquire_by(1, &read("x"));
    assert_eq!(granted(&mut world, 1), [other]);
    world.acquire_by(1, &Acquire { attempts: Some(1), ..write(&["x"]) });
    let group = Group::new("g").unwrap();
    world.acquire_by(1, &Acquire { attempts: Some(1), ..wanted(&[Target::share("x", group)]) });
    for _ in 0..2 {
        let event = world.next_event_of(1);
        assert!(
            matches!(event, Event::NotAcquired { error: AcquireError::HeldByAnother(_), .. }),
            "{event:?}"
        );
    }
    for reader in readers {
        world.release(reader);
    }
    world.release_by(1, other);
    assert_eq!((granted(&mut world, 0), granted(&mut world, 1)), (vec![], vec![]));
    assert!((0..3).all(|master| world.masters[master].is_empty(world.now)));
}

#[test]
fn a_writer_that_waits_keeps_new_readers_out() {
    let mut world = two_processes();
    let reader = world.acquire(&read("x"));
    assert_eq!(granted(&mut world, 0), [reader]);
    let writer = world.acquire_by(1, &write(&["x"]));
    world.pass(ms(100));
    let late = world.acquire(&read("x"));
    world.pass(ms(2_000));
    assert_eq!(granted(&mut world, 0), []);
    world.release(reader);
    let start = world.now;
    assert_eq!(next_granted(&mut world, 1), writer);
    assert!(world.now.since(start) < ms(5), "{:?}", world.now.since(start));
    world.pass(ms(100));
    assert_eq!(granted(&mut world, 0), []);
    world.release_by(1, writer);
    let start = world.now;
    assert_eq!(next_granted(&mut world, 0), late);
    assert!(world.now.since(start) < ms(5), "{:?}", world.now.since(start));
}

#[test]
fn a_waiting_writer_that_died_keeps_readers_out_for_a_second() {
    let mut world = two_processes();
    let reader = world.acquire(&read("x"));
    assert_eq!(granted(&mut world, 0), [reader]);
    world.acquire_by(1, &write(&["x"]));
    world.pass(ms(1_700));
    world.nodes.pop();
    let start = world.now;
    let late = world.acquire(&read("x"));
    assert_eq!(next_granted(&mut world, 0), late);
    let waited = world.now.since(start);
    assert!(waited <= ms(1_100) && waited >= ms(400), "{waited:?}");
}

#[test]
fn a_single_try_for_several_resources_asks_no_master_while_callers_of_its_process_seek_one_of_them() {
    let [x, y] = ["x", "y"].map(|name| write(&[name]));
    // What the process holds and seeks, and how many callers were ahead of a single try for `x` and
    // `y`; `None` if it asks the masters.
    let cases = [
        (vec![], vec![], None),
        (vec![x.clone()], vec![], None),
        (vec![y.clone()], vec![], None),
        (vec![read("x")], vec![], None),
        (vec![read("x"), y.clone()], vec![], None),
        (vec![], vec![x.clone()], Some(1)),
        (vec![y.clone()], vec![x.clone()], Some(1)),
        (vec![x.clone()], vec![x.clone()], Some(2)),
        (vec![x.clone(), y], vec![x.clone(), x], Some(3)),
    ];
    for (holds, seeks, ahead) in cases {
        let mut world = World::of(3);
        let held: Vec<_> = holds.iter().map(|wanted| world.acquire(wanted)).collect();
        assert_eq!(granted(&mut world, 0), held);
        for wanted in &seeks {
            world.acquire(wanted);
        }
        let written = world.nodes[0].written.len();
        let tries = world.acquire(&Acquire { attempts: Some(1), ..write(&["x", "y"]) });
        assert_eq!(world.nodes[0].written.len() > written, ahead.is_none(), "{holds:?} {seeks:?}");
        let started = world.now;
        match world.next_event() {
            Event::NotAcquired { lock, error: AcquireError::HeldByAnother(ballot) } => {
                assert_eq!(
                    (lock, ballot.callers_ahead()),
                    (tries, ahead.unwrap_or(0)),
                    "{holds:?} {seeks:?}"
                );
            }
            event => assert!(matches!(event, Event::Granted { .. }) && holds.is_empty(), "{event:?}"),
        }
        assert_eq!(world.now, started, "{holds:?} {seeks:?}");
    }
}

#[test]
fn a_caller_behind_a_single_try_for_several_resources_waits_in_its_process() {
    let mut world = World::of(3);
    let both = world.acquire(&Acquire { attempts: Some(1), ..write(&["x", "y"]) });
    assert_eq!(granted(&mut world, 0), [both]);
    let asked = |world: &World| world.masters[0].executed.len();
    let before = asked(&world);
    let behind = world.acquire(&write(&["x"]));
    world.pass(ms(50));
    assert_eq!(asked(&world), before);
    world.release(both);
    assert_eq!(granted(&mut world, 0), [behind]);
}

#[test]
fn a_caller_behind_a_lock_of_several_resources_that_gives_up_does_not_wait_for_all_of_them() {
    let mut world = two_processes();
    let y = world.acquire_by(1, &write(&["y"]));
    assert_eq!(granted(&mut world, 1), [y]);
    let both = world.acquire(&write(&["x", "y"]));
    world.pass(ms(50));
    let x = world.acquire(&write(&["x"]));
    world.pass(ms(50));
    assert_eq!(granted(&mut world, 0), []);
    world.cancel(both);
    assert_eq!(granted(&mut world, 0), [x]);
}

#[test]
fn locks_of_several_ask_one_master_first_if_others_want_any_of_their_targets() {
    for is_contended in [false, true] {
        let mut world = World::of(3);
        if is_contended {
            world.each(|master| master.hold_by_another("b", None));
            let refused = world.acquire(&write(&["b"]));
            world.pump();
            world.cancel(refused);
            world.each(super::world::Master::forget_keys);
        }
        let held = world.hold(&write(&["a"]));
        world.acquire(&write(&["a", "b"]));
        world.each(|master| master.delay = ms(1));
        world.release(held);
        world.pump();
        let asked: usize = world.masters.iter().map(|master| master.count("ACQUIRE ALL")).sum();
        assert_eq!(asked, if is_contended { 1 } else { 3 }, "contended: {is_contended}");
    }
}
