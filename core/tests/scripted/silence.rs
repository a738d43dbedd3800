//! Silent masters: stopped, slow, or behind a network that drops packets.

use quorlock_core::{Acquire, AcquireError, Event, Resource};

use super::world::{Flow, KEY, Reach, World, ms, one_try, settings, wanted};

#[test]
fn a_silent_connection_is_given_up_after_its_releases_were_written() {
    let mut world = World::of(3);
    world.masters[2].flow = Flow::Stopped;
    let lock = world.hold(&one_try());
    let token = world.expose(lock);
    world.pass(ms(60));
    assert_eq!(world.nodes[0].opened[2], 2);
    world.serve(0, 2);
    let executed: Vec<_> =
        world.masters[2].executed.iter().filter(|(_, _, carried)| *carried == token).collect();
    assert!(matches!(executed[..], [(_, "SET", _), (_, "RELEASE", _)]), "{executed:?}");
    assert_eq!(world.masters[2].value(KEY, world.now), None);
    world.release(lock);
}

#[test]
fn a_slow_connection_that_goes_on_answering_is_not_given_up() {
    let mut world = World::of(1);
    for number in 0..50 {
        world.masters[0].delay = ms(10 * number).min(ms(120));
        let resource = Resource::new(format!("job:{number}")).unwrap();
        world.acquire(&Acquire { targets: resource.into(), ..wanted(ms(10_000)) });
        world.pass(ms(20));
    }
    assert_eq!(world.nodes[0].opened[0], 1);
}

#[test]
fn a_pushed_message_is_a_sign_of_life_and_never_a_reply() {
    let mut world = World::of(1);
    world.masters[0].flow = Flow::RepliesHeld;
    world.acquire(&one_try());
    world.inject(0, b">2\r\n+message\r\n+text\r\n");
    assert_eq!(world.events_now(), []);
    world.deliver(0, 0);
    assert!(matches!(world.events_now()[..], [Event::Granted { .. }]));
}

/// An hour passes, and the network between has forgotten the connections without telling either
/// end.
fn idle_behind_a_network_that_forgets(masters: usize) -> World {
    let mut world = World::of(masters);
    let lock = world.hold(&one_try());
    world.release(lock);
    world.events_now();
    world.pass(ms(3_600_000));
    world
}

/// Connections made from now on work; the old ones swallow what is written.
fn forget(world: &mut World, master: usize) {
    let generation = world.generation(master);
    world.dead.insert((master, generation));
}

#[test]
fn the_first_lock_after_an_idle_hour_behind_a_forgetful_network_succeeds_even_with_one_try() {
    for masters in 1..=5 {
        let mut world = idle_behind_a_network_that_forgets(masters);
        for master in 0..masters {
            forget(&mut world, master);
        }
        let start = world.now;
        world.hold(&one_try());
        assert!(world.now.since(start) <= ms(60), "N={masters}");
    }
}

#[test]
fn the_first_lock_after_an_idle_hour_succeeds_even_if_a_minority_has_died() {
    for dead in [0, 1, 2] {
        for reach in [Reach::Refuses, Reach::Ignores] {
            let mut world = idle_behind_a_network_that_forgets(5);
            for master in 0..5 {
                forget(&mut world, master);
            }
            world.masters[dead].reach = reach;
            world.masters[(dead + 1) % 5].reach = reach;
            world.hold(&one_try());
        }
    }
}

#[test]
fn the_first_lock_succeeds_even_if_the_network_answers_its_first_bytes_with_a_reset() {
    for (masters, used) in [(2, true), (2, false), (3, true), (3, false), (5, true)] {
        let mut world = World::of(masters);
        if used {
            let lock = world.hold(&one_try());
            world.release(lock);
            world.events_now();
        }
        world.pass(ms(3_600_000));
        for master in 0..masters {
            forget(&mut world, master);
        }
        world.acquire(&one_try());
        for master in 0..masters {
            world.cut(0, master);
        }
        let event = world.next_event();
        assert!(matches!(event, Event::Granted { .. }), "N={masters}, used: {used}: {event:?}");
    }
}

#[test]
fn masters_that_stay_silent_are_not_asked_forever() {
    let mut world = idle_behind_a_network_that_forgets(3);
    world.each(|master| {
        master.flow = Flow::Stopped;
        master.reach = Reach::Ignores;
    });
    let start = world.now;
    world.acquire(&one_try());
    world.refusal();
    assert!(world.now.since(start) <= ms(50 + 250));
}

#[test]
fn connections_that_are_forgotten_again_within_one_wait_cost_their_votes_the_second_time() {
    let mut world = World::ready(settings(3).retry_delay(ms(6_000)..=ms(6_000)));
    world.each(|master| master.hold_by_another(KEY, None));
    world.pass(ms(6_000));
    for master in 0..3 {
        forget(&mut world, master);
    }
    world.acquire(&Acquire { attempts: Some(2), timeout: None, ..wanted(ms(10_000)) });
    world.pass(ms(5_000));
    assert_eq!(world.masters[0].count("SET"), 1, "it is made once more on a fresh connection");
    for master in 0..3 {
        forget(&mut world, master);
    }
    let error = world.refusal();
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    assert_eq!(error.ballot().unwrap().attempts(), 2);
    assert_eq!(world.masters[0].count("SET"), 1);
}

#[test]
fn every_command_ends_while_nothing_ever_answers() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    world.each(|master| {
        master.flow = Flow::BlackHole;
        master.reach = Reach::Ignores;
    });
    let start = world.now;
    world.extend(lock, ms(10_000));
    assert!(matches!(world.next_event(), Event::Extended { result: Err(_), .. }));
    assert_eq!(world.now.since(start), ms(50));
    world.release(lock);
    assert!(matches!(world.next_event(), Event::Released { .. }));
    assert_eq!(world.now.since(start), ms(50), "it is known that no master answers");
    world.acquire(&Acquire { timeout: Some(ms(700)), ..wanted(ms(10_000)) });
    world.refusal();
    assert!(world.now.since(start) <= ms(750));
}
