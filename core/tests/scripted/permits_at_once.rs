//! Several permits at once: all or none, and no two wait for each other.

use quorlock_core::{Acquire, AcquireError, ConfigError, Event, LockId, Resumption, Targets, Ttl};

use super::world::{Flow, World, ms, settings};

fn permits(of: u32, at_once: u32) -> Targets {
    settings(3).build().unwrap().permits_at_once("gpu", of, at_once).unwrap()
}

fn wanted(of: u32, at_once: u32) -> Acquire {
    let ttl = Ttl::new(ms(10_000)).unwrap();
    Acquire { timeout: Some(ms(60_000)), ..Acquire::new(permits(of, at_once), ttl) }
}

fn processes(masters: usize, count: usize) -> World {
    let mut world = World::of(masters);
    for node in 1..count {
        world.add_node(settings(masters).build().unwrap(), 7 * node as u64);
    }
    world.pump();
    world
}

fn key(seat: u32) -> String {
    format!("quorlock:seat:{seat}/{{gpu}}")
}

fn is_empty(world: &World) -> bool {
    world.masters.iter().all(|master| master.is_empty(world.now))
}

/// The locks of a process that have been granted by now, which the caller takes, with their
/// permits.
fn granted(world: &mut World, node: usize) -> Vec<(LockId, Resumption)> {
    let locks = world.granted(node);
    let machine = &mut world.nodes[node].machine;
    locks.into_iter().map(|lock| (lock, machine.resumption(lock).unwrap())).collect()
}

fn numbers(resumption: Resumption) -> Vec<u32> {
    resumption.permits().collect()
}

#[test]
fn several_permits_are_held_together_and_cost_each_master_one_request_and_one_release() {
    for masters in [1, 3, 4, 5] {
        let mut world = World::of(masters);
        let lock = world.acquire(&wanted(4, 3));
        let [(granted_lock, held)] = granted(&mut world, 0)[..] else { panic!("of {masters}") };
        assert_eq!((granted_lock, numbers(held)), (lock, vec![0, 1, 2]));
        let token = held.token.expose();
        for master in &world.masters {
            assert!((0..3).all(|seat| master.value(&key(seat), world.now) == Some(token.as_str())));
            assert_eq!(master.count("TAKE") + master.count("ACQUIRE ALL"), 1);
        }
        world.release(lock);
        granted(&mut world, 0);
        assert!(is_empty(&world));
        assert!(world.masters.iter().all(|master| master.count("RELEASE ALL") == 1));
    }
}

#[test]
fn too_few_free_permits_are_not_granted() {
    let mut world = processes(3, 2);
    let three = world.acquire(&wanted(4, 3));
    assert_eq!(granted(&mut world, 0).len(), 1);
    world.acquire_by(1, &Acquire { attempts: Some(1), ..wanted(4, 2) });
    let event = world.next_event_of(1);
    assert!(matches!(event, Event::NotAcquired { error: AcquireError::HeldByAnother(_), .. }), "{event:?}");
    world.pump();
    assert!(world.masters.iter().all(|master| master.value(&key(3), world.now).is_none()));
    let two = world.acquire_by(1, &wanted(4, 2));
    world.pass(ms(300));
    assert_eq!(granted(&mut world, 1), []);
    let start = world.now;
    world.release(three);
    let held = loop {
        if let [(lock, held)] = granted(&mut world, 1)[..] {
            assert_eq!(lock, two);
            break numbers(held);
        }
        assert!(world.jump());
    };
    assert_eq!(held.len(), 2);
    assert!(world.now.since(start) < ms(10), "it is told");
}

#[test]
fn requests_for_all_permits_take_turns() {
    for (masters, of, at_once) in [(3, 1, 1), (3, 2, 2), (3, 3, 2), (4, 5, 3), (5, 2, 2)] {
        let mut world = processes(masters, 3);
        world.each(|master| master.delay = ms(1));
        let mut seeking = [None; 3];
        let mut held: Vec<(usize, LockId, Vec<u32>)> = Vec::new();
        let (mut turns, start) = ([0_u32; 3], world.now);
        while turns.iter().any(|turns| *turns < 10) {
            for node in 0..3 {
                seeking[node].get_or_insert_with(|| world.acquire_by(node, &wanted(of, at_once)));
                for (lock, proof) in granted(&mut world, node) {
                    let mine = numbers(proof);
                    let taken = |number: &u32| held.iter().any(|(_, _, theirs)| theirs.contains(number));
                    assert!(!mine.iter().any(taken), "{mine:?} beside {held:?}");
                    assert_eq!(mine.len(), at_once as usize);
                    held.push((node, lock, mine));
                    turns[node] += 1;
                }
            }
            if !held.is_empty() {
                let (node, lock, _) = held.remove(0);
                // The holds are not in step with the pauses of the waiters.
                world.pass(ms(1 + u64::from(turns[node]) * 7 % 5));
                world.release_by(node, lock);
                seeking[node] = None;
            } else {
                assert!(world.jump());
            }
            assert!(world.now.since(start) < ms(60_000), "{turns:?} of {masters} {of} {at_once}");
        }
    }
}

#[test]
fn a_lost_attempt_gives_back_its_permits() {
    for full in [[0, 1], [0, 2], [1, 2]] {
        let mut world = World::of(3);
        for master in full {
            world.masters[master].hold_by_another(&key(1), None);
        }
        let start = world.now;
        let lock = world.acquire(&wanted(4, 2));
        let held = loop {
            if let [(_, held)] = granted(&mut world, 0)[..] {
                break numbers(held);
            }
            assert!(world.jump());
        };
        assert!(!held.contains(&1), "{held:?}");
        assert!(world.now.since(start) < ms(1_000));
        world.release(lock);
        world.pump();
        world.pass(ms(100));
        for seat in [0, 2, 3] {
            assert!(world.masters.iter().all(|master| master.value(&key(seat), world.now).is_none()));
        }
    }
}

#[test]
fn permits_that_are_assigned_late_are_released() {
    for slow in 0..3 {
        let mut world = World::of(3);
        world.masters[slow].flow = Flow::Stopped;
        let lock = world.acquire(&wanted(4, 2));
        while granted(&mut world, 0).is_empty() {
            assert!(world.jump());
        }
        world.release(lock);
        world.pump();
        world.masters[slow].flow = Flow::Free;
        world.pass(ms(500));
        assert!(is_empty(&world), "slow: {slow}");
    }
}

#[test]
fn several_permits_have_one_number_above_every_earlier_number_of_each() {
    let mut world = World::of(3);
    let fenced = |at_once| Acquire { fenced: true, ..wanted(3, at_once) };
    let mut last = [0; 3];
    for at_once in [1, 3, 2, 3, 1, 2] {
        let lock = world.acquire(&fenced(at_once));
        let [(_, held)] = granted(&mut world, 0)[..] else { panic!("no other client wants them") };
        let number = held.fencing_token.unwrap().get();
        for permit in held.permits() {
            assert!(number > last[permit as usize]);
            last[permit as usize] = number;
        }
        world.release(lock);
        granted(&mut world, 0);
    }
}

#[test]
fn requests_for_few_permits_do_not_overtake_one_for_many_in_one_process() {
    let mut world = World::of(3);
    let first = [world.acquire(&wanted(2, 1)), world.acquire(&wanted(2, 1))];
    assert_eq!(granted(&mut world, 0).len(), 2);
    let both = world.acquire(&wanted(2, 2));
    let few = world.acquire(&wanted(2, 1));
    world.release(first[0]);
    world.pass(ms(500));
    assert_eq!(granted(&mut world, 0), [], "one is free, and that is not enough");
    world.release(first[1]);
    let next = loop {
        if let [(next, _)] = granted(&mut world, 0)[..] {
            break next;
        }
        assert!(world.jump());
    };
    assert_eq!(next, both);
    world.release(both);
    world.pass(ms(100));
    assert_eq!(granted(&mut world, 0).first().map(|(lock, _)| *lock), Some(few));
}

#[test]
fn several_permits_are_handed_over_together() {
    let mut world = processes(3, 2);
    let lock = world.acquire(&wanted(4, 2));
    let [(_, held)] = granted(&mut world, 0)[..] else { panic!("no other client wants them") };
    assert_eq!(world.nodes[0].machine.hand_over(lock, world.now), Some(held));
    world.drain(0);
    let handed = Resumption::from_text(&held.expose(), None).unwrap();
    let now = world.now;
    for at_once in [1, 3] {
        let asked = Acquire { resumption: Some(handed), ..wanted(4, at_once) };
        let refused = world.nodes[1].machine.acquire(&asked, now);
        assert_eq!(refused, Err(AcquireError::Invalid(ConfigError::ResumedAsAnother)));
    }
    let lock = world.acquire_by(1, &Acquire { resumption: Some(handed), ..wanted(4, 2) });
    assert_eq!(granted(&mut world, 1), [(lock, held)]);
    world.release_by(1, lock);
    granted(&mut world, 1);
    assert!(is_empty(&world));
}

#[test]
fn an_impossible_number_of_permits_is_an_error() {
    let config = settings(3).build().unwrap();
    for (permits, at_once, most) in [(4, 0, 4), (4, 5, 4), (1_024, 65, 64), (4, u32::MAX, 4)] {
        let refused = config.permits_at_once("gpu", permits, at_once);
        assert_eq!(refused, Err(ConfigError::UnusablePermitsAtOnce { permits: at_once, most }));
    }
    assert!(config.permits_at_once("gpu", 1_024, 64).is_ok());
}

#[test]
fn free_permits_on_both_sides_of_a_border_of_two_windows_are_found() {
    for (of, at_once, free) in [
        (65, 2, vec![63, 64]),
        (65, 2, vec![64, 0]),
        (100, 50, (30..100).collect()),
        (128, 64, (1..127).collect()),
        (130, 3, vec![62, 63, 64]),
        (130, 3, vec![129, 0, 1]),
        (1_024, 49, (500..549).collect()),
    ] {
        let mut world = World::of(3);
        for master in &mut world.masters {
            for seat in (0..of).filter(|seat| !free.contains(seat)) {
                master.hold_by_another(&key(seat), None);
            }
        }
        let lock = world.acquire(&Acquire { attempts: Some(1), ..wanted(of, at_once) });
        let granted = granted(&mut world, 0);
        assert_eq!(granted.iter().map(|(lock, _)| *lock).collect::<Vec<_>>(), [lock], "{at_once} of {of}");
    }
}

#[test]
fn very_many_free_permits_between_windows_are_found_by_a_later_attempt() {
    let mut world = World::of(3);
    for master in &mut world.masters {
        for seat in (0..200).filter(|seat| !(77..141).contains(seat)) {
            master.hold_by_another(&key(seat), None);
        }
    }
    let lock = world.acquire(&wanted(200, 64));
    let granted = loop {
        if let [(granted, _)] = granted(&mut world, 0)[..] {
            break granted;
        }
        assert!(world.jump());
    };
    assert_eq!(granted, lock);
}

#[test]
fn a_waiter_of_the_process_asks_as_soon_as_enough_of_its_permits_are_released() {
    let mut world = World::of(3);
    let [two, one] = [2, 1].map(|at_once| world.acquire(&wanted(3, at_once)));
    assert_eq!(granted(&mut world, 0).len(), 2);
    let waits = world.acquire(&wanted(3, 2));
    world.pass(ms(50));
    assert_eq!(granted(&mut world, 0), []);
    world.release(two);
    let now_held: Vec<_> = granted(&mut world, 0).into_iter().map(|(lock, _)| lock).collect();
    assert_eq!(now_held, [waits]);
    world.release(one);
}
