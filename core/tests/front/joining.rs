//! Several requests of one owner for the same resource at once.

use std::future::{Future, IntoFuture};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use quorlock_core::front::{Locker, Owner, Released};
use quorlock_core::{AcquireError, LossCause, Missing};

use super::driver::{Driver, ms};
use super::task::Task;

fn start() -> (Locker, Arc<Driver>, Owner) {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let owner = locker.owner();
    (locker, driver, owner)
}

/// The time for a lock to pass to the next caller of this process.
fn pass_on(driver: &Arc<Driver>) {
    for _ in 0..20 {
        driver.settle();
        driver.pass(ms(1));
    }
    driver.settle();
}

#[test]
fn one_request_asks_the_masters_and_the_others_join_its_grant() {
    for order in [[0, 1, 2], [1, 2, 0], [2, 0, 1]] {
        let (locker, driver, owner) = start();
        let writes = driver.writes(0);
        let mut tasks: Vec<_> = (0..3).map(|_| Task::start(owner.lock("job"))).collect();
        driver.settle();
        let guards: Vec<_> = order.iter().map(|place| tasks[*place].guard()).collect();
        assert!(guards.iter().all(|guard| guard.is_valid() && guard.token() == guards[0].token()));
        assert_eq!((guards[0].ties().other_handles, driver.writes(0)), (2, writes + 1));
        let report = locker.report();
        assert_eq!((report.acquisitions.granted, report.acquisitions.reentered), (1, 2));
        assert_eq!((report.held, report.waiting), (1, 0));
        drop(guards);
        driver.settle();
        assert_eq!((driver.writes(0), driver.keys(0)), (writes + 2, 0));
        driver.end();
    }
}

#[test]
fn a_grant_is_shared_although_its_caller_is_not_polled() {
    let (locker, driver, owner) = start();
    let mut first = Task::start(owner.lock("job"));
    let mut second = Task::start(owner.lock("job"));
    driver.settle();
    let guard = second.guard();
    assert_eq!(guard.ties().other_handles, 1, "the handle of the first caller is kept for it");
    assert_eq!(guard.release().wait(), Ok(Released::Kept { others: 1 }));
    let first = first.guard();
    assert!(first.is_valid());
    assert_eq!(first.release().wait(), Ok(Released::Freed));
    let acquisitions = locker.report().acquisitions;
    assert_eq!((acquisitions.granted, acquisitions.reentered, acquisitions.abandoned), (1, 1, 0));
    driver.end();
}

#[test]
fn a_handle_kept_for_a_caller_is_dropped_with_its_future() {
    let (locker, driver, owner) = start();
    let first = Task::start(owner.lock("job"));
    let mut second = Task::start(owner.lock("job"));
    driver.settle();
    drop(second.guard());
    assert_eq!(driver.keys(0), 1);
    drop(first);
    driver.settle();
    assert_eq!((driver.keys(0), locker.report().held), (0, 0));
    driver.end();
}

#[test]
fn dropping_the_first_callers_future_does_not_end_its_request_for_the_other() {
    for is_granted in [false, true] {
        let (locker, driver, owner) = start();
        let writes = driver.writes(0);
        let first = Task::start(owner.lock("job"));
        let mut second = Task::start(owner.lock("job"));
        if is_granted {
            driver.settle();
        }
        drop(first);
        driver.settle();
        let guard = second.guard();
        assert_eq!(driver.writes(0), writes + 1, "it was asked for once");
        assert!(guard.ties().is_none());
        let report = locker.report();
        assert_eq!((report.acquisitions.granted, report.acquisitions.abandoned), (1, 1));
        assert_eq!((report.acquisitions.reentered, report.waiting, report.held), (0, 0, 1));
        drop(guard);
        driver.settle();
        assert_eq!(driver.keys(0), 0);
        driver.end();
    }
}

#[test]
fn no_request_or_lock_remains_when_every_future_is_dropped() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let (locker, driver, owner) = start();
        let mut tasks: Vec<_> = (0..3).map(|_| Some(Task::start(owner.lock("job")))).collect();
        for place in order {
            tasks[place] = None;
        }
        driver.settle();
        let report = locker.report();
        assert_eq!((driver.keys(0), report.held, report.waiting), (0, 0, 0));
        assert_eq!(report.acquisitions.abandoned, 3);
        drop(locker.try_lock("job").wait().unwrap());
        driver.end();
    }
}

#[test]
fn a_request_for_more_does_not_continue_a_request_for_less() {
    let (_locker, driver, owner) = start();
    let first = Task::start(owner.lock("job"));
    let mut second = Task::start(owner.lock("job").fenced());
    drop(first);
    driver.settle();
    assert!(second.guard().fencing_token().is_some());

    // If the first request goes on, the second one ends with the error of any inner request.
    let mut first = Task::start(owner.lock("other"));
    let mut second = Task::start(owner.lock("other").fenced());
    driver.settle();
    let guard = first.guard();
    let Poll::Ready(Err(error)) = second.poll_if_woken() else { panic!("it was not told") };
    assert!(matches!(error, AcquireError::HeldWithout { missing: Missing::FencingToken, .. }), "{error}");
    assert!(guard.ties().is_none());
    driver.end();
}

#[test]
fn waiting_requests_join_the_next_request_when_the_first_one_is_dropped() {
    let (_locker, driver, owner) = start();
    let first = Task::start(owner.lock("job"));
    let second = Task::start(owner.lock("job").fenced());
    let mut third = Task::start(owner.lock("job").fenced());
    drop(first);
    assert!(third.poll_if_woken().is_pending());
    driver.settle();
    // The grant is that of the second request, which is not polled.
    assert_eq!(third.guard().ties().other_handles, 1);
    drop(second);
    driver.settle();
    assert_eq!(driver.keys(0), 1, "the counter is left");
    driver.end();
}

#[test]
fn each_request_has_its_own_limits() {
    let (locker, driver, owner) = start();
    let rival = locker.lock("job").ttl(ms(60_000)).wait().unwrap();
    let mut long = Task::start(owner.lock("job").timeout(None));
    let mut short = Task::start(owner.lock("job").timeout(ms(1_000)));
    let error = owner.try_lock("job").wait().unwrap_err();
    assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
    driver.pass(ms(1_000));
    driver.settle();
    let Poll::Ready(Err(error)) = short.poll_if_woken() else { panic!("its time is up") };
    assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
    assert!(long.poll_if_woken().is_pending());

    // The end of the first request does not end the others either.
    let mut longer = Task::start(owner.lock("job").timeout(None));
    let mut brief = Task::start(owner.lock("job").timeout(ms(500)));
    drop(long);
    driver.pass(ms(500));
    driver.settle();
    assert!(matches!(brief.poll_if_woken(), Poll::Ready(Err(AcquireError::HeldByAnother(_)))));
    drop(rival);
    pass_on(&driver);
    assert!(longer.guard().is_valid());
    driver.end();
}

#[test]
fn the_next_request_continues_when_the_first_one_times_out() {
    let (locker, driver, owner) = start();
    let rival = locker.lock("job").ttl(ms(60_000)).wait().unwrap();
    let mut first = Task::start(owner.lock("job").timeout(ms(1_000)));
    let mut second = Task::start(owner.lock("job").timeout(ms(5_000)));
    driver.pass(ms(1_000));
    driver.settle();
    // The second request is polled before the first one has seen its error.
    assert!(second.poll().is_pending());
    assert!(matches!(first.poll_if_woken(), Poll::Ready(Err(AcquireError::HeldByAnother(_)))));
    drop(rival);
    pass_on(&driver);
    assert!(second.guard().is_valid());
    driver.end();
}

#[test]
fn a_request_that_was_refused_and_not_polled_keeps_no_other_from_joining_the_next_one() {
    let (locker, driver, owner) = start();
    let rival = locker.lock("job").ttl(ms(60_000)).wait().unwrap();
    let mut first = Task::start(owner.lock("job").timeout(ms(1_000)));
    let mut second = Task::start(owner.lock("job").timeout(None));
    let mut third = Task::start(owner.lock("job").timeout(None));
    driver.pass(ms(1_000));
    driver.settle();
    assert!(second.poll().is_pending() && third.poll_if_woken().is_pending());
    assert!(third.poll().is_pending());
    drop(rival);
    pass_on(&driver);
    // The grant is that of the second request, which is not polled.
    assert_eq!(third.guard().ties().other_handles, 1);
    assert!(second.guard().is_valid());
    assert!(matches!(first.error(), AcquireError::HeldByAnother(_)));
    driver.end();
}

#[test]
fn a_request_that_is_kept_for_several_callers_keeps_its_place_when_one_of_them_ends() {
    let (locker, driver, owner) = start();
    let rival = locker.lock("job").ttl(ms(60_000)).wait().unwrap();
    let first = Task::start(owner.lock("job").timeout(None));
    let mut brief = Task::start(owner.lock("job").timeout(ms(500)));
    let mut other = Task::start(locker.lock("job").timeout(None));
    let mut last = Task::start(owner.lock("job").timeout(None));
    drop(first);
    driver.pass(ms(500));
    driver.settle();
    assert!(matches!(brief.error(), AcquireError::HeldByAnother(_)));
    drop(rival);
    pass_on(&driver);
    assert!(other.poll_if_woken().is_pending(), "it came behind the first request");
    drop(last.guard());
    pass_on(&driver);
    assert!(other.guard().is_valid());
    driver.settle();
    assert_eq!(locker.report().waiting, 0);
    driver.end();
}

#[test]
fn a_grant_that_expired_before_it_was_taken_is_requested_again_for_an_owner() {
    let (_locker, driver, owner) = start();
    let mut first = Task::start(owner.lock("job").ttl(ms(1_000)).timeout(None));
    let mut second = Task::start(owner.lock("job").ttl(ms(1_000)).timeout(None));
    driver.settle();
    driver.pass(ms(2_000));
    let before = driver.writes(0);
    assert!(second.poll().is_pending());
    assert!(driver.writes(0) > before, "the masters are asked before the driver's next turn");
    driver.settle();
    driver.pass(ms(500));
    driver.settle();
    let guard = second.guard();
    assert!(guard.is_valid() && first.guard().is_valid());
    driver.end();
}

#[test]
fn a_waiting_request_fails_with_a_loss_that_came_before_it_was_polled() {
    let (_locker, driver, owner) = start();
    let mut first = Task::start(owner.lock("job").ttl(ms(1_000)));
    let mut second = Task::start(owner.lock("job").ttl(ms(1_000)));
    driver.settle();
    let guard = first.guard();
    driver.pass(ms(2_000));
    driver.settle();
    let Poll::Ready(Err(error)) = second.poll_if_woken() else { panic!("it still waits") };
    assert_eq!(error, AcquireError::Lost(LossCause::Expired));
    assert!(guard.ties().is_none());
    driver.end();
}

#[test]
fn a_request_that_was_not_polled_while_the_lock_was_held_gets_its_own_lock() {
    let (_locker, driver, owner) = start();
    let mut first = Task::start(owner.lock("job"));
    let mut second = Task::start(owner.lock("job"));
    driver.settle();
    let guard = first.guard();
    let token = guard.token();
    drop(guard);
    // The first poll finds that the lock was released, and waits for its own request.
    driver.settle();
    let guard = second.guard();
    assert!(guard.is_valid() && guard.token() != token && guard.ties().is_none());
    driver.end();
}

/// A waker whose task requests the lock at once, as on an executor that runs tasks in place.
struct Requests(Owner, AtomicUsize);

impl Wake for Requests {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        let mut again = Box::pin(self.0.try_lock("job").into_future());
        let _ = again.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
}

#[test]
fn wakers_may_use_the_owner() {
    let (_locker, driver, owner) = start();
    let mut tasks: Vec<_> = (0..2).map(|_| Task::start(owner.lock("job"))).collect();
    let shared = Arc::new(Requests(owner.clone(), AtomicUsize::new(0)));
    let mut third = Box::pin(owner.lock("job").into_future());
    let waker = Waker::from(Arc::clone(&shared));
    assert!(third.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    driver.settle();
    let guards: Vec<_> = tasks.iter_mut().map(Task::guard).collect();
    let Poll::Ready(Ok(guard)) = third.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("still waiting")
    };
    assert!(shared.1.load(Ordering::SeqCst) > 0 && guard.ties().other_handles == 2);
    drop((guards, guard));
    driver.settle();
    assert_eq!(driver.keys(0), 0);
    driver.end();
}
