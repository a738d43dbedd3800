//! The restart guard: masters that may have forgotten locks do not vote until these have run out.

use std::time::Duration;

use quorlock_core::{
    Acquire, AcquireError, BootstrapError, Cause, ConfigBuilder, ConfigError, Event, EvictionPolicy,
    ExtendError, Fleet, LossCause, MasterState, Ttl, Vote, Warning,
};

use super::world::{Flow, KEY, Reach, World, ms, settings, wanted};

pub const LONGEST: Duration = ms(5_000);

pub fn guarded(masters: usize) -> ConfigBuilder {
    settings(masters).ttl(ms(3_000)).restart_guard(LONGEST)
}

/// Masters whose first quarantine is over.
pub fn open(masters: usize) -> World {
    let mut world = World::ready(guarded(masters));
    world.pass(LONGEST);
    world
}

pub fn lock() -> Acquire {
    Acquire { attempts: Some(1), ..wanted(ms(3_000)) }
}

pub fn restart(world: &mut World, master: usize, keeps_data: bool) {
    for node in 0..world.nodes.len() {
        world.cut(node, master);
    }
    world.masters[master].server.restart(100 + master as u64, |_| keeps_data);
    world.pass(ms(50));
}

/// How much longer each master is quarantined, according to the error.
fn quarantines(error: &AcquireError) -> Vec<Option<Duration>> {
    let votes = error.ballot().unwrap().votes();
    votes
        .map(|(_, vote)| match vote {
            Vote::Failed(Cause::Quarantined { remaining }) => Some(remaining),
            _ => None,
        })
        .collect()
}

#[test]
fn masters_that_are_new_do_not_vote_for_the_longest_ttl() {
    let mut world = World::ready(guarded(3));
    world.pass(ms(1_000));
    world.acquire(&lock());
    let error = world.refusal();
    assert!(matches!(error, AcquireError::Quarantined(_)), "{error}");
    assert_eq!(quarantines(&error)[..2], [Some(ms(4_000)); 2]);
    assert!(error.to_string().contains("quarantined for 4 s more"), "{error}");
    assert!(world.holders().is_empty());
    world.pass(ms(3_999));
    world.acquire(&lock());
    world.refusal();
    world.pass(ms(1));
    world.hold(&lock());
}

#[test]
fn a_guarded_master_with_replicas_causes_a_warning_and_still_votes() {
    let warned = |config: ConfigBuilder, replicas: u16| {
        let mut world = World::cold(config);
        world.masters[1].server.set_replicas(replicas);
        world.pump();
        world.nodes[0].machine.masters().map(|(_, state)| state).collect::<Vec<_>>()
    };
    let ready = |warnings: &[Warning]| MasterState::Ready { warnings: warnings.to_vec() };
    for replicas in [1, 2] {
        let states = warned(guarded(3), replicas);
        assert_eq!(states, [ready(&[]), ready(&[Warning::UndeclaredReplicas]), ready(&[])]);
    }
    assert_eq!(warned(guarded(3), 0), [(); 3].map(|()| ready(&[])));
    // Without the guard nothing is promised about a promotion.
    assert_eq!(warned(settings(3), 1), [(); 3].map(|()| ready(&[])));

    let mut world = World::cold(guarded(3));
    world.each(|master| master.server.set_replicas(1));
    world.pump();
    world.pass(LONGEST);
    world.hold(&lock());
}

#[test]
fn a_master_that_came_back_is_quarantined_and_the_others_continue() {
    for keeps_data in [false, true] {
        let mut world = open(3);
        let held = world.hold(&lock());
        world.release(held);
        world.next_event();
        restart(&mut world, 2, keeps_data);
        let held = world.hold(&lock());
        assert_eq!(world.holders(), [0, 1]);
        world.release(held);
        world.next_event();
        restart(&mut world, 1, keeps_data);
        world.acquire(&lock());
        let error = world.refusal();
        assert!(quarantines(&error)[1..].iter().all(Option::is_some), "{error}");
        world.pass(LONGEST);
        world.hold(&lock());
        world.pump();
        assert_eq!(world.holders(), [0, 1, 2]);
    }
}

#[test]
fn the_quarantine_begins_when_the_master_is_connected_again() {
    let mut world = open(3);
    restart(&mut world, 0, false);
    restart(&mut world, 1, false);
    // No lock is requested meanwhile.
    world.pass(LONGEST);
    world.hold(&lock());
}

/// A caller that cannot get a lock in its time is not kept waiting for it.
#[test]
fn a_wait_ends_at_once_if_no_quorum_can_vote_in_its_time() {
    for new in 0..=3 {
        // The quarantine lasts for 4 s more.
        for (timeout, is_over_before) in [(Some(ms(3_000)), true), (Some(ms(4_500)), false), (None, false)] {
            let mut world = open(3);
            for master in 0..new {
                restart(&mut world, master, false);
            }
            world.pass(ms(1_000));
            let begun = world.now;
            world.acquire(&Acquire { timeout, ..wanted(ms(3_000)) });
            let event = world.next_event();
            let took = world.now.since(begun);
            let case = format!("{new} new, {timeout:?}: {event:?} after {took:?}");
            match event {
                Event::NotAcquired { error: AcquireError::Quarantined(_), .. } => {
                    assert!(new >= 2 && is_over_before && took < ms(50), "{case}");
                }
                Event::Granted { .. } => {
                    assert!(new < 2 || !is_over_before, "{case}");
                    assert!(if new < 2 { took < ms(50) } else { took > ms(3_800) }, "{case}");
                }
                _ => panic!("{case}"),
            }
        }
    }
}

#[test]
fn a_master_that_forgot_its_keys_on_a_live_connection_is_quarantined() {
    let mut world = open(3);
    let held = world.hold(&lock());
    world.masters[0].forget_keys();
    world.masters[1].forget_keys();
    world.add_node(guarded(3).build().unwrap(), 2);
    world.pump();
    world.acquire_by(1, &lock());
    let event = world.next_event_of(1);
    assert!(matches!(event, Event::NotAcquired { error: AcquireError::Quarantined(_), .. }), "{event:?}");
    world.release(held);
}

#[test]
fn a_replica_that_was_promoted_on_a_live_connection_is_quarantined() {
    let mut world = open(3);
    world.hold(&lock());
    for master in 0..2 {
        // The master now has another master's data, including the marker.
        let other = world.masters[2].server.clone();
        world.masters[master].server.resync_from(&other);
        world.masters[master].server.promote();
        world.masters[master].server.remove(
            0,
            KEY.as_bytes(),
            world.now.since(quorlock_core::Instant::ORIGIN),
        );
    }
    world.acquire(&lock());
    let error = world.refusal();
    assert_eq!(quarantines(&error), [Some(LONGEST), Some(LONGEST), None], "{error}");
}

/// A replica has its primary's marker and replication id, and perhaps a copy of our key.
#[test]
fn a_master_that_has_become_a_replica_of_another_one_does_not_vote_with_its_copy() {
    for fenced in [false, true] {
        let mut world = World::ready(guarded(3));
        world.add_node(guarded(3).build().unwrap(), 2);
        world.pass(LONGEST);
        world.hold(&Acquire { fenced, ..lock() });
        let now = world.now.since(quorlock_core::Instant::ORIGIN);
        world.masters[2].server.remove(0, KEY.as_bytes(), now);
        world.masters[1].flow = Flow::Stopped;
        world.acquire_by(1, &Acquire { fenced, ..lock() });
        world.pass(ms(1));
        let primary = world.masters[2].server.clone();
        world.masters[1].server.resync_from(&primary);
        world.masters[1].flow = Flow::Free;
        world.pass(ms(1));
        let event = world.next_event_of(1);
        assert!(matches!(event, Event::NotAcquired { .. }), "{event:?}, fenced: {fenced}");
    }
}

#[test]
fn clients_with_another_longest_ttl_get_an_error_that_names_both() {
    let mut world = open(3);
    world.add_node(settings(3).ttl(ms(3_000)).restart_guard(ms(9_000)).build().unwrap(), 2);
    world.pump();
    world.acquire_by(1, &wanted(ms(3_000)));
    let Event::NotAcquired { error: AcquireError::Misconfigured(ballot), .. } = world.next_event_of(1) else {
        panic!("another longest TTL is an error of the configuration");
    };
    let said = ballot.to_string();
    assert!(said.contains("3 masters and a longest TTL of 5 s"), "{said}");
    assert!(said.contains("3 masters and a longest TTL of 9 s"), "{said}");
}

#[test]
fn one_master_of_another_fleet_is_enough_to_grant_nothing() {
    let mut world = open(5);
    let marker = world.masters[4].value(Fleet::MARKER, world.now).unwrap().to_owned();
    let of_three = marker.strip_suffix(" 5").unwrap().to_owned() + " 3";
    world.masters[4].server.hold(0, Fleet::MARKER.as_bytes(), of_three.as_bytes(), None);
    // The master of the other fleet answers first.
    for master in 0..4 {
        world.masters[master].delay = ms(1);
    }
    world.acquire(&wanted(ms(3_000)));
    let error = world.refusal();
    assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
    world.pass(ms(10));
    assert!(world.holders().is_empty());
}

#[test]
fn a_master_of_another_fleet_that_answers_late_ends_the_lock() {
    for is_taken in [true, false] {
        let mut world = open(5);
        let marker = world.masters[4].value(Fleet::MARKER, world.now).unwrap().to_owned();
        let of_three = marker.strip_suffix(" 5").unwrap().to_owned() + " 3";
        world.masters[4].server.hold(0, Fleet::MARKER.as_bytes(), of_three.as_bytes(), None);
        world.masters[4].delay = ms(10);
        let answers_at = world.now + ms(10);
        if is_taken {
            world.hold(&wanted(ms(3_000)));
            let event = world.next_event();
            assert!(matches!(event, Event::Lost { cause: LossCause::OtherFleet, .. }), "{event:?}");
        } else {
            world.acquire(&wanted(ms(3_000)));
            let event = world.next_event();
            assert!(matches!(event, Event::Granted { .. }), "{event:?}");
            let error = world.refusal();
            assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
        }
        assert_eq!(world.now, answers_at);
        world.pass(ms(50));
        assert!(world.holders().is_empty());
    }
}

#[test]
fn a_marker_of_the_future_is_not_accepted() {
    let mut world = open(1);
    let marker = world.masters[0].value(Fleet::MARKER, world.now).unwrap().to_owned();
    let id = marker.split(' ').next().unwrap();
    let ahead = format!("{id} 999999999 999999999 5000 1");
    world.masters[0].server.hold(0, Fleet::MARKER.as_bytes(), ahead.as_bytes(), None);
    world.acquire(&lock());
    assert_eq!(quarantines(&world.refusal()), [Some(LONGEST)]);
    world.masters[0].server.hold(0, Fleet::MARKER.as_bytes(), b"not ours", None);
    world.acquire(&lock());
    assert_eq!(quarantines(&world.refusal()), [Some(LONGEST)]);
}

#[test]
fn longer_ttls_than_the_longest_are_refused_and_nothing_is_sent() {
    let too_long = ConfigError::TtlAboveFleet { ttl: ms(5_001), longest: LONGEST };
    assert_eq!(settings(3).ttl(ms(5_001)).restart_guard(LONGEST).build().unwrap_err(), too_long);
    let mut world = open(3);
    let now = world.now;
    let refused = world.nodes[0].machine.acquire(&wanted(ms(5_001)), now).unwrap_err();
    assert_eq!(refused, AcquireError::Invalid(too_long.clone()));
    let held = world.hold(&lock());
    let refused = world.nodes[0].machine.extend(held, Ttl::new(ms(5_001)).unwrap(), now).unwrap_err();
    assert_eq!(refused, ExtendError::Invalid(too_long));
    world.extend(held, LONGEST);
    assert!(matches!(world.next_event(), Event::Extended { result: Ok(_), .. }));
}

#[test]
fn servers_that_remove_keys_when_memory_is_short_are_refused_unless_that_is_allowed() {
    let limited = |policy: &str, settings: ConfigBuilder| {
        let mut world = World::cold(settings);
        for master in &mut world.masters {
            master.configure("maxmemory", "100000000");
            master.configure("maxmemory-policy", policy);
        }
        world.pump();
        world.acquire(&lock());
        world.refusal()
    };
    let error = limited("allkeys-lru", guarded(3));
    assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
    assert!(error.to_string().contains("allkeys-lru"), "{error}");
    let error = limited("allkeys-lru", guarded(3).allow_eviction(EvictionPolicy::VolatileTtl));
    assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
    let allowing = guarded(3).allow_eviction(EvictionPolicy::AllKeysLru);
    for (policy, settings) in [("allkeys-lru", allowing), ("noeviction", guarded(3))] {
        let error = limited(policy, settings);
        assert!(quarantines(&error).iter().any(Option::is_some), "{policy}: {error}");
    }
}

#[test]
fn new_counters_start_above_what_was_counted_before_they_were_lost() {
    let mut world = open(3);
    let fenced = Acquire { fenced: true, ..lock() };
    let mut last = 0;
    for _ in 0..3 {
        let held = world.hold(&fenced);
        let number = world.nodes[0].machine.resumption(held).unwrap().fencing_token.unwrap().get();
        assert!(number > last, "{number} after {last}");
        last = number;
        world.release(held);
        world.next_event();
        for master in 0..3 {
            restart(&mut world, master, false);
        }
        world.pass(LONGEST);
    }
}

fn bootstrapped(world: &mut World) -> Result<(), BootstrapError> {
    let lock = world.nodes[0].machine.bootstrap(world.now).unwrap();
    world.drain(0);
    match world.next_event() {
        Event::Bootstrapped { lock: other, result } if other == lock => result,
        event => panic!("{event:?}"),
    }
}

#[test]
fn new_masters_vote_at_once_after_a_bootstrap() {
    let mut world = World::ready(guarded(3));
    assert_eq!(bootstrapped(&mut world), Ok(()));
    world.hold(&lock());
    assert_eq!(bootstrapped(&mut world), Ok(()), "all of them vote, and nothing is changed");
    assert_eq!(world.holders(), [0, 1, 2]);
}

#[test]
fn a_bootstrap_is_refused_if_some_masters_vote_already() {
    let mut world = open(3);
    restart(&mut world, 1, false);
    let Err(BootstrapError::InUse(masters)) = bootstrapped(&mut world) else { panic!("two of them vote") };
    assert_eq!(masters.len(), 2);
    world.acquire(&Acquire { attempts: None, ..lock() });
    assert!(matches!(world.next_event(), Event::Granted { .. }));
    assert_eq!(world.holders(), [0, 2]);
}

#[test]
fn a_bootstrap_needs_an_answer_from_all_masters() {
    let mut world = World::ready(guarded(3));
    world.cut(0, 2);
    world.masters[2].reach = Reach::Refuses;
    world.pass(ms(100));
    let Err(BootstrapError::Unreached(ballot)) = bootstrapped(&mut world) else { panic!("one is down") };
    assert_eq!(ballot.votes().count(), 3);
    let said = BootstrapError::Unreached(ballot).to_string();
    assert!(said.contains("c:6379 connection refused") && !said.contains("a:6379"), "{said}");
    world.acquire(&lock());
    world.refusal();
}

#[test]
fn a_bootstrap_without_a_restart_guard_is_an_error() {
    let mut world = World::of(3);
    let now = world.now;
    assert_eq!(world.nodes[0].machine.bootstrap(now), Err(BootstrapError::NoRestartGuard));
}

/// A later version may need more than these settings to keep locks safe.
#[test]
fn a_marker_with_more_words_is_of_another_fleet_and_stays_as_it_is() {
    let mut world = open(1);
    let written = world.masters[0].value(Fleet::MARKER, world.now).unwrap().to_owned();
    for more in [" 1", " later words", "!"] {
        let marker = format!("{written}{more}");
        world.masters[0].server.hold(0, Fleet::MARKER.as_bytes(), marker.as_bytes(), None);
        world.acquire(&lock());
        let error = world.refusal();
        assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
        assert!(error.to_string().contains("use the same version in all clients"), "{error}");
        assert_eq!(world.masters[0].value(Fleet::MARKER, world.now), Some(&*marker));
    }
}

#[test]
fn a_lock_that_is_resumed_in_a_quarantine_is_no_case_for_bootstrap() {
    let mut world = open(3);
    let lock = world.hold(&wanted(ms(3_000)));
    let handed = world.nodes[0].machine.hand_over(lock, world.now).unwrap();
    world.drain(0);
    restart(&mut world, 0, true);
    restart(&mut world, 1, true);
    world.acquire(&Acquire { resumption: Some(handed), ..wanted(ms(3_000)) });
    let error = world.refusal();
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    assert_eq!(quarantines(&error).iter().flatten().count(), 2, "{error}");
    assert!(!error.to_string().contains("bootstrap"), "masters have granted this lock: {error}");
    assert_eq!(world.holders(), [0, 1, 2]);
}
