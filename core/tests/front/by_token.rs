//! Locks and permits that are released without a guard: by their token, or whatever their holder.

use std::future::Future;
use std::task::{Context, Poll, Waker};

use quorlock_core::front::{ReleaseError, Released};
use quorlock_core::{ConfigError, ForceReleaseError, Resumption, Target};

use super::driver::{Driver, ms};

const AS_ANOTHER: Result<Released, ReleaseError> = Err(ReleaseError::Invalid(ConfigError::ResumedAsAnother));

#[test]
fn several_targets_are_released_by_their_token_if_they_are_those_of_the_lock() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let lock = locker.lock_all(["x", "y"]).wait().unwrap().hand_over().unwrap();
    for others in [vec!["x"], vec!["x", "z"], vec!["x", "y", "z"]] {
        assert_eq!(locker.release_all(others, lock).wait(), AS_ANOTHER);
    }
    let shared = [Target::from("x"), Target::read("y")];
    assert_eq!(locker.release_all(shared, lock).wait(), AS_ANOTHER);
    assert_eq!(driver.keys(0), 2);
    assert_eq!(locker.release_all(["y", "x"], lock).wait(), Ok(Released::Freed));
    assert_eq!(driver.keys(0), 0);
    driver.end();
}

#[test]
fn permits_are_released_by_what_their_hand_over_returned() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let semaphore = locker.semaphore("gpu", 4).unwrap();
    let other = locker.semaphore("cpu", 4).unwrap();
    let permit = semaphore.acquire().wait().unwrap().hand_over().unwrap();
    let text = permit.expose();
    let (without_permits, _) = text.rsplit_once('-').unwrap();
    let without_permits = Resumption::from_text(without_permits, None).unwrap();
    let lock = locker.lock("gpu").wait().unwrap().hand_over().unwrap();
    let before = driver.keys(0);

    assert_eq!(other.release(permit).wait(), AS_ANOTHER);
    assert_eq!(semaphore.release(without_permits).wait(), AS_ANOTHER);
    assert_eq!(semaphore.release(lock).wait(), AS_ANOTHER);

    assert_eq!(driver.keys(0), before);
    assert_eq!(semaphore.release(permit).wait(), Ok(Released::Freed));
    let many = semaphore.acquire_many(3).wait().unwrap().hand_over().unwrap();
    // The number of permits need not be that of the client that took them.
    let larger = locker.semaphore("gpu", 9).unwrap();
    assert_eq!(larger.release(many).wait(), Ok(Released::Freed));
    assert_eq!(locker.release("gpu", lock.token).wait(), Ok(Released::Freed));
    assert_eq!(driver.keys(0), 0);
    driver.end();
}

#[test]
fn a_lock_that_was_handed_over_is_kept_only_for_a_time_that_is_left() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    for (remaining, keeps_for, keys) in [(ms(0), None, 0), (ms(60_000), Some(ms(60_000)), 1)] {
        let lock = locker.lock("job").wait().unwrap().hand_over().unwrap();
        let release = locker.release_after("job", lock.token, remaining);
        assert_eq!(release.keeps_for(), keeps_for);
        assert_eq!((release.wait(), driver.keys(0)), (Ok(Released::Freed), keys), "{remaining:?}");
    }
    assert!(locker.try_lock("job").wait().is_err());
    driver.end();
}

#[test]
fn a_permit_with_an_index_that_can_exist_is_deleted_whatever_its_holder() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let semaphore = locker.semaphore("gpu", 4).unwrap();
    let permits = semaphore.acquire_many(4).wait().unwrap();
    let before = driver.keys(0);
    // The second one may belong to a client with more permits.
    for (index, deleted) in [(3, 1), (1_023, 1)] {
        semaphore.force_release(index).wait().unwrap();
        assert_eq!(driver.keys(0), before - deleted, "{index}");
    }
    for (index, permits) in [(1_024, 1_025), (u32::MAX, u32::MAX)] {
        let error = ForceReleaseError::Invalid(ConfigError::UnusablePermits { permits });
        assert_eq!(semaphore.force_release(index).wait(), Err(error), "{index}");
    }
    assert!(permits.release().wait().is_err());
    driver.end();
}

#[test]
fn a_forced_release_fails_if_too_few_masters_confirm_it() {
    for silent in 0..=3 {
        let (locker, driver) = Driver::start(3);
        driver.settle();
        drop(locker.lock("job").wait().unwrap());
        driver.settle();
        (0..silent).for_each(|master| driver.hush(master, true));
        let mut forcing = Box::pin(locker.force_release("job"));
        let mut cx = Context::from_waker(Waker::noop());
        let forced = (0..100).find_map(|_| {
            let outcome = forcing.as_mut().poll(&mut cx);
            driver.settle();
            driver.pass(ms(10));
            if let Poll::Ready(outcome) = outcome { Some(outcome) } else { None }
        });
        let forced = forced.expect("no master is waited for longer than its timeout");
        assert_eq!(forced.is_ok(), silent <= 1, "{silent} silent masters: {forced:?}");
        assert_eq!(matches!(forced, Err(ForceReleaseError::TooFew(_))), silent > 1);
        driver.end();
    }
}

#[test]
fn a_semaphore_returns_its_number_of_permits_and_each_permit_its_index() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    for number in [1, 2, 3, 1_024] {
        assert_eq!(locker.semaphore("gpu", number).unwrap().permits(), number);
    }
    let semaphore = locker.semaphore("gpu", 3).unwrap();
    let permits = [(); 3].map(|()| semaphore.acquire().wait().unwrap());
    let mut indexes = permits.each_ref().map(|permit| permit.index());
    indexes.sort_unstable();
    assert_eq!(indexes, [0, 1, 2]);
    driver.end();
}
