//! When the async driver wants another turn, and when it sets its timer.

use std::future::Future;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use quorlock_core::front::{Driver, Host};
use quorlock_core::{IoFault, Unavailable};

use super::on_a_runtime::World;
use super::task::{Task, Woken};

/// Polls the driver once with a waker, and again as long as that is woken. Returns the number of
/// turns.
fn turns(driver: &mut Driver) -> usize {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut last = |_: &usize| {
        assert!(pin!(&mut *driver).poll(&mut Context::from_waker(&waker)).is_pending());
        !woken.take()
    };
    (1..100).find(&mut last).expect("the driver wakes itself without end")
}

#[test]
fn the_driver_is_woken_for_another_turn_only_if_there_is_more_to_do() {
    let (_world, _locker, mut driver) = World::open(1);
    assert!(turns(&mut driver) > 1, "a connection that has begun to open must be polled");

    let (world, locker, mut driver) = World::connected(1);
    assert_eq!(turns(&mut driver), 1, "there is nothing to do");
    let mut seeking = Task::start(locker.lock("job"));
    let before = world.state().wires[0].reads;
    assert_eq!(turns(&mut driver), 2, "the caller that was woken runs first");
    assert_eq!(world.state().wires[0].reads, before + 1, "one answer, and nothing since");
    let _guard = seeking.guard();
    assert_eq!(turns(&mut driver), 1);

    // A timer may fire early, but only once.
    world.state().timers_are_early = true;
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    assert!(pin!(&mut driver).poll(&mut Context::from_waker(&waker)).is_pending());
    world.state().timers_are_early = false;
    assert!(woken.take());
    assert_eq!(turns(&mut driver), 1);

    // A long answer to a request.
    world.state().wires[0].is_silent = true;
    let _seeking = Task::start(locker.lock("other"));
    turns(&mut driver);
    world.state().wires[0].received = b"$60000\r\n".to_vec();
    turns(&mut driver);
    world.state().wires[0].is_flooded = true;
    assert!(pin!(&mut driver).poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(woken.take(), "there is more to read");
}

#[test]
fn the_timer_is_set_for_the_next_deadline_and_again_in_the_turn_in_which_it_has_run_out() {
    let (world, locker, mut driver) = World::connected(1);
    let mut seeking = Task::start(locker.lock("job").ttl(Duration::from_secs(60)));
    turns(&mut driver);
    let _guard = seeking.guard();
    turns(&mut driver);
    let times = || {
        let state = world.state();
        (state.now, state.alarm, state.timers_set)
    };
    let (now, alarm, set) = times();
    assert!(alarm > now && alarm <= now + Duration::from_secs(1), "{alarm:?} at {now:?}");

    world.state().now = alarm;
    assert_eq!(turns(&mut driver), 1);
    let (_, next, set_again) = times();
    assert_eq!((set_again, next > alarm), (set + 1, true));

    // A request times out before that.
    world.state().wires[0].is_silent = true;
    let _seeking = Task::start(locker.lock("other"));
    turns(&mut driver);
    let timeout = alarm + locker.config().request_timeout();
    assert!(timeout < next);
    assert_eq!(times(), (alarm, timeout, set + 2));
    world.state().now += Duration::from_millis(1);
    assert_eq!(turns(&mut driver), 1);
    assert_eq!(world.state().timers_set, set + 2);
}

#[test]
fn another_address_comes_first_if_the_last_connection_did_not_serve() {
    for (has_served, last) in [(true, [1, 1]), (false, [1, 2])] {
        let (world, locker, mut driver) = if has_served { World::connected(1) } else { World::open(1) };
        world.state().wires[0].is_silent = true;
        turns(&mut driver);
        let _seeking = Task::start(locker.lock("job"));
        for _ in 0..1_000 {
            world.state().now += Duration::from_millis(10);
            turns(&mut driver);
        }
        let first_two: Vec<_> = world.state().connected.iter().take(2).map(|to| to.ip()).collect();
        assert_eq!(first_two, last.map(|last| IpAddr::from([192, 0, 2, last])), "{has_served}");
    }
}

#[test]
fn a_host_without_files_reads_no_password() {
    let unsupported = Unavailable::Unreadable(IoFault::new(ErrorKind::Unsupported));
    assert_eq!(World::default().read_password(Path::new("/x")), Err(unsupported));
}
