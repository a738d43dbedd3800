//! Processes that wait fairly: each has a place in the queues of the masters.

use std::time::Duration;

use quorlock_core::{Acquire, AcquireError, Config, ConfigError, Event, Group, LockId, Target, Targets, Ttl};

use super::wake_ups::is_granted;
use super::world::{Flow, KEY, Reach, World, ms, settings, wanted};

pub fn fair() -> Acquire {
    Acquire { fair: true, timeout: None, ..wanted(ms(10_000)) }
}

pub fn processes(masters: usize, count: u64) -> World {
    let mut world = World::of(masters);
    (1..count).for_each(|number| world.add_node(settings(masters).build().unwrap(), 7 + number));
    world.pump();
    world
}

/// The first process holds the lock, and the others wait for it in order.
pub fn queue(masters: usize, count: u64) -> (World, Vec<LockId>) {
    let mut world = processes(masters, count);
    let mut locks = vec![world.hold(&fair())];
    for node in 1..count {
        world.pass(ms(2));
        locks.push(world.acquire_by(node.try_into().unwrap(), &fair()));
        world.pump();
    }
    (world, locks)
}

fn executed(world: &World) -> usize {
    world.masters.iter().map(|master| master.executed.len()).sum()
}

/// The processes that have been granted the lock by now.
pub fn granted(world: &mut World) -> Vec<usize> {
    (0..world.nodes.len()).filter(|&node| is_granted(world, node)).collect()
}

fn take(world: &mut World, node: usize, lock: LockId) {
    assert!(world.nodes[node].machine.take(lock, world.now).is_some());
    world.drain(node);
}

/// The keys of places that live on this master.
pub fn places(world: &World, master: usize) -> usize {
    let now = super::world::wall_clock(world.now);
    let keys = world.masters[master].server.keys(now);
    keys.filter(|held| held.key.starts_with(b"quorlock:place")).count()
}

#[test]
fn an_uncontended_fair_lock_costs_each_master_one_request_and_one_release() {
    for masters in [1, 3, 4, 5] {
        for fenced in [false, true] {
            let mut world = World::of(masters);
            let lock = world.hold(&Acquire { fenced, ..fair() });
            assert_eq!(world.nodes[0].machine.resumption(lock).unwrap().fencing_token.is_some(), fenced);
            world.release(lock);
            world.pump();
            for master in 0..masters {
                assert_eq!(world.masters[master].count("ENTER"), 1);
                assert_eq!(world.masters[master].count("LEAVE"), 1);
                assert_eq!((world.masters[master].value(KEY, world.now), places(&world, master)), (None, 0));
            }
            // The queue expires after ten times the life of a place.
            world.pass(ms(10_001));
            let counters = usize::from(fenced);
            let now = super::world::wall_clock(world.now);
            assert!(world.masters.iter().all(|master| master.server.keys(now).count() == counters));
        }
    }
}

#[test]
pub fn processes_are_served_in_order_of_arrival() {
    for masters in [1, 3, 4, 5] {
        let (mut world, locks) = queue(masters, 5);
        world.pass(ms(50));
        for (next, pair) in (1..).zip(locks.windows(2)) {
            assert_eq!(granted(&mut world), []);
            world.release_by(next - 1, pair[0]);
            assert_eq!(granted(&mut world), [next], "at once");
            take(&mut world, next, pair[1]);
        }
    }
}

#[test]
fn a_release_wakes_one_waiter() {
    let (mut world, locks) = queue(3, 6);
    world.pass(ms(50));
    let before = executed(&world);
    world.release(locks[0]);
    world.pump();
    // The release, and the attempt of the waiter whose turn it is.
    assert_eq!(executed(&world) - before, 3 + 3);
}

#[test]
fn a_process_that_comes_back_at_once_is_served_last() {
    let (mut world, mut locks) = queue(3, 3);
    for turn in 0..9 {
        let (holder, next) = (turn % 3, (turn + 1) % 3);
        world.release_by(holder, locks[holder]);
        locks[holder] = world.acquire_by(holder, &fair());
        assert_eq!(granted(&mut world), [next]);
        take(&mut world, next, locks[next]);
        world.pass(ms(3));
        assert_eq!(granted(&mut world), []);
    }
}

#[test]
fn callers_of_one_process_take_turns_with_other_processes() {
    let mut world = processes(3, 2);
    let held = world.hold(&fair());
    let own: Vec<_> = (0..3).map(|_| world.acquire(&fair())).collect();
    let other = world.acquire_by(1, &fair());
    world.pump();
    world.release(held);
    assert_eq!(granted(&mut world), [1], "the first of the same process comes back at the end");
    take(&mut world, 1, other);
    world.release_by(1, other);
    world.nodes[1].events.clear();
    assert!(world.granted(0).contains(&own[0]));
}

#[test]
fn a_waiter_asks_each_master_once_until_its_place_is_to_be_renewed() {
    let (mut world, _) = queue(3, 2);
    world.pass(ms(330));
    assert!(world.masters.iter().all(|master| master.count("ENTER") == 2), "the holder's and the waiter's");
}

#[test]
fn a_place_is_renewed_each_third_of_a_second() {
    let (mut world, _) = queue(3, 2);
    world.pass(ms(10));
    let before = world.masters[0].count("ENTER");
    for renewals in 1..=9 {
        world.pass(ms(334));
        assert_eq!(world.masters[0].count("ENTER") - before, renewals);
        assert!((0..3).all(|master| places(&world, master) >= 1));
    }
    // The holder's place is not renewed.
    assert_eq!(places(&world, 0), 1);
}

#[test]
fn a_waiter_that_died_costs_at_most_one_lease() {
    for dead in [1, 2, 100] {
        let mut world = processes(3, dead + 2);
        let held = world.hold(&fair());
        for node in (2..world.nodes.len()).chain([1]) {
            world.acquire_by(node, &fair());
            world.pump();
        }
        world.pass(ms(500));
        world.nodes.truncate(2);
        world.release(held);
        let start = world.now;
        while !is_granted(&mut world, 1) {
            assert!(world.now < start + ms(1_010), "{dead} dead ones: {:?}", world.now);
            world.pass(ms(5));
        }
    }
}

#[test]
fn a_waiter_that_gives_up_leaves_the_queue() {
    let (mut world, locks) = queue(3, 4);
    world.nodes[1].machine.cancel(locks[1], world.now);
    world.drain(1);
    world.pump();
    assert!((0..3).all(|master| places(&world, master) == 3));
    world.release(locks[0]);
    assert_eq!(granted(&mut world), [2]);
}

#[test]
fn a_waiter_leaves_the_queue_at_its_timeout() {
    let mut world = processes(3, 2);
    world.hold(&fair());
    world.acquire_by(1, &Acquire { timeout: Some(ms(700)), ..fair() });
    let event = world.next_event_of(1);
    assert!(matches!(event, Event::NotAcquired { error: AcquireError::HeldByAnother(_), .. }), "{event:?}");
    world.pump();
    assert!((0..3).all(|master| places(&world, master) <= 1), "the holder's");
}

#[test]
fn a_waiter_that_reaches_one_master_blocks_no_other_waiter() {
    let mut world = processes(3, 3);
    let held = world.hold(&fair());
    // The second process reaches the first master only, and comes before the third one there.
    for master in [1, 2] {
        world.cut(1, master);
        world.masters[master].reach = Reach::Ignores;
    }
    world.acquire_by(1, &fair());
    world.pass(ms(200));
    // The third process reaches the first two masters.
    world.masters[2].flow = Flow::BlackHole;
    let third = world.acquire_by(2, &fair());
    world.pass(ms(200));
    world.release(held);
    world.pass(ms(1_500));
    assert!(is_granted(&mut world, 2), "{third:?}");
}

#[test]
fn a_lost_attempt_keeps_the_place() {
    let mut world = processes(3, 3);
    let held = world.hold(&fair());
    let second = world.acquire_by(1, &fair());
    world.pump();
    // The key is free too early on one master: the waiter gets it there, and releases it.
    world.masters[0].forget_keys();
    world.pass(ms(400));
    assert!((0..3).all(|master| places(&world, master) >= 1));
    world.acquire_by(2, &fair());
    world.pass(ms(1_500));
    world.release(held);
    assert_eq!(granted(&mut world), [1]);
    take(&mut world, 1, second);
}

#[test]
fn the_undo_of_a_lost_attempt_keeps_the_place() {
    let mut world = World::of(3);
    // The key is free on the first master only, and the grant of that master is released.
    world.masters[1].hold_by_another(KEY, None);
    world.masters[2].hold_by_another(KEY, None);
    world.acquire(&fair());
    world.pump();
    assert_eq!((world.masters[0].count("UNDO"), world.masters[0].count("LEAVE")), (1, 0));
    assert_eq!(world.masters[0].value(KEY, world.now), None);
    assert!((0..3).all(|master| places(&world, master) == 1));
}

#[test]
fn a_release_leaves_the_queue_also_where_the_lock_was_refused() {
    let mut world = World::of(3);
    world.masters[2].hold_by_another(KEY, None);
    let lock = world.hold(&fair());
    assert!((0..3).all(|master| places(&world, master) == 1));
    world.release(lock);
    world.pump();
    assert!((0..3).all(|master| places(&world, master) == 0));
    world.nodes[0].events.clear();
    let lock = world.hold(&fair());
    world.cancel(lock);
    world.pump();
    assert!((0..3).all(|master| places(&world, master) == 0));
}

#[test]
fn fair_requests_of_other_kinds_are_refused_before_anything_is_sent() {
    let mut world = World::of(3);
    let config = settings(3).build().unwrap();
    let ttl = Ttl::new(ms(10_000)).unwrap();
    let before = world.nodes[0].written.len();
    for targets in others(&config) {
        let wanted = Acquire { fair: true, ..Acquire::new(targets, ttl) };
        let refused = world.nodes[0].machine.acquire(&wanted, world.now);
        assert_eq!(refused, Err(AcquireError::Invalid(ConfigError::FairOfSeveral)));
    }
    world.drain(0);
    assert_eq!(world.nodes[0].written.len(), before);
}

fn others(config: &Config) -> Vec<Targets> {
    let batch = config.targets(["a", "b"].map(Target::write)).unwrap();
    let read = config.targets([Target::read("a")]).unwrap();
    let group = config.targets([Target::share("a", Group::new("g").unwrap())]).unwrap();
    vec![batch, read, group]
}

#[test]
fn a_waiter_that_hears_nothing_asks_again_when_it_keeps_its_place() {
    let (mut world, locks) = queue(3, 2);
    world.pass(ms(10));
    world.each(|master| master.loses_pushes = true);
    world.release(locks[0]);
    let start = world.now;
    while !is_granted(&mut world, 1) {
        assert!(world.now < start + ms(350), "{:?}", world.now);
        world.pass(ms(5));
    }
}

#[test]
fn a_place_that_a_master_does_not_know_yet_gets_the_number_of_the_quorum() {
    // The second process enters first on two masters, the third one on the other.
    let mut world = processes(3, 3);
    let held = world.hold(&fair());
    world.masters[2].delay = ms(5);
    let second = world.acquire_by(1, &fair());
    let third = world.acquire_by(2, &fair());
    world.pass(ms(60));
    world.masters[2].delay = Duration::ZERO;
    world.release(held);
    world.pass(ms(60));
    let first = granted(&mut world);
    assert!(first == [1] || first == [2], "{first:?}, {second:?}, {third:?}");
}

#[test]
fn a_master_that_was_never_asked_for_a_place_gets_no_request_to_remove_it() {
    let mut world = World::cold(settings(3));
    world.masters[2].reach = Reach::Refuses;
    world.pump();
    for _ in 0..5 {
        let lock = world.hold(&fair());
        world.release(lock);
        world.next_event();
        world.pass(ms(5));
    }
    world.masters[2].reach = Reach::Accepts;
    world.pass(ms(5_000));
    assert_eq!((world.masters[2].count("LEAVE"), places(&world, 2)), (0, 0));
    assert!(world.masters[0].count("LEAVE") > 0, "{:?}", world.masters[0].executed);
}

/// Its process was stopped, so that its place expired, and gets its number back.
#[test]
fn a_waiter_that_is_no_longer_first_leaves_changes_of_the_key_to_the_one_before_it() {
    let mut world = processes(3, 3);
    let held = world.hold(&Acquire { fair: false, ttl: Ttl::new(ms(60_000)).unwrap(), ..fair() });
    let asked_after_a_change = |world: &mut World| {
        let before = world.masters[0].count("ENTER");
        world.extend(held, ms(60_000));
        world.pump();
        world.masters[0].count("ENTER") - before
    };
    world.acquire_by(2, &fair());
    world.pass(ms(2));
    world.acquire_by(1, &fair());
    world.pass(ms(100));
    let stopped = world.nodes.pop().unwrap();
    world.pass(ms(1_500));
    assert_eq!(asked_after_a_change(&mut world), 1, "the second one is first");
    world.nodes.push(stopped);
    world.pass(ms(1_000));
    assert_eq!(asked_after_a_change(&mut world), 1, "the first one is");
    world.release(held);
    assert_eq!(granted(&mut world), [2]);
}

#[test]
fn a_waiter_that_has_left_the_queue_enters_it_again_when_a_quorum_answers() {
    let mut world = processes(3, 2);
    world.hold(&Acquire { fair: false, ttl: Ttl::new(ms(60_000)).unwrap(), ..fair() });
    for master in [1, 2] {
        world.cut(1, master);
        world.masters[master].reach = Reach::Ignores;
    }
    world.acquire_by(1, &fair());
    world.pass(ms(2_000));
    assert_eq!(places(&world, 0), 0);
    world.each(|master| master.reach = Reach::Accepts);
    world.pass(ms(5_000));
    assert!((0..3).all(|master| places(&world, master) == 1));
}

#[test]
fn a_lock_that_its_caller_did_not_take_in_time_comes_back_at_the_end_of_the_queue() {
    let mut world = processes(3, 2);
    world.acquire(&Acquire { ttl: Ttl::new(ms(300)).unwrap(), ..fair() });
    assert_eq!(granted(&mut world), [0]);
    world.nodes[0].events.clear();
    world.acquire_by(1, &fair());
    world.pass(ms(320));
    assert_eq!(granted(&mut world), [1]);
    assert!((0..3).all(|master| places(&world, master) == 2), "it waits behind the other one");
}

#[test]
fn a_fair_waiter_enters_the_queue_as_soon_as_the_caller_before_it_has_left() {
    for is_held in [false, true] {
        let mut world = World::of(3);
        if !is_held {
            world.each(|master| master.hold_by_another(KEY, None));
        }
        // A long wait, and a long hold, leave others a turn before an ordinary waiter.
        let first = world.acquire(&Acquire { fair: false, ..fair() });
        world.pump();
        assert_eq!(world.take(first).is_some(), is_held);
        world.acquire(&fair());
        world.pass(ms(150));
        assert!(world.masters.iter().all(|master| master.count("ENTER") == 0));
        world.cancel(first);
        world.pump();
        assert!(world.masters.iter().all(|master| master.count("ENTER") == 1), "held: {is_held}");
    }
}
