//! Threads that wait serve the sockets for each other, even if their own futures are busy or panic.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use quorlock_blocking::{Locker, open};
use quorlock_embedded::Masters;

const TTL: Duration = Duration::from_millis(900);

/// Keeps a future busy for several TTLs.
const BUSY: Duration = Duration::from_millis(2_700);

/// Long enough for the other threads to have become followers of the first one.
const SETTLED: Duration = Duration::from_millis(100);

fn start() -> (Masters, Locker) {
    let masters = Masters::start(3).unwrap();
    let locker = open(masters.config().unwrap()).unwrap();
    (masters, locker)
}

#[test]
fn locks_are_renewed_while_a_woken_thread_is_busy_in_its_future() {
    let (_masters, locker) = start();
    let held = locker.lock("held").ttl(BUSY * 10).wait().unwrap();
    scope(|scope| {
        let leader = scope.spawn(|| locker.lock("held").timeout(SETTLED * 4).wait());
        sleep(SETTLED);
        let check = locker.block_on(async {
            let guard = locker.lock("mine").ttl(TTL).renew().await.unwrap();
            sleep(BUSY);
            guard.check()
        });
        assert_eq!(check, Some(Ok(())));
        leader.join().unwrap().unwrap_err();
    });
    drop(held);
}

#[test]
fn waiting_threads_are_served_while_a_woken_thread_is_busy_in_its_future() {
    let (_masters, locker) = start();
    let held = locker.lock("held").ttl(BUSY * 10).wait().unwrap();
    scope(|scope| {
        let locker = &locker;
        let waiter = |timeout: Duration| {
            scope.spawn(move || {
                let since = Instant::now();
                locker.lock("held").timeout(timeout).wait().unwrap_err();
                since.elapsed()
            })
        };
        // It leads, and the busy thread is the first follower.
        waiter(SETTLED * 4);
        sleep(SETTLED);
        let busy = scope.spawn(|| {
            locker.block_on(async {
                let _guard = locker.lock("mine").await.unwrap();
                sleep(BUSY);
            });
        });
        sleep(SETTLED);
        let waited = waiter(SETTLED * 6).join().unwrap();
        assert!(waited < BUSY / 2, "a wait of {:?} took {waited:?}", SETTLED * 6);
        busy.join().unwrap();
    });
    drop(held);
}

#[test]
fn a_future_that_waits_for_another_thread_is_no_deadlock() {
    let (_masters, locker) = start();
    let held = locker.lock("held").ttl(BUSY * 10).wait().unwrap();
    let (tell, told) = mpsc::channel();
    scope(|scope| {
        scope.spawn(|| locker.lock("held").timeout(SETTLED * 4).wait().unwrap_err());
        sleep(SETTLED);
        let locker = &locker;
        let busy = scope.spawn(move || {
            locker.block_on(async {
                let _guard = locker.lock("mine").await.unwrap();
                told.recv_timeout(BUSY)
            })
        });
        sleep(SETTLED);
        locker.lock("held").timeout(SETTLED * 6).wait().unwrap_err();
        tell.send(()).unwrap();
        assert_eq!(busy.join().unwrap(), Some(Ok(())));
    });
    drop(held);
}

#[test]
fn locks_are_renewed_after_a_future_has_panicked() {
    let (_masters, locker) = start();
    let held = locker.lock("held").ttl(BUSY * 10).wait().unwrap();
    scope(|scope| {
        let leader = scope.spawn(|| locker.lock("held").timeout(SETTLED * 4).wait());
        sleep(SETTLED);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            locker.block_on(async {
                let _guard = locker.lock("mine").await.unwrap();
                panic!("the future's own");
            })
        }));
        assert!(panicked.is_err());
        leader.join().unwrap().unwrap_err();
    });
    let guard = locker.lock("renewed").ttl(TTL).renew().wait().unwrap();
    sleep(BUSY);
    assert_eq!(guard.check(), Ok(()));
    drop(held);
}
