//! The reports of a locker.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use quorlock_core::front::{Latency, Report};
use quorlock_core::{Config, MasterState, Resource};

use super::driver::{Driver, ms};

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn counted(counts: impl Iterator<Item = (&'static str, u64)>) -> Vec<(&'static str, u64)> {
    counts.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn every_acquisition_is_counted_once_by_its_outcome() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let report = locker.report();
    assert_eq!((report.acquisitions, report.held, report.waiting), Default::default());

    let guard = locker.lock("job").wait().unwrap();
    assert!(locker.try_lock("job").wait().is_err(), "the masters are asked, because no caller waits");
    assert!(locker.lock("").wait().is_err());
    assert!(locker.lock("other").ttl(ms(0)).wait().is_err());
    let waiting = locker.lock("job").into_future();
    let mut waiting = pin!(waiting);
    assert!(poll(waiting.as_mut()).is_pending());
    assert!(locker.try_lock("job").wait().is_err(), "another caller waits");
    let report = locker.report();
    assert_eq!((report.held, report.waiting), (1, 1));
    {
        let mut given_up = pin!(locker.lock("job").into_future());
        assert!(poll(given_up.as_mut()).is_pending());
        assert_eq!(locker.report().waiting, 2);
    }
    guard.release().wait().unwrap();
    driver.settle();
    let Poll::Ready(Ok(second)) = poll(waiting) else { panic!("not handed over") };
    let mut unsettled = Box::pin(locker.lock("last").into_future());
    assert!(poll(unsettled.as_mut()).is_pending());
    driver.end();
    assert!(poll(unsettled.as_mut()).is_ready());
    drop(unsettled);
    assert!(locker.try_lock("job").wait().is_err());
    drop(second);

    let Report { acquisitions, releases, waiting, .. } = locker.report();
    assert_eq!((acquisitions.granted, acquisitions.abandoned, waiting), (2, 1, 0));
    let refused = [("held_by_another", 2), ("invalid", 2), ("driver_ended", 2)];
    assert_eq!(counted(acquisitions.refused.by_kind()), refused);
    assert_eq!((acquisitions.refused.total(), acquisitions.attempts), (6, 3));
    assert_eq!(counted(releases.by_outcome()), [("still_ours", 1), ("dropped", 1)]);
    assert_eq!((acquisitions.latency.count(), Latency::BOUNDS.len()), (2, 16));
}

#[test]
fn a_grant_counts_with_all_the_attempts_that_it_took() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    (0..3).for_each(|master| driver.with_master(master, |master| master.hold(0, b"job", b"another", None)));
    let mut waiting = pin!(locker.lock("job").into_future());
    assert!(poll(waiting.as_mut()).is_pending());
    driver.settle();
    for master in 0..3 {
        driver.with_master(master, |master| master.remove(0, b"job", ms(0)));
    }
    driver.pass(ms(1_000));
    driver.settle();
    let Poll::Ready(Ok(guard)) = poll(waiting) else { panic!("not granted") };
    let acquisitions = locker.report().acquisitions;
    assert_eq!((acquisitions.granted, acquisitions.attempts), (1, 2));
    drop(guard);
}

#[test]
fn a_refused_request_that_is_dropped_before_it_is_polled_counts_only_as_refused() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let _guard = locker.lock("job").wait().unwrap();
    let mut refused = Box::pin(locker.try_lock("job").into_future());
    assert!(poll(refused.as_mut()).is_pending());
    driver.settle();
    drop(refused);
    let report = locker.report();
    assert_eq!((report.acquisitions.refused.total(), report.acquisitions.abandoned), (1, 0));
    assert_eq!((report.held, report.waiting), (1, 0));
    driver.end();
}

#[test]
fn ended_locks_are_counted_by_how_they_ended() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let renewed = locker.lock("renewed").ttl(ms(3_000)).renew().wait().unwrap();
    let expiring = locker.lock("expiring").ttl(ms(2_000)).wait().unwrap();
    let deleted = locker.lock("deleted").wait().unwrap();
    deleted.extend(ms(10_000)).wait().unwrap();
    driver.pass(ms(1_000));
    driver.settle();
    driver.pass(ms(1_000));
    driver.settle();
    for master in 0..3 {
        driver.with_master(master, |master| master.remove(0, b"deleted", ms(0)));
    }
    assert!(deleted.extend(ms(10_000)).wait().is_err());
    let handed = locker.lock("handed").wait().unwrap().hand_over().unwrap();
    locker.release("handed", handed.token).wait().unwrap();
    assert!(expiring.release().wait().is_err() && deleted.release().wait().is_err());
    drop(renewed);

    let report = locker.report();
    assert_eq!((report.renewals, report.held), (2, 0));
    assert_eq!((report.extensions.granted, report.extensions.failed), (1, 1));
    assert_eq!(counted(report.losses.by_kind()), [("expired", 1), ("not_held", 1)]);
    let releases = [("still_ours", 1), ("not_ours", 2), ("dropped", 1), ("handed_over", 1)];
    assert_eq!(counted(report.releases.by_outcome()), releases);
}

#[test]
fn masters_are_reported_with_their_reconnects_and_quarantines() {
    let config = Config::builder((0..3).map(|number| format!("redis://master{number}")));
    let (locker, driver) = Driver::over(config.restart_guard(ms(30_000)).build().unwrap(), true);
    driver.settle();
    let quarantined = |driver: &Arc<Driver>| {
        driver.settle();
        locker.report().masters.iter().filter(|master| master.quarantine.is_some()).count()
    };
    assert_eq!(quarantined(&driver), 3, "new masters may have forgotten locks");
    locker.bootstrap().wait().unwrap();
    let guard = locker.lock("job").wait().unwrap();
    assert_eq!(quarantined(&driver), 0);
    driver.lose(1);
    assert_eq!(quarantined(&driver), 0);
    let masters = locker.report().masters;
    let reconnects: Vec<_> = masters.iter().map(|master| master.reconnects).collect();
    assert_eq!(reconnects, [0, 1, 0]);
    assert_eq!(masters[1].connections_asked_for, 2);
    assert!(masters.iter().all(|master| matches!(master.state, MasterState::Ready { .. })));
    assert_eq!(guard.resource(), &Resource::new("job").unwrap());
}
