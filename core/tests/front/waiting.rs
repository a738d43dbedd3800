//! Threads that drive while they wait.

use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock_core::front::RunError;
use quorlock_core::{AcquireError, ConfigError, LossCause};

use super::driver::{Driver, ms};

#[test]
fn a_waiting_thread_acquires_extends_and_releases() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let guard = locker.lock("job").ttl(ms(500)).wait().unwrap();
    let remaining = guard.extend(ms(5_000)).wait().unwrap();
    assert!(remaining > ms(4_900) && remaining < ms(5_000), "{remaining:?}");
    guard.release().wait().unwrap();
    assert_eq!(driver.keys(0), 0);
    let guard = locker.try_lock("job").ttl(ms(500)).wait().unwrap();
    assert_eq!(guard.lost().wait(), LossCause::Expired);
    driver.end();
}

#[test]
fn a_scope_on_this_thread_is_renewed_and_gives_its_value() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let value = locker.lock("job").ttl(ms(1_000)).run_wait(|watch| {
        for _ in 0..50 {
            driver.pass(ms(100));
            driver.settle();
            assert_eq!(watch.check(), Ok(()));
        }
        Ok::<_, Infallible>(42)
    });
    assert_eq!(value, Ok(42));
    assert_eq!(driver.keys(0), 0);
    let failed = locker.lock("job").run_wait(|_| Err::<(), _>("the body's"));
    assert_eq!(failed, Err(RunError::Body("the body's")));
    assert_eq!(driver.keys(0), 0);
    let late = locker.lock("job").ttl(ms(1_000)).renew_for(Duration::ZERO).run_wait(|_| {
        driver.pass(ms(2_000));
        Ok::<_, Infallible>(())
    });
    assert_eq!(late, Err(RunError::Lost(LossCause::Expired)));
    driver.end();
}

#[test]
fn an_invalid_request_is_reported_without_the_error_of_acquiring_around_it() {
    let (locker, driver) = Driver::start(3);
    let mut is_called = false;
    let refused = locker.lock("").run_wait(|_| {
        is_called = true;
        Ok::<_, Infallible>(())
    });
    let error = refused.unwrap_err();
    assert_eq!(error, RunError::Invalid(ConfigError::EmptyResource));
    assert_eq!((error.kind(), is_called), ("invalid", false));
    assert_eq!(error.to_string(), AcquireError::Invalid(ConfigError::EmptyResource).to_string());
    let source = error.source().unwrap();
    assert!(source.is::<ConfigError>() && source.source().is_none());
    driver.end();
}

#[test]
fn a_grant_that_its_caller_takes_too_late_is_requested_again() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let mut seeking = pin!(locker.lock("job").ttl(ms(1_000)).timeout(None).into_future());
    let mut poll = || seeking.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    driver.settle();
    // The lock is granted by now, but the caller is polled only after the validity has ended.
    driver.pass(ms(2_000));
    assert!(poll().is_pending());
    driver.settle();
    driver.pass(ms(500));
    driver.settle();
    let Poll::Ready(Ok(guard)) = poll() else { panic!("not granted again") };
    assert!(guard.remaining() > ms(400), "{:?}", guard.remaining());
    driver.end();
}

#[test]
fn a_driver_is_told_how_long_to_sleep() {
    let (locker, driver) = Driver::start(3);
    assert_eq!(driver.with_port(|port| port.sleep()), Some(Duration::ZERO), "connections are asked for");
    driver.settle();
    let guard = locker.lock("job").ttl(ms(60_000)).wait().unwrap();
    let asleep = driver.with_port(|port| port.sleep()).unwrap();
    assert!(
        asleep > Duration::ZERO && asleep <= ms(1_000),
        "timers may stop while a lock is held: {asleep:?}"
    );
    guard.release().wait().unwrap();
    driver.pass(ms(60_000));
    driver.settle();
    assert_eq!(driver.with_port(|port| port.sleep()), None);
    driver.end();
}

#[test]
fn without_random_bytes_there_is_no_lock() {
    let (locker, driver) = Driver::with(1, false);
    let error = locker.lock("job").wait().unwrap_err();
    assert_eq!(error, AcquireError::NoEntropy);
    assert_eq!(error.to_string(), "could not get random bytes from the operating system");
    driver.end();
}
