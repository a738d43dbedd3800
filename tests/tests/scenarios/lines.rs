//! Waiters for one lock in one process form a queue.

use std::cell::{Cell, RefCell};
use std::sync::Mutex;
use std::thread::scope;

use quorlock_tests::Random;
use smol::{LocalExecutor, Task};

use crate::kit::*;
use crate::waiting::told;

/// Waits until this many callers request or wait for a lock; a holder counts if others wait behind
/// it.
#[track_caller]
fn are_there(locker: &Locker, key: &str, expected: usize) {
    eventually_equals(SOON, "waiters in the queue", Some(expected), || match locker.try_lock(key).wait() {
        Err(AcquireError::HeldByAnother(ballot)) => Some(ballot.callers_ahead()),
        _ => None,
    });
}

pub(crate) fn waiters_of_one_process_are_served_in_order(transport: &Transport) {
    let masters = masters(3);
    let locker = transport.open(told(masters.urls()).build().unwrap());
    let guard = locker.lock("job").wait().unwrap();
    let served = Mutex::new(Vec::new());

    scope(|scope| {
        for number in 0..20 {
            let (locker, served) = (&locker, &served);
            scope.spawn(move || {
                let guard = locker.lock("job").wait().unwrap();
                served.lock().unwrap().push(number);
                guard.release().wait().unwrap();
            });
            are_there(locker, "job", number + 2);
        }
        guard.release().wait().unwrap();
    });

    assert!(served.into_inner().unwrap().into_iter().eq(0..20));
    no_key(&masters, "job");
}

pub(crate) fn try_lock_does_not_overtake_waiters(transport: &Transport) {
    let masters = masters(3);
    let (locker, other) = (transport.open(told(masters.urls()).build().unwrap()), open(transport, &masters));
    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    // While no caller waits, the masters are asked for the holder.
    let error = locker.try_lock("job").wait().unwrap_err();
    assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");

    scope(|scope| {
        let waiter = scope.spawn(|| locker.lock("job").wait());
        are_there(&locker, "job", 2);
        let error = locker.try_lock("job").wait().unwrap_err();
        assert!(error.to_string().contains("job"), "{error}");
        guard.release().wait().unwrap();
        let guard = waiter.join().unwrap().unwrap();
        held_on(&masters, &guard, 3);
        assert_eq!(guard.release().wait(), Ok(Released::Freed));
    });
    no_key(&masters, "job");

    // A caller in front is not overtaken either, even if another process holds the lock.
    let guard = other.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    scope(|scope| {
        let waiter = scope.spawn(|| locker.lock("job").wait());
        are_there(&locker, "job", 1);
        guard.release().wait().unwrap();
        drop(waiter.join().unwrap().unwrap());
    });
    no_key(&masters, "job");
}

pub(crate) fn try_acquire_does_not_wait_for_a_permit_or_overtake_waiters(transport: &Transport) {
    let masters = masters(3);
    let lockers = [open(transport, &masters), open(transport, &masters)];
    let [ours, theirs] = [0, 1].map(|locker: usize| lockers[locker].semaphore("gpu", 2).unwrap());
    let held = theirs.acquire().wait().unwrap();
    // A master that has not executed this acquisition yet assigns the same permit once more. The
    // others refuse that one, and another master assigns the free one.
    let last = ours.try_acquire().wait().unwrap();
    assert_ne!(held.index(), last.index());
    let refusal = || match ours.try_acquire().wait() {
        Err(AcquireError::HeldByAnother(ballot)) => ballot.callers_ahead(),
        other => panic!("{other:?}"),
    };
    // While no caller waits, the masters are asked, and say that others hold all permits.
    assert_eq!(refusal(), 0);

    scope(|scope| {
        let waiter = scope.spawn(|| ours.acquire().timeout(None).wait());
        // The holder of this process, and the waiter.
        eventually_equals(SOON, "callers ahead", 2, refusal);
        held.release().wait().unwrap();
        drop(waiter.join().unwrap().unwrap());
    });
    drop(last);
    let seats = [0, 1].map(|index| format!("quorlock:seat:{index}/{{gpu}}"));
    seats.iter().for_each(|seat| no_key(&masters, seat));
}

const WAITERS: usize = 1_000;
const LEAVE_WHILE_IT_IS_HELD: usize = 400;
const LEAVE: usize = 500;

pub(crate) fn a_thousand_waiters_keep_their_order_when_half_of_them_leave(transport: &Transport) {
    let masters = masters(3);
    let locker = transport.open(told(masters.urls()).build().unwrap());
    let (asked, served) = (Cell::new(0), RefCell::new(Vec::new()));
    let executor = LocalExecutor::new();
    let waiter = || {
        executor.spawn(async {
            // The request begins with its first poll. On one thread no other task runs between this
            // line and that poll.
            let number = asked.replace(asked.get() + 1);
            let guard = locker.lock("job").await.unwrap();
            served.borrow_mut().push(number);
            guard.release().await.unwrap();
        })
    };
    let mut left = Vec::new();

    let story = async {
        let guard = locker.lock("job").await.unwrap();
        let mut waiting: Vec<Option<Task<()>>> = (0..WAITERS).map(|_| Some(waiter())).collect();
        while asked.get() < WAITERS {
            smol::future::yield_now().await;
        }
        let mut random = Random::new(7);
        let mut guard = Some(guard);
        while left.len() < LEAVE {
            if left.len() == LEAVE_WHILE_IT_IS_HELD {
                drop(guard.take());
            }
            // Sometimes the first waiter is cancelled. If the lock is free, it is in the middle of
            // its round.
            let first = served.borrow().last().map_or(0, |number| number + 1);
            let first = (first..WAITERS).find(|number| waiting[*number].is_some()).unwrap();
            let number = if random.one_in(4) { first } else { first + random.below(WAITERS - first) };
            let Some(task) = waiting[number].take() else { continue };
            task.cancel().await;
            left.push(number);
            for _ in 0..random.below(3) {
                smol::future::yield_now().await;
            }
        }
        for task in waiting.into_iter().flatten() {
            task.await;
        }
    };
    transport.block_on(executor.run(story));

    left.sort_unstable();
    let stayed: Vec<_> = (0..WAITERS).filter(|number| left.binary_search(number).is_err()).collect();
    assert_eq!(*served.borrow(), stayed);
    no_key(&masters, "job");
}
