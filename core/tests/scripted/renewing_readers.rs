//! A writer behind many readers that renew their locks: each renewal notifies it.

use std::time::Duration;

use quorlock_core::{Acquire, LockId, Ttl};

use super::sharing::{granted_beside_a_renewal, next_granted, read, two_processes, write};
use super::world::{World, ms};

/// 200 readers of one process renew their locks every 270 to 300 ms, and a writer of another
/// process, if there is one, has waited for a time.
fn behind_readers_that_renew(has_writer: bool, waited: Duration) -> (World, Vec<LockId>) {
    let mut world = two_processes();
    world.each(|master| master.delay = Duration::from_micros(250));
    let renewing = Acquire { ttl: Ttl::new(ms(900)).unwrap(), renew_for: Some(ms(60_000)), ..read("x") };
    let mut readers = Vec::new();
    for _ in 0..200 {
        world.acquire(&renewing);
        world.pass(Duration::from_micros(1_500));
        readers.extend(granted_beside_a_renewal(&mut world));
    }
    if has_writer {
        world.acquire_by(1, &write(&["x"]));
    }
    world.pass(waited);
    (world, readers)
}

#[test]
fn a_writer_behind_readers_that_renew_costs_each_master_few_requests() {
    let in_two_seconds = |has_writer| {
        let (mut world, _) = behind_readers_that_renew(has_writer, ms(1_000));
        let executed = |world: &World| world.masters.iter().map(|master| master.executed.len()).collect();
        let before: Vec<usize> = executed(&world);
        world.pass(ms(2_000));
        let after: Vec<usize> = executed(&world);
        after.into_iter().zip(before).map(|(after, before)| after - before).collect::<Vec<_>>()
    };
    let (with, without) = (in_two_seconds(true), in_two_seconds(false));
    // The writer asks each master every 40 ms, and the last one to answer takes a vote back.
    let is_cheap = |(with, without): (&usize, &usize)| *with <= without + 2 * 60;
    assert!(with.iter().zip(&without).all(is_cheap), "{with:?}, without the writer {without:?}");
}

#[test]
fn a_writer_behind_readers_that_renew_is_granted_soon_after_the_last_of_them_leaves() {
    for waited in [10, 100, 1_000, 3_000].map(ms) {
        let (world, readers) = behind_readers_that_renew(true, waited);
        // At all times between two attempts of the writer.
        for halves in 0..80 {
            let mut world = world.clone();
            let more = ms(1) * halves / 2;
            world.pass(more);
            let left = world.now;
            readers.iter().for_each(|reader| world.release(*reader));
            next_granted(&mut world, 1);
            let idle = world.now.since(left);
            // Two round trips, and a sixteenth of the wait.
            let most = ms(1) + ((waited + more) / 16).clamp(ms(2), ms(40));
            assert!(idle <= most, "after {waited:?} and {more:?}: {idle:?}");
        }
    }
}
