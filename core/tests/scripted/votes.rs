//! How votes decide, and when.

use quorlock_core::{Acquire, AcquireError, Event, ReleaseOutcome, Ttl, Vote};

use super::world::{Flow, KEY, Reach, World, ms, one_try, settings, wanted};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Says {
    Granted,
    Held,
    Error,
    Nothing,
}

/// A split is settled for the longest `retry_delay`, and its last round may still wait for a silent
/// master.
const LONGEST_SETTLING: std::time::Duration = ms(150 + 50 + 50);

const ALL: [Says; 4] = [Says::Granted, Says::Held, Says::Error, Says::Nothing];

pub fn table(number: usize, masters: usize) -> Vec<Says> {
    (0..masters).map(|place| ALL[number / 4usize.pow(u32::try_from(place).unwrap()) % 4]).collect()
}

pub fn orders(masters: usize) -> Vec<Vec<usize>> {
    if masters == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(masters - 1);
    let insert = |order: &Vec<usize>, at: usize| {
        let mut order = order.clone();
        order.insert(at, masters - 1);
        order
    };
    shorter.iter().flat_map(|order| (0..masters).map(move |at| insert(order, at))).collect()
}

/// Runs one table in one order of arrival, and checks the whole outcome.
fn play(ready: &World, table: &[Says], order: &[usize]) {
    let mut world = ready.clone();
    let (masters, needed) = (table.len(), table.len() / 2 + 1);
    for (master, says) in world.masters.iter_mut().zip(table) {
        master.flow = if *says == Says::Nothing { Flow::Stopped } else { Flow::RepliesHeld };
        match says {
            Says::Held => master.hold_by_another(KEY, None),
            Says::Error => master.fails("SET", "OOM command not allowed when used memory > 'maxmemory'."),
            Says::Granted | Says::Nothing => {}
        }
    }
    let writes_before = world.nodes[0].writes.clone();
    let released =
        |world: &World| world.nodes[0].writes.iter().zip(&writes_before).all(|(n, was)| *n > was + 1);
    let start = world.now;
    let lock = world.acquire(&one_try());
    let token = world.expose(lock);

    let (mut granted, mut outstanding) = (0, masters);
    let mut won = false;
    for &master in order.iter().filter(|&&master| table[master] != Says::Nothing) {
        world.deliver(0, master);
        granted += usize::from(table[master] == Says::Granted);
        outstanding -= 1;
        if granted >= needed {
            if !won {
                let event = world.nodes[0].events.pop_front().map(|(_, event)| event);
                assert!(matches!(event, Some(Event::Granted { .. })), "{table:?} {order:?}: {event:?}");
                assert!(world.take(lock).is_some());
            }
            won = true;
        } else {
            let lost = granted + outstanding < needed;
            assert_eq!(released(&world), lost, "{table:?} {order:?}: the release comes with the decision");
        }
    }

    let count = |says| table.iter().filter(|other| **other == says).count();
    let (all_granted, all_held) = (count(Says::Granted), count(Says::Held));
    assert_eq!(won, all_granted >= needed);
    for master in world.masters.iter_mut().filter(|master| master.flow == Flow::RepliesHeld) {
        master.flow = Flow::Free;
    }
    if won {
        world.release(lock);
        let outcome = world.next_event();
        assert_eq!(outcome, Event::Released { lock, outcome: ReleaseOutcome::StillOurs });
    } else {
        let error = world.refusal();
        let held = all_held > 0 && all_granted + all_held >= needed;
        match &error {
            AcquireError::HeldByAnother(_) => assert!(held, "{table:?} {order:?}: {error}"),
            AcquireError::NoQuorum(_) => assert!(!held, "{table:?} {order:?}: {error}"),
            other => panic!("{table:?} {order:?}: {other}"),
        }
        // Where the other's token is not known to have a quorum, the votes may have been split
        // among clients that asked at once.
        let is_split = held && all_held < needed;
        let longest = if is_split { ms(50) + LONGEST_SETTLING } else { ms(50) };
        assert!(world.now <= start + longest, "{table:?} {order:?}: it ends with the last timeout");
    }

    let keeps =
        |world: &World, master: usize| world.masters[master].value(KEY, world.now) == Some(token.as_str());
    world.pump();
    for master in (0..masters).filter(|&master| table[master] != Says::Nothing) {
        assert!(!keeps(&world, master), "{table:?} {order:?}: m{master} keeps the key");
    }
    world.pass(ms(300));
    world.each(|master| master.flow = Flow::Free);
    world.pass(ms(100));
    for master in 0..masters {
        assert!(!keeps(&world, master), "{table:?} {order:?}: m{master} keeps the key after it went on");
    }
}

#[test]
fn every_table_of_votes_ends_right_in_every_order_for_up_to_four_masters() {
    for masters in 1..=4 {
        let ready = World::of(masters);
        for number in 0..4usize.pow(u32::try_from(masters).unwrap()) {
            let table = table(number, masters);
            let mut played = std::collections::BTreeSet::new();
            for order in orders(masters) {
                let heard: Vec<_> =
                    order.iter().copied().filter(|&master| table[master] != Says::Nothing).collect();
                // Silent masters have no place in the order.
                if played.insert(heard) {
                    play(&ready, &table, &order);
                }
            }
        }
    }
}

#[test]
fn every_table_of_five_votes_ends_right_in_several_orders() {
    let ready = World::of(5);
    let orders = orders(5);
    for number in 0..1024 {
        let table = table(number, 5);
        for turn in 0..3 {
            play(&ready, &table, &orders[(number * 7 + turn * 41) % orders.len()]);
        }
    }
}

#[test]
fn a_round_is_decided_at_the_quorum_and_does_not_wait_for_a_hung_master() {
    let mut world = World::of(3);
    world.masters[1].flow = Flow::Stopped;
    let start = world.now;
    let lock = world.hold(&one_try());
    assert_eq!(world.now, start);
    world.release(lock);
    let outcome = ReleaseOutcome::StillOurs;
    assert_eq!(world.events_now(), [Event::Released { lock, outcome }]);
    assert_eq!(world.now, start);
}

#[test]
fn a_dead_master_costs_nothing_and_too_many_dead_ones_are_reported_at_once() {
    let mut world = World::cold(settings(3));
    world.masters[0].reach = Reach::Refuses;
    world.pump();
    let start = world.now;
    let lock = world.hold(&one_try());
    world.release(lock);
    world.events_now();
    world.masters[1].reach = Reach::Refuses;
    world.cut(0, 1);
    world.pump();
    world.acquire(&one_try());
    let error = world.refusal();
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    assert_eq!(world.now, start);
}

#[test]
fn two_refusals_and_a_hung_master_are_decided_at_once() {
    let mut world = World::of(3);
    world.masters[2].flow = Flow::Stopped;
    for master in 0..2 {
        world.masters[master].hold_by_another(KEY, None);
    }
    world.acquire(&one_try());
    let events = world.events_now();
    assert!(
        matches!(&events[..], [Event::NotAcquired { error: AcquireError::HeldByAnother(_), .. }]),
        "{events:?}"
    );
}

#[test]
fn an_even_split_of_two_or_four_masters_is_settled_and_one_side_gets_the_lock() {
    for masters in [2, 4] {
        let mut world = World::of(masters);
        world.add_node(settings(masters).build().unwrap(), 2);
        world.pump();
        let start = world.now;
        world.each(|master| master.flow = Flow::Stopped);
        world.acquire_by(0, &one_try());
        world.acquire_by(1, &one_try());
        for master in 0..masters {
            world.serve(usize::from(master >= masters / 2), master);
        }
        world.each(|master| master.flow = Flow::Free);
        let events = [0, 1].map(|node| world.next_event_of(node));
        let granted = events.iter().filter(|event| matches!(event, Event::Granted { .. })).count();
        let refused = events.iter().filter(|event| {
            matches!(event, Event::NotAcquired { error: AcquireError::HeldByAnother(_), .. })
        });
        assert_eq!((granted, refused.count()), (1, 1), "{events:?}");
        assert!(world.now.since(start) <= LONGEST_SETTLING);
        world.pump();
        assert_eq!(world.holders().len(), masters);
    }
}

#[test]
fn votes_that_come_after_the_grant_still_count_as_holders() {
    let mut world = World::of(3);
    world.masters[2].delay = ms(20);
    let lock = world.hold(&wanted(ms(10_000)));
    world.pass(ms(30));
    world.masters[0].forget_keys();
    world.extend(lock, ms(10_000));
    let event = world.next_event();
    assert!(matches!(event, Event::Extended { result: Ok(_), .. }), "{event:?}");
}

#[test]
fn a_grant_that_is_not_taken_ends_although_a_master_had_refused_it() {
    // The master that refused is not asked to undo anything, so no answer of it may be awaited.
    let mut world = World::of(3);
    world.masters[2].hold_by_another(KEY, None);
    world.acquire(&Acquire { timeout: None, ..one_try() });
    let event = world.next_event();
    assert!(matches!(event, Event::Granted { .. }), "{event:?}");
    let granted = world.now;
    let error = world.refusal();
    assert!(matches!(error, AcquireError::TooLate(_)), "{error}");
    assert!(world.now.since(granted) <= ms(10_000));
    assert_eq!(world.holders(), [2]);
}

/// Masters are asked one after the other for a permit, until the refusals decide.
#[test]
fn the_error_of_a_permit_says_which_masters_were_not_asked() {
    for masters in [3, 5] {
        // With the number of times that a master may be asked: an attempt that is the last in time
        // asks enough of them.
        let limits = [(None, Some(1), 1), (Some(ms(20)), None, 1), (Some(ms(1_000)), None, 7)];
        for (timeout, attempts, most) in limits {
            let mut world = World::of(masters);
            let one_permit = settings(masters).build().unwrap().permits("gpu", 1).unwrap();
            world.each(|master| master.hold_by_another("quorlock:seat:0/{gpu}", None));
            let ttl = Ttl::new(ms(10_000)).unwrap();
            world.acquire(&Acquire { timeout, attempts, ..Acquire::new(one_permit, ttl) });
            let error = world.refusal();
            assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
            for (place, (_, vote)) in error.ballot().unwrap().votes().enumerate() {
                let asked = world.masters[place].count("TAKE");
                assert_eq!(vote == Vote::NotAsked, asked == 0, "{place} was asked {asked} times: {error}");
                assert!(asked <= most, "{place} was asked {asked} times");
            }
            assert_eq!(error.to_string().matches("not asked").count(), masters / 4, "{error}");
        }
    }
}
