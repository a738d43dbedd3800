//! Locks that are handed over: their keys stay, and a process with the token resumes them.

use std::time::Duration;

use quorlock_core::{
    Acquire, AcquireError, Cause, Event, LossCause, ReleaseOutcome, Resource, Resumption, Target, Token, Ttl,
    Vote,
};

use super::world::master::{Master, wall_clock};
use super::world::{Flow, KEY, World, ms, settings, wanted};

/// Two machines before three masters, the first of which has handed a lock over.
fn handed_over(asked: &Acquire) -> (World, Resumption) {
    handed_over_among(3, asked)
}

fn handed_over_among(masters: usize, asked: &Acquire) -> (World, Resumption) {
    let mut world = World::of(masters);
    world.add_node(settings(masters).build().unwrap(), 2);
    world.pump();
    let lock = world.hold(asked);
    let handed = world.nodes[0].machine.hand_over(lock, world.now).unwrap();
    world.drain(0);
    (world, handed)
}

fn resumed(handed: Resumption) -> Acquire {
    Acquire { resumption: Some(handed), ..wanted(ms(10_000)) }
}

#[test]
fn a_lock_that_was_handed_over_keeps_its_keys_and_is_renewed_no_more() {
    let (mut world, _) = handed_over(&Acquire { renew_for: Some(ms(60_000)), ..wanted(ms(1_000)) });
    assert_eq!(world.events_now(), []);
    assert_eq!(world.holders(), [0, 1, 2]);
    world.pass(ms(999));
    assert_eq!(world.holders(), [0, 1, 2]);
    world.pass(ms(2));
    assert!(world.holders().is_empty());
    assert!(world.nodes[0].machine.is_idle());
}

#[test]
fn a_resumed_lock_is_valid_as_after_an_extension() {
    let (mut world, handed) = handed_over(&Acquire { fenced: true, ..wanted(ms(10_000)) });
    world.pass(ms(4_000));
    world.each(|master| master.delay = ms(30));
    let sent = world.now;
    let lock = world.acquire_by(1, &resumed(handed));
    let valid_until = sent + ms(9_898);
    assert_eq!(world.next_event_of(1), Event::Granted { lock, valid_until });
    assert_eq!(world.nodes[1].machine.take(lock, world.now), Some(valid_until));
    assert_eq!(world.nodes[1].machine.resumption(lock), Some(handed));
    assert!(handed.fencing_token.is_some());
    assert!(world.masters.iter().all(|master| master.end(KEY, world.now) == Some(sent + ms(10_000))));
    world.release_by(1, lock);
    assert_eq!(world.next_event_of(1), Event::Released { lock, outcome: ReleaseOutcome::StillOurs });
    assert!(world.holders().is_empty());
}

#[test]
fn a_token_that_no_quorum_holds_is_refused_and_nothing_is_touched() {
    let (mut world, handed) = handed_over(&wanted(ms(10_000)));
    world.masters[0].forget_keys();
    world.masters[1].forget_keys();
    world.acquire_by(1, &resumed(handed));
    let event = world.next_event_of(1);
    assert!(matches!(&event, Event::NotAcquired { error: AcquireError::NotHeld(_), .. }), "{event:?}");
    world.pass(ms(100));
    assert_eq!(world.holders(), [2], "what is left may belong to a process that resumed it");

    let strange = Resumption::new(Token::from_bytes([1; Token::BYTES]), None);
    world.acquire_by(1, &resumed(strange));
    let event = world.next_event_of(1);
    assert!(matches!(&event, Event::NotAcquired { error: AcquireError::NotHeld(_), .. }), "{event:?}");
}

#[test]
fn without_a_quorum_of_answers_a_lock_is_not_resumed_and_keeps_its_keys() {
    let (mut world, handed) = handed_over(&wanted(ms(10_000)));
    world.masters[0].flow = Flow::Stopped;
    world.masters[1].flow = Flow::Stopped;
    world.acquire_by(1, &resumed(handed));
    let event = world.next_event_of(1);
    assert!(matches!(&event, Event::NotAcquired { error: AcquireError::NoQuorum(_), .. }), "{event:?}");
    world.each(|master| master.flow = Flow::Free);
    world.pass(ms(100));
    assert_eq!(world.holders(), [0, 1, 2]);
    // A second request resumes it.
    let lock = world.acquire_by(1, &resumed(handed));
    assert!(matches!(world.next_event_of(1), Event::Granted { .. }));
    world.release_by(1, lock);
    world.next_event_of(1);
}

#[test]
fn every_table_of_answers_to_a_resumption_ends_right() {
    // A digit of three for each master: it has the key, it has not, or it is silent.
    for (masters, tables) in [(1, 3), (2, 9), (3, 27), (4, 81), (5, 243)] {
        let needed = masters / 2 + 1;
        for table in 0..tables {
            let (mut world, handed) = handed_over_among(masters, &wanted(ms(10_000)));
            let (mut with_key, mut without) = (0, 0);
            let mut digits = table;
            for master in 0..masters {
                let digit = digits % 3;
                digits /= 3;
                match digit {
                    0 => with_key += 1,
                    1 => {
                        world.masters[master].forget_keys();
                        without += 1;
                    }
                    _ => world.masters[master].flow = Flow::Stopped,
                }
            }
            let begun = world.now;
            world.acquire_by(1, &resumed(handed));
            let event = world.next_event_of(1);
            let is_gone = without > masters - needed;
            let is_right = match &event {
                Event::Granted { .. } => with_key >= needed,
                Event::NotAcquired { error: AcquireError::NotHeld(_), .. } => is_gone,
                Event::NotAcquired { error: AcquireError::NoQuorum(_), .. } => with_key < needed && !is_gone,
                _ => false,
            };
            assert!(is_right, "{with_key} of {masters} have the key, {without} do not: {event:?}");
            // Only masters that do not answer are waited for, and only if their votes matter.
            let is_decided = with_key >= needed || is_gone;
            assert_eq!(world.now == begun, is_decided, "{with_key} and {without} of {masters}");
        }
    }
}

#[test]
fn a_lock_is_resumed_only_if_it_is_valid_for_longer_than_its_loss_is_reported_before_its_end() {
    // A life of 53 ms is valid for 50.47 ms, and a loss is reported 2 ms before its end.
    for (micros, is_granted) in [(48_469, true), (48_470, false), (49_900, false)] {
        let (mut world, handed) = handed_over(&wanted(ms(10_000)));
        world.each(|master| master.delay = Duration::from_micros(micros));
        world.acquire_by(1, &Acquire { resumption: Some(handed), ..wanted(ms(53)) });
        let event = world.next_event_of(1);
        assert_eq!(matches!(event, Event::Granted { .. }), is_granted, "after {micros} µs: {event:?}");
    }
}

#[test]
fn a_resumption_ends_at_its_timeout() {
    let (mut world, handed) = handed_over(&wanted(ms(10_000)));
    world.masters[1].delay = ms(40);
    world.masters[2].delay = ms(40);
    let begun = world.now;
    world.acquire_by(1, &Acquire { timeout: Some(ms(20)), ..resumed(handed) });
    let event = world.next_event_of(1);
    let Event::NotAcquired { error: AcquireError::NoQuorum(ballot), .. } = &event else {
        panic!("{event:?}")
    };
    let no_answer = Vote::Failed(Cause::NoAnswer { waited: ms(20) });
    let votes: Vec<_> = ballot.votes().map(|(_, vote)| vote).collect();
    assert_eq!(votes, [Vote::Granted, no_answer, no_answer]);
    assert_eq!(world.now, begun + ms(20));
    world.pass(ms(100));
    assert_eq!(world.holders(), [0, 1, 2]);
}

#[test]
fn a_resumption_that_is_cancelled_deletes_nothing() {
    for by_release in [false, true] {
        let (mut world, handed) = handed_over(&wanted(ms(10_000)));
        let lock = world.acquire_by(1, &resumed(handed));
        if by_release {
            world.release_by(1, lock);
        } else {
            world.nodes[1].machine.cancel(lock, world.now);
            world.drain(1);
        }
        world.pass(ms(100));
        assert_eq!(world.holders(), [0, 1, 2]);
        assert!(world.nodes[1].machine.is_idle());
    }
}

#[test]
fn a_release_by_token_reports_whether_the_lock_was_held() {
    let (mut world, handed) = handed_over(&wanted(ms(10_000)));
    let key = Resource::new(KEY).unwrap();
    for expected in [ReleaseOutcome::StillOurs, ReleaseOutcome::NotOurs] {
        let lock =
            world.nodes[1].machine.release_token(&key.clone().into(), handed.token, world.now).unwrap();
        world.drain(1);
        assert_eq!(world.next_event_of(1), Event::Released { lock, outcome: expected });
        assert!(world.holders().is_empty());
    }
}

#[test]
fn a_lock_whose_time_has_run_out_is_not_handed_over_extended_or_released_as_ours() {
    for command in 0..3 {
        let mut world = World::of(3);
        let lock = world.hold(&wanted(ms(1_000)));
        // No timer fires while everything sleeps, and the keys live for a little longer than the
        // guard.
        world.suspend(ms(988));
        let now = world.now;
        let machine = &mut world.nodes[0].machine;
        match command {
            0 => assert_eq!(machine.hand_over(lock, now), None),
            1 => assert!(machine.extend(lock, Ttl::new(ms(1_000)).unwrap(), now).is_err()),
            _ => machine.release(lock, now),
        }
        world.drain(0);
        let events = world.events_now();
        assert_eq!(events[0], Event::Lost { lock, cause: LossCause::Expired });
        if command == 2 {
            assert_eq!(events[1], Event::Released { lock, outcome: ReleaseOutcome::NotOurs });
        }
        assert!(world.holders().is_empty());
    }
}

#[test]
fn masters_with_a_pending_release_do_not_count_for_the_resumption() {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 2);
    world.pump();
    // The third master executes the request, and its answer does not arrive.
    world.masters[2].flow = Flow::RepliesHeld;
    let lock = world.hold(&wanted(ms(10_000)));
    let handed = world.nodes[0].machine.hand_over(lock, world.now).unwrap();
    world.drain(0);
    world.masters[2].flow = Flow::Free;
    assert_ne!(handed, Resumption::new(handed.token, None));
    assert_eq!(Resumption::from_text(&handed.expose(), None), Some(handed));
    world.masters[0].forget_keys();
    world.acquire_by(1, &resumed(handed));
    let event = world.next_event_of(1);
    assert!(matches!(&event, Event::NotAcquired { error: AcquireError::NotHeld(_), .. }), "{event:?}");
    assert_eq!(world.holders(), [1], "the release of the first machine followed its request");
}

/// Every kind of claim, each with a place for a third master to be late.
fn claims() -> Vec<Acquire> {
    let config = settings(3).build().unwrap();
    let ttl = Ttl::new(ms(10_000)).unwrap();
    let of = |targets: &[Target]| Acquire::new(config.targets(targets.to_vec()).unwrap(), ttl);
    let permits = Acquire::new(config.permits_at_once("gpu", 4, 2).unwrap(), ttl);
    let plain = wanted(ms(10_000));
    let several = of(&[Target::write("order:7"), Target::write("stock:3")]);
    let mixed = of(&[Target::write("order:7"), Target::read("tariff")]);
    let all = [plain.clone(), several, of(&[Target::read("tariff")]), mixed, permits];
    let fair = Acquire { fair: true, ..plain };
    all.into_iter()
        .chain([fair])
        .flat_map(|asked| [false, true].map(|fenced| Acquire { fenced, ..asked.clone() }))
        .collect()
}

fn keys(world: &World) -> Vec<usize> {
    let all = world.masters.iter().enumerate();
    let key = |key: &[u8]| !key.starts_with(b"quorlock:") || key.starts_with(b"quorlock:seat:");
    let has = |master: &Master| master.server.keys(wall_clock(world.now)).any(|held| key(held.key));
    all.filter(|(_, master)| has(master)).map(|(number, _)| number).collect()
}

#[test]
fn no_key_outlives_the_release_of_the_process_that_resumed_the_lock() {
    for asked in claims() {
        for is_copied in [false, true] {
            let mut world = World::of(3);
            world.add_node(settings(3).build().unwrap(), 2);
            world.pump();
            // The request to the third master arrives behind the release of the second machine.
            world.masters[2].flow = Flow::Stopped;
            let lock = world.hold(&asked);
            let copy = is_copied.then(|| world.nodes[0].machine.resumption(lock).unwrap());
            let handed = world.nodes[0].machine.hand_over(lock, world.now).unwrap();
            world.drain(0);
            let resumed =
                world.acquire_by(1, &Acquire { resumption: Some(handed), fair: false, ..asked.clone() });
            assert!(matches!(world.next_event_of(1), Event::Granted { .. }), "{asked:?}");
            world.nodes[1].machine.take(resumed, world.now).unwrap();
            world.release_by(1, resumed);
            assert!(matches!(world.next_event_of(1), Event::Released { .. }));
            for node in [1, 0] {
                world.serve(node, 2);
            }
            world.masters[2].flow = Flow::Free;
            world.pump();
            // A process with an earlier copy may count the third master.
            assert_eq!(keys(&world), if copy.is_some() { vec![2] } else { vec![] }, "{asked:?}");
        }
    }
}

/// It can have the token only as another master: one server behind two addresses.
#[test]
fn a_master_that_did_not_grant_the_lock_counts_for_the_resumption_once_the_key_is_restored() {
    for is_restored in [false, true] {
        let mut world = World::of(3);
        world.add_node(settings(3).build().unwrap(), 2);
        world.pump();
        let until = world.now + ms(1_000);
        world.masters[2].hold_by_another(KEY, Some(until));
        let lock = world.hold(&wanted(ms(10_000)));
        world.pump();
        let token = world.expose(lock);
        let handed = world.nodes[0].machine.hand_over(lock, world.now).unwrap();
        world.drain(0);
        assert_eq!(Resumption::from_text(&handed.expose(), None), Some(handed));
        assert!(handed.counts_all());
        if is_restored {
            let healing = Acquire { healing: true, renew_for: Some(ms(60_000)), ..resumed(handed) };
            let lock = world.acquire_by(1, &healing);
            assert!(matches!(world.next_event_of(1), Event::Granted { .. }));
            world.nodes[1].machine.take(lock, world.now).unwrap();
            world.pass(ms(8_000));
            assert_eq!(world.holders(), [0, 1, 2]);
            world.masters[0].flow = Flow::Stopped;
            world.pass(ms(30_000));
            assert!(!world.nodes[1].events.iter().any(|(_, event)| matches!(event, Event::Lost { .. })));
        } else {
            world.masters[2].hold(KEY, &token, until);
            world.masters[0].forget_keys();
            world.acquire_by(1, &resumed(handed));
            let event = world.next_event_of(1);
            assert!(
                matches!(&event, Event::NotAcquired { error: AcquireError::NotHeld(_), .. }),
                "{event:?}"
            );
        }
    }
}

#[test]
fn a_resumed_lock_that_was_not_taken_is_left_as_it_was() {
    for gives_up in [false, true] {
        let (mut world, handed) = handed_over(&wanted(ms(60_000)));
        let lock = world.acquire_by(1, &Acquire { ttl: Ttl::new(ms(500)).unwrap(), ..resumed(handed) });
        assert!(matches!(world.next_event_of(1), Event::Granted { .. }));
        if gives_up {
            world.nodes[1].machine.cancel(lock, world.now);
            world.drain(1);
        } else {
            assert!(matches!(world.next_event_of(1), Event::NotAcquired { .. }));
        }
        world.pass(ms(100));
        assert_eq!(world.holders(), [0, 1, 2]);
    }
}

#[test]
fn text_that_was_not_exposed_is_not_a_resumption() {
    let token = "0123456789abcdef0123456789abcdef01234567";
    for text in ["", "-1", &token[1..]] {
        assert_eq!(Resumption::from_text(text, None), None, "{text}");
    }
    for rest in [
        "-",
        "-g",
        "-1.",
        "-.1",
        "-1.1.1",
        "-1-1-1",
        "-1-1-0.4.0",
        "-1-1-0.4.10",
        "-1-1-4.4.1",
        "-1-1-0.4.1-1",
    ] {
        assert_eq!(Resumption::from_text(&format!("{token}{rest}"), None), None, "{rest}");
    }
    assert!(Resumption::from_text(&format!("{token}-1-1-0.4.1"), None).is_some());
    assert_eq!(Resumption::from_text(token, None).map(Resumption::expose).as_deref(), Some(token));
}

/// The answer to its request was lost, and it has confirmed the key since.
#[test]
fn a_hand_over_leaves_the_key_on_a_master_that_the_holder_counts() {
    let mut world = World::of(3);
    for seed in 2..4 {
        world.add_node(settings(3).build().unwrap(), seed);
    }
    world.pump();
    world.masters[2].flow = Flow::RepliesHeld;
    let lock = world.hold(&wanted(ms(10_000)));
    world.cut(0, 2);
    world.masters[2].flow = Flow::Free;
    world.pass(ms(100));
    // The first master cannot be reached for longer than its key lives.
    world.masters[0].flow = Flow::Stopped;
    for _ in 0..4 {
        world.extend(lock, ms(10_000));
        world.pass(ms(3_000));
        let event = world.next_event();
        assert!(matches!(event, Event::Extended { result: Ok(_), .. }), "{event:?}");
    }
    assert!(world.nodes[0].machine.hand_over(lock, world.now).is_some());
    world.drain(0);
    world.masters[0].flow = Flow::Free;
    world.pass(ms(500));
    assert_eq!(world.holders(), [1, 2]);
    world.acquire_by(2, &Acquire { attempts: Some(1), ..wanted(ms(10_000)) });
    let event = world.next_event_of(2);
    assert!(matches!(event, Event::NotAcquired { .. }), "{event:?}");
}
