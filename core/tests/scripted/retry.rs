//! Attempts after the first.

use quorlock_core::{Acquire, AcquireError, Event};

use super::world::{Flow, KEY, Reach, World, ms, one_try, settings, wanted};

fn pauses_between_attempts(world: &World) -> Vec<std::time::Duration> {
    world.masters[0].attempts().windows(2).map(|pair| pair[1].0.since(pair[0].0)).collect()
}

#[test]
fn retry_pauses_are_random_and_within_their_bounds_including_the_last() {
    for timeout in [1_000, 1_037, 1_111, 1_200] {
        let mut world = World::ready(settings(3).retry_delay(ms(100)..=ms(200)));
        world.each(|master| master.hold_by_another(KEY, None));
        world.acquire(&Acquire { timeout: Some(ms(timeout)), ..wanted(ms(10_000)) });
        world.refusal();
        let pauses = pauses_between_attempts(&world);
        assert!(pauses.len() >= 4);
        assert!(pauses.iter().all(|pause| (ms(100)..=ms(200)).contains(pause)), "{pauses:?}");
        assert!(pauses.windows(2).any(|pair| pair[0] != pair[1]), "{pauses:?}");
    }
}

#[test]
fn attempts_are_limited_in_number() {
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(KEY, None));
    world.acquire(&Acquire { attempts: Some(3), ..wanted(ms(10_000)) });
    let error = world.refusal();
    assert_eq!(error.ballot().unwrap().attempts(), 3);
    assert_eq!(world.masters[0].attempts().len(), 3);
}

#[test]
fn the_wait_ends_in_time_with_held_by_another_or_no_quorum() {
    for held in [true, false] {
        let mut world = World::of(3);
        world.masters[2].flow = Flow::Stopped;
        if held {
            world.masters[0].hold_by_another(KEY, None);
        } else {
            world.masters[0].flow = Flow::Stopped;
        }
        let start = world.now;
        world.acquire(&Acquire { timeout: Some(ms(1_000)), ..wanted(ms(10_000)) });
        let error = world.refusal();
        assert!(world.now.since(start) <= ms(1_000));
        assert_eq!(matches!(error, AcquireError::HeldByAnother(_)), held, "{error}");
        assert_eq!(matches!(error, AcquireError::NoQuorum(_)), !held, "{error}");
        world.masters[1].fails("UNDO", "unused");
        assert_eq!(world.masters[1].value(KEY, world.now), None);
    }
}

#[test]
fn a_wait_that_ends_in_the_middle_of_a_round_reports_the_last_round_that_was_decided() {
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(KEY, None));
    world.acquire(&Acquire { timeout: Some(ms(300)), ..wanted(ms(10_000)) });
    world.pass(ms(10));
    world.each(|master| master.delay = ms(45));
    let error = world.refusal();
    assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
}

#[test]
fn a_single_try_sends_one_request_to_each_master() {
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(KEY, Some(quorlock_core::Instant::FAR_FUTURE)));
    world.acquire(&one_try());
    assert!(matches!(world.events_now()[..], [Event::NotAcquired { .. }]));
    world.pass(ms(10_000));
    assert_eq!(world.masters[0].count("SET"), 1);
}

#[test]
fn the_lock_is_taken_as_soon_as_its_key_is_gone() {
    let mut world = World::of(3);
    let until = world.now + ms(2_000);
    world.each(|master| master.hold_by_another(KEY, Some(until)));
    world.acquire(&wanted(ms(10_000)));
    let event = world.next_event();
    assert!(matches!(event, Event::Granted { .. }), "{event:?}");
    assert!(world.now.since(until) <= ms(150));
}

#[test]
fn a_wrong_password_or_a_missing_permission_fails_at_once_and_makes_no_retry_storm() {
    for at_connection in [true, false] {
        let mut world = World::cold(settings(3));
        for master in 0..2 {
            if at_connection {
                world.masters[master].fails("HELLO", "WRONGPASS invalid username-password pair");
            } else {
                world.masters[master].fails("SET", "NOPERM this user has no permissions to run 'set'");
            }
        }
        let start = world.now;
        world.acquire(&wanted(ms(10_000)));
        let error = world.refusal();
        assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
        assert_eq!(world.now, start);
        world.pass(ms(60_000));
        assert!(world.masters[0].count("SET") <= 1);
        assert!(world.nodes[0].opened[0] <= 31, "{} connections", world.nodes[0].opened[0]);
        assert!(world.holders().is_empty());
    }
}

#[test]
fn one_misconfigured_master_of_three_costs_its_vote_and_nothing_else() {
    let mut world = World::cold(settings(3));
    world.masters[0].fails("HELLO", "WRONGPASS invalid username-password pair");
    world.hold(&one_try());
}

#[test]
fn a_timeout_of_zero_ends_at_once_and_leaves_nothing() {
    let mut world = World::of(3);
    let start = world.now;
    world.acquire(&Acquire { timeout: Some(ms(0)), ..wanted(ms(10_000)) });
    world.next_event();
    assert_eq!(world.now, start);
    world.each(|master| master.reach = Reach::Accepts);
    world.pass(ms(100));
}

#[test]
fn a_source_of_tokens_that_fails_is_an_error() {
    struct Empty;
    impl quorlock_core::Entropy for Empty {
        fn fill(&mut self, _: &mut [u8]) -> Result<(), quorlock_core::EntropyFailed> {
            Err(quorlock_core::EntropyFailed)
        }
    }
    let now = quorlock_core::Instant::ORIGIN;
    let mut machine = quorlock_core::Machine::new(settings(1).build().unwrap(), Empty, now);
    // A request that failed is in nobody's way, so the next one draws a token, too.
    for wanted in [one_try(), wanted(ms(10_000)), one_try()] {
        assert_eq!(machine.acquire(&wanted, now), Err(AcquireError::NoEntropy));
    }
}
