//! Requests that come while a thread is about to write go out in the same write.

use std::future::{Future, IntoFuture, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use quorlock_core::front::{Acquiring, Guard, Locker};

use super::driver::Driver;

/// Two locks that have just been granted, in a turn that is not over.
fn two_granted() -> (Locker, Arc<Driver>, [Guard; 2]) {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let mut seeking = ["a", "b"].map(|name| locker.lock(name).into_future());
    let mut cx = Context::from_waker(Waker::noop());
    let before = driver.writes(0);
    assert!(seeking.iter_mut().all(|seeking| Pin::new(seeking).poll(&mut cx).is_pending()));
    assert_eq!(driver.writes(0), before + 2, "no thread is writing, so each caller writes");
    assert!(driver.turn());
    let granted = seeking.map(|mut seeking| match Pin::new(&mut seeking).poll(&mut cx) {
        Poll::Ready(granted) => granted.unwrap(),
        Poll::Pending => panic!("all masters have granted"),
    });
    (locker, driver, granted)
}

fn keys(driver: &Driver) -> [usize; 3] {
    [0, 1, 2].map(|master| driver.keys(master))
}

#[test]
fn requests_of_woken_callers_go_out_in_one_write() {
    let (_locker, driver, guards) = two_granted();
    let before = driver.writes(0);
    let releases = guards.map(Guard::release);
    assert_eq!(driver.writes(0), before);
    driver.with_port(|port| port.sleep());
    assert_eq!(driver.writes(0), before + 1);
    driver.settle();
    assert_eq!(keys(&driver), [0; 3]);
    drop(releases);
    driver.end();
}

#[test]
fn gathered_requests_are_written_when_the_turn_ends_or_another_begins() {
    for end in [
        |driver: &Arc<Driver>| driver.with_port(|port| port.end_turn()),
        |driver: &Arc<Driver>| {
            driver.turn();
        },
    ] {
        let (_locker, driver, [guard, _other]) = two_granted();
        let before = driver.writes(0);
        let release = guard.release();
        end(&driver);
        assert_eq!(driver.writes(0), before + 1);
        drop(release);
        driver.end();
    }
}

#[test]
fn a_driver_writes_gathered_requests_before_it_ends() {
    let (_locker, driver, [guard, _other]) = two_granted();
    let before = driver.writes(0);
    let release = guard.release();
    driver.end();
    assert_eq!(driver.writes(0), before + 1);
    drop(release);
}

#[test]
fn a_caller_that_does_not_wait_writes_at_once() {
    let (_locker, driver, [dropped, released]) = two_granted();
    let before = driver.writes(0);
    drop(dropped);
    assert_eq!(driver.writes(0), before + 1);
    // This release is written at once, because the process may end after it.
    drop(released.release());
    assert_eq!(driver.writes(0), before + 2);
    driver.end();
}

#[test]
fn all_requests_of_a_thread_before_it_waits_are_sent_in_one_write() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let before = driver.writes(0);
    let mut seeking = ["a", "b", "c"].map(|name| (locker.lock(name).into_future(), None));
    let all = poll_fn(|cx| {
        seeking.iter_mut().for_each(|seeking| poll_once(seeking, cx));
        if seeking.iter().all(|(_, guard)| guard.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    });
    assert_eq!(locker.block_on(pin!(all)), Some(()));
    assert_eq!(driver.writes(0), before + 1);
    assert_eq!(keys(&driver), [3; 3]);
    driver.end();
}

#[test]
fn the_requests_of_a_thread_that_stops_waiting_are_sent_before_it_goes_on() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    for name in ["a", "b"] {
        let before = driver.writes(0);
        let mut seeking = (locker.lock(name).into_future(), None);
        let once = poll_fn(|cx| {
            poll_once(&mut seeking, cx);
            Poll::Ready(())
        });
        assert_eq!(locker.block_on(pin!(once)), Some(()));
        assert_eq!(driver.writes(0), before + 1);
    }
    // On this thread nothing is gathered any more.
    let before = driver.writes(0);
    let mut seeking = locker.lock("c").into_future();
    assert!(Pin::new(&mut seeking).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(driver.writes(0), before + 1);
    driver.end();
}

fn poll_once((seeking, guard): &mut (Acquiring, Option<Guard>), cx: &mut Context<'_>) {
    if guard.is_none() {
        if let Poll::Ready(granted) = Pin::new(seeking).poll(cx) {
            *guard = Some(granted.unwrap());
        }
    }
}
