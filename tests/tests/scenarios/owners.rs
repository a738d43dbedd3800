//! Owners of locks: a held lock is granted again without a request to the masters.

use std::convert::Infallible;
use std::future::IntoFuture;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::thread::scope;

use quorlock_core::Missing;
use quorlock_core::front::{HandOverError, Owner};
use quorlock_tests::Value;
use smol::future::poll_once;

use crate::kit::*;

/// How many requests of each kind every master has executed.
fn executed(masters: &[RedisServer]) -> Vec<(u64, u64)> {
    masters.iter().map(|master| (master.calls(Calls::Set), master.calls(Calls::Script))).collect()
}

#[track_caller]
fn cost(masters: &[RedisServer], before: &[(u64, u64)], expected: (u64, u64)) {
    let cost = || -> Vec<_> {
        let after = executed(masters);
        after.iter().zip(before).map(|(after, before)| (after.0 - before.0, after.1 - before.1)).collect()
    };
    eventually_equals(SOON, "requests and releases", vec![expected; masters.len()], cost);
}

/// Takes the lock nested `depth` times, and releases it in every way.
fn nest(owner: &Owner, depth: usize) {
    let mut guards = vec![owner.lock("job").wait().unwrap()];
    guards.extend((1..depth).map(|_| owner.lock("job").wait().unwrap()));
    let token = guards[0].token();
    assert!(guards.iter().all(|guard| guard.is_valid() && guard.token() == token));
    while let Some(guard) = guards.pop() {
        let others = guards.len();
        if others % 2 == 1 {
            assert_eq!(guard.release().wait(), Ok(Released::Kept { others }));
        } else if others > 0 {
            drop(guard);
        } else {
            assert_eq!(guard.release().wait(), Ok(Released::Freed));
        }
    }
}

pub(crate) fn ten_thousand_nested_locks_cost_each_master_one_request_and_one_release(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    all_ready(&locker);
    let start = executed(&masters);
    drop(locker.lock("other").wait().unwrap());
    // A master that is late may otherwise get these requests among those that are counted.
    cost(&masters, &start, (1, 1));
    let before = executed(&masters);

    nest(&locker.owner(), 10_000);

    no_key(&masters, "job");
    cost(&masters, &before, (1, 1));
    let acquisitions = locker.report().acquisitions;
    assert_eq!((acquisitions.granted, acquisitions.reentered), (2, 9_999));
}

pub(crate) fn the_wire_shows_one_request_and_one_release_of_nested_locks(transport: &Transport) {
    let masters: Vec<_> = (0..3).map(|_| RedisServer::start()).collect();
    let locker = open(transport, &masters);
    let mut monitors: Vec<_> = masters.iter().map(|master| master.client().expect("it answers")).collect();
    assert!(monitors.iter_mut().all(|monitor| monitor.command(&["MONITOR"]).is_ok()));

    nest(&locker.owner(), 10_000);
    no_key(&masters, "job");

    for (master, monitor) in masters.iter().zip(&mut monitors) {
        master.command(&["ECHO", "that was all"]);
        let lines = std::iter::from_fn(|| match monitor.receive().unwrap() {
            Value::Simple(line) => Some(line).filter(|line| !line.contains("that was all")),
            other => panic!("{other:?}"),
        });
        // The commands about the lock, without those inside scripts and those of this test.
        let of_the_lock = |line: &String| line.contains("\"job\"") && !line.contains(" lua]");
        let lines: Vec<_> = lines.filter(of_the_lock).filter(|line| !line.contains("\"EXISTS\"")).collect();
        assert_eq!(lines.len(), 2, "{lines:#?}");
        let releases = ["\"EVALSHA\"", "\"DELIFEQ\"", "\"DELEX\""];
        let is_release = releases.iter().any(|name| lines[1].contains(name));
        assert!(lines[0].contains("\"SET\" \"job\"") && is_release, "{lines:#?}");
    }
}

pub(crate) fn threads_of_one_owner_share_one_lock(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    let owner = locker.owner();
    occupy(&masters, "job");
    let inside = Barrier::new(16);
    let tokens = scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|number: u64| {
                let (owner, inside) = (owner.clone(), &inside);
                scope.spawn(move || {
                    let guard = owner.lock("job").timeout(SOON + millis(number)).wait().unwrap();
                    inside.wait();
                    assert!(guard.is_valid());
                    let token = guard.token();
                    if number % 2 == 0 {
                        guard.release().wait().unwrap();
                    }
                    token
                })
            })
            .collect();
        eventually(SOON, "all of them wait", || locker.report().waiting == 16);
        for master in &*masters {
            master.del("job");
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(tokens.iter().all(|token| *token == tokens[0]));
    no_key(&masters, "job");
    let report = locker.report();
    assert_eq!((report.acquisitions.granted, report.acquisitions.reentered), (1, 15));
    assert_eq!((report.held, report.waiting), (0, 0));
}

pub(crate) fn a_request_goes_on_for_the_others_when_its_caller_has_gone(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    all_ready(&locker);
    let owner = locker.owner();
    let before = executed(&masters);
    transport.block_on(async {
        for master in &*masters {
            master.stop();
        }
        let mut first = Box::pin(owner.lock("job").into_future());
        let mut second = Box::pin(owner.lock("job").into_future());
        assert!(poll_once(&mut first).await.is_none() && poll_once(&mut second).await.is_none());
        drop(first);
        for master in &*masters {
            master.cont();
        }
        let guard = second.await.unwrap();
        assert!(guard.is_valid() && guard.ties().is_none());
        assert_eq!(guard.release().await, Ok(Released::Freed));
    });
    no_key(&masters, "job");
    cost(&masters, &before, (1, 1));
}

pub(crate) fn an_inner_request_fails_with_the_loss_of_the_outer_lock(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    let owner = locker.owner();
    let outer = owner.lock("job").wait().unwrap();
    held_on(&masters, &outer, 3);
    for master in &*masters {
        master.del("job");
    }
    assert!(outer.extend(TTL).wait().is_err());

    let error = owner.lock("job").wait().unwrap_err();

    assert_eq!(error, AcquireError::Lost(LossCause::NotHeld));
    assert_eq!(masters.holding("job"), 0, "it does not acquire again");
    let twin = outer.share();
    let lost = Err(ReleaseError::NotOurs(Some(LossCause::NotHeld)));
    assert_eq!((outer.release().wait(), twin.release().wait()), (lost.clone(), lost));
    let anew = owner.lock("job").wait().unwrap();
    assert_eq!(anew.release().wait(), Ok(Released::Freed));
}

pub(crate) fn a_panic_in_the_innermost_of_nested_locks_releases_once(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    all_ready(&locker);
    let owner = locker.owner();
    let before = executed(&masters);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let outer = owner.lock("job").renew().wait().unwrap();
        held_on(&masters, &outer, 3);
        let _middle = outer.share();
        let body = |_| -> Result<(), Infallible> { std::panic::resume_unwind(Box::new("the user's")) };
        let _ = owner.lock("job").run_wait(body);
    }));
    assert!(panicked.is_err());
    no_key(&masters, "job");
    cost(&masters, &before, (1, 1));
}

pub(crate) fn a_scope_within_a_scope_is_one_lock(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    let owner = locker.owner();
    let value = transport.block_on(owner.lock("job").run(async |outer| {
        let value = owner.lock("job").run(async |_| Ok::<_, Infallible>(7)).await.unwrap();
        assert_eq!(outer.check(), Ok(()), "the inner scope has released nothing");
        Ok::<_, Infallible>(value)
    }));
    assert_eq!(value, Ok(7));
    no_key(&masters, "job");
}

pub(crate) fn an_inner_request_for_more_than_the_lock_has_says_what_is_missing(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    let owner = locker.owner();
    let outer = owner.lock("job").wait().unwrap();
    held_on(&masters, &outer, 3);
    let before = executed(&masters);
    for (request, expected) in
        [(owner.lock("job").fenced(), Missing::FencingToken), (owner.lock("job").renew(), Missing::Renewal)]
    {
        let error = request.wait().unwrap_err();
        assert!(matches!(error, AcquireError::HeldWithout { missing, .. } if missing == expected), "{error}");
    }
    cost(&masters, &before, (0, 0));
    let longer = owner.lock("job").ttl(2 * TTL).wait().unwrap();
    assert!(outer.remaining() > TTL && longer.remaining() > TTL);
    cost(&masters, &before, (0, 1));
    let Err(HandOverError::Shared { guard, others: 1 }) = outer.hand_over() else {
        panic!("another handle would go on with it")
    };
    drop(guard);
    assert_eq!(longer.release().wait(), Ok(Released::Freed));
}
