//! Time in which this process cannot write or read does not count as a master's silence.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock_core::front::{Guard, Locker, Port, Release, ReleaseError, Released};

use super::driver::{Driver, ms};

/// Well above the default of `request_timeout`.
const LATE: Duration = ms(5_000);

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// A lock that has just been granted, in a turn that is not over.
fn granted() -> (Locker, Arc<Driver>, Guard) {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let mut seeking = locker.lock("a").into_future();
    assert!(poll(&mut seeking).is_pending());
    assert!(driver.turn());
    let Poll::Ready(granted) = poll(&mut seeking) else { panic!("all masters have granted") };
    (locker, driver, granted.unwrap())
}

/// The outcome of a release whose answers arrive with the next turn.
fn outcome(driver: &Arc<Driver>, mut release: Pin<Box<Release>>) -> Result<Released, ReleaseError> {
    driver.settle();
    match poll(&mut release) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("all masters have answered"),
    }
}

#[test]
fn the_timeout_of_a_request_starts_when_it_is_written() {
    let (_locker, driver, guard) = granted();
    // The turn gathers, so the release is not written before the next turn, which begins late.
    let release = Box::pin(guard.release());
    driver.pass(LATE);
    driver.with_port(|port| {
        port.register(Waker::noop());
        port.tick();
        port.sleep();
    });
    // Three quarters of the default, and more than a second look would wait for.
    (0..3).for_each(|master| driver.hush(master, true));
    for _ in 0..3 {
        driver.pass(ms(50));
        driver.turn();
    }
    (0..3).for_each(|master| driver.hush(master, false));
    outcome(&driver, release).unwrap();
    driver.end();
}

#[test]
fn a_late_turn_reads_the_sockets_before_it_calls_a_master_silent() {
    let (_locker, driver, guard) = granted();
    let release = Box::pin(guard.release());
    driver.with_port(|port| {
        port.sleep();
        port.register(Waker::noop());
    });
    // The sockets have nothing yet. The answers come while the thread waits for a processor.
    driver.pass(LATE);
    driver.with_port(|port| {
        port.tick();
        assert_eq!(port.sleep(), Some(Duration::ZERO), "it looks once more at once");
    });
    outcome(&driver, release).unwrap();
    driver.end();
}

/// A turn in which the sockets have nothing. Returns for how long the driver then sleeps.
fn silent_turn(driver: &Arc<Driver>) -> Duration {
    driver.with_port(|port: &mut Port| {
        port.register(Waker::noop());
        port.tick();
        port.sleep().unwrap()
    })
}

#[test]
fn a_request_that_a_stop_delayed_before_its_write_is_still_answered() {
    let (_locker, driver, guard) = granted();
    let release = Box::pin(guard.release());
    // The process is stopped before the bytes are in the sockets, and another thread looks first.
    driver.with_port(|port| port.sleep());
    driver.pass(LATE);
    assert!(!silent_turn(&driver).is_zero());
    outcome(&driver, release).unwrap();
    driver.end();
}

#[test]
fn a_master_that_is_silent_at_two_late_looks_times_out() {
    let (_locker, driver, guard) = granted();
    let mut release = Box::pin(guard.release());
    driver.with_port(|port| port.sleep());
    driver.pass(LATE);
    silent_turn(&driver);
    assert!(poll(&mut release).is_pending());
    driver.pass(LATE);
    silent_turn(&driver);
    let outcome = poll(&mut release);
    assert!(matches!(outcome, Poll::Ready(Err(ReleaseError::Unknown(_)))), "{outcome:?}");
    driver.end();
}
