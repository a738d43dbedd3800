//! A writer that waits for readers of its own process.

use quorlock_core::{Acquire, AcquireError, Event, LockId, Target};

use super::sharing::{marked, next_granted, read, two_processes, wanted, write};
use super::world::{Flow, World, ms};

fn hold(world: &mut World, node: usize, wanted: &Acquire) -> LockId {
    let lock = world.acquire_by(node, wanted);
    assert_eq!(next_granted(world, node), lock);
    lock
}

/// Why the next lock that is not acquired was refused.
fn next_refused(world: &mut World) -> AcquireError {
    loop {
        match world.next_event() {
            Event::Released { .. } => {}
            Event::NotAcquired { error, .. } => return error,
            event => panic!("{event:?}"),
        }
    }
}

fn asked(world: &World) -> usize {
    world.masters.iter().map(|master| master.attempts().len()).sum()
}

#[test]
fn a_writer_behind_a_reader_of_its_own_process_keeps_new_readers_of_others_out() {
    for names in [&["x"][..], &["x", "y"]] {
        let mut world = two_processes();
        let reader = hold(&mut world, 0, &read("x"));
        let writer = world.acquire(&write(names));
        world.pass(ms(50));
        assert_eq!(marked(&world), 3, "{names:?}");
        let other = world.acquire_by(1, &read("x"));
        for _ in 0..8 {
            world.pass(ms(400));
            assert!(marked(&world) >= 2, "{names:?} at {:?}", world.now);
        }
        assert_eq!(world.granted(1), [], "{names:?}");
        world.release(reader);
        assert_eq!(next_granted(&mut world, 0), writer, "{names:?}");
        world.release(writer);
        assert_eq!(next_granted(&mut world, 1), other, "{names:?}");
    }
}

#[test]
fn a_writer_asks_only_to_renew_its_mark_while_readers_of_its_own_process_hold_the_resource() {
    for silent in [&[][..], &[1, 2]] {
        let mut world = two_processes();
        let reader = hold(&mut world, 0, &read("x"));
        for master in silent {
            world.masters[*master].flow = Flow::Stopped;
        }
        let before = asked(&world);
        world.acquire(&write(&["x"]));
        for _ in 0..20 {
            world.pass(ms(100));
            world.extend(reader, ms(10_000));
        }
        // Two marks a second.
        let asked = asked(&world) - before;
        assert!(asked <= (3 - silent.len()) * 5, "{asked} of {silent:?}");
    }
}

#[test]
fn a_writer_gets_the_lock_in_the_write_in_which_the_last_reader_of_its_process_releases_it() {
    let mut world = two_processes();
    let readers = [(); 2].map(|()| hold(&mut world, 0, &read("x")));
    let writer = world.acquire(&write(&["x"]));
    world.pass(ms(50));
    world.release(readers[0]);
    world.pass(ms(50));
    let writes = world.nodes[0].writes.clone();
    let released = world.now;
    world.release(readers[1]);
    assert_eq!(next_granted(&mut world, 0), writer);
    assert_eq!(world.now, released);
    assert!(world.nodes[0].writes.iter().zip(&writes).all(|(now, before)| *now == before + 1));
    world.release(writer);
    world.pump();
    assert_eq!(marked(&world), 0);
}

#[test]
fn a_writer_does_not_come_before_a_reader_of_its_process_that_waits_for_another_process() {
    let mut world = two_processes();
    let other = hold(&mut world, 1, &write(&["x"]));
    let reader = world.acquire(&read("x"));
    let writer = world.acquire(&write(&["x"]));
    let behind = world.acquire(&read("x"));
    world.pass(ms(300));
    assert_eq!(marked(&world), 0);
    world.release_by(1, other);
    assert_eq!(next_granted(&mut world, 0), reader);
    world.pass(ms(50));
    assert_eq!(marked(&world), 3, "the writer waits for the reader now");
    world.release(reader);
    assert_eq!(next_granted(&mut world, 0), writer);
    world.release(writer);
    assert_eq!(next_granted(&mut world, 0), behind);
}

#[test]
fn a_writer_that_leaves_its_place_beside_readers_lets_readers_in_again() {
    let mut world = two_processes();
    hold(&mut world, 0, &read("x"));
    let writer = world.acquire(&write(&["x"]));
    let [here, there] = [0, 1].map(|node| world.acquire_by(node, &read("x")));
    world.pass(ms(300));
    world.cancel(writer);
    assert_eq!(next_granted(&mut world, 0), here);
    assert_eq!(next_granted(&mut world, 1), there);
    world.pump();
    assert_eq!(marked(&world), 0);
}

#[test]
fn a_writer_that_times_out_beside_readers_learns_how_many_of_its_process_hold_the_resource() {
    let mut world = two_processes();
    let readers = [(); 3].map(|()| hold(&mut world, 0, &read("x")));
    world.acquire(&Acquire { timeout: Some(ms(300)), ..write(&["x"]) });
    world.pass(ms(100));
    world.release(readers[0]);
    let error = next_refused(&mut world);
    let AcquireError::HeldByAnother(ballot) = error else { panic!("{error}") };
    assert_eq!(ballot.callers_ahead(), 2);
}

#[test]
fn requests_that_only_set_the_mark_do_not_count_as_attempts() {
    let fair = Acquire { fair: true, ..write(&["x"]) };
    let kinds = [write(&["x"]), write(&["x", "y"]), fair];
    for (kind, is_queued) in kinds.iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        let mut world = two_processes();
        let wanted = Acquire { attempts: Some(2), ..kind.clone() };
        let reader = world.acquire(&read("x"));
        let queued = is_queued.then(|| world.acquire(&wanted));
        assert_eq!(next_granted(&mut world, 0), reader);
        let writer = queued.unwrap_or_else(|| world.acquire(&wanted));
        world.pass(ms(3_000));
        assert!(asked(&world) > 2 * 3 * 2, "the mark was renewed several times");
        assert!(marked(&world) >= 2);
        world.release(reader);
        assert_eq!(next_granted(&mut world, 0), writer);
    }
}

#[test]
fn a_key_that_is_not_shared_on_one_master_does_not_end_the_mark() {
    let mut world = two_processes();
    let reader = hold(&mut world, 0, &read("x"));
    let end = world.now + ms(10_000);
    // The first vote that names a holder names this one.
    world.masters[0].forget_keys();
    world.masters[0].hold_by_another("x", Some(end));
    world.masters[2].flow = Flow::Stopped;
    let writer = world.acquire(&write(&["x"]));
    for _ in 0..8 {
        world.pass(ms(400));
        assert_eq!(marked(&world), 1, "at {:?}", world.now);
    }
    world.masters[2].flow = Flow::Free;
    world.release(reader);
    assert_eq!(next_granted(&mut world, 0), writer);
}

#[test]
fn a_writer_is_not_granted_beside_readers_of_its_process_whose_keys_are_gone() {
    let mut world = two_processes();
    let reader = hold(&mut world, 0, &read("x"));
    for master in [0, 1] {
        world.masters[master].forget_keys();
    }
    let writer = world.acquire(&Acquire { attempts: Some(2), ..write(&["x"]) });
    world.pass(ms(3_000));
    assert_eq!(world.granted(0), []);
    world.release(reader);
    assert_eq!(next_granted(&mut world, 0), writer);
}

#[test]
fn a_writer_beside_readers_learns_that_a_quorum_is_misconfigured() {
    // The first round is decided without the last master.
    for (misconfigured, at_once) in [([0, 1], true), ([1, 2], false)] {
        let mut world = two_processes();
        hold(&mut world, 0, &read("x"));
        for master in misconfigured {
            world.masters[master].fails("ACQUIRE ALL", "NOPERM this user has no permissions");
        }
        let began = world.now;
        world.acquire(&Acquire { timeout: Some(ms(900)), ..write(&["x"]) });
        let error = next_refused(&mut world);
        assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
        assert_eq!(world.now == began, at_once, "{:?}", world.now);
    }
}

#[test]
fn a_writer_that_times_out_beside_readers_learns_which_masters_failed() {
    for silent in [&[2][..], &[1, 2]] {
        let mut world = two_processes();
        hold(&mut world, 0, &read("x"));
        for master in silent {
            world.masters[*master].flow = Flow::Stopped;
        }
        world.acquire(&Acquire { timeout: Some(ms(900)), ..write(&["x"]) });
        let error = next_refused(&mut world);
        let is_held = matches!(error, AcquireError::HeldByAnother(_));
        assert_eq!(is_held, silent.len() == 1, "{error}");
        let text = error.to_string();
        assert_eq!(text.matches("no answer").count(), silent.len(), "{text}");
    }
}

#[test]
fn a_writer_waits_until_a_reader_is_taken_that_may_have_to_be_sought_again() {
    let mut world = two_processes();
    let reader = world.acquire(&read("x"));
    assert!(matches!(world.next_event(), Event::Granted { lock, .. } if lock == reader));
    let writer = world.acquire(&write(&["x"]));
    // The grant ends before the caller takes it.
    world.pass(ms(11_000));
    assert_eq!(marked(&world), 0, "it would keep the reader out");
    assert_eq!(next_granted(&mut world, 0), reader);
    world.pass(ms(50));
    assert_eq!(marked(&world), 3);
    world.release(reader);
    assert_eq!(next_granted(&mut world, 0), writer);
}

#[test]
fn writers_that_come_after_readers_of_their_process_leave_others_a_turn() {
    let mut world = two_processes();
    let mut pauses = 0;
    for _ in 0..40 {
        let reader = hold(&mut world, 0, &read("x"));
        let writer = world.acquire(&write(&["x"]));
        world.pump();
        let released = world.now;
        world.release(reader);
        assert_eq!(next_granted(&mut world, 0), writer);
        pauses += u32::from(world.now > released);
        world.release(writer);
        world.pump();
    }
    assert_eq!(pauses, 1, "one in 32 hand-overs");
}

#[test]
fn a_batch_and_a_fair_writer_wait_beside_readers_too() {
    let batch = wanted(&[Target::write("x"), Target::read("z")]);
    for wanted in [batch, Acquire { fair: true, ..write(&["x"]) }] {
        let mut world = two_processes();
        let reader = hold(&mut world, 0, &read("x"));
        let writer = world.acquire(&wanted);
        for _ in 0..6 {
            world.pass(ms(400));
            assert!(marked(&world) >= 2, "at {:?}", world.now);
        }
        world.release(reader);
        assert_eq!(next_granted(&mut world, 0), writer);
    }
}

#[test]
fn a_caller_that_times_out_behind_readers_and_a_writer_beside_them_learns_how_many_were_ahead() {
    let mut world = two_processes();
    for _ in 0..2 {
        hold(&mut world, 0, &read("x"));
    }
    world.acquire(&write(&["x"]));
    for limit in [200, 100] {
        world.acquire(&Acquire { timeout: Some(ms(limit)), ..read("x") });
    }
    for ahead in [4, 3] {
        let error = next_refused(&mut world);
        let AcquireError::HeldByAnother(ballot) = error else { panic!("{error}") };
        assert_eq!(ballot.callers_ahead(), ahead);
    }
}
