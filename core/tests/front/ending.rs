//! Drivers that end.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock_core::front::ReleaseError;
use quorlock_core::{AcquireError, ExtendError, LossCause};

use super::driver::{Driver, ms};
use super::task::Woken;

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_waiter_learns_that_the_driver_has_ended() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let held = locker.lock("held").wait().unwrap();
    let extended = locker.lock("extended").wait().unwrap();
    let released = locker.lock("released").wait().unwrap();
    let mut seeking = pin!(locker.lock("held").timeout(None).into_future());
    let mut lost = pin!(held.lost());
    let mut extending = pin!(extended.extend(ms(20_000)));
    let mut releasing = pin!(released.release());
    assert!(poll(seeking.as_mut()).is_pending() && poll(lost.as_mut()).is_pending());
    assert!(poll(extending.as_mut()).is_pending() && poll(releasing.as_mut()).is_pending());
    driver.end();
    let Poll::Ready(Err(error)) = poll(seeking) else { panic!("still seeking") };
    assert_eq!(error, AcquireError::DriverEnded);
    assert_eq!(poll(lost), Poll::Ready(LossCause::DriverEnded));
    assert_eq!(poll(extending), Poll::Ready(Err(ExtendError::Lost(LossCause::DriverEnded))));
    let Poll::Ready(Err(error)) = poll(releasing) else { panic!("still releasing") };
    assert_eq!(error, ReleaseError::DriverEnded);
    for text in [error.to_string(), AcquireError::DriverEnded.to_string(), LossCause::DriverEnded.to_string()]
    {
        assert_eq!(text, "the I/O loop of this locker has ended; open another locker");
    }
}

#[test]
fn waiting_without_a_driver_ends_at_once() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let guard = locker.lock("job").wait().unwrap();
    driver.end();
    assert_eq!(locker.lock("other").wait().unwrap_err(), AcquireError::DriverEnded);
    assert_eq!(guard.extend(ms(500)).wait(), Err(ExtendError::Lost(LossCause::DriverEnded)));
    assert_eq!(guard.lost().wait(), LossCause::DriverEnded);
    assert_eq!(guard.release().wait(), Err(ReleaseError::DriverEnded));
}

#[test]
fn every_method_reports_a_lock_as_lost_after_its_driver_has_ended() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let guard = locker.lock("job").wait().unwrap();
    let mut granted = pin!(locker.lock("granted").into_future());
    assert!(poll(granted.as_mut()).is_pending());
    driver.settle();
    assert_eq!(guard.check(), Ok(()));

    driver.end();

    assert_eq!(poll(pin!(guard.lost())), Poll::Ready(LossCause::DriverEnded));
    assert_eq!(guard.check(), Err(LossCause::DriverEnded));
    assert!(!guard.is_valid());
    assert_eq!(guard.remaining(), ms(0));
    // The lock was granted before the driver's end, and is taken after it.
    let Poll::Ready(Err(error)) = poll(granted) else { panic!("a lock without a watch") };
    assert_eq!(error, AcquireError::DriverEnded);
    assert_eq!(guard.release().wait(), Err(ReleaseError::DriverEnded));
}

#[test]
fn a_driver_is_finished_when_its_last_user_is_gone_and_what_was_sent_is_answered() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let guard = locker.lock("job").wait().unwrap();
    let watch = guard.watch();
    drop((locker, guard));
    assert!(!driver.with_port(|port| port.is_finished()), "a watch is a user too");
    drop(watch);
    assert!(!driver.with_port(|port| port.is_finished()), "the release is not answered yet");
    driver.settle();
    assert!(driver.with_port(|port| port.is_finished()));
    assert_eq!(driver.keys(0), 0);
    driver.end();
}

#[test]
fn the_last_user_to_go_wakes_the_driver_and_no_other_does() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let woken = Arc::new(Woken::default());
    driver.with_port(|port| port.register(&Waker::from(Arc::clone(&woken))));
    drop(locker.clone());
    assert!(!woken.take());
    drop(locker);
    assert!(woken.take());
    driver.end();
}

#[test]
fn a_driver_does_not_wait_forever_for_its_last_answers() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    drop(locker.lock("job").wait().unwrap());
    // The last request may be sent again over another connection.
    let patience = locker.config().request_timeout() * 2 + locker.config().connect_timeout();
    drop(locker);
    assert!(!driver.with_port(|port| port.is_finished()));
    driver.pass(patience - Duration::from_nanos(1));
    assert!(!driver.with_port(|port| port.is_finished()));
    driver.pass(Duration::from_nanos(1));
    assert!(driver.with_port(|port| port.is_finished()));
    driver.end();
}
