//! Releases whose keys stay for the rest of a minimum hold time.

use std::time::Duration;

use quorlock_core::{
    Acquire, AcquireError, ConfigError, Event, ExtendError, Instant, LockId, LossCause, ReleaseOutcome,
    Resource, Ttl,
};

use super::world::{Flow, KEY, Reach, World, ms, one_try, settings, wanted};

const MINUTE: Duration = ms(60_000);

fn release_after(world: &mut World, lock: LockId, at_least: Duration) -> Option<Duration> {
    let left = world.nodes[0].machine.release_after(lock, at_least, world.now).unwrap();
    world.drain(0);
    left
}

fn ends(world: &World) -> Vec<Option<Instant>> {
    world.masters.iter().map(|master| master.end(KEY, world.now)).collect()
}

/// The life of a key that is kept for this long: drift is a hundredth and 2 ms.
fn kept(left: Duration) -> Duration {
    left + left / 100 + ms(2)
}

fn rival() -> (World, Acquire) {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 2);
    world.pump();
    (world, Acquire { attempts: None, timeout: Some(ms(120_000)), ..one_try() })
}

#[test]
fn keys_stay_until_the_minimum_hold_time_ends_whether_their_ttl_is_longer_or_shorter() {
    for ttl in [ms(10_000), 2 * MINUTE] {
        let mut world = World::of(3);
        let lock = world.hold(&wanted(ttl));
        let granted = world.now;
        let token = world.expose(lock);
        world.pass(ms(1_000));
        assert_eq!(release_after(&mut world, lock, MINUTE), Some(MINUTE - ms(1_000)));
        let (released, life) = (world.now, kept(MINUTE - ms(1_000)));
        assert_eq!(world.next_event(), Event::Released { lock, outcome: ReleaseOutcome::StillOurs });
        assert_eq!(ends(&world), [Some(released + life); 3], "a TTL of {ttl:?}");
        assert!(released + life >= granted + MINUTE);
        assert!(world.masters.iter().all(|master| master.value(KEY, world.now) != Some(&token)));
        world.pass(life + ms(1));
        assert!(world.holders().is_empty() && world.nodes[0].machine.is_idle());
    }
}

#[test]
fn other_clients_are_kept_out_until_the_minimum_hold_time_is_over() {
    let (mut world, asked) = rival();
    let lock = world.hold(&wanted(ms(10_000)));
    let granted = world.now;
    release_after(&mut world, lock, MINUTE);
    let refused = Acquire { attempts: Some(1), ..asked.clone() };
    world.acquire_by(1, &refused);
    let event = world.next_event_of(1);
    assert!(matches!(event, Event::NotAcquired { error: AcquireError::HeldByAnother(_), .. }), "{event:?}");
    world.acquire_by(1, &asked);
    let event = world.next_event_of(1);
    assert!(matches!(event, Event::Granted { .. }), "{event:?}");
    let waited = world.now.since(granted);
    assert!(waited >= MINUTE && waited < MINUTE + MINUTE / 50, "{waited:?}");
}

#[test]
fn callers_of_the_same_process_wait_for_the_minimum_hold_time_as_well() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    let granted = world.now;
    let next = world.acquire(&Acquire { timeout: Some(2 * MINUTE), ..wanted(ms(10_000)) });
    release_after(&mut world, lock, ms(5_000));
    assert!(matches!(world.next_event(), Event::Released { .. }));
    let event = world.next_event();
    assert!(matches!(event, Event::Granted { lock, .. } if lock == next), "{event:?}");
    assert!(world.now.since(granted) >= ms(5_000));
}

/// The first grant is over before the caller takes it, and the lock is granted again.
#[test]
fn the_minimum_hold_time_counts_from_the_grant_that_the_caller_took() {
    let mut world = World::of(3);
    world.each(|master| master.delay = ms(40));
    let lock = world.acquire(&wanted(ms(1_000)));
    assert!(matches!(world.next_event(), Event::Granted { .. }));
    assert!(matches!(world.next_event(), Event::Granted { .. }), "nobody has taken it");
    assert!(world.take(lock).is_some());
    world.pass(ms(100));
    assert_eq!(release_after(&mut world, lock, MINUTE), Some(MINUTE - ms(100)));
}

#[test]
fn a_minimum_hold_time_that_is_already_over_means_an_ordinary_release() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    world.pass(ms(5_000));
    assert_eq!(release_after(&mut world, lock, ms(5_000)), None);
    assert_eq!(world.next_event(), Event::Released { lock, outcome: ReleaseOutcome::StillOurs });
    assert!(world.holders().is_empty());
    assert!(world.masters.iter().all(|master| master.count("KEEP") == 0));
}

#[test]
fn renewal_ends_and_an_extension_that_is_executed_behind_the_release_lengthens_nothing() {
    let mut world = World::of(3);
    let lock = world.hold(&Acquire { renew_for: Some(MINUTE), ..wanted(ms(3_000)) });
    // The script is not known any more, so the extension is repeated, after the requests that were
    // sent meanwhile.
    world.each(|master| {
        master.forget_scripts();
        master.flow = Flow::RepliesHeld;
    });
    let extension = world.extend(lock, ms(60_000));
    release_after(&mut world, lock, ms(5_000));
    let life = kept(ms(5_000));
    let end = world.now + life;
    world.each(|master| master.flow = Flow::Free);
    for master in 0..3 {
        while world.deliver(0, master) {}
    }
    let events = world.events_now();
    let lost = Err(ExtendError::Lost(LossCause::Released));
    assert!(events.contains(&Event::Extended { lock, extension, result: lost }), "{events:?}");
    world.pass(ms(1_000));
    assert!(world.masters.iter().all(|master| master.count("EXTEND") > 0), "it was repeated");
    assert_eq!(ends(&world), [Some(end); 3]);
}

#[test]
fn a_master_that_was_down_keeps_the_key_for_the_rest_of_the_time() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(30_000)));
    world.masters[2].flow = Flow::Stopped;
    release_after(&mut world, lock, ms(10_000));
    let end = world.now + kept(ms(10_000));
    assert_eq!(world.next_event(), Event::Released { lock, outcome: ReleaseOutcome::StillOurs });
    world.pass(ms(4_000));
    world.masters[2].flow = Flow::Free;
    world.serve(0, 2);
    world.pass(ms(2_000));
    let ends = ends(&world);
    let last = ends[2].unwrap();
    assert_eq!(ends[..2], [Some(end); 2]);
    assert!(last >= end && last <= end + ms(100), "{last:?} and {end:?}");
}

#[test]
fn a_master_that_comes_back_when_the_time_is_over_deletes_the_key() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(60_000)));
    world.masters[2].flow = Flow::BlackHole;
    world.cut(0, 2);
    world.masters[2].reach = Reach::Refuses;
    world.pass(ms(100));
    release_after(&mut world, lock, ms(5_000));
    assert_eq!(world.next_event(), Event::Released { lock, outcome: ReleaseOutcome::StillOurs });
    world.pass(ms(6_000));
    assert_eq!(world.holders(), [2]);
    world.masters[2].reach = Reach::Accepts;
    world.masters[2].flow = Flow::Free;
    world.pass(ms(10_000));
    assert!(world.holders().is_empty());
}

#[test]
fn after_a_release_that_keeps_keys_a_copy_of_the_token_has_no_effect() {
    let (mut world, asked) = rival();
    let lock = world.hold(&wanted(ms(10_000)));
    let copy = world.nodes[0].machine.resumption(lock);
    release_after(&mut world, lock, MINUTE);
    let end = world.now + kept(MINUTE);
    world.acquire_by(1, &Acquire { resumption: copy, ..asked });
    let event = world.next_event_of(1);
    assert!(matches!(event, Event::NotAcquired { error: AcquireError::NotHeld(_), .. }), "{event:?}");
    assert_eq!(ends(&world), [Some(end); 3]);
}

#[test]
fn the_key_of_another_client_keeps_its_ttl() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    let theirs = world.now + ms(3_000);
    world.masters[0].forget_keys();
    world.masters[0].hold_by_another(KEY, Some(theirs));
    world.masters[1].forget_keys();
    release_after(&mut world, lock, MINUTE);
    assert_eq!(world.next_event(), Event::Released { lock, outcome: ReleaseOutcome::NotOurs });
    world.pass(ms(10));
    assert_eq!(ends(&world)[..2], [Some(theirs), None]);
}

#[test]
fn a_lock_that_is_lost_is_not_kept() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(1_000)));
    world.pass(ms(2_000));
    assert_eq!(release_after(&mut world, lock, MINUTE), None);
    let events = world.events_now();
    let outcome = ReleaseOutcome::NotOurs;
    assert!(events.contains(&Event::Released { lock, outcome }), "{events:?}");
    assert!(world.holders().is_empty());
}

#[test]
fn a_release_that_keeps_keys_on_too_few_masters_is_reported_as_unknown() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    for master in [1, 2] {
        world.masters[master].flow = Flow::Stopped;
    }
    release_after(&mut world, lock, MINUTE);
    let event = world.next_event();
    assert!(matches!(event, Event::Released { outcome: ReleaseOutcome::Unknown(_), .. }), "{event:?}");
}

#[test]
fn a_minimum_hold_time_longer_than_the_longest_ttl_is_refused_and_nothing_is_sent() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    let before = world.nodes[0].written.len();
    let too_long = Ttl::MAX + MINUTE;
    let refused = world.nodes[0].machine.release_after(lock, too_long, world.now);
    assert!(matches!(refused, Err(ConfigError::OversizedTtl { .. })), "{refused:?}");
    world.drain(0);
    assert_eq!(world.nodes[0].written.len(), before);
    assert_eq!(world.holders(), [0, 1, 2]);
}

#[test]
fn a_token_that_was_handed_over_is_released_with_its_keys_kept() {
    let (mut world, _) = rival();
    let lock = world.hold(&wanted(ms(10_000)));
    let handed = world.nodes[0].machine.hand_over(lock, world.now).unwrap();
    world.drain(0);
    let (resource, life) = (Resource::new(KEY).unwrap(), Ttl::new(MINUTE).unwrap());
    let released =
        world.nodes[1].machine.release_token_keeping(&resource, handed.token, life, world.now).unwrap();
    world.drain(1);
    let end = world.now + MINUTE;
    let outcome = ReleaseOutcome::StillOurs;
    assert_eq!(world.next_event_of(1), Event::Released { lock: released, outcome });
    assert_eq!(ends(&world), [Some(end); 3]);
}

/// Another process knows the token.
#[test]
fn keys_that_are_already_kept_for_less_confirm_no_longer_minimum() {
    let (mut world, _) = rival();
    let lock = world.hold(&wanted(ms(10_000)));
    let (token, now) = (world.nodes[0].machine.token(lock).unwrap(), world.now);
    let (key, life) = (Resource::new(KEY).unwrap(), Ttl::new(ms(200)).unwrap());
    world.nodes[1].machine.release_token_keeping(&key, token, life, now).unwrap();
    world.drain(1);
    world.pump();
    release_after(&mut world, lock, MINUTE);
    let event = world.next_event();
    assert_eq!(event, Event::Released { lock, outcome: ReleaseOutcome::NotOurs });
}
