//! Masters with replicas: a vote counts when all of its master's replicas have confirmed it.

use std::time::Duration;

use quorlock_core::{
    Acquire, AcquireError, BootstrapError, Config, ConfigBuilder, Event, ExtendError, LossCause,
    ReleaseOutcome, Vote,
};

use super::fair::places;
use super::world::master::wall_clock;
use super::world::{Flow, KEY, REQUEST_TIMEOUT, World, ms, one_try, wanted};

const LONGEST: Duration = ms(20_000);

/// One master for each number: how many replicas its URL declares, if it declares any number.
fn declared(replicas: &[impl Into<Option<u8>> + Copy]) -> ConfigBuilder {
    let urls = ["a", "b", "c"].iter().zip(replicas).map(|(name, replicas)| match (*replicas).into() {
        None => format!("redis://{name}:6379"),
        Some(replicas) => format!("redis://{name}:6379?replicas={replicas}"),
    });
    Config::builder(urls).request_timeout(REQUEST_TIMEOUT).restart_guard(LONGEST)
}

/// Masters that vote and have the replicas that they declare.
fn open(replicas: &[impl Into<Option<u8>> + Copy]) -> World {
    let mut world = World::cold(declared(replicas));
    for (master, replicas) in world.masters.iter_mut().zip(replicas) {
        master.server.set_replicas((*replicas).into().unwrap_or(0).into());
    }
    world.pump();
    world.pass(LONGEST);
    world
}

fn waits(world: &World) -> Vec<usize> {
    world.masters.iter().map(|master| master.count("WAIT")).collect()
}

fn refused(world: &mut World, asked: &Acquire) -> String {
    world.acquire(asked);
    match world.refusal() {
        error @ (AcquireError::NoQuorum(_) | AcquireError::Quarantined(_)) => error.to_string(),
        error => panic!("{error}"),
    }
}

#[test]
fn one_wait_follows_the_votes_of_one_write() {
    let mut world = open(&[2]);
    world.hold(&wanted(ms(10_000)));
    assert_eq!(waits(&world), [1]);
    // The wait is for both replicas, and for a quarter of the request timeout.
    assert!(world.nodes[0].written.ends_with(b"*3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n$2\r\n12\r\n"));

    let now = world.now;
    for name in ["x", "y", "z"] {
        let resource = quorlock_core::Resource::new(name).unwrap();
        let asked = Acquire { targets: resource.into(), ..one_try() };
        world.nodes[0].machine.acquire(&asked, now).unwrap();
    }
    world.drain(0);
    assert_eq!(world.granted(0).len(), 3);
    assert_eq!(waits(&world), [2]);
}

#[test]
fn a_release_waits_for_no_replica_and_masters_without_replicas_are_not_asked() {
    let mut world = open(&[Some(1), Some(0), None]);
    let lock = world.hold(&one_try());
    world.pump();
    assert_eq!(waits(&world), [1, 0, 0]);
    world.release(lock);
    world.next_event();
    assert_eq!(waits(&world), [1, 0, 0]);
}

#[test]
fn a_vote_that_not_all_replicas_confirm_is_no_answer_and_is_taken_back() {
    let mut world = open(&[2]);
    for confirming in 0..2 {
        world.masters[0].server.set_following(2, confirming);
        let text = refused(&mut world, &one_try());
        assert!(text.contains(&format!("replicas that confirmed it in time: {confirming} of 2")), "{text}");
        world.pump();
        assert_eq!(world.holders(), []);
        let fenced = Acquire { fenced: true, ..one_try() };
        assert!(refused(&mut world, &fenced).contains("confirmed it in time"));
        world.pump();
        assert_eq!(world.holders(), []);
    }
    world.masters[0].server.set_following(2, 2);
    world.hold(&one_try());
}

/// A server carries waits out one after the other, each to its end.
#[test]
fn while_a_replica_hangs_one_wait_is_sent_and_not_one_for_each_write() {
    let mut world = open(&[1]);
    world.masters[0].server.set_following(1, 0);
    refused(&mut world, &one_try());
    assert_eq!(waits(&world), [1]);

    // The scripts still say yes, because the replica's last acknowledgement is recent.
    let now = world.now;
    for name in ["x", "y", "z"] {
        let resource = quorlock_core::Resource::new(name).unwrap();
        let asked = Acquire { targets: resource.into(), ..one_try() };
        world.nodes[0].machine.acquire(&asked, now).unwrap();
        world.drain(0);
        assert!(!world.nodes[0].written.ends_with(b"*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$2\r\n12\r\n"), "{name}");
    }
    world.pump();
    assert_eq!(waits(&world), [2]);
    (0..3).for_each(|_| drop(world.refusal()));

    // As soon as one wait is confirmed, each write has its own again.
    world.masters[0].server.set_following(1, 1);
    world.hold(&wanted(ms(10_000)));
    let resource = quorlock_core::Resource::new("w").unwrap();
    let now = world.now;
    world.nodes[0].machine.acquire(&Acquire { targets: resource.into(), ..one_try() }, now).unwrap();
    world.drain(0);
    assert!(world.nodes[0].written.ends_with(b"*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$2\r\n12\r\n"));
}

#[test]
fn an_error_in_reply_to_wait_is_no_vote() {
    let mut world = open(&[1]);
    world.masters[0].fails("WAIT", "NOPERM this user has no permissions to run the 'wait' command");
    world.acquire(&one_try());
    let error = world.refusal();
    assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
    world.pump();
    assert_eq!(world.holders(), []);
}

#[test]
fn without_its_replicas_a_master_does_nothing_and_says_how_many_follow() {
    let mut world = open(&[2]);
    world.masters[0].server.set_following(1, 1);
    assert!(refused(&mut world, &one_try()).contains("replicas that follow it: 1 of 2"));
    // A wait would last its whole time, so none is sent until a script says yes again.
    let before = waits(&world);
    assert!(refused(&mut world, &one_try()).contains("replicas that follow it: 1 of 2"));
    assert_eq!(waits(&world), before);
    world.masters[0].server.set_replicas(3);
    let text = refused(&mut world, &one_try());
    assert!(text.contains("has 3 replicas, and its URL says replicas=2"), "{text}");

    world.masters[0].server.set_replicas(2);
    world.masters[0].server.set_following(2, 1);
    assert!(refused(&mut world, &one_try()).contains("replicas that confirmed it in time: 1 of 2"));
    world.pump();
    world.masters[0].server.set_following(2, 2);
    world.hold(&one_try());
}

#[test]
fn a_master_votes_with_exactly_the_replicas_that_are_declared() {
    for declared in 0..=2 {
        for attached in 0..=3 {
            let mut world = open(&[declared]);
            let lock = world.hold(&one_try());
            world.masters[0].server.set_replicas(attached);
            world.extend(lock, ms(15_000));
            let event = world.next_event();
            let is_extended = matches!(event, Event::Extended { result: Ok(_), .. });
            assert_eq!(is_extended, attached == u16::from(declared), "{attached} of {declared}: {event:?}");
            world.release(lock);
            world.pump();
            world.events_now();
            world.acquire(&one_try());
            let event = world.next_event();
            let is_granted = matches!(event, Event::Granted { .. });
            assert_eq!(is_granted, attached == u16::from(declared), "{attached} of {declared}: {event:?}");
        }
    }
}

#[test]
fn an_extension_that_is_not_confirmed_leaves_the_lock_as_valid_as_it_was() {
    for fenced in [false, true] {
        let mut world = open(&[1]);
        let lock = world.hold(&Acquire { fenced, ..one_try() });
        for (following, confirming) in [(1, 0), (0, 0)] {
            world.masters[0].server.set_following(following, confirming);
            world.extend(lock, ms(15_000));
            let event = world.next_event();
            let Event::Extended { result: Err(ExtendError::NoQuorum(_)), .. } = event else {
                panic!("{event:?}")
            };
        }
        world.pass(ms(10_000));
        let lost = world.events_now();
        assert_eq!(lost, [Event::Lost { lock, cause: LossCause::Expired }]);
    }
}

/// `WAIT` concerns what the connection has written, and an extension by less than the remaining
/// life writes nothing by itself.
#[test]
fn an_extension_that_changes_nothing_is_confirmed_too() {
    for fenced in [false, true] {
        let mut world = open(&[1]);
        let lock = world.hold(&Acquire { fenced, ..one_try() });
        world.masters[0].server.set_following(1, 0);
        world.extend(lock, ms(5_000));
        let event = world.next_event();
        assert!(matches!(event, Event::Extended { result: Err(ExtendError::NoQuorum(_)), .. }), "{event:?}");
        world.masters[0].server.set_following(1, 1);
        world.extend(lock, ms(5_000));
        let event = world.next_event();
        assert!(matches!(event, Event::Extended { result: Ok(_), .. }), "{event:?}");
    }
}

#[test]
fn a_granted_script_is_no_vote_before_wait_is_answered() {
    let mut world = open(&[1]);
    world.masters[0].flow = Flow::RepliesHeld;
    world.acquire(&wanted(ms(10_000)));
    assert!(world.deliver(0, 0));
    assert_eq!(world.events_now(), []);
    assert!(world.deliver(0, 0));
    assert!(matches!(world.events_now()[..], [Event::Granted { .. }]));

    let mut world = open(&[1]);
    world.masters[0].flow = Flow::RepliesHeld;
    world.acquire(&one_try());
    assert!(world.deliver(0, 0));
    world.cut(0, 0);
    assert!(world.refusal().to_string().contains("connection closed"));
    world.masters[0].flow = Flow::Free;
    world.pass(ms(1_000));
    assert_eq!(world.holders(), []);

    let mut world = open(&[1]);
    world.masters[0].flow = Flow::RepliesHeld;
    world.acquire(&one_try());
    assert!(world.deliver(0, 0));
    assert!(world.refusal().to_string().contains("no answer in 50 ms"));
    world.masters[0].flow = Flow::Free;
    world.pass(ms(1_000));
    assert_eq!(world.holders(), []);
}

/// The primary restarts, with or without its data, and its replicas follow it again.
fn restart(world: &mut World, master: usize, keeps_data: bool) {
    (0..world.nodes.len()).for_each(|node| world.cut(node, master));
    world.masters[master].server.restart(100 + master as u64, |_| keeps_data);
    world.masters[master].server.set_replicas(1);
    world.pass(ms(50));
}

/// It votes for no other client meanwhile, so a restored key does no harm.
#[test]
fn a_key_is_put_back_in_a_quarantine() {
    for fenced in [false, true] {
        let mut world = open(&[1, 1, 1]);
        world.hold(&Acquire { healing: true, renew_for: Some(ms(3_600_000)), fenced, ..one_try() });
        world.pump();
        assert_eq!(world.holders(), [0, 1, 2]);
        restart(&mut world, 2, false);
        assert_eq!(world.holders(), [0, 1]);
        world.pass(ms(4_000));
        assert_eq!(world.holders(), [0, 1, 2]);
    }
}

/// Its key was never missing, so it has voted for nobody else.
#[test]
fn a_master_that_restarts_with_its_data_extends_the_lock_once_its_replicas_confirm_it() {
    for fenced in [false, true] {
        let mut world = open(&[1]);
        let lock = world.hold(&Acquire { fenced, ..one_try() });
        restart(&mut world, 0, true);
        for confirming in [0, 1] {
            world.masters[0].server.set_following(1, confirming);
            world.extend(lock, ms(15_000));
            match world.next_event() {
                Event::Extended { result, .. } => assert_eq!(result.is_ok(), confirming == 1, "{result:?}"),
                event => panic!("{event:?}"),
            }
        }
    }
}

/// The token may have been released, and the lock granted to another client, after the snapshot.
#[test]
fn a_quarantined_master_resumes_no_lock_and_keeps_none_for_another_locker() {
    for fenced in [false, true] {
        let mut world = open(&[1]);
        let lock = world.hold(&Acquire { fenced, ..one_try() });
        let now = world.now;
        let handed = world.nodes[0].machine.hand_over(lock, now).unwrap();
        world.drain(0);
        restart(&mut world, 0, true);
        let text = refused(&mut world, &Acquire { resumption: Some(handed), ..one_try() });
        assert!(text.contains("quarantined for "), "{text}");
        let key = quorlock_core::Resource::new(KEY).unwrap();
        let (now, life) = (world.now, quorlock_core::Ttl::new(ms(5_000)).unwrap());
        world.nodes[0].machine.release_token_keeping(&key, handed.token, life, now).unwrap();
        world.drain(0);
        match world.next_event() {
            Event::Released { outcome: ReleaseOutcome::Unknown(ballot), .. } => {
                assert!(ballot.to_string().contains("quarantined for "), "{ballot}");
            }
            event => panic!("{event:?}"),
        }
    }
}

/// The next renewal is confirmed, and with it what was put back before.
#[test]
fn a_key_put_back_without_confirmation_counts_after_a_confirmed_renewal() {
    for fenced in [false, true] {
        let mut world = open(&[1, 1, 1]);
        let renewed = Acquire { healing: true, renew_for: Some(ms(3_600_000)), fenced, ..one_try() };
        let lock = world.hold(&renewed);
        let lost = Event::Lost { lock, cause: LossCause::Expired };
        world.pump();
        let now = wall_clock(world.now);
        assert!(world.masters[2].server.remove(0, KEY.as_bytes(), now));
        world.masters[2].server.set_following(1, 0);
        world.pass(ms(4_000));
        assert_eq!(world.holders(), [0, 1, 2]);
        world.masters[2].server.set_following(1, 1);
        world.pass(ms(4_000));
        // Without the third master there would be no quorum from here on.
        world.masters[0].flow = Flow::Stopped;
        world.pass(ms(30_000));
        assert!(!world.events_now().contains(&lost));
        world.masters[1].flow = Flow::Stopped;
        world.pass(ms(10_000));
        assert!(world.events_now().contains(&lost));
    }
}

#[test]
fn the_quarantine_begins_when_the_replicas_are_complete() {
    let mut world = World::ready(declared(&[1]));
    world.pass(2 * LONGEST);
    assert!(refused(&mut world, &one_try()).contains("replicas that follow it: 0 of 1"));
    world.masters[0].server.set_replicas(1);
    assert!(refused(&mut world, &one_try()).contains("quarantined for 20 s more"));
    world.pass(LONGEST);
    world.hold(&one_try());
}

#[test]
fn a_bootstrap_is_confirmed() {
    let mut world = World::cold(declared(&[1]));
    world.masters[0].server.set_replicas(1);
    world.masters[0].server.set_following(1, 0);
    world.pump();
    let now = world.now;
    world.nodes[0].machine.bootstrap(now).unwrap();
    world.drain(0);
    match world.next_event() {
        Event::Bootstrapped { result: Err(BootstrapError::Unreached(ballot)), .. } => {
            assert!(ballot.to_string().contains("confirmed it in time: 0 of 1"), "{ballot}");
        }
        event => panic!("{event:?}"),
    }
}

#[test]
fn clients_that_disagree_get_an_error_from_the_marker() {
    for (first, second) in [(1, None), (0, None), (1, Some(0)), (0, Some(1)), (2, Some(1))] {
        let mut world = open(&[first]);
        world.masters[0].server.set_replicas(second.unwrap_or(0).into());
        world.add_node(declared(&[second]).build().unwrap(), 7);
        world.acquire_by(1, &one_try());
        let told = match world.next_event_of(1) {
            Event::NotAcquired { error: error @ AcquireError::Misconfigured(_), .. } => error.to_string(),
            event => panic!("{event:?}"),
        };
        let theirs = format!("its restart guard is for 1 master, replicas={first} and a longest TTL of 20 s");
        assert!(told.contains(&theirs), "{told}");
    }
}

#[test]
fn a_quorum_is_possible_without_the_group_whose_replica_is_down() {
    let mut world = open(&[Some(1), Some(1), None]);
    world.masters[0].server.set_following(1, 0);
    world.hold(&one_try());
    let mut world = open(&[Some(1), Some(1), None]);
    world.masters[0].server.set_following(1, 0);
    world.masters[1].server.set_following(0, 0);
    world.acquire(&one_try());
    let error = world.refusal();
    let granted = error.ballot().unwrap().votes().filter(|(_, vote)| *vote == Vote::Granted);
    assert_eq!(granted.count(), 1, "{error}");
}

#[test]
fn a_fair_waiter_keeps_its_place_while_replicas_do_not_follow() {
    let mut world = open(&[1]);
    let held = world.hold(&wanted(ms(10_000)));
    world.add_node(declared(&[1]).build().unwrap(), 3);
    world.pump();
    world.acquire_by(1, &Acquire { fair: true, timeout: None, ..wanted(ms(10_000)) });
    world.pump();
    assert_eq!(places(&world, 0), 1);
    world.masters[0].server.set_following(0, 0);
    world.release(held);
    for _ in 0..6 {
        world.pass(ms(100));
        assert_eq!(places(&world, 0), 1);
    }
    world.masters[0].server.set_following(1, 1);
    world.pass(ms(1_000));
    assert!(!world.granted(1).is_empty());
}

/// Its answer is no promise, but the token is gone, and the key ends in time.
#[test]
fn a_master_without_its_replicas_keeps_the_key_and_is_not_counted() {
    let mut world = open(&[1]);
    let lock = world.hold(&one_try());
    world.masters[0].server.set_following(0, 0);
    let now = world.now;
    world.nodes[0].machine.release_after(lock, ms(5_000), now).unwrap();
    world.drain(0);
    match world.next_event() {
        Event::Released { outcome: ReleaseOutcome::Unknown(ballot), .. } => {
            assert!(ballot.to_string().contains("replicas that follow it: 0 of 1"), "{ballot}");
        }
        event => panic!("{event:?}"),
    }
    world.pass(ms(6_000));
    assert_eq!(world.holders(), []);
}
