//! Locks of one process that want the same resource.

use std::time::Duration;

use quorlock_core::{Acquire, AcquireError, Event, LockId, Resource, Target, Ttl, Vote};

use super::world::{Flow, KEY, World, ms, one_try, settings, wanted};

fn names(world: &World, master: usize, from: usize) -> Vec<&'static str> {
    world.masters[master].executed[from..].iter().map(|(_, name, _)| *name).collect()
}

fn granted(world: &mut World) -> LockId {
    match world.next_event() {
        Event::Granted { lock, .. } => lock,
        event => panic!("not a grant: {event:?}"),
    }
}

/// How many callers of the process were ahead of one that was told that another holds the lock.
fn callers_ahead(error: &AcquireError) -> usize {
    match error {
        AcquireError::HeldByAnother(ballot) => {
            assert_eq!(ballot.resource().to_string(), KEY);
            ballot.callers_ahead()
        }
        error => panic!("not contention: {error}"),
    }
}

/// Takes the next grant and gives it back at once.
fn pass_on(world: &mut World) -> LockId {
    let lock = granted(world);
    assert!(world.take(lock).is_some());
    world.cancel(lock);
    lock
}

#[test]
fn a_waiter_asks_no_master_and_gets_the_lock_in_the_write_that_releases_it() {
    let mut world = World::of(3);
    let first = world.hold(&wanted(ms(10_000)));
    let (executed, writes) = (world.masters[0].executed.len(), world.nodes[0].writes.clone());
    let second = world.acquire(&wanted(ms(10_000)));
    world.pass(ms(50));
    assert_eq!((world.masters[0].executed.len(), &world.nodes[0].writes), (executed, &writes));
    let token = world.expose(first);

    world.cancel(first);
    assert_eq!(granted(&mut world), second);
    for (master, before) in writes.iter().enumerate() {
        assert_eq!(names(&world, master, executed), ["RELEASE", "SET"]);
        assert_eq!(world.nodes[0].writes[master], before + 1);
    }
    assert_ne!(world.expose(second), token);
}

#[test]
fn waiters_are_served_in_order_of_arrival_with_two_requests_each() {
    let mut world = World::of(3);
    let first = world.hold(&wanted(ms(10_000)));
    let waiting: Vec<_> = (0..20).map(|_| world.acquire(&wanted(ms(10_000)))).collect();
    let executed = world.masters[0].executed.len();
    world.cancel(first);
    let served: Vec<_> = (0..20).map(|_| pass_on(&mut world)).collect();
    assert_eq!(served, waiting);
    world.pass(ms(10));
    assert!(world.holders().is_empty());
    assert_eq!(world.masters[0].executed.len() - executed, 2 * 20 + 1);
}

#[test]
fn a_waiter_that_leaves_the_queue_is_passed_over_at_any_place() {
    let mut world = World::of(3);
    let first = world.hold(&wanted(ms(10_000)));
    let waiting: Vec<_> = (0..100).map(|_| world.acquire(&wanted(ms(10_000)))).collect();
    let stays = |place: usize| place % 3 == 1;
    for (place, lock) in waiting.iter().enumerate().rev().filter(|(place, _)| !stays(*place)) {
        world.cancel(*lock);
        assert!(place < 100);
    }
    world.cancel(first);
    let expected: Vec<_> =
        waiting.iter().enumerate().filter(|(place, _)| stays(*place)).map(|(_, lock)| *lock).collect();
    let served: Vec<_> = expected.iter().map(|_| pass_on(&mut world)).collect();
    assert_eq!(served, expected);
    world.pass(ms(10));
    assert!(world.holders().is_empty());
}

#[test]
fn the_next_waiter_asks_when_the_one_in_front_is_cancelled_in_the_middle_of_a_round() {
    let mut world = World::of(3);
    let first = world.hold(&wanted(ms(10_000)));
    let second = world.acquire(&wanted(ms(10_000)));
    let third = world.acquire(&wanted(ms(10_000)));
    world.cancel(first);
    world.cancel(second);
    assert_eq!(granted(&mut world), third);
    world.cancel(third);
    world.pass(ms(10));
    assert!(world.holders().is_empty());
}

#[test]
fn a_waiter_that_times_out_learns_how_many_were_ahead() {
    let mut world = World::of(3);
    world.hold(&wanted(ms(60_000)));
    for limit in [200, 300, 100] {
        world.acquire(&Acquire { timeout: Some(ms(limit)), ..wanted(ms(10_000)) });
    }
    let start = world.now;
    for (limit, others) in [(100, 3), (200, 1), (300, 1)] {
        let error = world.refusal();
        assert_eq!(world.now.since(start), ms(limit));
        assert_eq!(callers_ahead(&error), others);
    }
}

#[test]
fn a_waiter_behind_one_without_a_quorum_reports_the_votes_of_the_one_in_front() {
    let mut world = World::of(3);
    (0..2).for_each(|master| world.masters[master].flow = Flow::Stopped);
    world.acquire(&Acquire { timeout: None, ..wanted(ms(10_000)) });
    world.acquire(&Acquire { timeout: Some(ms(500)), ..wanted(ms(10_000)) });
    let error = world.refusal();
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    let votes: Vec<_> = error.ballot().unwrap().votes().map(|(_, vote)| vote).collect();
    assert!(matches!(votes[..], [Vote::Failed(_), Vote::Failed(_), _]), "{error}");
}

#[test]
fn waiters_behind_one_that_give_up_together_are_told_its_votes_and_their_own_targets() {
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(KEY, None));
    world.acquire(&Acquire { timeout: None, ..wanted(ms(10_000)) });
    let one = wanted(ms(10_000)).targets;
    let both = settings(3).build().unwrap().targets([KEY, "other"].map(Target::write)).unwrap();
    let asked = [&one, &both, &one];
    for targets in asked {
        world.acquire(&Acquire { targets: targets.clone(), timeout: Some(ms(50)), ..wanted(ms(10_000)) });
    }
    for targets in asked {
        let error = world.refusal();
        let AcquireError::HeldByAnother(ballot) = &error else { panic!("{error}") };
        assert_eq!((ballot.targets(), ballot.callers_ahead()), (targets, 0));
    }
}

#[test]
fn a_single_try_never_overtakes_waiters() {
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(KEY, None));
    let seeks = world.acquire(&wanted(ms(10_000)));
    world.pump();
    let behind = world.acquire(&wanted(ms(10_000)));
    let executed = world.masters[0].executed.len();
    world.acquire(&one_try());
    assert_eq!(callers_ahead(&world.refusal()), 2);
    assert_eq!(world.masters[0].executed.len(), executed);
    world.cancel(seeks);
    world.cancel(behind);
    world.pump();
    world.acquire(&one_try());
    assert!(matches!(world.refusal(), AcquireError::HeldByAnother(_)));
}

#[test]
fn a_single_try_does_not_request_a_lock_that_others_wait_for() {
    let mut world = World::of(3);
    let holder = world.hold(&wanted(ms(10_000)));
    let behind = world.acquire(&wanted(ms(10_000)));
    let executed = world.masters[0].executed.len();
    world.acquire(&one_try());
    assert_eq!(callers_ahead(&world.refusal()), 2);
    assert_eq!(world.masters[0].executed.len(), executed);
    world.cancel(holder);
    assert_eq!(granted(&mut world), behind);
}

#[test]
fn a_single_try_without_waiters_asks_the_masters_for_the_holder() {
    let mut world = World::of(3);
    let holder = world.hold(&wanted(ms(10_000)));
    world.acquire(&one_try());
    let error = world.refusal();
    assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
    // The single try delays no other caller either.
    let next = world.acquire(&wanted(ms(10_000)));
    world.cancel(holder);
    assert_eq!(granted(&mut world), next);
}

#[test]
fn the_next_one_asks_as_soon_as_a_lock_is_lost() {
    let mut world = World::of(3);
    world.hold(&wanted(ms(1_000)));
    let next = world.acquire(&wanted(ms(10_000)));
    assert!(matches!(world.next_event(), Event::Lost { .. }));
    assert_eq!(granted(&mut world), next);
}

/// How many turns the first process takes before the second one is granted.
fn turns_before_the_other(world: &mut World) -> usize {
    let mut turns = 0;
    loop {
        world.pump();
        if !world.nodes[1].events.is_empty() {
            world.nodes[1].events.clear();
            return turns;
        }
        if world.nodes[0].events.is_empty() {
            assert!(world.jump(), "no caller gets it");
        } else {
            pass_on(world);
            turns += 1;
        }
    }
}

#[test]
fn after_the_limit_of_consecutive_hand_overs_others_get_their_turn() {
    let mut world = World::of(3);
    let first = world.hold(&wanted(ms(10_000)));
    for _ in 0..100 {
        world.acquire(&wanted(ms(10_000)));
    }
    world.add_node(settings(3).build().unwrap(), 7);
    world.pump();
    let mut other = world.acquire_by(1, &wanted(ms(10_000)));
    world.pump();
    world.cancel(first);
    assert_eq!(turns_before_the_other(&mut world), 31, "the one that was granted first is the 32nd");
    // It is known now that another process wants the lock.
    for _ in 0..5 {
        world.pass(ms(5));
        world.nodes[1].machine.cancel(other, world.now);
        world.drain(1);
        other = world.acquire_by(1, &wanted(ms(10_000)));
        let turns = turns_before_the_other(&mut world);
        assert!((1..=8).contains(&turns), "{turns} turns");
    }
}

/// When the time of all is over, no waiter in the queue asks a master, and the lock in front passes
/// on what it knows.
#[test]
fn waiters_that_time_out_together_leave_without_a_request() {
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(KEY, None));
    let waits = |limit| Acquire { timeout: Some(ms(limit)), ..wanted(ms(10_000)) };
    for _ in 0..50 {
        world.acquire(&waits(1_000));
    }
    world.pass(ms(990));
    let executed = world.masters[0].executed.len();
    for _ in 0..50 {
        assert!(matches!(world.refusal(), AcquireError::HeldByAnother(_)));
    }
    assert!(world.masters[0].executed.len() - executed <= 2);
}

#[test]
fn a_waiter_that_comes_to_the_front_continues_where_the_one_before_it_left() {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 7);
    world.pump();
    let held = world.acquire_by(1, &wanted(ms(10_000)));
    world.pump();
    let front = world.acquire(&wanted(ms(10_000)));
    world.pump();
    let next = world.acquire(&wanted(ms(10_000)));
    let executed = world.masters[0].executed.len();
    world.cancel(front);
    world.pass(ms(1_000));
    assert_eq!(world.masters[0].executed.len(), executed);
    world.release_by(1, held);
    assert_eq!(granted(&mut world), next);
}

#[test]
fn a_waiter_behind_one_that_has_asked_only_one_master_does_not_get_that_answer() {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 7);
    world.pump();
    let held = world.acquire_by(1, &wanted(ms(10_000)));
    world.pump();
    world.acquire(&wanted(ms(10_000)));
    world.pump();
    world.release_by(1, held);
    pass_on(&mut world);
    world.pass(ms(50));
    // The queue now knows that others want the lock, and a new caller asks one master first.
    world.each(|master| master.hold_by_another(KEY, None));
    let asked = |world: &World| world.masters.iter().map(|master| master.executed.len()).sum::<usize>();
    let before = asked(&world);
    world.acquire(&wanted(ms(10_000)));
    world.acquire(&Acquire { timeout: Some(ms(20)), ..wanted(ms(10_000)) });
    assert_eq!(callers_ahead(&world.refusal()), 1);
    assert_eq!(asked(&world) - before, 1);
}

/// How long after the release the lock is granted to a waiter that waited this long for another
/// process.
fn late_after_a_wait(world: &mut World, span: Duration) -> Duration {
    let held = world.acquire_by(1, &wanted(ms(10_000)));
    assert!(matches!(world.next_event_of(1), Event::Granted { .. }));
    world.acquire(&Acquire { timeout: None, ..wanted(ms(10_000)) });
    world.pass(span);
    world.release_by(1, held);
    let released = world.now;
    pass_on(world);
    let granted = world.now;
    world.pass(ms(50));
    world.nodes[1].events.clear();
    granted.since(released)
}

#[test]
fn a_new_waiter_lets_waiters_that_may_have_waited_longer_go_first() {
    // The head start of the first master is longer than its answer takes.
    let settings = || settings(3).request_timeout(ms(200));
    let mut world = World::ready(settings());
    world.add_node(settings().build().unwrap(), 7);
    world.pump();
    world.each(|master| master.delay = ms(5));
    // The notification, the answer of the first master, and those of the others.
    let at_once = ms(5 + 5 + 5);
    for _ in 0..8 {
        assert_eq!(late_after_a_wait(&mut world, ms(200)), at_once);
    }
    let late = late_after_a_wait(&mut world, ms(40));
    assert!(late >= at_once + ms(10) && late <= at_once + ms(40), "{late:?}");
    // A caller that is handed the lock has not waited for another process, and the queue learns
    // nothing from it.
    let first = world.hold(&wanted(ms(10_000)));
    for _ in 0..2 {
        world.acquire(&wanted(ms(10_000)));
    }
    world.cancel(first);
    for _ in 0..2 {
        pass_on(&mut world);
    }
    world.pass(ms(50));
    let late = late_after_a_wait(&mut world, ms(10));
    assert!(late >= at_once + ms(10) && late <= at_once + ms(40), "{late:?}");
}

#[test]
fn a_long_hold_counts_as_many_short_ones() {
    let mut world = World::of(3);
    let first = world.hold(&wanted(ms(10_000)));
    let second = world.acquire(&wanted(ms(10_000)));
    world.pass(ms(150));
    let released = world.now;
    world.cancel(first);
    assert_eq!(granted(&mut world), second);
    let paused = world.now.since(released);
    assert!(paused >= ms(1) && paused <= ms(2), "{paused:?}");
}

#[test]
fn a_caller_that_returns_at_once_leaves_others_a_turn_too() {
    let mut world = World::of(3);
    let mut pauses = Vec::new();
    for _ in 0..100 {
        let asked = world.now;
        let lock = world.hold(&wanted(ms(10_000)));
        pauses.push(world.now.since(asked));
        world.cancel(lock);
        world.pump();
    }
    let paused: Vec<_> = (0..100).filter(|turn| !pauses[*turn].is_zero()).collect();
    assert_eq!(paused, [32, 64, 96]);
}

#[test]
fn a_lock_with_another_ttl_or_a_number_joins_the_same_queue() {
    let mut world = World::of(3);
    let first = world.hold(&wanted(ms(10_000)));
    let second = world.acquire(&Acquire { fenced: true, ..wanted(ms(500)) });
    let other = Acquire::new(Resource::new("other").unwrap(), Ttl::new(ms(500)).unwrap());
    let elsewhere = world.acquire(&other);
    assert_eq!(granted(&mut world), elsewhere);
    world.cancel(first);
    assert_eq!(granted(&mut world), second);
    assert!(world.nodes[0].machine.resumption(second).unwrap().fencing_token.is_some());
}

#[test]
fn a_caller_that_returns_after_its_release_was_answered_is_never_paused() {
    let mut world = World::of(3);
    world.each(|master| master.delay = ms(1));
    let mut spans = Vec::new();
    for _ in 0..100 {
        let start = world.now;
        let lock = world.acquire(&wanted(ms(10_000)));
        assert_eq!(granted(&mut world), lock);
        spans.push(world.now.since(start));
        world.release(lock);
        assert!(matches!(world.next_event(), Event::Released { .. }));
    }
    assert!(spans.iter().all(|span| *span == spans[0]), "{spans:?}");
}
