//! Errors of servers instead of a vote.

use quorlock_core::{Acquire, AcquireError, Cause, Event, ReleaseOutcome, ServerError, Vote};

use super::world::{Flow, KEY, Master, Reach, World, ms, one_try, settings, wanted};

const ERRORS: [(&str, ServerError); 16] = [
    ("OOM command not allowed when used memory > 'maxmemory'.", ServerError::Oom),
    ("MISCONF Redis is configured to save RDB snapshots, but", ServerError::Misconf),
    ("NOREPLICAS Not enough good replicas to write.", ServerError::NoReplicas),
    ("READONLY You can't write against a read only replica.", ServerError::ReadOnly),
    ("LOADING Redis is loading the dataset in memory", ServerError::Loading),
    ("BUSY Redis is busy running a script.", ServerError::Busy),
    ("MASTERDOWN Link with MASTER is down", ServerError::MasterDown),
    ("NOAUTH Authentication required.", ServerError::NoAuth),
    ("WRONGPASS invalid username-password pair", ServerError::WrongPass),
    ("NOPERM this user has no permissions to run the 'set' command", ServerError::NoPerm),
    ("WRONGTYPE Operation against a key holding the wrong kind of value", ServerError::WrongType),
    ("MOVED 3999 127.0.0.1:6381", ServerError::Moved),
    ("ASK 3999 127.0.0.1:6381", ServerError::Ask),
    ("CROSSSLOT Keys in request don't hash to the same slot", ServerError::CrossSlot),
    (
        "ERR Error running script (call to f_0123): @user_script:1: @user_script: 1: -OOM command not allowed",
        ServerError::Oom,
    ),
    ("CLUSTERDOWN The cluster is down", ServerError::ClusterDown),
];

#[test]
fn every_server_error_gives_no_vote_keeps_its_cause_and_is_still_released() {
    for (text, error) in ERRORS {
        let mut world = World::of(3);
        for master in 0..2 {
            world.masters[master].fails("SET", text);
        }
        world.acquire(&one_try());
        let refusal = world.refusal();
        let votes: Vec<Vote> = refusal.ballot().unwrap().votes().map(|(_, vote)| vote).collect();
        assert_eq!(votes[..2], [Vote::Failed(Cause::Server(error)); 2], "{text}");
        assert_eq!(matches!(refusal, AcquireError::Misconfigured(_)), error.is_configuration(), "{text}");
        world.pump();
        let undone = world.masters.iter().filter(|master| master.count("UNDO") == 1).count();
        // A server that has become a replica is left, and its release waits for the next
        // connection.
        assert_eq!(undone, if error == ServerError::ReadOnly { 1 } else { 3 }, "{text}");
        assert!(world.holders().is_empty());
        world.pass(ms(1_000));
        let released = |master: &Master| master.count("UNDO") + master.count("RELEASE");
        assert!(world.masters.iter().all(|master| released(master) > 0), "{text}");
    }
}

#[test]
fn an_error_on_a_minority_does_not_keep_the_lock_from_being_granted() {
    for (text, _) in ERRORS {
        let mut world = World::of(3);
        world.masters[1].fails("SET", text);
        world.hold(&one_try());
    }
}

#[test]
fn a_key_of_a_foreign_type_is_named_and_is_not_held_by_another() {
    let mut world = World::of(3);
    for master in 0..2 {
        world.masters[master].server.hold_list(0, KEY.as_bytes(), None);
    }
    world.acquire(&one_try());
    let error = world.refusal();
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("a:6379 the key holds something that is not a lock (WRONGTYPE)"), "{text}");
}

#[test]
fn a_refusal_stays_a_refusal_where_only_the_read_behind_it_fails() {
    let mut world = World::of(3);
    world.each(|master| {
        master.hold_by_another(KEY, None);
        master.fails("UNDO", "BUSY Redis is busy running a script.");
    });
    world.acquire(&one_try());
    let error = world.refusal();
    assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
}

#[test]
fn the_error_of_five_masters_prints_as_the_documentation_shows_it() {
    let mut world = World::cold(settings(5).request_timeout(ms(200)));
    world.masters[4].reach = Reach::Refuses;
    world.pump();
    // Two masters are silent, so that the third one's holder may have a quorum or not: the votes
    // are taken more than once.
    let until = world.now + ms(4_500);
    world.masters[2].hold_by_another(KEY, Some(until));
    world.masters[3].flow = Flow::Stopped;
    world.acquire(&one_try());
    let error = world.refusal();
    assert_eq!(
        error.to_string(),
        "invoice:42 not acquired: 2 of 5 votes, 3 needed (a:6379 granted, b:6379 granted, \
         c:6379 held by another for 4.2 s, d:6379 no answer in 200 ms, e:6379 connection refused)"
    );
}

#[test]
fn a_holder_has_the_same_number_on_all_its_masters() {
    let mut world = World::of(3);
    world.each(|master| master.hold_by_another(KEY, None));
    world.acquire(&one_try());
    let error = world.refusal();
    let holders: Vec<_> = error
        .ballot()
        .unwrap()
        .votes()
        .map(|(_, vote)| match vote {
            Vote::HeldByAnother { holder: Some(holder), remaining: None } => holder,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(holders.iter().all(|holder| *holder == holders[0]));
}

#[test]
fn a_flushed_script_cache_is_refilled_with_the_text_and_no_key_stays() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    world.each(Master::forget_scripts);
    world.extend(lock, ms(10_000));
    let event = world.next_event();
    assert!(matches!(event, Event::Extended { result: Ok(_), .. }), "{event:?}");
    world.each(Master::forget_scripts);
    world.release(lock);
    let event = world.next_event();
    assert_eq!(event, Event::Released { lock, outcome: ReleaseOutcome::StillOurs });
    assert!(world.holders().is_empty());
}

#[test]
fn a_lost_round_is_cleared_and_tried_again_although_the_script_cache_is_flushed() {
    let mut world = World::of(3);
    world.each(Master::forget_scripts);
    for master in 1..3 {
        world.masters[master].fails("SET", "OOM command not allowed when used memory > 'maxmemory'.");
    }
    world.acquire(&Acquire { attempts: Some(2), ..wanted(ms(10_000)) });
    let error = world.refusal();
    assert_eq!(
        error.ballot().unwrap().granted(),
        1,
        "the second attempt is not refused by the first's key: {error}"
    );
    world.pump();
    assert!(world.holders().is_empty());
}

#[test]
fn a_server_that_never_knows_a_script_is_not_asked_forever() {
    let mut world = World::of(3);
    let lock = world.hold(&one_try());
    world.each(|master| master.fails("RELEASE", "NOSCRIPT No matching script. Please use EVAL."));
    world.each(|master| master.delay = ms(1));
    world.release(lock);
    world.pass(ms(1_000));
    let events = world.events_now();
    assert!(
        matches!(events[..], [Event::Released { outcome: ReleaseOutcome::Unknown(_), .. }]),
        "{events:?}"
    );
    assert!(
        world.masters.iter().all(|master| master.count("RELEASE") == 2),
        "{}",
        world.masters[0].count("RELEASE")
    );
}

#[test]
fn a_release_that_a_master_refused_is_repeated_until_the_key_is_gone() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    world.masters[0].fails("RELEASE", "BUSY Redis is busy running a script.");
    world.release(lock);
    world.pump();
    assert_eq!(world.holders(), [0]);

    world.pass(ms(1_000));
    assert_eq!(world.masters[0].count("RELEASE"), 1, "not at once");
    world.masters[0].mends("RELEASE");
    world.pass(ms(4_000));

    assert!(world.holders().is_empty());
    assert_eq!(world.masters[0].count("RELEASE"), 2);
}
