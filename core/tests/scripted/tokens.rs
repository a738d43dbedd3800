//! Every attempt has its own token.

use std::collections::BTreeSet;

use quorlock_core::{Acquire, Event};

use super::world::{Flow, KEY, Seeded, World, ms, one_try, wanted};

#[test]
fn every_attempt_has_a_fresh_token_and_all_masters_get_the_same() {
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(KEY, None));
    world.acquire(&Acquire { attempts: Some(20), timeout: None, ..wanted(ms(10_000)) });
    world.refusal();
    let tokens_at = |master: usize| world.masters[master].attempts().into_iter().map(|(_, token)| token);
    let tokens: Vec<&str> = tokens_at(0).collect();
    assert_eq!(tokens.len(), 20);
    assert_eq!(tokens.iter().collect::<BTreeSet<_>>().len(), 20);
    assert!(tokens.iter().all(|token| token.len() == 40));
    assert!((1..3).all(|master| tokens_at(master).eq(tokens.iter().copied())));
}

#[test]
fn a_delayed_release_of_the_first_attempt_leaves_the_key_of_the_second() {
    // The first attempt fails on two masters and is granted on the third, which is stopped before
    // the release.
    let mut world = World::of(3);
    for master in 0..2 {
        world.masters[master].fails("SET", "OOM command not allowed when used memory > 'maxmemory'.");
    }
    let lock = world.acquire(&wanted(ms(10_000)));
    let first = world.expose(lock);
    world.serve(0, 2);
    world.masters[2].flow = Flow::Stopped;
    world.pump();
    for master in 0..2 {
        world.masters[master].server.clear_failures();
    }
    let event = world.next_event();
    assert!(matches!(event, Event::Granted { .. }), "{event:?}");
    assert!(world.take(lock).is_some());
    let second = world.expose(lock);
    assert_ne!(first, second);
    world.masters[2].flow = Flow::Free;
    world.pass(ms(100));
    assert!(world.masters[2].tokens("UNDO").contains(&first.as_str()));
    let kept = world.masters.iter().filter(|master| master.value(KEY, world.now) == Some(&second)).count();
    assert!(kept >= 2, "{kept}");
}

#[test]
fn a_request_that_is_executed_after_the_loss_is_followed_by_its_release() {
    // Fault 6: the slow master executes the request long after the round was lost.
    let mut world = World::of(3);
    for master in 0..2 {
        world.masters[master].hold_by_another(KEY, None);
    }
    world.masters[2].flow = Flow::Stopped;
    let lock = world.acquire(&one_try());
    let token = world.expose(lock);
    world.refusal();
    world.pass(ms(3_000));
    world.masters[2].flow = Flow::Free;
    world.pump();
    assert_eq!(world.masters[2].tokens("SET"), [token.as_str()]);
    assert_eq!(world.masters[2].value(KEY, world.now), None);
}

#[test]
fn a_master_stopped_past_several_attempts_keeps_no_key_of_theirs() {
    let mut world = World::of(3);
    world.masters[2].flow = Flow::Stopped;
    world.each(|master| master.fails("SET", "BUSY Redis is busy running a script."));
    world.masters[2].server.clear_failures();
    world.acquire(&Acquire { timeout: Some(ms(1_000)), ..wanted(ms(60_000)) });
    world.refusal();
    world.pass(ms(5_000));
    world.masters[2].flow = Flow::Free;
    world.pump();
    assert!(world.masters[2].count("SET") >= 1);
    assert!(world.holders().is_empty());
}

#[test]
fn cancelling_in_the_middle_of_a_round_leaves_no_key() {
    for heard in 0..=3 {
        let mut world = World::of(3);
        world.each(|master| master.flow = Flow::RepliesHeld);
        let lock = world.acquire(&wanted(ms(10_000)));
        for master in 0..heard {
            world.deliver(0, master);
        }
        world.cancel(lock);
        world.each(|master| master.flow = Flow::Free);
        world.pass(ms(100));
        assert!(world.holders().is_empty(), "after {heard} answers");
        assert!(world.nodes[0].machine.is_idle());
    }
}

#[test]
fn cancelling_before_the_connections_are_open_sends_nothing() {
    let mut world = World::cold(super::world::settings(3));
    let lock = world.acquire(&wanted(ms(10_000)));
    world.cancel(lock);
    world.pass(ms(100));
    assert!(world.masters.iter().all(|master| master.count("SET") == 0));
}

#[test]
fn debug_of_an_output_shows_neither_tokens_nor_passwords() {
    let masters = ["redis://user:hunter2@a:6379"];
    let config = quorlock_core::Config::new(masters).unwrap();
    let (now, id) = (quorlock_core::Instant::ORIGIN, config.master_ids().next().unwrap());
    let mut machine = quorlock_core::Machine::new(config, Seeded::new(1), now);
    let quorlock_core::Output::Connect { generation, .. } = machine.poll_output() else { panic!() };
    machine.connected(id, generation, now);
    let output = machine.poll_output();
    assert!(matches!(output, quorlock_core::Output::Write { .. }));
    let text = format!("{output:?}");
    let secret = format!("{:?}", b"hunter2");
    assert!(!text.contains(secret.trim_matches(['[', ']'])), "{text}");
    assert!(text.contains("bytes"), "{text}");
}
