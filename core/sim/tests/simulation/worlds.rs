//! Worlds with custom tasks.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use quorlock_core::{AcquireError, LossCause, MasterState};
use quorlock_sim::{Fault, Violation, World};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_hung_master_is_not_waited_for() {
    let mut world = World::new(7);
    world.inject(ms(0), Fault::Hang { master: 2, span: LONG });
    let client = world.client();
    let took = Rc::new(Cell::new(LONG));
    let seen = Rc::clone(&took);
    world.spawn(&client.clone(), async move {
        let began = client.now();
        client.locker().lock("job").await.unwrap().release().await.unwrap();
        seen.set(client.now().since(began));
    });
    world.run(LONG).unwrap();
    assert!(took.get() < ms(10), "{:?}", took.get());
}

#[test]
fn a_master_whose_opening_failed_at_once_is_opened_again_before_the_connect_timeout() {
    // The two clients have the two kinds of drivers.
    for number in 0..2 {
        let mut world = World::new(7);
        let clients = [(); 2].map(|()| world.client_with(|config| config.connect_timeout(LONG)).unwrap());
        // There is only one master: with timers for others, the driver would also run because of
        // those.
        world.inject(ms(100), Fault::Unreachable { client: number, master: 0, span: ms(1_000) });
        world.inject(ms(100), Fault::Cut { client: number, master: 0 });
        let client = clients[number].clone();
        world.spawn(&client.clone(), async move {
            client.sleep(ms(5_000)).await;
            let (_, state) = client.locker().masters().swap_remove(0);
            assert!(matches!(state, MasterState::Ready { .. }), "client {number}: {state:?}");
        });
        world.run(LONG).unwrap();
    }
}

#[test]
fn a_held_lock_is_distinguished_from_masters_that_do_not_answer() {
    let mut world = World::new(8);
    let (holder, other) = (world.client(), world.client());
    let errors = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&errors);
    world.spawn(&holder.clone(), async move {
        let guard = holder.locker().lock("job").renew().await.unwrap();
        holder.sleep(ms(500)).await;
        drop(guard);
    });
    world.spawn(&other.clone(), async move {
        other.sleep(ms(100)).await;
        let held = other.locker().try_lock("job").await.unwrap_err();
        other.sleep(ms(1_000)).await;
        let silent = other.locker().try_lock("job").await.unwrap_err();
        seen.borrow_mut().extend([held, silent]);
    });
    for master in 0..2 {
        world.inject(ms(700), Fault::Crash { master, span: LONG, keep: quorlock_sim::Keep::Everything });
    }
    world.run(LONG).unwrap();
    let errors = errors.borrow();
    assert!(matches!(errors[0], AcquireError::HeldByAnother(_)), "{}", errors[0]);
    assert!(matches!(errors[1], AcquireError::NoQuorum(_)), "{}", errors[1]);
}

#[test]
fn a_killed_client_leaves_its_lock_to_the_ttl() {
    let mut world = World::new(9);
    let (dead, heir) = (world.client(), world.client());
    world.spawn(&dead.clone(), async move {
        let guard = dead.locker().lock("job").ttl(ms(1_000)).await.unwrap();
        guard.lost().await;
        unreachable!("the process is dead by then");
    });
    world.inject(ms(100), Fault::Kill { client: 0 });
    world.spawn(&heir.clone(), async move {
        heir.sleep(ms(100)).await;
        let guard = heir.locker().lock("job").await.unwrap();
        assert!(heir.true_time() > ms(950), "{:?}", heir.true_time());
        guard.release().await.unwrap();
    });
    world.run(LONG).unwrap();
    world.settle().unwrap();
}

#[test]
fn a_clock_that_jumps_ends_the_guard_at_once() {
    let mut world = World::new(13);
    let client = world.client();
    world.inject(ms(100), Fault::ClientJump { client: 0, by: Duration::from_secs(20) });
    world.spawn(&client.clone(), async move {
        let guard = client.locker().lock("job").ttl(Duration::from_secs(10)).await.unwrap();
        assert_eq!(guard.lost().await, LossCause::Expired);
        // No timer fires for the jump, but the driver reads the clock once a second while a lock is
        // held.
        assert!(client.true_time() < ms(1_200), "{:?}", client.true_time());
    });
    world.run(LONG).unwrap();
}

#[test]
fn a_task_that_never_ends_is_reported() {
    let mut world = World::new(10);
    let client = world.client();
    world.spawn(&client, std::future::pending());
    let failure = world.run(ms(100)).unwrap_err();
    assert_eq!(failure.violation, Violation::Unfinished { client: 0 });
}

#[test]
fn a_violation_reported_by_the_code_under_test_ends_the_run() {
    let mut world = World::new(11);
    let client = world.client();
    world.spawn(&client.clone(), async move {
        client.note("about to report");
        client.report("two receipts for one invoice");
        client.sleep(LONG).await;
    });
    let failure = world.run(LONG).unwrap_err();
    assert!(failure.to_string().starts_with("two receipts for one invoice (seed 11)"), "{failure}");
    assert!(failure.to_string().contains("about to report"), "{failure}");
}

#[test]
fn a_blocking_wait_in_a_simulated_world_fails_at_once() {
    let mut world = World::new(12);
    let client = world.client();
    assert_eq!(client.locker().lock("job").wait().unwrap_err(), AcquireError::DriverEnded);
    world.pass(ms(10)).unwrap();
}
