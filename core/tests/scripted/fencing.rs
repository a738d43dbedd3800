//! Fenced locks: numbers that rise with every grant, agreed on by a quorum.

use quorlock_core::{Acquire, Event, FencingToken, LockId, LossCause, Resource};

use super::world::{Flow, KEY, Reach, World, ms, wanted};

fn fenced() -> Acquire {
    Acquire { fenced: true, ..wanted(ms(10_000)) }
}

fn counter_key() -> Vec<u8> {
    Resource::new(KEY).unwrap().counter_key()
}

fn number(world: &mut World, lock: LockId) -> u64 {
    world.nodes[0].machine.resumption(lock).unwrap().fencing_token.map_or(0, FencingToken::get)
}

/// The counter of each master.
fn counters(world: &World) -> Vec<u64> {
    let key = String::from_utf8(counter_key()).unwrap();
    let read =
        |master: &super::world::Master| master.value(&key, world.now).map_or(0, |text| text.parse().unwrap());
    world.masters.iter().map(read).collect()
}

fn set_counters(world: &mut World, numbers: &[&str]) {
    for (master, number) in world.masters.iter_mut().zip(numbers) {
        master.server.hold(0, &counter_key(), number.as_bytes(), None);
    }
}

/// Commands of this name that were executed, on each master.
fn counts(world: &World, command: &str) -> Vec<usize> {
    world.masters.iter().map(|master| master.count(command)).collect()
}

#[test]
fn numbers_rise_with_every_grant_in_one_round_trip() {
    let mut world = World::of(3);
    for expected in 1..=3 {
        let lock = world.hold(&fenced());
        assert_eq!(number(&mut world, lock), expected);
        world.release(lock);
        assert!(matches!(world.next_event(), Event::Released { .. }));
    }
    assert_eq!(counters(&world), [3, 3, 3]);
    assert_eq!(counts(&world, "RAISE"), [0, 0, 0]);
}

#[test]
fn only_granted_fenced_locks_have_a_fencing_number() {
    let mut world = World::of(3);
    let sought = world.acquire(&fenced());
    assert_eq!(number(&mut world, sought), 0);
    world.cancel(sought);
    world.pump();
    let plain = world.hold(&wanted(ms(10_000)));
    assert_eq!(number(&mut world, plain), 0);
    assert_eq!(counts(&world, "SET"), [1, 1, 1]);
}

#[test]
fn masters_that_disagree_are_raised_to_the_largest_where_the_lock_is_ours() {
    let mut world = World::of(3);
    set_counters(&mut world, &["41", "7"]);
    let lock = world.hold(&fenced());
    assert_eq!(number(&mut world, lock), 42);
    world.pump();
    assert_eq!(counters(&world)[..2], [42, 42]);
    let raised: usize = counts(&world, "RAISE").iter().sum();
    assert!((1..=2).contains(&raised), "{raised}");
    assert_eq!(counts(&world, "ACQUIRE FENCED"), [1, 1, 1]);
}

#[test]
fn a_later_answer_with_a_larger_number_raises_the_others_once_more() {
    let mut world = World::of(5);
    set_counters(&mut world, &["1", "2", "3", "99", "99"]);
    // The third vote makes a quorum, and the fourth comes while the numbers are being raised.
    world.each(|master| master.delay = ms(10));
    world.masters[3].delay = ms(15);
    world.masters[4].flow = Flow::Stopped;
    let lock = world.hold(&fenced());
    assert_eq!(number(&mut world, lock), 100);
    world.pass(ms(30));
    assert_eq!(counters(&world)[3], 100);
    assert!(
        counters(&world)[..3].iter().filter(|number| **number == 100).count() >= 2,
        "{:?}",
        counters(&world)
    );
}

#[test]
fn a_master_that_has_lost_the_lock_before_it_was_raised_does_not_count() {
    let mut world = World::of(3);
    set_counters(&mut world, &["41", "7"]);
    world.masters[2].flow = Flow::Stopped;
    world.masters[1].fails("RAISE", "OOM command not allowed when used memory > 'maxmemory'.");
    world.acquire(&Acquire { attempts: Some(1), ..fenced() });
    let error = world.refusal();
    assert_eq!(error.ballot().unwrap().granted(), 1, "{error}");
    world.masters[1].mends("RAISE");
    world.masters[2].flow = Flow::Free;
    world.pump();
    assert!(world.holders().is_empty());

    set_counters(&mut world, &["41", "7", "7"]);
    world.each(|master| master.delay = ms(5));
    world.acquire(&Acquire { attempts: Some(1), ..fenced() });
    world.pass(ms(4));
    // The keys are lost before the second round comes.
    world.masters[1].forget_keys();
    world.masters[2].forget_keys();
    let error = world.refusal();
    assert_eq!(error.ballot().unwrap().granted(), 1, "{error}");
    assert!(error.to_string().contains("no longer holds it"), "{error}");
}

#[test]
fn an_impossible_counter_costs_that_master_its_vote() {
    let mut world = World::of(3);
    set_counters(&mut world, &["many"]);
    let lock = world.hold(&fenced());
    assert_eq!(number(&mut world, lock), 1);
    let key = String::from_utf8(counter_key()).unwrap();
    assert_eq!(world.masters[0].value(&key, world.now), Some("many"));
    assert_eq!(world.holders(), [1, 2], "the counter goes first, so nothing is locked there");

    let mut world = World::of(3);
    let last = FencingToken::MAX.get().to_string();
    set_counters(&mut world, &[&last, &last]);
    world.acquire(&Acquire { attempts: Some(1), ..fenced() });
    assert!(matches!(world.next_event(), Event::NotAcquired { .. }));
    world.pump();
    assert_eq!(counters(&world)[..2], [FencingToken::MAX.get(); 2]);
    assert!(world.holders().is_empty());
}

#[test]
fn an_extension_raises_the_counter_of_a_master_that_was_late() {
    let mut world = World::of(3);
    set_counters(&mut world, &["41", "41", "7"]);
    world.masters[2].delay = ms(3);
    let lock = world.hold(&fenced());
    assert_eq!(number(&mut world, lock), 42);
    world.pass(ms(10));
    assert_eq!(counters(&world), [42, 42, 8]);
    world.extend(lock, ms(10_000));
    assert!(matches!(world.next_event(), Event::Extended { result: Ok(_), .. }));
    world.pass(ms(10));
    assert_eq!(counters(&world), [42, 42, 42]);
}

#[test]
fn a_larger_counter_is_no_hindrance_to_an_extension_and_is_never_lowered() {
    let mut world = World::of(3);
    let lock = world.hold(&fenced());
    set_counters(&mut world, &["50", "50", "50"]);
    world.extend(lock, ms(10_000));
    assert!(matches!(world.next_event(), Event::Extended { result: Ok(_), .. }));
    assert_eq!(counters(&world), [50, 50, 50]);
    assert_eq!(number(&mut world, lock), 1);
}

#[test]
fn fenced_and_plain_holders_exclude_each_other() {
    let mut world = World::of(3);
    let plain = world.hold(&wanted(ms(10_000)));
    world.acquire(&Acquire { attempts: Some(1), ..fenced() });
    assert!(matches!(world.refusal(), quorlock_core::AcquireError::HeldByAnother(_)));
    assert_eq!(counters(&world), [0, 0, 0], "a refused request counts nothing");
    world.release(plain);
    world.next_event();
    world.hold(&fenced());
    world.acquire(&Acquire { attempts: Some(1), ..wanted(ms(10_000)) });
    assert!(matches!(world.refusal(), quorlock_core::AcquireError::HeldByAnother(_)));
}

#[test]
fn a_script_that_the_server_does_not_know_is_not_sent_again_behind_its_release() {
    let mut world = World::of(3);
    let lock = world.hold(&fenced());
    world.release(lock);
    world.next_event();
    world.each(super::world::Master::forget_scripts);
    world.each(|master| master.delay = ms(5));
    let lock = world.acquire(&fenced());
    world.pass(ms(2));
    world.cancel(lock);
    world.pass(ms(100));
    assert!(world.holders().is_empty(), "{:?}", world.holders());
    assert_eq!(counts(&world, "ACQUIRE FENCED"), [2, 2, 2]);
    // Without a release behind it, it is sent again.
    world.each(|master| master.delay = ms(1));
    world.hold(&fenced());
    assert_eq!(counts(&world, "ACQUIRE FENCED"), [4, 4, 4]);
}

#[test]
fn a_master_that_was_not_reached_for_the_second_round_is_still_released() {
    let mut world = World::of(3);
    set_counters(&mut world, &["4", "8", "8"]);
    world.masters[1].delay = ms(300);
    world.masters[2].delay = ms(300);
    let lock = world.acquire(&Acquire { attempts: Some(1), ..fenced() });
    world.pass(ms(1));
    world.masters[0].reach = Reach::Refuses;
    world.cut(0, 0);
    world.pass(ms(400));
    world.cancel(lock);
    world.masters[0].reach = Reach::Accepts;
    world.pass(ms(3_000));
    assert!(world.holders().is_empty(), "{:?}", world.holders());
}

#[test]
fn a_nonsensical_answer_ends_the_vote_of_its_master_without_a_timeout() {
    for nonsense in [&b":5\r\n"[..], b"+QUEUED\r\n", b":9007199254740992\r\n"] {
        for fenced in [false, true] {
            let mut world = World::of(1);
            world.masters[0].flow = Flow::BlackHole;
            world.acquire(&Acquire { attempts: Some(1), timeout: None, fenced, ..wanted(ms(10_000)) });
            if fenced && nonsense == b":5\r\n" {
                continue;
            }
            world.inject(0, nonsense);
            let error = world.refusal();
            assert!(error.to_string().contains("an answer that was not asked for"), "{error}");
        }
    }
}

#[test]
fn a_master_that_reports_a_smaller_counter_than_requested_has_no_vote() {
    let mut world = World::of(3);
    set_counters(&mut world, &["4", "8"]);
    world.masters[2].flow = Flow::BlackHole;
    world.masters[0].flow = Flow::RepliesHeld;
    world.acquire(&Acquire { attempts: Some(1), timeout: None, ..fenced() });
    assert!(world.deliver(0, 0));
    // The first master is now asked to raise its counter to 9.
    world.masters[0].flow = Flow::BlackHole;
    world.inject(0, b":5\r\n");
    let error = world.refusal();
    assert!(error.ballot().is_some(), "{error}");
}

#[test]
fn a_lock_is_released_on_a_master_that_granted_it_and_could_not_be_told_the_number() {
    let mut world = World::of(3);
    set_counters(&mut world, &["41", "7", "7"]);
    world.each(|master| master.delay = ms(2));
    world.masters[2].delay = ms(1);
    let lock = world.acquire(&fenced());
    world.pass(ms(1));
    // It has granted the lock, and another master's larger number cannot reach it.
    world.masters[2].reach = Reach::Ignores;
    world.cut(0, 2);
    let event = world.next_event();
    assert!(matches!(event, Event::Granted { .. }), "{event:?}");
    assert!(world.take(lock).is_some());
    world.pass(ms(500));
    world.masters[2].reach = Reach::Accepts;
    world.release(lock);
    world.pass(ms(3_000));
    assert_eq!(counts(&world, "RAISE"), [0, 1, 0]);
    assert!(world.holders().is_empty());
}

/// The master has executed the request. Its reply is lost with the silent connection, and a release
/// is still on its way.
#[test]
fn a_master_that_was_given_up_before_the_numbers_were_raised_is_never_counted() {
    let mut world = World::of(3);
    set_counters(&mut world, &["41", "7"]);
    world.each(|master| master.delay = ms(30));
    world.masters[2].flow = Flow::Stopped;
    let start = world.now;
    let lock = world.acquire(&fenced());
    world.serve(0, 2);
    let event = world.next_event();
    assert!(matches!(event, Event::Granted { .. }), "{event:?}");
    assert_eq!(world.now, start + ms(60), "with the second round trip, after the timeout of requests");
    assert!(world.take(lock).is_some());
    assert_eq!(world.holders(), [0, 1, 2]);
    world.each(|master| master.delay = ms(0));
    world.masters[0].forget_keys();
    world.masters[2].forget_scripts();
    world.masters[2].flow = Flow::Free;
    world.extend(lock, ms(10_000));
    let events = world.events_now();
    assert_eq!(events[0], Event::Lost { lock, cause: LossCause::NotHeld }, "{events:?}");
}

#[test]
fn a_fenced_lock_is_not_released_on_a_master_that_could_not_be_asked() {
    let mut world = World::of(3);
    world.masters[2].reach = Reach::Refuses;
    world.cut(0, 2);
    world.pump();
    let lock = world.hold(&fenced());
    world.release(lock);
    world.next_event();
    world.masters[2].reach = Reach::Accepts;
    world.pass(ms(5_000));
    assert_eq!(counts(&world, "RELEASE"), [1, 1, 0]);
}
