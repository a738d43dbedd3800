//! Writers that become readers, and what prevents it: anything else that may act for the lock as
//! a writer.

use quorlock_core::Target;
use quorlock_core::front::Released;

use super::driver::Driver;

#[test]
fn another_handle_keeps_a_writer_from_becoming_a_reader() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let outer = locker.write("doc").wait().unwrap();
    let twin = outer.share();
    let outer = outer.downgrade().expect_err("the twin is still a writer");
    assert!(locker.read("doc").attempts(1).wait().is_err());
    drop(outer);
    let reader = twin.downgrade().expect("the only handle");
    let other = locker.read("doc").wait().unwrap();
    assert!(reader.is_valid() && other.is_valid());
    assert_eq!(reader.release().wait(), Ok(Released::Freed));
    drop(other);
    driver.end();
}

#[test]
fn an_inner_handle_of_an_owner_keeps_a_writer_from_becoming_a_reader() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let owner = locker.owner();
    let outer = owner.lock("doc").wait().unwrap();
    let inner = owner.lock("doc").wait().unwrap();
    drop(inner.downgrade().expect_err("the outer one is still a writer"));
    drop(outer.downgrade().expect("the only handle"));
    driver.end();
}

#[test]
fn a_copy_of_the_token_keeps_a_writer_from_becoming_a_reader() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let guard = locker.write("doc").wait().unwrap();
    let _copy = guard.resumption();
    let guard = guard.downgrade().expect_err("another process may resume it as a writer");
    let handed = guard.hand_over().unwrap();
    let resumed = locker.resume("doc", handed).wait().unwrap();
    drop(resumed.downgrade().expect_err("the one that handed it over may know the token"));
    driver.end();
}

#[test]
fn an_owner_that_resumed_a_lock_does_not_become_a_reader() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let handed = locker.write("doc").wait().unwrap().hand_over().unwrap();
    let resumed = locker.owner().lock("doc").resuming(handed).wait().unwrap();
    assert!(resumed.ties().resumed);
    drop(resumed.downgrade().expect_err("the one that handed it over may know the token"));
    driver.end();
}

#[test]
fn a_lock_cannot_be_resumed_as_another_kind_of_lock() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let handed = locker.write("doc").wait().unwrap().hand_over().unwrap();
    for targets in [vec![Target::read("doc")], vec![Target::write("doc"), Target::write("other")]] {
        let error = locker.lock_all(targets).resuming(handed).wait().unwrap_err();
        assert_eq!(error.kind(), "invalid", "{error}");
    }
    let resumed = locker.lock_all([Target::write("doc")]).resuming(handed).wait().unwrap();
    assert_eq!(resumed.release().wait(), Ok(Released::Freed));
    driver.end();
}
