//! Permits of a semaphore: assigned by one master, held as seats on a majority.

use quorlock_core::{Acquire, AcquireError, Event, LockId, Targets, Ttl};

use super::world::{Flow, Master, World, ms, settings};

fn permits(of: u32) -> Targets {
    settings(3).build().unwrap().permits("gpu", of).unwrap()
}

pub fn wanted(of: u32) -> Acquire {
    Acquire { timeout: Some(ms(60_000)), ..Acquire::new(permits(of), Ttl::new(ms(10_000)).unwrap()) }
}

fn processes(masters: usize, count: usize) -> World {
    let mut world = World::of(masters);
    for node in 1..count {
        world.add_node(settings(masters).build().unwrap(), 7 * node as u64);
    }
    world.pump();
    world
}

/// The locks of a process that have been granted by now, which the caller takes, with their seats.
pub fn granted(world: &mut World, node: usize) -> Vec<(LockId, u16)> {
    let locks = world.granted(node);
    let machine = &world.nodes[node].machine;
    locks.into_iter().map(|lock| (lock, machine.seat(lock).unwrap())).collect()
}

pub fn seat_of(world: &World, master: usize, seat: u16) -> Option<&str> {
    world.masters[master].value(&format!("quorlock:seat:{seat}/{{gpu}}"), world.now)
}

/// The number of writes of the first machine.
pub fn writes(world: &World) -> usize {
    world.nodes[0].writes.iter().sum()
}

#[test]
fn each_holder_has_its_own_seat_and_no_more_are_admitted() {
    for masters in [1, 3, 4, 5] {
        let mut world = processes(masters, 3);
        let mut seats = Vec::new();
        let mut held = Vec::new();
        for turn in 0..4 {
            let lock = world.acquire_by(turn % 3, &wanted(4));
            let [(granted, seat)] = granted(&mut world, turn % 3)[..] else { panic!("{turn} of {masters}") };
            assert_eq!(granted, lock);
            seats.push(seat);
            held.push((turn % 3, lock));
        }
        seats.sort_unstable();
        assert_eq!(seats, [0, 1, 2, 3]);
        world.acquire_by(1, &Acquire { attempts: Some(1), ..wanted(4) });
        let event = world.next_event_of(1);
        assert!(
            matches!(event, Event::NotAcquired { error: AcquireError::HeldByAnother(_), .. }),
            "{event:?}"
        );
        let waits = world.acquire_by(2, &wanted(4));
        world.pass(ms(500));
        let start = world.now;
        let (node, lock) = held[1];
        world.release_by(node, lock);
        let next = loop {
            if let [next] = granted(&mut world, 2)[..] {
                break next;
            }
            assert!(world.jump());
        };
        assert_eq!(next, (waits, 1));
        assert!(world.now.since(start) < ms(10), "it is told");
    }
}

#[test]
fn a_permit_costs_each_master_one_request_and_one_release() {
    let mut world = World::of(3);
    let lock = world.acquire(&wanted(4));
    assert_eq!(granted(&mut world, 0), [(lock, 0)]);
    world.release(lock);
    assert_eq!(granted(&mut world, 0), []);
    let counts =
        |name: &str| -> Vec<usize> { world.masters.iter().map(|master| master.count(name)).collect() };
    assert_eq!(counts("TAKE").iter().sum::<usize>(), 1);
    assert_eq!(counts("SET").iter().sum::<usize>(), 2);
    assert_eq!(counts("RELEASE"), [1, 1, 1]);
    assert!((0..3).all(|master| world.masters[master].is_empty(world.now)));
}

/// A program that requests a permit at once, like the command.
#[test]
fn a_permit_is_assigned_although_no_master_was_connected_when_it_was_requested() {
    for silent in [None, Some(0), Some(1), Some(2)] {
        let mut world = World::cold(settings(3));
        if let Some(silent) = silent {
            world.masters[silent].flow = Flow::Stopped;
        }
        let start = world.now;
        let lock = world.acquire(&Acquire { attempts: Some(1), ..wanted(4) });
        while granted(&mut world, 0).is_empty() {
            assert!(world.jump());
        }
        assert!(world.now.since(start) < ms(100), "silent: {silent:?}");
        world.release(lock);
        world.pump();
        let connections: Vec<_> = (0..3).map(|master| world.nodes[0].opened[master]).collect();
        assert_eq!(connections, [1, 1, 1], "none was given up");
    }
}

#[test]
fn a_single_try_whose_votes_were_split_ends_although_all_permits_are_taken_meanwhile() {
    let seats = ["quorlock:seat:0/{gpu}", "quorlock:seat:1/{gpu}"];
    for held in [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]] {
        let mut world = World::of(4);
        for master in held {
            world.masters[master].hold_by_another(seats[0], None);
            world.masters[master].hold_by_another(seats[1], None);
        }
        world.acquire(&Acquire { attempts: Some(1), timeout: None, ..wanted(2) });
        world.pump();
        world.each(|master| seats.iter().for_each(|seat| master.hold_by_another(seat, None)));
        let error = world.refusal();
        assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
    }
}

#[test]
fn a_permit_that_is_requested_before_there_is_a_connection_is_assigned_by_one_master() {
    let mut world = World::cold(settings(3));
    let lock = world.acquire(&wanted(4));
    assert_eq!(granted(&mut world, 0), [(lock, 0)]);
    let takes: usize = world.masters.iter().map(|master| master.count("TAKE")).sum();
    assert_eq!((takes, &world.nodes[0].opened), (1, &vec![1; 3]));
    assert!((0..3).all(|master| seat_of(&world, master, 0).is_some()));
}

#[test]
fn a_silent_first_master_is_not_waited_for_and_its_assignment_is_released() {
    for silent in 0..3 {
        let mut world = World::of(3);
        world.masters[silent].flow = Flow::Stopped;
        let lock = world.acquire(&wanted(4));
        let start = world.now;
        let seat = loop {
            if let [(granted, seat)] = granted(&mut world, 0)[..] {
                assert_eq!(granted, lock);
                break seat;
            }
            assert!(world.jump());
        };
        assert!(world.now.since(start) < ms(100), "{:?}", world.now.since(start));
        world.masters[silent].flow = Flow::Free;
        world.pump();
        let holders = (0..3).filter(|master| seat_of(&world, *master, seat).is_some()).count();
        assert!(holders >= 2);
        world.release(lock);
        world.pump();
        world.pass(ms(200));
        assert!((0..3).all(|master| world.masters[master].is_empty(world.now)), "silent: {silent}");
    }
}

#[test]
fn a_waiter_behind_a_slow_first_master_is_notified_by_the_others() {
    for slow in 0..3 {
        let mut world = processes(3, 2);
        let held = world.acquire(&wanted(1));
        assert_eq!(granted(&mut world, 0), [(held, 0)]);
        // The slow master's answers arrive after the others have been asked.
        world.masters[slow].delay = ms(15);
        let waits = world.acquire_by(1, &wanted(1));
        world.pass(ms(500));
        let asked = |world: &World| world.masters.iter().map(|master| master.count("TAKE")).sum::<usize>();
        let before = asked(&world);
        world.pass(ms(400));
        assert_eq!(asked(&world), before, "slow: {slow}");
        let start = world.now;
        world.release(held);
        loop {
            if let [(granted, _)] = granted(&mut world, 1)[..] {
                assert_eq!(granted, waits);
                break;
            }
            assert!(world.jump());
        }
        assert!(world.now.since(start) < ms(100), "slow: {slow}, {:?}", world.now.since(start));
    }
}

#[test]
fn a_long_waiter_comes_before_a_new_one() {
    for waited in [0, 1_500] {
        let mut world = processes(3, 3);
        let held = world.acquire(&wanted(1));
        assert_eq!(granted(&mut world, 0), [(held, 0)]);
        let waits = world.acquire_by(1, &wanted(1));
        world.pass(ms(20 + waited));
        let is_marked = |master: &&Master| master.value("quorlock:seat:next/{gpu}", world.now).is_some();
        // It has asked all masters after a second without a notification.
        let marked = if waited > 0 { 3 } else { 0 };
        assert_eq!(world.masters.iter().filter(is_marked).count(), marked);
        // The third process's request arrives before the waiter is notified of the release.
        world.release(held);
        let comes = world.acquire_by(2, &wanted(1));
        let (node, first) = if waited > 0 { (1, waits) } else { (2, comes) };
        assert_eq!(granted(&mut world, node), [(first, 0)], "waited: {waited}");
        world.release_by(node, first);
        let (node, second) = if waited > 0 { (2, comes) } else { (1, waits) };
        world.pass(ms(20));
        assert_eq!(granted(&mut world, node), [(second, 0)], "waited: {waited}");
    }
}

#[test]
fn a_seat_that_only_one_master_shows_as_free_is_not_requested_forever() {
    for behind in 0..3 {
        let mut world = World::of(3);
        for master in (0..3).filter(|master| *master != behind) {
            world.masters[master].hold_by_another("quorlock:seat:0/{gpu}", None);
        }
        let lock = world.acquire(&wanted(4));
        let (granted, seat) = loop {
            if let [one] = granted(&mut world, 0)[..] {
                break one;
            }
            assert!(world.jump());
        };
        assert_eq!(granted, lock);
        assert_ne!(seat, 0);
    }
}

#[test]
fn the_second_attempt_begins_behind_the_seat_that_others_refused_whoever_assigns_then() {
    for one in 0..5 {
        for other in one + 1..5 {
            let mut world = World::of(5);
            for master in (0..5).filter(|master| ![one, other].contains(master)) {
                world.masters[master].hold_by_another("quorlock:seat:0/{gpu}", None);
            }
            // Two masters do not know of the holder, so both would assign its seat.
            let lock = world.acquire(&wanted(4));
            let event = world.next_event();
            assert!(matches!(event, Event::Granted { .. }), "{one} and {other}: {event:?}");
            assert_ne!(world.nodes[0].machine.seat(lock), Some(0));
            let assigned: usize = world.masters.iter().map(|master| master.tokens("TAKE").len()).sum();
            assert!(assigned <= 2, "{one} and {other}: {assigned} times");
        }
    }
}

#[test]
fn a_full_window_of_seats_leads_to_the_next_window_at_once() {
    let mut world = World::of(3);
    for master in 0..3 {
        for seat in 0..130 {
            world.masters[master].hold_by_another(&format!("quorlock:seat:{seat}/{{gpu}}"), None);
        }
    }
    let start = world.now;
    let lock = world.acquire(&wanted(200));
    assert_eq!(granted(&mut world, 0), [(lock, 130)]);
    assert_eq!(world.now, start);
}

#[test]
fn a_seat_of_an_earlier_window_is_not_taken_for_one_of_a_later_window() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let [slow, full, last] = order;
        let mut world = World::of(3);
        let hold = |world: &mut World, master: usize, seat: u16| {
            world.masters[master].hold_by_another(&format!("quorlock:seat:{seat}/{{gpu}}"), None);
        };
        for seat in 0..64 {
            hold(&mut world, full, seat);
            hold(&mut world, last, seat);
        }
        hold(&mut world, last, 64);
        world.masters[slow].flow = Flow::Stopped;
        let lock = world.acquire(&Acquire { attempts: Some(1), ..wanted(128) });
        world.pass(ms(30));
        world.masters[slow].flow = Flow::Free;
        for (_, seat) in granted_or_refused(&mut world) {
            let holders = (0..3).filter(|master| {
                let token = world.nodes[0].machine.token(lock).unwrap().expose();
                seat_of(&world, *master, seat) == Some(token.as_str())
            });
            assert!(holders.count() >= 2, "seat {seat} is held by fewer masters than said so: {order:?}");
        }
    }
}

/// As [`granted`], but a refusal is no failure.
fn granted_or_refused(world: &mut World) -> Vec<(LockId, u16)> {
    world.pass(ms(100));
    world.nodes[0].events.retain(|(_, event)| matches!(event, Event::Granted { .. }));
    granted(world, 0)
}

#[test]
fn a_fenced_permit_has_a_number_of_its_seat() {
    let mut world = World::of(3);
    let fenced = Acquire { fenced: true, ..wanted(2) };
    let mut last = [0, 0];
    for _ in 0..4 {
        let locks = [world.acquire(&fenced), world.acquire(&fenced)];
        for (lock, seat) in granted(&mut world, 0) {
            let number = world.nodes[0].machine.resumption(lock).unwrap().fencing_token.unwrap().get();
            assert!(number > last[usize::from(seat)]);
            last[usize::from(seat)] = number;
        }
        locks.into_iter().for_each(|lock| world.release(lock));
        world.pass(ms(10));
        granted(&mut world, 0);
    }
    assert!(last.iter().all(|number| *number >= 4));
}

#[test]
fn clients_that_disagree_admit_at_most_the_largest_number() {
    let mut world = processes(3, 2);
    let few = world.acquire(&wanted(1));
    assert_eq!(granted(&mut world, 0), [(few, 0)]);
    let more = world.acquire_by(1, &wanted(2));
    assert_eq!(granted(&mut world, 1), [(more, 1)]);
    for (node, of) in [(0, 1), (1, 2)] {
        world.acquire_by(node, &Acquire { attempts: Some(1), ..wanted(of) });
        assert!(matches!(world.next_event_of(node), Event::NotAcquired { .. }));
    }
}

#[test]
fn a_master_that_lost_its_data_takes_no_seat_for_any_client() {
    let longest = ms(10_000);
    for assigns in 0..3 {
        let mut world = World::ready(settings(3).restart_guard(longest));
        world.pass(longest);
        // Two masters forget that the seat is held; the third one is left to name it.
        for master in (0..3).filter(|master| *master != assigns) {
            world.cut(0, master);
            world.masters[master].server.restart(100 + master as u64, |_| false);
        }
        world.pass(ms(50));
        world.acquire(&Acquire { attempts: Some(1), ..wanted(1) });
        let error = world.refusal();
        assert!(matches!(error, AcquireError::Quarantined(_)), "{error}");
        world.pass(ms(100));
        assert!((0..3).all(|master| seat_of(&world, master, 0).is_none()), "{assigns}");
    }
}

#[test]
fn a_release_takes_back_any_seat_that_a_slow_master_may_take() {
    for slow in 0..3 {
        let mut world = World::of(3);
        // The slow master cannot take the seat that the others have.
        world.masters[slow].hold_by_another("quorlock:seat:0/{gpu}", None);
        world.masters[slow].flow = Flow::Stopped;
        let lock = world.acquire(&wanted(4));
        while granted(&mut world, 0).is_empty() {
            assert!(world.jump());
        }
        world.release(lock);
        world.pump();
        world.masters[slow].flow = Flow::Free;
        world.pass(ms(500));
        assert!((1..4).all(|seat| seat_of(&world, slow, seat).is_none()), "slow: {slow}");
    }
}

#[test]
fn a_waiter_for_a_permit_behind_one_without_a_quorum_reports_the_votes_of_the_one_in_front() {
    let mut world = World::of(3);
    (0..2).for_each(|master| world.masters[master].flow = Flow::Stopped);
    world.acquire(&Acquire { timeout: None, ..wanted(1) });
    world.acquire(&Acquire { timeout: Some(ms(500)), ..wanted(1) });
    let error = world.refusal();
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
}
