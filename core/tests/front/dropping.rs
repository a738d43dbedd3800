//! Futures that are dropped before they are ready.

use std::future::{Future, IntoFuture};
use std::sync::Arc;
use std::task::{Context, Waker};

use quorlock_core::Config;

use super::driver::{Driver, ms};
use super::task::{Task, Woken};

/// Polls a future once, drops it, and returns whether its waker is gone.
fn leaves_no_waker(future: impl Future) -> bool {
    let woken = Arc::new(Woken::default());
    {
        let waker = Waker::from(Arc::clone(&woken));
        let mut future = Box::pin(future);
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    Arc::strong_count(&woken) == 1
}

#[test]
fn a_dropped_future_leaves_no_waker_behind() {
    let config = Config::builder(["redis://a", "redis://b", "redis://c"]).restart_guard(ms(30_000));
    let (locker, driver) = Driver::over(config.build().unwrap(), true);
    driver.settle();
    locker.bootstrap().wait().unwrap();
    let (owner, semaphore) = (locker.owner(), locker.semaphore("gpu", 4).unwrap());
    let [extended, watched, released] = ["x", "y", "z"].map(|name| locker.lock(name).wait().unwrap());
    let proof = locker.lock("resumed").wait().unwrap().hand_over().unwrap();
    let _first = Task::start(owner.lock("b"));
    for (future, leaves_none) in [
        ("lock", leaves_no_waker(locker.lock("a").into_future())),
        ("an owner's lock", leaves_no_waker(owner.lock("owned").into_future())),
        ("an owner's second request for a lock", leaves_no_waker(owner.lock("b").into_future())),
        ("permit", leaves_no_waker(semaphore.acquire().into_future())),
        ("resume", leaves_no_waker(locker.resume("resumed", proof).into_future())),
        ("extend", leaves_no_waker(extended.extend(ms(20_000)))),
        ("lost", leaves_no_waker(watched.lost())),
        ("lost of a watch", leaves_no_waker(watched.watch().lost())),
        ("release", leaves_no_waker(released.release())),
        ("release by token", leaves_no_waker(locker.release("c", proof.token))),
        ("bootstrap", leaves_no_waker(locker.bootstrap())),
        ("inspect", leaves_no_waker(locker.inspect("a"))),
        ("inspect permits", leaves_no_waker(semaphore.inspect())),
        ("force_release", leaves_no_waker(locker.force_release("a"))),
        ("force_release of a permit", leaves_no_waker(semaphore.force_release(0))),
    ] {
        assert!(leaves_none, "{future}");
    }
    driver.end();
}
