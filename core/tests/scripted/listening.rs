//! A process that comes back at once for a lock that others want.

use std::time::Duration;

use quorlock_core::{Acquire, Event, LockId};

use super::world::{KEY, World, ms, settings, wanted};

/// With timers that are late by a millisecond: the idle time before each of the grants.
fn pace(processes: usize, grants: usize, hold: impl Fn(usize) -> Duration) -> Vec<Duration> {
    let mut world = World::of(3);
    world.timers_are_late_by = ms(1);
    turns(world, processes, 0, grants, hold).into_iter().map(|(_, idle)| idle).collect()
}

/// Processes that hold the lock for a given time and request it again at once: the holder of each
/// grant, and the idle time before it. Their jitter depends on the seed.
fn turns(
    mut world: World,
    processes: usize,
    seed: u64,
    grants: usize,
    hold: impl Fn(usize) -> Duration,
) -> Vec<(usize, Duration)> {
    for node in 1..processes {
        world.add_node(settings(3).build().unwrap(), 7 * node as u64 + 1000 * seed);
    }
    world.pump();
    if world.masters[0].delay.is_zero() {
        world.each(|master| master.delay = Duration::from_micros(100));
    }
    let asks = Acquire { timeout: None, ..wanted(ms(10_000)) };
    let mut locks: Vec<LockId> = (0..processes).map(|node| world.acquire_by(node, &asks)).collect();
    let mut turns = Vec::new();
    let mut released = world.now;
    while turns.len() < grants {
        world.pump();
        let next = (0..processes).find_map(|node| Some((node, world.nodes[node].events.pop_front()?.1)));
        let node = match next {
            Some((node, Event::Granted { .. })) => node,
            Some((node, Event::Released { .. })) => {
                locks[node] = world.acquire_by(node, &asks);
                continue;
            }
            Some((_, event)) => panic!("{event:?}"),
            None => {
                assert!(world.jump(), "no process gets it");
                continue;
            }
        };
        let now = world.now;
        assert!(world.nodes[node].machine.take(locks[node], now).is_some());
        world.drain(node);
        turns.push((node, now.since(released)));
        world.pass(hold(turns.len()));
        released = world.now;
        world.release_by(node, locks[node]);
    }
    turns
}

#[test]
fn two_processes_hand_the_lock_to_each_other_without_a_pause() {
    let idle = pace(2, 300, |_| ms(1));
    // Two that have just met may each count as two for some turns.
    let mean = idle[100..].iter().sum::<Duration>() / 200;
    // The message, and all masters at once. The first of them before the others would take 290. In
    // one of sixteen turns the first is asked for the holder, and comes before the others.
    assert!(mean <= Duration::from_micros(230), "{mean:?}");
}

#[test]
fn one_long_turn_does_not_slow_later_turns_forever() {
    let idle = pace(2, 200, |grant| if grant == 40 { ms(12) } else { ms(1) });
    let behind = &idle[100..];
    let mean = behind.iter().sum::<Duration>() / 100;
    assert!(mean <= Duration::from_micros(400), "{mean:?}");
}

/// How many turns the busiest of some processes has, of a hundred each.
fn busiest(world: World, processes: usize, seed: u64, hold: impl Fn(usize) -> Duration) -> usize {
    most_turns(&later_turns(world, processes, seed, hold), processes)
}

/// A hundred turns for each process, without the first hundred, in which they meet.
fn later_turns(
    world: World,
    processes: usize,
    seed: u64,
    hold: impl Fn(usize) -> Duration,
) -> Vec<(usize, Duration)> {
    turns(world, processes, seed, 100 * processes + 100, hold).split_off(100)
}

fn most_turns(turns: &[(usize, Duration)], processes: usize) -> usize {
    let of = |node| turns.iter().filter(|(other, _)| *other == node).count();
    (0..processes).map(of).max().unwrap_or(0)
}

#[test]
fn timers_of_whole_milliseconds_give_no_process_more_than_its_share() {
    let mut sum = 0;
    for (seed, tenths) in (0..3).flat_map(|seed| (0..9).map(move |tenths| (seed, tenths))) {
        let mut world = World::of(3);
        world.timers_have_a_grain_of = ms(1);
        sum += busiest(world, 3, seed, |_| ms(1) + ms(1) * tenths / 10);
    }
    // Turns that go A, B, A, C give one process 150. A run may begin with some of them.
    assert!(sum <= 27 * 112, "{sum}");
}

#[test]
fn a_process_that_listens_learns_of_a_third_one_that_loses_every_race_against_it() {
    let mut sum = 0;
    for (seed, tenths) in (0..3).flat_map(|seed| (1..=3).map(move |tenths| (seed, tenths))) {
        for late in [60, 150, 250] {
            let mut world = World::of(3);
            world.timers_are_late_by = Duration::from_micros(late);
            world.each(|master| master.delay = ms(1) * tenths / 10);
            let uneven = |grant: usize| ms(1) + Duration::from_micros(grant as u64 * 37 % 11 * 20);
            sum += busiest(world, 3, seed, uneven);
        }
    }
    // Turns that go A, B, A, C give one of them 150.
    assert!(sum <= 27 * 115, "{sum}");
}

#[test]
fn no_two_of_four_processes_win_every_race() {
    let mut sum = 0;
    for (seed, tenths) in (0..3).flat_map(|seed| (0..10).map(move |tenths| (seed, tenths))) {
        let mut world = World::of(3);
        world.timers_have_a_grain_of = ms(1);
        let busiest = busiest(world, 4, seed, |_| ms(1) + ms(1) * tenths / 10);
        // Turns that go A, B, C, A, B, D give two of them 133.
        assert!(busiest <= 125, "{tenths}: {busiest}");
        sum += busiest;
    }
    assert!(sum <= 30 * 106, "{sum}");
}

/// With answers after uneven times, and timers that are late, as on a slow machine: how many turns
/// the busiest process has, of a hundred each, and how long the lock is idle between two turns.
fn on_a_slow_machine(processes: usize) -> (usize, Duration) {
    let (mut busiest, mut idle) = (0, Duration::ZERO);
    let runs = 24;
    for run in 0..runs {
        let mut world = World::of(3);
        (world.timers_have_a_grain_of, world.timers_are_late_by) =
            if run % 2 == 0 { (ms(1), Duration::from_micros(600)) } else { (Duration::ZERO, ms(1) / 10) };
        world.delays_vary = 7_919 * (u64::from(run) + 1);
        world.each(|master| master.delay = ms(1) * (1 + run % 3) / 10);
        let hold = |grant: usize| ms(1) + Duration::from_micros(grant as u64 * 37 % 11 * 10);
        let turns = later_turns(world, processes, u64::from(run), hold);
        busiest += most_turns(&turns, processes);
        let sum: Duration = turns.iter().map(|(_, idle)| *idle).sum();
        idle += sum / u32::try_from(turns.len()).unwrap();
    }
    (busiest / runs as usize, idle / runs)
}

#[test]
fn slow_machines_give_no_process_more_than_its_share() {
    for (processes, most) in [(3, 106), (4, 106), (8, 110)] {
        let (busiest, idle) = on_a_slow_machine(processes);
        assert!(busiest <= most, "{processes} processes: {busiest}");
        // The notification and the two parts of an attempt take 0.6 ms on average.
        assert!(idle <= Duration::from_micros(800), "{processes} processes: {idle:?}");
    }
}

#[test]
fn a_lock_that_no_other_process_requests_any_more_is_taken_after_the_pause() {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 7);
    world.pump();
    let held = world.hold(&wanted(ms(10_000)));
    let other = world.acquire_by(1, &wanted(ms(10_000)));
    world.pump();
    world.release(held);
    assert!(matches!(world.next_event_of(1), Event::Granted { .. }));
    world.release_by(1, other);
    world.nodes[1].events.clear();
    let start = world.now;
    world.acquire_by(1, &wanted(ms(10_000)));
    assert!(matches!(world.next_event_of(1), Event::Released { .. } | Event::Granted { .. }));
    while world.holders().is_empty() {
        assert!(world.jump());
    }
    assert!(world.now.since(start) <= ms(5), "{:?}", world.now.since(start));
    assert_eq!(world.masters[0].value(KEY, world.now).map(str::len), Some(40));
}

/// The idle time before each turn of a lone process beside a key of another one on this master,
/// which answers after this time; the others answer after 100 us.
fn beside_a_key(refuses: usize, answers_after: Duration, turns: usize) -> Vec<Duration> {
    let mut world = World::of(3);
    world.masters[refuses].hold_by_another(KEY, None);
    world.each(|master| master.delay = Duration::from_micros(100));
    world.masters[refuses].delay = answers_after;
    let mut released = None;
    let mut idle = Vec::new();
    for _ in 0..=turns {
        let lock = world.acquire(&wanted(ms(10_000)));
        let is_grant =
            |event: &Event| matches!(event, Event::Granted { lock: granted, .. } if *granted == lock);
        while !is_grant(&world.next_event()) {}
        idle.extend(released.map(|released| world.now.since(released)));
        world.pass(ms(1));
        released = Some(world.now);
        world.release(lock);
    }
    idle
}

#[test]
fn a_process_that_a_master_refused_in_a_won_round_lets_its_rival_go_first() {
    for refuses in 0..3 {
        // Before and after the quorum.
        for answers_after in [50, 200].map(Duration::from_micros) {
            let idle = beside_a_key(refuses, answers_after, 1);
            assert!(idle[0] >= ms(1), "{refuses} refuses after {answers_after:?}: {idle:?}");
        }
    }
}

#[test]
fn a_key_that_a_dead_client_left_on_one_master_does_not_slow_down_a_lone_process() {
    let idle = beside_a_key(0, Duration::from_micros(50), 200);
    let pauses = idle.iter().filter(|idle| **idle >= ms(1)).count();
    // Eight for the supposed rival, and one behind each run of 32 grants.
    assert!(pauses <= 8 + 200 / 32, "{pauses}");
}
