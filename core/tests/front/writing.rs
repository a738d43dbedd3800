//! Sockets that do not accept everything.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use quorlock_core::AcquireError;
use quorlock_core::front::{Acquiring, Guard};

use super::driver::{Driver, Manner, ms};

fn poll(seeking: &mut std::pin::Pin<&mut Acquiring>) -> Option<Guard> {
    match seeking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Some(outcome.unwrap()),
        Poll::Pending => None,
    }
}

#[test]
fn a_socket_that_takes_a_few_bytes_at_a_time_gets_all_of_them_in_order() {
    let (locker, driver) = Driver::start(1);
    driver.takes(0, Manner::Few(7));
    let mut first = pin!(locker.lock("first").into_future());
    let mut second = pin!(locker.lock("second").into_future());
    let (mut guards, mut retries) = (Vec::new(), 0);
    while guards.len() < 2 {
        guards.extend(poll(&mut first));
        guards.extend(poll(&mut second));
        driver.settle();
        while driver.is_blocked(0) {
            driver.retry(0);
            retries += 1;
        }
    }
    assert!(guards.iter().all(Guard::is_valid) && retries > 100, "{retries} times");
    assert_eq!(driver.keys(0), 2);
    drop(guards);
    while !driver.retry(0) {}
    driver.settle();
    assert_eq!(driver.keys(0), 0);
    driver.end();
}

#[test]
fn a_write_that_is_interrupted_is_made_again_at_once() {
    let (locker, driver) = Driver::start(1);
    driver.takes(0, Manner::Interrupted);
    let mut seeking = pin!(locker.lock("job").into_future());
    assert!(poll(&mut seeking).is_none());
    driver.settle();
    assert!(poll(&mut seeking).is_some() && !driver.is_blocked(0));
    driver.end();
}

#[test]
fn one_socket_that_accepts_nothing_delays_no_caller() {
    for manner in [Manner::Full, Manner::Nothing, Manner::Broken] {
        let (locker, driver) = Driver::start(3);
        driver.settle();
        driver.takes(1, manner);
        let mut seeking = pin!(locker.lock("job").into_future());
        assert!(poll(&mut seeking).is_none());
        driver.settle();
        let guard = poll(&mut seeking).unwrap_or_else(|| panic!("{manner:?}"));
        assert_eq!(driver.is_blocked(1), manner == Manner::Full, "{manner:?}");
        // Bytes that the lost connection had not accepted are not sent on the next one.
        driver.lose(1);
        driver.settle();
        driver.takes(1, Manner::Whole);
        driver.pass(ms(20));
        driver.settle();
        assert_eq!([0, 1, 2].map(|master| driver.keys(master)), [1, 0, 1], "{manner:?}");
        drop(guard);
        driver.settle();
        assert_eq!([0, 1, 2].map(|master| driver.keys(master)), [0, 0, 0], "{manner:?}");
        driver.end();
    }
}

#[test]
fn openings_that_fail_in_their_first_turn_are_handled_before_the_driver_sleeps() {
    let (locker, driver) = Driver::start(3);
    (0..3).for_each(|master| driver.takes(master, Manner::Unreachable));
    let mut trying = pin!(locker.try_lock("job").into_future());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(trying.as_mut().poll(&mut cx).is_pending());
    driver.turn();
    let sleep = driver.with_port(|port| port.sleep());
    let Poll::Ready(Err(error)) = trying.as_mut().poll(&mut cx) else {
        panic!("the driver sleeps for {sleep:?} before it learns that no master can be reached");
    };
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    driver.end();
}
