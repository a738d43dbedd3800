//! Inspecting a lock, and deleting its keys without holding it.

use quorlock_core::{AcquireError, Cause};
use quorlock_core::{
    Deletion, Event, ForceReleased, Inspection, KeyState, LockId, LockState, Resource, ServerError, Standing,
    Token, Vote,
};

use super::world::{Flow, KEY, Reach, World, ms, one_try, settings, wanted};

fn key() -> Resource {
    Resource::new(KEY).unwrap()
}

fn inspection(event: Event) -> (LockId, Inspection) {
    match event {
        Event::Inspected { lock, inspection } => (lock, *inspection),
        event => panic!("not an inspection: {event:?}"),
    }
}

fn inspect_with(world: &mut World, node: usize, token: Option<Token>) -> Inspection {
    let asked = world.nodes[node].machine.inspect(&key(), token, world.now).unwrap();
    world.drain(node);
    let (lock, seen) = inspection(world.next_event_of(node));
    assert_eq!(lock, asked);
    seen
}

fn inspect(world: &mut World, node: usize) -> Inspection {
    inspect_with(world, node, None)
}

fn force_release(world: &mut World, node: usize) -> ForceReleased {
    world.nodes[node].machine.force_release(&key(), world.now).unwrap();
    world.drain(node);
    match world.next_event_of(node) {
        Event::ForceReleased { outcome, .. } => *outcome,
        event => panic!("no key was deleted: {event:?}"),
    }
}

fn two_nodes() -> World {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 2);
    world.pump();
    world
}

fn deletions(outcome: &ForceReleased) -> Vec<Result<Deletion, Cause>> {
    outcome.masters().map(|(_, deletion)| deletion).collect()
}

#[test]
fn a_held_lock_is_shown_to_all_and_as_ours_to_its_holder() {
    let mut world = two_nodes();
    let lock = world.hold(&wanted(ms(10_000)));
    let token = world.expose(lock);
    world.pass(ms(1_000));
    for (node, is_ours) in [(0, true), (1, false)] {
        let seen = inspect(&mut world, node);
        assert_eq!((seen.is_held(), seen.is_ours(), seen.remaining()), (true, is_ours, Some(ms(9_000))));
        let LockState::Held(holding) = seen.state() else { panic!("{seen:?}") };
        assert_eq!((holding.on, holding.holder.number(), seen.answered()), (3, 0, 3));
        assert_eq!((seen.is_free(), seen.free()), (false, 0));
        let held = if is_ours { "ours" } else { "held by one holder" };
        assert_eq!(seen.to_string(), format!("{held} on 3 of 3 masters (quorum 2), 9 s left"));
        assert!(!format!("{seen:?}{seen}").contains(&token[..8]));
    }
    let told = world.nodes[0].machine.token(lock);
    assert!(inspect_with(&mut world, 1, told).is_ours(), "a token may be named");
    let other = Some(Token::from_bytes([7; 20]));
    assert!(!inspect_with(&mut world, 1, other).is_ours());
}

#[test]
fn inspections_change_nothing_on_masters() {
    let mut world = two_nodes();
    let lock = world.hold(&wanted(ms(10_000)));
    let ends = |world: &World| -> Vec<_> { world.masters.iter().map(|it| it.end(KEY, world.now)).collect() };
    let before = ends(&world);
    inspect(&mut world, 1);
    assert_eq!(ends(&world), before);
    world.release(lock);
    assert!(matches!(world.next_event(), Event::Released { .. }));
    inspect(&mut world, 1);
    assert!(world.masters.iter().all(|master| master.is_empty(world.now)));
}

#[test]
fn an_inspection_shows_the_same_fingerprint_as_a_refusal() {
    let mut world = two_nodes();
    world.hold(&wanted(ms(10_000)));
    let seen = inspect(&mut world, 1);
    world.acquire_by(1, &one_try());
    let Event::NotAcquired { error: AcquireError::HeldByAnother(ballot), .. } = world.next_event_of(1) else {
        panic!("it is held")
    };
    let refusals: Vec<_> = ballot
        .votes()
        .filter_map(|(_, vote)| match vote {
            Vote::HeldByAnother { holder, .. } => holder,
            _ => None,
        })
        .collect();
    let (holder, _) = seen.holders().next().unwrap();
    assert!(!refusals.is_empty() && refusals.iter().all(|refusal| *refusal == holder.fingerprint()));
}

#[test]
fn a_key_that_a_plain_client_set_is_seen() {
    let mut world = World::of(3);
    let until = world.now + ms(5_000);
    for master in 0..3 {
        world.masters[master].hold_by_another(KEY, (master > 0).then_some(until));
    }
    let seen = inspect(&mut world, 0);
    assert!(seen.is_held() && !seen.is_ours());
    assert_eq!(seen.remaining(), Some(ms(5_000)), "a quorum has it for as long");
    let keys: Vec<_> = seen.masters().map(|(_, answer)| answer.unwrap().key).collect();
    assert!(matches!(keys[0], KeyState::Held { remaining: None, .. }), "{keys:?}");
}

#[test]
fn holders_are_distinguished_and_a_master_without_an_answer_has_its_cause() {
    let mut world = two_nodes();
    world.masters[1].flow = Flow::Stopped;
    world.masters[2].flow = Flow::Stopped;
    world.acquire(&wanted(ms(10_000)));
    world.pass(ms(1));
    world.masters[1].flow = Flow::Free;
    world.masters[1].hold_by_another(KEY, None);
    let seen = inspect(&mut world, 1);
    assert_eq!(seen.state(), LockState::Unknown);
    let holders: Vec<_> = seen.holders().map(|(holder, on)| (holder.to_string(), on)).collect();
    assert_eq!(holders, [("a".to_owned(), 1), ("b".to_owned(), 1)]);
    assert!(matches!(seen.masters().last().unwrap().1, Err(Cause::NoAnswer { .. })), "{seen:?}");
    let said = "not known, it depends on masters that gave no usable answer: holder a on 1, holder b on 1, no usable answer from 1 (quorum 2)";
    assert_eq!(seen.to_string(), said);
}

#[test]
fn a_key_of_another_type_is_not_a_lock_and_is_never_deleted() {
    let mut world = World::of(3);
    for master in &mut world.masters {
        let mut session = quorlock_sim::Session::new();
        master.execute(&mut session, &quorlock_sim::Command::new(["LPUSH", KEY, "x"]), world.now);
    }
    let seen = inspect(&mut world, 0);
    assert_eq!((seen.state(), seen.free()), (LockState::Split, 0));
    let outcome = force_release(&mut world, 0);
    assert_eq!(deletions(&outcome), [Ok(Deletion::OtherType); 3]);
}

#[test]
fn errors_of_a_server_are_reported_as_its_answer() {
    let mut world = World::of(3);
    world.masters[0].fails("INSPECT", "LOADING Redis is loading the dataset in memory");
    let seen = inspect(&mut world, 0);
    let first = seen.masters().next().unwrap().1;
    assert_eq!(first.unwrap_err(), Cause::Server(ServerError::Loading));
    assert_eq!((seen.is_free(), seen.free(), seen.is_held()), (true, 2, false));
}

#[test]
fn a_master_that_lost_its_data_under_the_restart_guard_does_not_count_as_free() {
    let mut world = World::ready(settings(3).ttl(ms(3_000)).restart_guard(ms(5_000)));
    world.pass(ms(5_000));
    assert!(inspect(&mut world, 0).is_free());
    for master in 1..3 {
        world.masters[master].forget_keys();
    }
    // A client that does not use the guard sees the loss as well.
    world.add_node(settings(3).build().unwrap(), 2);
    world.pump();
    for node in 0..2 {
        let seen = inspect(&mut world, node);
        assert_eq!(seen.state(), LockState::Unknown, "node {node}");
        let standings: Vec<_> = seen.masters().map(|(_, answer)| answer.unwrap().standing).collect();
        let forgot = Standing::Unnoticed { quarantine: ms(5_000) };
        assert_eq!(standings, [Standing::Votes, forgot, forgot], "node {node}");
    }
    world.acquire(&quorlock_core::Acquire { attempts: Some(1), ..wanted(ms(3_000)) });
    world.next_event();
    let seen = inspect(&mut world, 1);
    let standing = seen.masters().nth(1).unwrap().1.unwrap().standing;
    assert!(matches!(standing, Standing::Quarantined { .. }), "{standing:?}");
}

#[test]
fn keys_of_any_client_are_deleted_and_the_holder_learns_of_it_at_its_next_extension() {
    let mut world = two_nodes();
    let lock = world.hold(&wanted(ms(60_000)));
    let outcome = force_release(&mut world, 1);
    assert_eq!((outcome.deleted(), outcome.absent()), (3, 0));
    assert_eq!(outcome.to_string(), format!("deleted {KEY} on 3 of 3 masters; 0 had no such key"));
    assert!(world.holders().is_empty() && world.events_now().is_empty());
    world.extend(lock, ms(10_000));
    assert!(matches!(world.next_event(), Event::Lost { .. }));
    let outcome = force_release(&mut world, 1);
    assert_eq!(deletions(&outcome), [Ok(Deletion::Absent); 3]);
}

#[test]
fn waiters_of_the_same_process_continue_when_the_keys_are_deleted() {
    let mut world = two_nodes();
    world.hold(&wanted(ms(60_000)));
    let waits = world.acquire_by(1, &wanted(ms(60_000)));
    world.pass(ms(200));
    world.nodes[1].machine.force_release(&key(), world.now).unwrap();
    world.drain(1);
    let begun = world.now;
    let granted = loop {
        match world.next_event_of(1) {
            Event::ForceReleased { .. } => {}
            Event::Granted { lock, .. } => break lock,
            event => panic!("{event:?}"),
        }
    };
    assert!(granted == waits && world.now.since(begun) < ms(1_000), "{:?}", world.now.since(begun));
}

#[test]
fn a_deletion_that_is_executed_late_does_nothing_to_a_later_holder() {
    let mut world = two_nodes();
    world.hold(&wanted(ms(60_000)));
    // The holder has been named, and the requests to delete are in the sockets.
    world.each(|master| master.delay = ms(10));
    world.nodes[1].machine.force_release(&key(), world.now).unwrap();
    world.drain(1);
    world.pass(ms(5));
    world.each(|master| master.flow = Flow::Stopped);
    world.pass(ms(6));
    world.each(|master| {
        master.server.hold(0, KEY.as_bytes(), b"a later one", None);
        master.flow = Flow::Free;
    });
    world.pump();
    for master in &world.masters {
        assert!(master.count("FORCE RELEASE") >= 2, "the deletion was executed");
        assert_eq!(master.value(KEY, world.now), Some("a later one"));
    }
}

#[test]
fn a_key_that_another_holder_takes_before_each_deletion_is_left_alone_after_eight_of_them() {
    let mut world = World::of(3);
    world.each(|master| master.flow = Flow::RepliesHeld);
    world.nodes[0].machine.force_release(&key(), world.now).unwrap();
    world.drain(0);
    for holder in 0..20 {
        let token = format!("holder {holder}");
        world.each(|master| master.server.hold(0, KEY.as_bytes(), token.as_bytes(), None));
        assert!((0..3).all(|master| world.deliver(0, master)) || holder > 8);
    }
    let events = world.events_now();
    let [Event::ForceReleased { outcome, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(deletions(outcome), [Ok(Deletion::Contended); 3]);
    // The first request only asks for the holder.
    assert!(world.masters.iter().all(|master| master.count("FORCE RELEASE") == 1 + 8));
}

#[test]
fn masters_that_are_down_are_reported_with_their_causes() {
    let mut world = World::of(3);
    for master in 1..3 {
        world.cut(0, master);
        world.masters[master].reach = Reach::Refuses;
    }
    world.pass(ms(200));
    let outcome = force_release(&mut world, 0);
    let causes: Vec<_> = outcome.masters().filter_map(|(_, deletion)| deletion.err()).collect();
    assert_eq!((outcome.absent(), causes.len()), (1, 2), "{causes:?}");
    let seen = inspect(&mut world, 0);
    assert_eq!(seen.to_string(), "not known: 1 of 3 masters gave a usable answer (quorum 2)");
}

#[test]
fn an_inspection_leaves_nothing_behind() {
    let mut world = World::of(3);
    for _ in 0..100 {
        inspect(&mut world, 0);
        force_release(&mut world, 0);
    }
    assert!(world.nodes[0].machine.is_idle());
}
