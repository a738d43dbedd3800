//! Clients with a single try each, at the same instant: a nightly job that every machine starts at
//! 03:00, or one of which some machines run.

use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use quorlock_core::AcquireError;
use quorlock_core::internals::settle_splits;
use quorlock_sim::{Fault, Keep, World};

/// A guard or a permit, which is only dropped.
type Held = Box<dyn Any>;

const LONG: Duration = Duration::from_secs(60);

/// What the clients meet.
#[derive(Clone, Copy)]
struct Meeting {
    /// Whether their connections are open when they try.
    warm: bool,
    /// Whether the last master refuses connections.
    one_is_dead: bool,
    /// Whether split votes are settled.
    settles: bool,
    /// How many of them may run if they try for a permit, and not for a lock.
    permits: Option<u32>,
    /// The time between two tries.
    apart: Duration,
}

const MEETING: Meeting =
    Meeting { warm: true, one_is_dead: false, settles: true, permits: None, apart: Duration::ZERO };

/// How many of the clients get the lock. A request and its answer together take 0.5 to 3 ms.
fn winners(seed: u64, masters: usize, clients: usize, meeting: Meeting) -> usize {
    let Meeting { warm, one_is_dead, settles, permits, apart } = meeting;
    let mut world = World::with_masters(seed, masters).without_timeline();
    world.heal();
    if one_is_dead {
        world
            .inject(Duration::ZERO, Fault::Crash { master: masters - 1, span: LONG, keep: Keep::Everything });
    }
    let won = Rc::new(Cell::new(0));
    for number in 0..clients {
        let client = world.client_with(|config| settle_splits(config, settles)).expect("a configuration");
        for master in 0..masters {
            let spread = (seed * 31 + number as u64 * 7 + master as u64 * 13) % 13;
            let delay = Duration::from_micros(220 + 50 * spread);
            world.inject(Duration::ZERO, Fault::Slow { client: number, master, delay, span: LONG });
        }
        let won = Rc::clone(&won);
        world.spawn(&client.clone(), async move {
            if warm {
                client.sleep(Duration::from_millis(500).saturating_sub(client.true_time())).await;
            }
            client.sleep(apart.mul_f64(number as f64)).await;
            let locker = client.locker();
            let tried = match permits {
                None => locker.try_lock("nightly").await.map(|guard| Box::new(guard) as Held),
                Some(of) => {
                    let semaphore = locker.semaphore("nightly", of).expect("a possible number");
                    semaphore.try_acquire().await.map(|permit| Box::new(permit) as Held)
                }
            };
            match tried {
                Ok(guard) => {
                    won.set(won.get() + 1);
                    // Longer than it takes to settle a split.
                    client.sleep(Duration::from_secs(1)).await;
                    drop(guard);
                }
                Err(AcquireError::HeldByAnother(_)) => {}
                Err(error) => client.report(error.to_string()),
            }
        });
    }
    world.run(LONG).expect("no promise is broken");
    won.get()
}

/// The numbers of winners and of clients.
fn rounds(meeting: Meeting) -> impl Iterator<Item = (usize, usize)> {
    (0..600).map(move |round| {
        let clients = 2 + round / 3 % 7;
        (winners(round as u64, 3 + round % 3, clients, meeting), clients)
    })
}

/// Nobody is refused while there is something to get.
fn each_round_has_its_winners(meeting: Meeting) {
    let may_win = meeting.permits.map_or(1, |permits| permits as usize);
    let rounds: Vec<_> = rounds(meeting).map(|(won, clients)| (won, may_win.min(clients))).collect();
    let odd: Vec<_> = rounds.iter().enumerate().filter(|(_, (won, may_win))| won != may_win).collect();
    assert!(odd.is_empty(), "{}: seeds, with winners and possible ones: {odd:?}", odd.len());
}

#[test]
fn one_of_the_clients_that_try_at_the_same_instant_gets_the_lock() {
    each_round_has_its_winners(MEETING);
}

#[test]
fn one_of_the_clients_that_start_at_the_same_instant_gets_the_lock() {
    each_round_has_its_winners(Meeting { warm: false, ..MEETING });
}

#[test]
fn one_of_the_clients_that_try_at_the_same_instant_gets_the_lock_although_a_master_is_dead() {
    each_round_has_its_winners(Meeting { one_is_dead: true, ..MEETING });
}

#[test]
fn without_settling_splits_sometimes_no_client_gets_the_lock() {
    let lost = rounds(Meeting { settles: false, ..MEETING }).filter(|(winners, _)| *winners == 0).count();
    assert!(lost > 60, "{lost} of 600 rounds");
}

#[test]
fn permits_are_all_taken_by_clients_that_try_at_the_same_instant() {
    for permits in [2, 3, 5] {
        each_round_has_its_winners(Meeting { permits: Some(permits), ..MEETING });
    }
}

#[test]
fn permits_are_all_taken_by_clients_that_start_at_the_same_instant() {
    for permits in [2, 3, 5] {
        each_round_has_its_winners(Meeting { permits: Some(permits), warm: false, ..MEETING });
    }
}

#[test]
fn permits_are_all_taken_by_clients_that_try_at_the_same_instant_although_a_master_is_dead() {
    for permits in [2, 3, 5] {
        each_round_has_its_winners(Meeting { permits: Some(permits), one_is_dead: true, ..MEETING });
    }
}

#[test]
fn permits_are_all_taken_by_clients_that_start_one_after_the_other() {
    for apart in [100, 400, 1_000, 2_000, 5_000] {
        let apart = Duration::from_micros(apart);
        each_round_has_its_winners(Meeting { permits: Some(3), warm: false, apart, ..MEETING });
    }
}
