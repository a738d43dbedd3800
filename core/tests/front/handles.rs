//! Several guards of one lock.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use quorlock_core::front::{HandOverError, ReleaseError, Released};
use quorlock_core::{ExtendError, LossCause, Ttl};

use super::driver::{Driver, ms};

#[test]
fn the_last_handle_to_go_releases_the_lock_and_the_others_write_nothing() {
    for last_is_dropped in [false, true] {
        let (locker, driver) = Driver::start(3);
        driver.settle();
        let first = locker.lock("job").fenced().wait().unwrap();
        let (second, third) = (first.share(), first.share());
        assert_eq!((second.token(), second.fencing_token()), (first.token(), first.fencing_token()));
        assert_eq!(third.resource(), first.resource());
        driver.settle();
        let (writes, watch) = (driver.writes(0), first.watch());

        assert_eq!(first.release().wait(), Ok(Released::Kept { others: 2 }));
        drop(second);

        assert_eq!((driver.writes(0), driver.keys(0)), (writes, 2), "the lock and its counter");
        assert!(third.is_valid() && watch.is_valid());
        assert_eq!(locker.report().releases, Default::default());
        if last_is_dropped {
            drop(third);
            driver.settle();
        } else {
            assert_eq!(third.release().wait(), Ok(Released::Freed));
        }
        assert_eq!((driver.keys(0), watch.check()), (1, Err(LossCause::Released)));
        driver.end();
    }
}

#[test]
fn the_last_handle_decides_whether_the_keys_stay() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let first = locker.lock("job").wait().unwrap();
    let second = first.share();
    let writes = driver.writes(0);
    let release = first.release_after(ms(60_000));
    assert_eq!((release.keeps_for(), release.wait()), (None, Ok(Released::Kept { others: 1 })));
    assert_eq!((driver.writes(0), second.is_valid()), (writes, true));

    let release = second.release_after(ms(60_000));
    assert!(release.keeps_for().is_some_and(|left| left > ms(50_000)));
    assert_eq!((release.wait(), driver.keys(0)), (Ok(Released::Freed), 1));
    assert!(locker.try_lock("job").wait().is_err());
    driver.end();
}

#[test]
fn each_of_several_resources_is_kept() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let guard = locker.lock_all(["x", "y"]).wait().unwrap();
    let watch = guard.watch();
    let release = guard.release_after(ms(60_000));
    assert!(release.keeps_for().is_some_and(|left| left > ms(50_000)));
    assert_eq!((release.wait(), driver.keys(0)), (Ok(Released::Freed), 2));
    assert_eq!(watch.check(), Err(LossCause::Released));
    assert!(locker.try_lock("x").wait().is_err() && locker.try_lock("y").wait().is_err());

    let guard = locker.lock_all(["v", "w"]).wait().unwrap();
    assert_eq!(guard.release_after(ms(0)).wait(), Ok(Released::Freed));
    driver.end();
}

#[test]
fn an_operation_of_one_handle_applies_to_all() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let first = locker.lock("job").ttl(ms(1_000)).renew().wait().unwrap();
    let second = first.share();
    assert!(first.extend(ms(5_000)).wait().unwrap() > ms(4_900));
    assert!(second.remaining() > ms(4_900));
    second.stop_renewal();
    driver.pass(ms(6_000));
    driver.settle();
    assert_eq!((first.check(), second.check()), (Err(LossCause::Expired), Err(LossCause::Expired)));
    assert_eq!(first.extend(ms(5_000)).wait(), Err(ExtendError::Lost(LossCause::Expired)));
    // Neither of them can confirm that the lock was still ours.
    assert_eq!(first.release().wait(), Err(ReleaseError::NotOurs(Some(LossCause::Expired))));
    assert_eq!(second.release().wait(), Err(ReleaseError::NotOurs(Some(LossCause::Expired))));
    driver.end();
}

#[test]
fn a_lock_with_several_handles_is_not_handed_over() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let guard = locker.lock("job").wait().unwrap();
    let twin = guard.share();
    let Err(error) = guard.hand_over() else { panic!("the twin still considers it valid") };
    assert_eq!(error.kind(), "shared");
    let said = "job not handed over: other handles of the lock are alive: 1; release them first";
    assert_eq!(error.to_string(), said);
    assert!(error.source().is_none());
    let HandOverError::Shared { others: 1, .. } = error else { panic!("{error}") };
    let guard = error.into_guard().unwrap();
    assert!(guard.is_valid() && twin.is_valid());
    assert_eq!(guard.ties().other_handles, 1);

    drop(twin);
    let resumption = guard.hand_over().unwrap();
    assert_eq!(driver.keys(0), 1);
    let resumed = locker.resume("job", resumption).wait().unwrap();
    assert_eq!(resumed.release().wait(), Ok(Released::Freed));
    driver.end();
}

#[test]
fn a_lock_that_is_lost_is_not_handed_over_and_the_error_contains_the_cause() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let guard = locker.lock("job").ttl(ms(1_000)).wait().unwrap();
    driver.pass(ms(2_000));
    let error = guard.hand_over().unwrap_err();
    let cause = LossCause::Expired.to_string();
    assert_eq!((error.kind(), error.to_string()), ("lost", cause.clone()));
    assert_eq!(error.source().map(ToString::to_string), Some(cause));
    assert!(error.into_guard().is_none());
    driver.end();
}

#[test]
fn a_lock_whose_keys_cannot_stay_for_so_long_ends_without_a_request() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let guard = locker.lock("job").ttl(ms(3_000)).renew().wait().unwrap();
    let (watch, writes) = (guard.watch(), driver.writes(0));

    let release = guard.release_after(Ttl::MAX * 2);

    assert_eq!(release.keeps_for(), None);
    assert!(matches!(release.wait(), Err(ReleaseError::Invalid(_))));
    assert_eq!((locker.report().held, watch.check()), (0, Err(LossCause::Released)));
    driver.pass(ms(1_500));
    driver.settle();
    assert_eq!((driver.writes(0), driver.keys(0)), (writes, 1), "it is not renewed");
    driver.end();
}

#[test]
fn an_inner_handle_of_an_owner_keeps_the_lock_from_being_handed_over() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let owner = locker.owner();
    let outer = owner.lock("job").wait().unwrap();
    let inner = owner.lock("job").wait().unwrap();
    let outer = outer.hand_over().unwrap_err().into_guard().unwrap();
    drop(inner);
    let resumption = outer.hand_over().unwrap();
    // The lock no longer belongs to the owner.
    assert_eq!(owner.try_lock("job").wait().unwrap_err().kind(), "held_by_another");
    assert_eq!(locker.release("job", resumption.token).wait(), Ok(Released::Freed));
    drop(owner.try_lock("job").wait().unwrap());
    driver.end();
}

#[test]
fn ties_report_other_handles_and_copies_of_the_token() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let guard = locker.lock("job").wait().unwrap();
    assert!(guard.ties().is_none());
    let twin = guard.share();
    assert!(!guard.ties().is_none() && guard.ties() == twin.ties());
    drop(guard);
    assert!(twin.ties().is_none());
    let resumption = twin.resumption();
    assert!(twin.ties().resumption_read && !twin.ties().resumed && !twin.share().ties().is_none());

    let resumed = locker.resume("job", resumption).wait().unwrap();
    assert!(resumed.ties().resumed && !resumed.ties().resumption_read);
    driver.end();
}

#[test]
fn a_panic_in_the_innermost_of_nested_handles_releases_once() {
    for panic_is_caught_outside in [true, false] {
        let (locker, driver) = Driver::start(3);
        driver.settle();
        let owner = locker.owner();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let outer = owner.lock("job").wait().unwrap();
            let innermost = || {
                let _middle = owner.lock("job").wait().unwrap();
                let _inner = outer.share();
                std::panic::resume_unwind(Box::new("the user's"));
            };
            if panic_is_caught_outside {
                innermost();
            }
            assert!(catch_unwind(AssertUnwindSafe(innermost)).is_err());
            assert!(outer.is_valid() && outer.ties().is_none());
        }));
        assert_eq!(panicked.is_err(), panic_is_caught_outside);
        driver.settle();
        assert_eq!(driver.keys(0), 0);
        let releases = locker.report().releases;
        assert_eq!((releases.dropped, releases.by_outcome().map(|(_, count)| count).sum()), (1, 1));
        driver.end();
    }
}

#[test]
fn a_forgotten_handle_keeps_the_lock_no_longer_than_its_longest_hold() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let owner = locker.owner();
    let guard = owner.lock("job").ttl(ms(1_000)).renew_for(ms(3_000)).wait().unwrap();
    std::mem::forget(guard.share());
    assert_eq!(guard.release().wait(), Ok(Released::Kept { others: 1 }));
    for _ in 0..50 {
        driver.pass(ms(100));
        driver.settle();
    }
    assert_eq!(driver.keys(0), 0);
    assert_eq!(owner.lock("job").wait().unwrap_err().kind(), "lost", "a handle of it lives");
    drop(locker.owner().lock("job").wait().unwrap());
    driver.end();
}

#[test]
fn a_forked_child_changes_no_count_and_releases_nothing() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let owner = locker.owner();
    let guard = owner.lock("job").wait().unwrap();
    let inner = owner.lock("job").wait().unwrap();
    let handed = guard.share();
    driver.settle();
    let (writes, keys) = (driver.writes(0), driver.keys(0));

    driver.fork();

    assert_eq!(owner.lock("job").wait().unwrap_err().kind(), "forked");
    assert_eq!(inner.share().check(), Err(LossCause::Forked));
    assert!(matches!(handed.hand_over(), Err(HandOverError::Lost(LossCause::Forked))));
    assert_eq!(inner.release().wait(), Err(ReleaseError::Forked));
    drop((guard, owner));
    assert_eq!((driver.writes(0), driver.keys(0)), (writes, keys));
}
