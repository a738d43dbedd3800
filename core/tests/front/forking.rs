//! A forked child with its copies: its calls do not affect the parent, and do not hang.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use quorlock_core::front::{HandOverError, ReleaseError};
use quorlock_core::{AcquireError, BootstrapError, ExtendError, LossCause};

use super::driver::{Driver, ms};

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn in_a_forked_child_every_method_fails_at_once_and_writes_nothing() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let guard = locker.lock("job").wait().unwrap();
    let released = locker.lock("released").wait().unwrap();
    let handed = locker.lock("handed").wait().unwrap();
    let mut seeking = pin!(locker.lock("job").timeout(None).into_future());
    let mut lost = pin!(guard.lost());
    let mut extending = Box::pin(guard.extend(ms(20_000)));
    assert!(poll(seeking.as_mut()).is_pending() && poll(lost.as_mut()).is_pending());
    assert!(poll(extending.as_mut()).is_pending());
    driver.settle();
    let (writes, keys) = (driver.writes(0), driver.keys(0));

    driver.fork();

    assert_eq!(guard.check(), Err(LossCause::Forked));
    assert!(!guard.is_valid());
    assert_eq!(guard.remaining(), ms(0));
    assert_eq!(poll(lost), Poll::Ready(LossCause::Forked));
    assert_eq!(poll(extending.as_mut()), Poll::Ready(Err(ExtendError::Lost(LossCause::Forked))));
    drop(extending);
    let Poll::Ready(Err(error)) = poll(seeking) else { panic!("it waits for the parent's answer") };
    assert_eq!(error, AcquireError::Forked);
    assert_eq!(locker.lock("other").wait().unwrap_err(), AcquireError::Forked);
    assert_eq!(locker.bootstrap().wait().unwrap_err(), BootstrapError::Forked);
    let token = guard.resumption().token;
    assert_eq!(locker.release("job", token).wait().unwrap_err(), ReleaseError::Forked);
    assert_eq!(locker.block_on(std::future::pending::<()>()), None);
    assert!(matches!(handed.hand_over(), Err(HandOverError::Lost(LossCause::Forked))));
    let error = released.release().wait().unwrap_err();
    assert_eq!(error, ReleaseError::Forked);
    assert_eq!(error.to_string(), "the lock is held by the process that this one was forked from");
    guard.stop_renewal();
    drop((guard, locker));
    driver.end();
    assert_eq!((driver.writes(0), driver.keys(0)), (writes, keys));
}
