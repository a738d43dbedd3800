//! After a failed attempt: when the next one comes, which masters are released, and which votes are
//! reported.

use quorlock_core::{Acquire, AcquireError, Cause, Event, LockId, ServerError, Vote};

use super::wake_ups::delete_the_key;
use super::world::{Flow, KEY, Master, Reach, World, ms, one_try, settings, wanted};

fn votes(error: &AcquireError) -> Vec<Vote> {
    error.ballot().unwrap().votes().map(|(_, vote)| vote).collect()
}

fn timeout(limit: u64) -> Acquire {
    Acquire { timeout: Some(ms(limit)), ..wanted(ms(10_000)) }
}

/// When each attempt asked the first master, counted from the first attempt.
fn asked(world: &World) -> Vec<std::time::Duration> {
    let attempts = world.masters[0].attempts();
    attempts.iter().map(|(at, _)| at.since(attempts[0].0)).collect()
}

#[test]
fn a_wait_that_ends_in_the_middle_of_the_only_round_reports_the_votes_so_far() {
    let mut world = World::of(3);
    world.masters[1].flow = Flow::Stopped;
    world.masters[2].flow = Flow::Stopped;
    let start = world.now;
    world.acquire(&timeout(20));
    let error = world.refusal();
    assert_eq!(world.now.since(start), ms(20));
    let silent = Vote::Failed(Cause::NoAnswer { waited: ms(20) });
    assert_eq!(votes(&error), [Vote::Granted, silent, silent]);
    world.each(|master| master.flow = Flow::Free);
    world.pass(ms(100));
    assert!(world.holders().is_empty());
}

#[test]
fn a_wait_that_ends_in_the_middle_of_a_later_round_reports_the_votes_of_the_round_before() {
    let mut world = World::ready(settings(3).retry_delay(ms(50)..=ms(50)).request_timeout(ms(200)));
    world.each(|master| master.hold_by_another(KEY, None));
    let start = world.now;
    world.acquire(&timeout(100));
    world.pump();
    world.each(|master| master.flow = Flow::Stopped);
    let error = world.refusal();
    assert_eq!(world.now.since(start), ms(100));
    assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
    assert!(votes(&error).iter().all(|vote| matches!(vote, Vote::HeldByAnother { .. })), "{error}");
    assert_eq!(error.ballot().unwrap().attempts(), 2);
}

#[test]
fn the_last_attempt_comes_while_there_is_time_for_its_answers() {
    for seed in 0..10 {
        let settings = || settings(3).retry_delay(ms(50)..=ms(100)).request_timeout(ms(40));
        let mut world = World::ready(settings());
        world.nodes.clear();
        world.add_node(settings().build().unwrap(), seed);
        world.pump();
        world.each(|master| master.hold_by_another(KEY, None));
        let start = world.now;
        world.acquire(&timeout(100));
        world.refusal();
        assert_eq!(world.now.since(start), ms(100));
        let asked = asked(&world);
        assert!(asked.len() == 2 && asked[1] >= ms(50) && asked[1] <= ms(60), "{asked:?}");
    }
}

#[test]
fn no_attempt_comes_earlier_than_the_shortest_pause_even_if_it_is_the_last() {
    for (limit, attempts) in [(120, 1), (149, 1), (150, 2)] {
        let mut world = World::ready(settings(3).retry_delay(ms(100)..=ms(100)));
        world.each(|master| master.hold_by_another(KEY, None));
        world.acquire(&timeout(limit));
        world.refusal();
        assert_eq!(asked(&world).len(), attempts, "within {limit} ms");
    }
}

#[test]
fn an_attempt_that_may_last_until_the_time_is_over_asks_all_masters_at_once() {
    // A request may take 50 ms, and the notification that the lock is free takes one.
    for (left, asked_at_once) in [(51, 1), (50, 3)] {
        let mut world = World::of(3);
        world.each(|master| {
            master.hold_by_another(KEY, None);
            master.delay = ms(1);
        });
        world.acquire(&timeout(1_000));
        world.pass(ms(1_000 - left - 1));
        world.each(delete_the_key);
        world.pass(ms(1));
        let now = world.now;
        let is_asked = |master: &&Master| master.attempts().iter().any(|(at, _)| *at == now);
        assert_eq!(world.masters.iter().filter(is_asked).count(), asked_at_once, "{left} ms left");
        assert!(matches!(world.next_event(), Event::Granted { .. }));
    }
}

/// Masters whose connections have been quiet for an hour.
fn quiet(masters: usize) -> World {
    let mut world = World::of(masters);
    world.pass(ms(3_600_000));
    world
}

#[test]
fn an_attempt_is_not_repeated_when_the_time_is_up() {
    let mut world = quiet(3);
    world.each(|master| master.delay = ms(30));
    let generation = world.generation(2);
    world.dead.insert((2, generation));
    world.acquire(&timeout(20));
    world.cut(0, 2);
    let error = world.refusal();
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    world.pass(ms(1_000));
    assert_eq!(world.masters[0].count("SET"), 1);
}

#[test]
fn an_attempt_is_repeated_where_a_fresh_connection_and_an_outstanding_vote_can_win_it() {
    let mut world = quiet(5);
    for master in 0..2 {
        world.masters[master].hold_by_another(KEY, None);
    }
    let generation = world.generation(2);
    world.dead.insert((2, generation));
    world.each(|master| master.flow = Flow::RepliesHeld);
    world.acquire(&one_try());
    world.cut(0, 2);
    for master in [3, 0, 1] {
        world.deliver(0, master);
    }
    world.each(|master| master.flow = Flow::Free);
    let event = world.next_event();
    assert!(matches!(event, Event::Granted { .. }), "{event:?}");
}

#[test]
fn a_vote_that_decides_between_held_by_another_and_no_quorum_is_waited_for() {
    for held in [true, false] {
        let mut world = World::of(3);
        world.masters[0].hold_by_another(KEY, None);
        world.masters[1].fails("SET", "OOM command not allowed when used memory > 'maxmemory'.");
        world.masters[2].delay = ms(30);
        if held {
            world.masters[2].hold_by_another(KEY, None);
        } else {
            world.masters[2].fails("SET", "OOM command not allowed when used memory > 'maxmemory'.");
        }
        let start = world.now;
        world.acquire(&one_try());
        let error = world.refusal();
        assert_eq!(matches!(error, AcquireError::HeldByAnother(_)), held, "{error}");
        assert_eq!(world.now.since(start), ms(30), "{error}");
    }
}

#[test]
fn a_permission_that_is_missing_for_the_read_is_reported_instead_of_the_refusal() {
    let mut world = World::of(3);
    world.each(|master| {
        master.hold_by_another(KEY, None);
        master.fails("UNDO", "NOPERM this user has no permissions to run the 'evalsha' command");
    });
    world.acquire(&one_try());
    let error = world.refusal();
    assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
    assert_eq!(votes(&error), [Vote::Failed(Cause::Server(ServerError::NoPerm)); 3]);
}

#[test]
fn an_error_of_the_read_changes_only_votes_that_were_refusals() {
    let mut world = World::of(3);
    for master in 1..3 {
        world.masters[master].fails("SET", "OOM command not allowed when used memory > 'maxmemory'.");
        world.masters[master].hold_by_another(KEY, None);
    }
    world.masters[0].fails("UNDO", "NOPERM this user has no permissions to run the 'evalsha' command");
    // There is no time for a second round, but for the answers to all releases.
    world.acquire(&timeout(30));
    let error = world.refusal();
    let oom = Vote::Failed(Cause::Server(ServerError::Oom));
    assert_eq!(votes(&error)[1..], [oom, oom]);
    assert_eq!(votes(&error)[0], Vote::Granted);
}

#[test]
fn a_master_that_was_not_asked_is_not_released() {
    let mut world = World::of(3);
    world.masters[2].reach = Reach::Refuses;
    world.cut(0, 2);
    world.pump();
    let lock = world.hold(&one_try());
    world.release(lock);
    world.masters[2].reach = Reach::Accepts;
    world.pass(ms(5_000));
    assert_eq!(world.masters[2].count("RELEASE"), 0);
}

#[test]
fn a_master_that_refused_after_the_grant_is_not_released() {
    let mut world = World::of(3);
    world.masters[2].hold_by_another(KEY, None);
    world.masters[2].delay = ms(10);
    let lock = world.hold(&one_try());
    world.pass(ms(20));
    world.release(lock);
    world.pass(ms(100));
    assert_eq!(world.masters[2].count("RELEASE"), 0);
}

/// A source of random bytes that fails after this many draws.
#[derive(Clone)]
struct Few(u32);

impl quorlock_core::Entropy for Few {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), quorlock_core::EntropyFailed> {
        self.0 = self.0.checked_sub(1).ok_or(quorlock_core::EntropyFailed)?;
        bytes.fill(7);
        Ok(())
    }
}

#[test]
fn no_attempt_is_made_if_no_new_token_can_be_drawn() {
    let config = settings(1).build().unwrap();
    let (id, mut now) = (config.master_ids().next().unwrap(), quorlock_core::Instant::ORIGIN);
    // One draw is for the seed of the pauses, one for the first attempt.
    let mut machine = quorlock_core::Machine::new(config, Few(2), now);
    let lock = machine.acquire(&wanted(ms(10_000)), now).unwrap();
    let mut told: Option<(LockId, AcquireError)> = None;
    while told.is_none() {
        match machine.poll_output() {
            quorlock_core::Output::Connect { generation, .. } => {
                machine.closed(id, generation, Cause::UnknownHost, now);
            }
            quorlock_core::Output::Event(Event::NotAcquired { lock, error }) => told = Some((lock, error)),
            quorlock_core::Output::Wake(wake) => {
                now = wake.unwrap().at;
                machine.time_passed(now);
            }
            _ => {}
        }
    }
    assert_eq!(told, Some((lock, AcquireError::NoEntropy)));
}

#[test]
fn a_waiter_that_comes_to_the_front_without_a_new_token_is_told_so() {
    let config = settings(1).build().unwrap();
    let now = quorlock_core::Instant::ORIGIN;
    let mut machine = quorlock_core::Machine::new(config, Few(2), now);
    let first = machine.acquire(&wanted(ms(10_000)), now).unwrap();
    let second = machine.acquire(&wanted(ms(10_000)), now).unwrap();
    machine.cancel(first, now);
    let told = std::iter::from_fn(|| match machine.poll_output() {
        quorlock_core::Output::Wake(_) => None,
        quorlock_core::Output::Event(event) => Some(Some(event)),
        _ => Some(None),
    });
    let told: Vec<_> = told.flatten().collect();
    assert_eq!(told, [Event::NotAcquired { lock: second, error: AcquireError::NoEntropy }]);
}
