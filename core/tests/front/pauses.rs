//! Pauses: a process that was stopped for longer than its lock is valid is never told that it holds
//! it.

use std::convert::Infallible;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock_core::LossCause;
use quorlock_core::front::{Guard, HandOverError, ReleaseError};

use super::driver::{Driver, ms};

fn poll<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// How many different calls [`ask`] makes, by number. None may report that the lock is held.
const QUESTIONS: usize = 7;

fn ask(question: usize, guard: &Guard, driver: &std::sync::Arc<Driver>) {
    match question {
        0 => assert!(!guard.is_valid()),
        1 => assert!(guard.check().is_err() && guard.watch().check().is_err()),
        2 => assert_eq!((guard.remaining(), guard.watch().remaining()), (Duration::ZERO, Duration::ZERO)),
        3 => assert_eq!(poll(guard.lost()), Poll::Ready(LossCause::Expired)),
        4 => {
            let extended = poll(guard.extend(ms(60_000)));
            assert!(matches!(extended, Poll::Ready(Err(_))), "{extended:?}");
        }
        5 => guard.stop_renewal(),
        _ => driver.settle(),
    }
}

#[test]
fn after_a_pause_no_method_reports_the_lock_as_held_in_any_order_of_calls() {
    // The pause ends after the guard's validity, while the keys live, or after the keys, too.
    for (pause, renewed) in [(ms(989), false), (ms(989), true), (ms(100_000), true)] {
        for order in 0..QUESTIONS.pow(3) {
            let (locker, driver) = Driver::start(3);
            driver.settle();
            let asked = locker.lock("job").ttl(ms(1_000)).heal().fenced();
            let guard = if renewed { asked.renew() } else { asked }.wait().unwrap();
            let seen = guard.watch();
            driver.pass(pause);
            for place in 0..3 {
                ask(order / QUESTIONS.pow(place) % QUESTIONS, &guard, &driver);
            }
            if order % 3 == 0 {
                assert!(matches!(guard.hand_over(), Err(HandOverError::Lost(LossCause::Expired))));
            } else if order % 3 == 1 {
                assert_eq!(guard.release().wait(), Err(ReleaseError::NotOurs(Some(LossCause::Expired))));
            } else {
                drop(guard);
            }
            assert!(!seen.is_valid());
            driver.end();
        }
    }
}

#[test]
fn a_lock_is_valid_until_the_instant_at_which_nothing_of_its_validity_remains() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let guard = locker.lock("job").ttl(ms(1_000)).wait().unwrap();
    let moment = Duration::from_nanos(1);
    driver.pass(guard.remaining() - moment);
    assert_eq!((guard.is_valid(), guard.check(), guard.remaining()), (true, Ok(()), moment));
    driver.pass(moment);
    let expired = Err(LossCause::Expired);
    assert_eq!((guard.is_valid(), guard.check(), guard.remaining()), (false, expired, Duration::ZERO));
    driver.end();
}

#[test]
fn a_panic_under_the_lock_releases_it() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let body = |_| -> Result<(), Infallible> { std::panic::resume_unwind(Box::new("the user's")) };
        let _ = locker.lock("job").run_wait(body);
    }));
    assert!(panicked.is_err());
    driver.settle();
    assert_eq!((0..3).map(|master| driver.keys(master)).sum::<usize>(), 0);

    let mut run = Box::pin(locker.lock("job").run(async |_| -> Result<(), Infallible> {
        std::panic::resume_unwind(Box::new("the user's"));
    }));
    let mut poll =
        || catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(&mut Context::from_waker(Waker::noop()))));
    assert!(matches!(poll(), Ok(Poll::Pending)));
    driver.settle();
    assert!(poll().is_err());
    drop(run);
    driver.settle();
    assert_eq!((0..3).map(|master| driver.keys(master)).sum::<usize>(), 0);
    driver.end();
}
