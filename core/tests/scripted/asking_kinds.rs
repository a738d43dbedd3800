//! Inspecting shared locks and permits, and clearing them.

use quorlock_core::{
    Acquire, Deletion, Event, ForceReleased, Inspection, Instant, LockId, LockState, ReleaseOutcome,
    Resource, SemaphoreInspection, Target, Targets, Token, Ttl,
};

use super::world::{Flow, Master, World, ms, settings};

fn wanted(targets: Targets) -> Acquire {
    Acquire { timeout: Some(ms(60_000)), ..Acquire::new(targets, Ttl::new(ms(10_000)).unwrap()) }
}

fn targets(target: Target) -> Targets {
    settings(3).build().unwrap().targets([target]).unwrap()
}

fn read() -> Acquire {
    wanted(targets(Target::read("x")))
}

fn permits() -> Targets {
    settings(3).build().unwrap().permits("gpu", 4).unwrap()
}

fn key() -> Resource {
    Resource::new("x").unwrap()
}

/// Executes a command like a person at a master's prompt.
fn execute(master: &mut Master, words: &[&str], now: Instant) {
    let command = quorlock_sim::Command::new(words.iter().copied());
    master.execute(&mut quorlock_sim::Session::new(), &command, now);
}

fn two_processes() -> World {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 7);
    world.pump();
    world
}

fn hold_by(world: &mut World, node: usize, wanted: &Acquire) -> (LockId, Token) {
    let lock = world.acquire_by(node, wanted);
    let Event::Granted { .. } = world.next_event_of(node) else { panic!("it is free") };
    let (now, machine) = (world.now, &mut world.nodes[node].machine);
    assert!(machine.take(lock, now).is_some());
    let token = machine.token(lock).unwrap();
    world.drain(node);
    world.pump();
    (lock, token)
}

fn inspect(world: &mut World, node: usize) -> Inspection {
    world.nodes[node].machine.inspect(&key(), None, world.now).unwrap();
    world.drain(node);
    match world.next_event_of(node) {
        Event::Inspected { inspection, .. } => *inspection,
        event => panic!("not an inspection: {event:?}"),
    }
}

fn inspect_permits(world: &mut World, node: usize) -> SemaphoreInspection {
    world.nodes[node].machine.inspect_permits(&permits(), None, world.now).unwrap();
    world.drain(node);
    match world.next_event_of(node) {
        Event::SemaphoreInspected { inspection, .. } => *inspection,
        event => panic!("not an inspection: {event:?}"),
    }
}

fn force_release(world: &mut World, node: usize) -> ForceReleased {
    world.nodes[node].machine.force_release(&key(), world.now).unwrap();
    world.drain(node);
    match world.next_event_of(node) {
        Event::ForceReleased { outcome, .. } => *outcome,
        event => panic!("no key was deleted: {event:?}"),
    }
}

fn release_token(world: &mut World, node: usize, token: Token) -> ReleaseOutcome {
    world.nodes[node].machine.release_token(&key().into(), token, world.now).unwrap();
    world.drain(node);
    match world.next_event_of(node) {
        Event::Released { outcome, .. } => outcome,
        event => panic!("{event:?}"),
    }
}

#[test]
fn readers_are_counted_and_the_last_end_is_reported() {
    let mut world = two_processes();
    hold_by(&mut world, 0, &read());
    world.pass(ms(3_000));
    hold_by(&mut world, 0, &read());
    world.pass(ms(1_000));
    for (node, whose) in [(0, ", all of them ours, the last"), (1, ", the last")] {
        let seen = inspect(&mut world, node);
        let told = format!("2 readers{whose} ends in 9 s; on 3 of 3 masters (quorum 2)");
        assert_eq!((seen.to_string(), seen.is_held(), seen.is_ours()), (told, true, node == 0));
        assert_eq!((seen.sharers().count(), seen.holders().count()), (2, 0));
        assert!(seen.sharers().all(|(holder, on)| on == 3 && holder.is_ours() == (node == 0)));
    }
    world.pass(ms(6_500));
    let seen = inspect(&mut world, 1);
    assert_eq!(seen.to_string(), "1 reader, it ends in 2.5 s; on 3 of 3 masters (quorum 2)");
    assert_eq!((seen.is_held(), seen.remaining()), (true, Some(ms(2_500))));
    world.pass(ms(2_600));
    assert!(inspect(&mut world, 1).is_free());
}

#[test]
fn as_many_readers_as_are_ours_are_said_to_be_ours() {
    let mut world = two_processes();
    for node in [0, 0, 1] {
        hold_by(&mut world, node, &read());
    }
    for (node, ours) in [(0, "2 are"), (1, "one is")] {
        let said =
            format!("3 readers, of which {ours} ours, the last ends in 10 s; on 3 of 3 masters (quorum 2)");
        assert_eq!(inspect(&mut world, node).to_string(), said);
    }
}

#[test]
fn a_group_is_named_and_a_waiting_writer_is_reported() {
    let mut world = two_processes();
    let group = quorlock_core::Group::new("job:42").unwrap();
    hold_by(&mut world, 0, &wanted(targets(Target::share("x", group.clone()))));
    world.acquire_by(1, &wanted(key().into()));
    world.pass(ms(400));
    let seen = inspect(&mut world, 0);
    assert_eq!(seen.group(), Some(&group));
    assert!(seen.masters().all(|(_, answer)| answer.unwrap().group.as_ref() == Some(&group)));
    let LockState::Shared(sharing) = seen.state() else { panic!("{seen}") };
    assert_eq!((sharing.sharers, sharing.ours), (Some(1), 1));
    assert!(sharing.wanted_on >= 2);
    assert!(seen.to_string().starts_with("1 of group job:42, which is ours, ends in 9."), "{seen}");
    assert!(seen.to_string().ends_with("; a writer waits"), "{seen}");
}

#[test]
fn permits_are_reported_by_their_indices() {
    let mut world = two_processes();
    assert_eq!(inspect_permits(&mut world, 1).to_string(), "none of 4 permits held");
    let (lock, _) = hold_by(&mut world, 0, &wanted(permits()));
    let ours: u32 = world.nodes[0].machine.seat(lock).unwrap().into();
    for (node, whose) in [(0, format!("; ours: {ours}")), (1, String::new())] {
        let seen = inspect_permits(&mut world, node);
        assert_eq!(seen.to_string(), format!("permit {ours} of 4 held{whose}"));
        let held: Vec<_> =
            seen.held().map(|(index, holding)| (index, holding.on, holding.remaining)).collect();
        assert_eq!(held, [(ours, 3, Some(ms(10_000)))]);
        assert_eq!((seen.free().count(), seen.ours().count()), (3, 1 - node));
        assert!(seen.masters().all(|(_, answer)| answer.unwrap().keys.len() == 1));
    }
    let counts: Vec<_> = world.masters.iter().map(|master| master.count("INSPECT")).collect();
    assert_eq!(counts, [3; 3], "one request for all permits");
    world.masters[0].flow = Flow::Stopped;
    world.masters[1].flow = Flow::Stopped;
    let seen = inspect_permits(&mut world, 1);
    assert_eq!(seen.to_string(), "not known: 1 of 3 masters gave a usable answer (quorum 2)");
}

#[test]
fn the_token_of_a_reader_is_released_and_others_stay() {
    let mut world = two_processes();
    let (lock, token) = hold_by(&mut world, 0, &read());
    let (_, other) = hold_by(&mut world, 1, &read());
    assert!(world.nodes[0].machine.hand_over(lock, world.now).is_some());
    for expected in [ReleaseOutcome::StillOurs, ReleaseOutcome::NotOurs] {
        assert_eq!(release_token(&mut world, 1, token), expected);
        world.pump();
        let LockState::Shared(sharing) = inspect(&mut world, 0).state() else { panic!("one is left") };
        assert_eq!(sharing.sharers, Some(1));
    }
    assert_eq!(release_token(&mut world, 0, other), ReleaseOutcome::StillOurs);
    world.pump();
    assert!(world.masters.iter().all(|master| master.is_empty(world.now)));
}

#[test]
fn a_shared_lock_is_cleared_with_all_its_sharers() {
    let mut world = two_processes();
    let (lock, _) = hold_by(&mut world, 0, &read());
    hold_by(&mut world, 0, &read());
    let outcome = force_release(&mut world, 1);
    assert_eq!((outcome.deleted(), outcome.absent()), (3, 0));
    assert!(world.masters.iter().all(|master| master.is_empty(world.now)), "their entries are gone, too");
    world.extend(lock, ms(10_000));
    assert!(matches!(world.next_event(), Event::Lost { .. }));
}

#[test]
fn a_deletion_that_is_executed_late_does_nothing_to_later_readers() {
    let mut world = two_processes();
    let (_, token) = hold_by(&mut world, 0, &read());
    // The readers have been named, and the requests to delete are in the sockets.
    world.each(|master| master.delay = ms(10));
    world.nodes[1].machine.force_release(&key(), world.now).unwrap();
    world.drain(1);
    world.pass(ms(5));
    world.each(|master| master.flow = Flow::Stopped);
    world.pass(ms(6));
    let now = world.now;
    for master in &mut world.masters {
        // Another reader has come, and the old one has gone.
        let value = master.value("x", now).unwrap().replace(&*token.expose(), &"7".repeat(40));
        execute(master, &["SET", "x", &value, "PX", "9000"], now);
        master.flow = Flow::Free;
    }
    world.pump();
    for master in &world.masters {
        assert!(master.count("FORCE RELEASE") >= 2, "the deletion was executed");
        assert!(master.value("x", world.now).is_some());
    }
}

#[test]
fn a_shared_key_whose_value_cannot_be_read_names_no_sharer_and_can_be_cleared() {
    let mut world = two_processes();
    hold_by(&mut world, 0, &read());
    let now = world.now;
    for master in &mut world.masters {
        let value = master.value("x", now).unwrap()[..64].to_owned();
        execute(master, &["SET", "x", &value, "PX", "9000"], now);
    }
    assert_eq!(inspect(&mut world, 1).state(), LockState::Split);
    let outcome = force_release(&mut world, 1);
    assert!(outcome.masters().all(|(_, deletion)| deletion == Ok(Deletion::Deleted)));
}
