//! Healing: keys are put back where they are missing, as long as a quorum holds the lock.

use quorlock_core::{Acquire, Event, LockId, LossCause, ReleaseOutcome, Resource};

use super::world::{Flow, KEY, Reach, World, ms, wanted};

fn healed() -> Acquire {
    Acquire { healing: true, renew_for: Some(ms(3_600_000)), ..wanted(ms(3_000)) }
}

/// Five masters of which three hold the lock.
fn held_on_three_of_five(asked: &Acquire) -> (World, LockId) {
    let mut world = World::of(5);
    for master in 3..5 {
        for command in ["SET", "ACQUIRE FENCED"] {
            world.masters[master].fails(command, "OOM command not allowed when used memory > 'maxmemory'.");
        }
    }
    let lock = world.hold(asked);
    world.each(|master| master.server.clear_failures());
    assert_eq!(world.holders(), [0, 1, 2]);
    (world, lock)
}

fn losses(world: &mut World) -> Vec<Event> {
    world.events_now().into_iter().filter(|event| matches!(event, Event::Lost { .. })).collect()
}

#[test]
fn a_lock_of_three_of_five_outlives_all_three_of_them_one_after_the_other() {
    let (mut world, _) = held_on_three_of_five(&healed());
    for master in 0..3 {
        world.pass(ms(2_100));
        assert_eq!(world.holders(), [0, 1, 2, 3, 4], "before master {master} comes back empty");
        world.cut(0, master);
        world.masters[master].forget_keys();
    }
    world.pass(ms(2_100));
    assert_eq!(world.holders(), [0, 1, 2, 3, 4]);
    assert_eq!(losses(&mut world), []);
}

#[test]
fn without_healing_a_lock_of_three_of_five_ends_with_the_first_lost_key() {
    let (mut world, lock) = held_on_three_of_five(&Acquire { healing: false, ..healed() });
    world.pass(ms(2_100));
    assert_eq!(world.holders(), [0, 1, 2]);
    world.cut(0, 0);
    world.masters[0].forget_keys();
    world.pass(ms(2_100));
    assert_eq!(losses(&mut world), [Event::Lost { lock, cause: LossCause::NotHeld }]);
}

#[test]
fn a_key_is_put_back_only_when_a_round_has_shown_that_a_quorum_holds_the_lock() {
    let (mut world, lock) = held_on_three_of_five(&healed());
    // Two of the three do not answer: no quorum, and nothing is put back anywhere.
    world.masters[0].flow = Flow::Stopped;
    world.masters[1].flow = Flow::Stopped;
    world.extend(lock, ms(3_000));
    world.pass(ms(60));
    assert_eq!(world.holders(), [0, 1, 2]);
    world.each(|master| master.flow = Flow::Free);
    world.pass(ms(10));
    world.extend(lock, ms(3_000));
    world.pass(ms(10));
    assert_eq!(world.holders(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_key_that_was_put_back_counts_from_the_next_round_on() {
    let (mut world, lock) = held_on_three_of_five(&Acquire { renew_for: None, ..healed() });
    world.extend(lock, ms(3_000));
    world.pass(ms(10));
    world.events_now();
    assert_eq!(world.holders(), [0, 1, 2, 3, 4]);
    world.masters[0].forget_keys();
    world.masters[1].forget_keys();
    world.extend(lock, ms(3_000));
    assert!(matches!(world.events_now()[..], [Event::Extended { result: Ok(_), .. }]));
}

#[test]
fn the_key_of_another_client_is_left_alone_and_does_not_count() {
    let (mut world, lock) = held_on_three_of_five(&Acquire { renew_for: None, ..healed() });
    world.masters[3].hold_by_another(KEY, None);
    for _ in 0..2 {
        world.extend(lock, ms(3_000));
        world.pass(ms(10));
    }
    assert_eq!(world.masters[3].value(KEY, world.now), Some("another's token"));
    assert_eq!(world.holders(), [0, 1, 2, 3, 4]);
    world.events_now();
    // Of the five, four hold the lock. Without two of them there is no quorum: the fifth was never
    // counted.
    world.masters[0].forget_keys();
    world.masters[1].forget_keys();
    world.extend(lock, ms(3_000));
    assert_eq!(world.events_now()[0], Event::Lost { lock, cause: LossCause::NotHeld });
}

#[test]
fn a_master_that_answers_after_the_decision_gets_its_key_back_as_well() {
    let mut world = World::of(3);
    let lock = world.hold(&Acquire { renew_for: None, ..healed() });
    world.masters[2].forget_keys();
    world.masters[2].delay = ms(20);
    world.extend(lock, ms(3_000));
    world.pass(ms(10));
    assert!(matches!(world.events_now()[..], [Event::Extended { result: Ok(_), .. }]));
    assert_eq!(world.holders(), [0, 1]);
    world.pass(ms(40));
    assert_eq!(world.holders(), [0, 1, 2]);
}

#[test]
fn a_key_that_was_put_back_is_released_with_the_others() {
    let (mut world, lock) = held_on_three_of_five(&healed());
    world.pass(ms(1_100));
    world.events_now();
    world.masters[4].delay = ms(30);
    world.release(lock);
    world.pass(ms(100));
    assert!(world.holders().is_empty());
}

#[test]
fn a_master_that_went_silent_while_its_key_was_put_back_is_not_counted_again() {
    let (mut world, lock) = held_on_three_of_five(&Acquire { renew_for: None, ..healed() });
    world.masters[3].flow = Flow::RepliesHeld;
    world.extend(lock, ms(3_000));
    world.pass(ms(5));
    assert!(world.deliver(0, 3));
    // The master has reported that it does not hold the lock, and answers nothing more.
    world.masters[3].flow = Flow::Stopped;
    // The connection is given up, and a release is written behind the request that was not
    // answered.
    world.pass(ms(200));
    world.masters[3].flow = Flow::Free;
    world.pass(ms(200));
    world.events_now();
    assert_eq!(world.holders(), [0, 1, 2, 4], "what was written late is taken back");
    for _ in 0..2 {
        world.extend(lock, ms(3_000));
        world.pass(ms(10));
        world.events_now();
    }
    assert_eq!(world.holders(), [0, 1, 2, 4]);
}

#[test]
fn healing_raises_the_counter_so_that_later_grants_have_larger_numbers() {
    let (mut world, lock) = held_on_three_of_five(&Acquire { fenced: true, renew_for: None, ..healed() });
    let counter = Resource::new(KEY).unwrap().counter_key();
    for master in &mut world.masters[..3] {
        master.server.hold(0, &counter, b"9", None);
    }
    world.release(lock);
    world.next_event();
    let (mut world, lock) = {
        for master in 3..5 {
            world.masters[master].fails("ACQUIRE FENCED", "OOM x");
        }
        let lock = world.hold(&Acquire { fenced: true, renew_for: None, ..healed() });
        world.each(|master| master.server.clear_failures());
        (world, lock)
    };
    let number = world.nodes[0].machine.resumption(lock).unwrap().fencing_token.unwrap().get();
    assert_eq!(number, 10);
    world.extend(lock, ms(3_000));
    world.pass(ms(10));
    let counter = String::from_utf8(counter).unwrap();
    let counters: Vec<_> = world.masters.iter().map(|master| master.value(&counter, world.now)).collect();
    assert_eq!(counters, [Some("10"); 5]);
    assert_eq!(world.holders(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_master_that_refused_does_not_count_even_if_another_address_put_the_token_there() {
    // One server behind two addresses, which no client could recognize.
    let mut world = World::of(5);
    for master in 3..5 {
        world.masters[master].hold_by_another(KEY, None);
    }
    let lock = world.hold(&Acquire { renew_for: None, ..healed() });
    let token = world.expose(lock);
    for master in 3..5 {
        world.masters[master].server.hold(0, KEY.as_bytes(), token.as_bytes(), None);
    }
    for _ in 0..2 {
        world.extend(lock, ms(3_000));
        world.pass(ms(10));
        world.events_now();
    }
    world.masters[0].forget_keys();
    world.extend(lock, ms(3_000));
    assert_eq!(world.events_now()[0], Event::Lost { lock, cause: LossCause::NotHeld });
}

#[test]
fn a_key_that_was_put_back_without_an_answer_is_released_even_if_the_next_heal_is_not_sent() {
    let mut world = World::of(5);
    for master in 3..5 {
        world.masters[master].hold_by_another(KEY, None);
    }
    let lock = world.hold(&Acquire { renew_for: None, ..healed() });
    world.masters[3].forget_keys();
    world.masters[3].flow = Flow::RepliesHeld;
    world.extend(lock, ms(3_000));
    world.pump();
    assert_eq!(world.holders(), [0, 1, 2, 3, 4]);
    world.masters[3].reach = Reach::Refuses;
    world.cut(0, 3);
    world.pass(ms(10));
    world.extend(lock, ms(3_000));
    world.pass(ms(10));
    world.masters[3].reach = Reach::Accepts;
    world.masters[3].flow = Flow::Free;
    world.release(lock);
    world.pass(ms(2_900));
    assert_eq!(world.holders(), [4], "what is left is another holder's");
}

/// Two of five masters hold the lock, and another one has the key without counting as a holder.
#[test]
fn a_release_does_not_count_a_master_that_does_not_count_as_a_holder() {
    for is_silent in [false, true] {
        let mut world = World::of(5);
        for master in 3..5 {
            world.masters[master].hold_by_another(KEY, None);
        }
        let lock = world.hold(&Acquire { renew_for: None, ..healed() });
        world.masters[3].forget_keys();
        world.masters[3].flow = Flow::RepliesHeld;
        world.extend(lock, ms(3_000));
        world.pump();
        // The key is restored. The answer is lost, and so is the release behind the request, if one
        // is written.
        let generation = world.generation(3);
        world.dead.insert((3, generation));
        if is_silent {
            world.pass(ms(100));
        } else {
            world.cut(0, 3);
        }
        world.masters[3].flow = Flow::Free;
        world.pass(ms(100));
        assert_eq!(world.holders(), [0, 1, 2, 3, 4]);
        world.events_now();
        world.masters[2].forget_keys();
        world.release(lock);
        let released = Event::Released { lock, outcome: ReleaseOutcome::NotOurs };
        assert_eq!(world.events_now(), [released], "silent: {is_silent}");
        assert_eq!(world.holders(), [4], "it is released all the same");
    }
}

#[test]
fn a_late_answer_restores_the_key_although_another_extension_has_begun() {
    let mut world = World::of(3);
    let lock = world.hold(&Acquire { renew_for: None, ..healed() });
    world.masters[2].forget_keys();
    world.masters[2].flow = Flow::RepliesHeld;
    for _ in 0..2 {
        world.extend(lock, ms(3_000));
        world.pump();
    }
    assert_eq!(world.holders(), [0, 1]);
    assert!(world.deliver(0, 2), "the answer to the first one");
    world.pump();
    assert_eq!(world.holders(), [0, 1, 2]);
}

#[test]
fn a_restored_key_counts_for_the_next_holder_once_a_later_extension_confirms_it() {
    let mut world = World::of(3);
    let lock = world.hold(&Acquire { renew_for: None, ..healed() });
    let counts_all = |world: &mut World| world.nodes[0].machine.resumption(lock).unwrap().counts_all();
    world.masters[2].forget_keys();
    world.masters[2].flow = Flow::RepliesHeld;
    world.extend(lock, ms(3_000));
    world.pump();
    assert!(world.deliver(0, 2));
    world.pump();
    // The key is restored, and the answer to that is lost.
    world.cut(0, 2);
    world.masters[2].flow = Flow::Free;
    world.pass(ms(20));
    assert_eq!(world.holders(), [0, 1, 2]);
    assert!(!counts_all(&mut world));
    world.extend(lock, ms(3_000));
    world.pump();
    assert!(counts_all(&mut world));
}
