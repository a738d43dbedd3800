//! A single try: which error it ends with, and that clients that try at the same instant do not all
//! lose.

use quorlock_core::{Acquire, AcquireError, Event, Target};

use super::world::{Flow, KEY, Master, Reach, World, ms, one_try, settings, wanted};

fn is_held_by_another(error: &AcquireError) -> bool {
    matches!(error, AcquireError::HeldByAnother(_))
}

/// A try is made while the last master's connection is still being opened; it is connected 30 ms
/// later.
fn refusal_on_a_fresh_locker(masters: usize, prepare: impl Fn(&mut World)) -> AcquireError {
    let mut world = World::cold(settings(masters));
    world.masters[masters - 1].reach = Reach::Ignores;
    prepare(&mut world);
    world.acquire(&one_try());
    world.pass(ms(30));
    assert!(world.nodes[0].events.is_empty(), "the last master's answer changes which error it is");
    world.masters[masters - 1].reach = Reach::Accepts;
    let error = world.refusal();
    world.pass(ms(1_000));
    world.each(|master| assert_eq!(master.count("RELEASE"), 0));
    error
}

#[test]
fn a_single_try_waits_for_an_opening_connection_that_decides_its_error() {
    let half = |world: &mut World| world.masters[0].hold_by_another(KEY, None);
    let error = refusal_on_a_fresh_locker(2, half);
    assert!(is_held_by_another(&error), "{error}");
    let error = refusal_on_a_fresh_locker(4, |world| {
        (0..2).for_each(|master| world.masters[master].hold_by_another(KEY, None));
        world.masters[2].reach = Reach::Ignores;
        world.pass(ms(10));
        world.masters[2].reach = Reach::Accepts;
    });
    assert!(is_held_by_another(&error), "{error}");
    let error = refusal_on_a_fresh_locker(3, |world| {
        world.each(|master| master.hold_by_another(KEY, None));
        world.masters[1].reach = Reach::Refuses;
    });
    assert!(is_held_by_another(&error), "{error}");
}

#[test]
fn a_connection_that_never_opens_is_waited_for_no_longer_than_its_timeout() {
    let mut world = World::cold(settings(2));
    world.masters[0].hold_by_another(KEY, None);
    world.masters[1].reach = Reach::Ignores;
    let start = world.now;
    world.acquire(&one_try());
    let error = world.refusal();
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    assert_eq!(world.now.since(start), ms(250));
    // No request was sent that could be undone.
    world.masters[1].reach = Reach::Accepts;
    world.pass(ms(10_000));
    assert_eq!(world.masters[1].count("RELEASE") + world.masters[1].count("SET"), 0);
}

/// Clients on warm connections, each of which is the first to reach another master.
fn split(clients: usize) -> World {
    let mut world = World::of(3);
    for node in 1..clients {
        world.add_node(settings(3).build().unwrap(), 100 + node as u64);
    }
    world.pump();
    world.each(|master| {
        master.flow = Flow::Stopped;
        master.delay = ms(1);
    });
    for node in 0..clients {
        world.acquire_by(node, &one_try());
    }
    (0..3).for_each(|master| world.serve(master % clients, master));
    world.each(|master| master.flow = Flow::Free);
    world
}

#[test]
fn one_of_the_clients_that_split_the_votes_of_their_single_tries_gets_the_lock() {
    for clients in 2..=6 {
        let mut world = split(clients);
        let start = world.now;
        let mut granted = 0;
        for node in 0..clients {
            match world.next_event_of(node) {
                Event::Granted { .. } => granted += 1,
                Event::NotAcquired { error, .. } => assert!(is_held_by_another(&error), "{error}"),
                event => panic!("{event:?}"),
            }
        }
        assert_eq!(granted, 1, "{clients} clients");
        assert!(world.now.since(start) <= ms(150), "{clients} clients");
    }
}

#[test]
fn a_split_that_stays_is_held_by_another_when_the_time_to_settle_it_is_over() {
    let mut world = World::of(4);
    (0..2).for_each(|master| world.masters[master].hold_by_another(KEY, None));
    let start = world.now;
    world.acquire(&one_try());
    let error = world.refusal();
    assert!(is_held_by_another(&error), "{error}");
    assert!(world.now.since(start) <= ms(300), "{:?}", world.now.since(start));
    world.pump();
    assert_eq!(world.holders(), [0, 1]);
}

#[test]
fn a_split_with_a_holder_of_the_same_process_is_settled_until_the_caller_times_out() {
    let mut world = World::of(4);
    world.hold(&wanted(ms(10_000)));
    (0..2).for_each(|master| world.masters[master].hold_by_another(KEY, None));
    let start = world.now;
    world.acquire(&Acquire { timeout: Some(ms(30)), attempts: Some(1), ..wanted(ms(10_000)) });
    assert!(is_held_by_another(&world.refusal()));
    assert_eq!(world.now.since(start), ms(30));
    // No further round follows, although one was planned.
    world.pass(ms(1_000));
}

/// How often each of two masters is asked for its vote while a split stays, with another holder on
/// one of them.
fn votes_asked_for_while_a_split_stays(held: usize) -> [usize; 2] {
    let mut world = World::of(2);
    world.masters[held].hold_by_another(KEY, None);
    world.acquire(&one_try());
    let error = world.refusal();
    assert!(is_held_by_another(&error), "{error}");
    [0, 1].map(|master| world.masters[master].attempts().len())
}

#[test]
fn a_client_that_settles_a_split_asks_no_other_master_once_the_first_has_refused() {
    let asked = [0, 1].map(votes_asked_for_while_a_split_stays);
    // Both worlds ask the same master first: in one world it refuses, in the other it grants.
    let first = usize::from(asked[0][0] < asked[0][1] || asked[1][0] < asked[1][1]);
    let other = 1 - first;
    assert!(asked[first][first] > 1, "{asked:?}");
    assert_eq!(asked[first][other], 1, "only the round that split the votes asks it: {asked:?}");
    assert_eq!(asked[other][first], asked[other][other], "{asked:?}");
}

#[test]
fn a_lock_that_another_holds_is_refused_in_one_round() {
    let mut world = World::of(3);
    (0..2).for_each(|master| world.masters[master].hold_by_another(KEY, None));
    let start = world.now;
    world.acquire(&one_try());
    assert!(is_held_by_another(&world.refusal()));
    assert_eq!(world.now, start);
    world.pass(ms(1_000));
    assert_eq!(world.masters[2].attempts().len(), 1);
}

#[test]
fn a_timeout_of_zero_is_a_single_try_on_connected_and_on_fresh_lockers() {
    let within_zero = Acquire { timeout: Some(ms(0)), ..wanted(ms(10_000)) };
    for mut world in [World::of(3), World::cold(settings(3))] {
        world.each(|master| master.delay = ms(5));
        world.acquire(&within_zero);
        let event = world.next_event();
        assert!(matches!(event, Event::Granted { .. }), "{event:?}");
    }
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(KEY, None));
    let start = world.now;
    world.acquire(&within_zero);
    assert!(is_held_by_another(&world.refusal()));
    assert_eq!(world.now, start);
}

#[test]
fn a_single_try_does_not_ask_masters_again_that_have_named_the_holder() {
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(KEY, None));
    let targets = settings(3).build().unwrap().targets([KEY, "other"].map(Target::write)).unwrap();
    world.acquire(&Acquire { targets, ..one_try() });
    assert!(is_held_by_another(&world.refusal()));
    world.pass(ms(1_000));
    let names = |master: &Master| -> Vec<_> {
        let tokens = master.executed.iter().filter(|(_, _, token)| !token.is_empty());
        tokens.map(|(_, name, _)| *name).collect()
    };
    let asked: Vec<_> = world.masters.iter().map(names).collect();
    // The others decided it before the last one answered, which may have granted it.
    let both = vec!["ACQUIRE ALL", "RELEASE ALL"];
    assert_eq!(asked, [both[..1].to_vec(), both[..1].to_vec(), both]);
}
