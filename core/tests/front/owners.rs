//! Owners of locks: a held lock is granted again.

use std::convert::Infallible;
use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use quorlock_core::front::{Guard, Released};
use quorlock_core::{AcquireError, LossCause, Missing};

use super::driver::{Driver, Manner, ms};

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn an_owner_gets_a_held_lock_again_at_once_without_a_request() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let owner = locker.owner();
    let outer = owner.lock("job").fenced().wait().unwrap();
    driver.settle();
    let writes = driver.writes(0);

    let inner: Vec<Guard> = (0..1_000).map(|_| owner.clone().lock("job").wait().unwrap()).collect();

    for guard in &inner {
        assert_eq!((guard.token(), guard.fencing_token()), (outer.token(), outer.fencing_token()));
        assert_eq!(guard.remaining(), outer.remaining());
    }
    assert_eq!(outer.ties().other_handles, 1_000);
    assert_eq!(outer.release().wait(), Ok(Released::Kept { others: 1_000 }));
    assert_eq!(driver.writes(0), writes);
    let report = locker.report();
    assert_eq!((report.acquisitions.granted, report.acquisitions.reentered, report.held), (1, 1_000, 1));
    drop(inner);
    driver.settle();
    assert_eq!((locker.report().held, locker.report().releases.dropped), (0, 1));
    driver.end();
}

#[test]
fn owners_exclude_each_other_and_the_locker() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let (one, other) = (locker.owner(), locker.owner());
    let held = one.lock("job").wait().unwrap();
    for error in [other.try_lock("job").wait().unwrap_err(), locker.try_lock("job").wait().unwrap_err()] {
        assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
    }
    drop((one.try_lock("job").wait().unwrap(), one.lock("another").wait().unwrap()));
    assert_eq!(held.release().wait(), Ok(Released::Freed));
    drop(other.try_lock("job").wait().unwrap());
    driver.end();
}

#[test]
fn an_inner_request_for_what_the_outer_lock_lacks_is_an_error_that_names_it() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let owner = locker.owner();
    let plain = owner.lock("job").wait().unwrap();
    let renewed = owner.lock("renewed").fenced().heal().renew_for(ms(1_000)).wait().unwrap();
    driver.settle();
    let writes = driver.writes(0);
    let refusals = [
        (owner.lock("job").fenced(), Missing::FencingToken, "without a fencing token"),
        (owner.lock("job").renew(), Missing::Renewal, "without renewal"),
        (owner.lock("job").heal(), Missing::Healing, "without healing"),
        (
            owner.lock("renewed").renew_for(ms(1_001)),
            Missing::LongerRenewal,
            "with a renewal that ends sooner",
        ),
    ];
    for (request, missing, said) in refusals {
        let error = request.wait().unwrap_err();
        let AcquireError::HeldWithout { missing: told, resource } = &error else { panic!("{error}") };
        assert_eq!((*told, error.kind(), error.ballot()), (missing, "held_without", None));
        let said = format!(
            "{resource} not acquired again: its owner holds it {said}; the outermost request must ask for what the inner one needs"
        );
        assert_eq!(error.to_string(), said);
    }
    assert_eq!(locker.report().acquisitions.refused.held_without, 4);
    let run = owner.lock("job").run_wait(|_| Ok::<_, Infallible>(()));
    assert_eq!(run.unwrap_err().kind(), "not_acquired", "it asks for renewal");

    // A request may ask for what the lock has, and also gets what it did not ask for.
    drop(owner.lock("renewed").fenced().heal().renew_for(ms(1_000)).wait().unwrap());
    drop((owner.lock("renewed").renew().wait().unwrap(), owner.lock("renewed").wait().unwrap()));
    assert_eq!(owner.lock("renewed").run_wait(|_| Ok::<_, Infallible>(7)), Ok(7));
    assert_eq!(driver.writes(0), writes);
    assert!(plain.ties().is_none() && renewed.ties().is_none(), "refused requests keep no handle");

    renewed.stop_renewal();
    let error = owner.lock("renewed").renew().wait().unwrap_err();
    assert!(matches!(error, AcquireError::HeldWithout { missing: Missing::Renewal, .. }), "{error}");
    driver.end();
}

#[test]
fn a_longer_ttl_of_an_inner_request_extends_the_lock_once() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let owner = locker.owner();
    let outer = owner.lock("job").ttl(ms(1_000)).wait().unwrap();
    driver.settle();
    let writes = driver.writes(0);
    // Neither the configuration's TTL, which was not asked for, nor an equal one extends the lock.
    drop((owner.lock("job").wait().unwrap(), owner.lock("job").ttl(ms(1_000)).wait().unwrap()));
    assert_eq!(driver.writes(0), writes);

    let inner = owner.lock("job").ttl(ms(5_000)).wait().unwrap();
    assert!(outer.remaining() > ms(4_900) && inner.remaining() == outer.remaining());
    assert_eq!(driver.writes(0), writes + 1);
    let again = owner.lock("job").ttl(ms(5_000)).wait().unwrap();
    assert_eq!((driver.writes(0), again.ties().other_handles), (writes + 1, 2));

    let error = owner.lock("job").ttl(ms(0)).wait().unwrap_err();
    assert!(matches!(error, AcquireError::Invalid(_)), "{error}");
    for master in [0, 1] {
        driver.takes(master, Manner::Unreachable);
        driver.lose(master);
    }
    driver.settle();
    let error = owner.lock("job").ttl(ms(9_000)).wait().unwrap_err();
    assert!(matches!(error, AcquireError::NotExtended(_)) && error.ballot().is_some(), "{error}");
    assert!(outer.is_valid() && outer.ties().other_handles == 2);
    assert_eq!(locker.report().acquisitions.refused.not_extended, 1);
    driver.end();
}

#[test]
fn an_extension_that_its_caller_gives_up_keeps_no_handle() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let owner = locker.owner();
    let outer = owner.lock("job").ttl(ms(1_000)).wait().unwrap();
    {
        let mut inner = pin!(owner.lock("job").ttl(ms(5_000)).into_future());
        assert!(poll(inner.as_mut()).is_pending());
        assert_eq!(outer.ties().other_handles, 1);
    }
    assert!(outer.ties().is_none());
    driver.settle();
    assert!(outer.remaining() > ms(4_900), "it was still made");
    assert_eq!(locker.report().acquisitions.abandoned, 1);
    driver.end();
}

#[test]
fn an_inner_request_fails_with_the_loss_of_the_outer_lock_until_that_is_dropped() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let owner = locker.owner();
    let outer = owner.lock("job").ttl(ms(1_000)).wait().unwrap();
    let twin = outer.share();
    driver.pass(ms(2_000));
    driver.settle();
    let writes = driver.writes(0);
    for request in [owner.lock("job"), owner.try_lock("job"), owner.lock("job").fenced()] {
        let error = request.wait().unwrap_err();
        assert_eq!(error, AcquireError::Lost(LossCause::Expired));
        let said = "not acquired again by its owner, whose lock was lost: the lock's validity ran out";
        assert_eq!((error.to_string().as_str(), error.kind()), (said, "lost"));
    }
    assert_eq!(driver.writes(0), writes, "it does not acquire again");
    drop(outer);
    assert_eq!(owner.lock("job").wait().unwrap_err(), AcquireError::Lost(LossCause::Expired));
    drop(twin);
    assert_eq!(owner.lock("job").wait().unwrap().release().wait(), Ok(Released::Freed));
    assert_eq!(locker.report().acquisitions.refused.lost, 4);
    driver.end();
}

#[test]
fn a_lock_that_masters_have_lost_is_not_granted_again() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let owner = locker.owner();
    let outer = owner.lock("job").wait().unwrap();
    for master in 0..3 {
        driver.with_master(master, |master| master.remove(0, b"job", ms(0)));
    }
    assert!(outer.extend(ms(20_000)).wait().is_err());
    assert_eq!(owner.lock("job").wait().unwrap_err(), AcquireError::Lost(LossCause::NotHeld));
    driver.end();
}

#[test]
fn an_owner_forgets_locks_that_have_ended() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let owner = locker.owner();
    let kept = owner.lock("kept").wait().unwrap();
    for name in 0..1_000 {
        drop(owner.lock(format!("job {name}")).wait().unwrap());
    }
    driver.settle();
    assert_eq!(locker.report().held, 1);
    assert_eq!(owner.lock("kept").wait().unwrap().token(), kept.token());
    driver.end();
}

#[test]
fn the_end_of_the_driver_ends_what_an_owner_holds_and_requests() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let owner = locker.owner();
    let held = owner.lock("held").wait().unwrap();
    let mut first = pin!(owner.lock("job").into_future());
    let mut second = pin!(owner.lock("job").into_future());
    assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
    driver.end();
    for waiting in [first, second] {
        let Poll::Ready(Err(error)) = poll(waiting) else { panic!("still waiting") };
        assert_eq!(error, AcquireError::DriverEnded);
    }
    assert_eq!(owner.lock("held").wait().unwrap_err(), AcquireError::DriverEnded);
    assert_eq!(owner.lock("other").wait().unwrap_err(), AcquireError::DriverEnded);
    let report = locker.report();
    assert_eq!((report.acquisitions.refused.driver_ended, report.waiting), (4, 0));
    drop(held);
}
