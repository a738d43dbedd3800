//! Owners of locks of several resources, and of locks that are read.

use std::fmt::Debug;
use std::sync::Arc;

use quorlock_core::front::{Guard, Locker, Owner, Released};
use quorlock_core::{AcquireError, Group, LossCause, Missing, Target};

use super::driver::{Driver, ms};
use super::task::Task;

fn start() -> (Locker, Arc<Driver>, Owner) {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let owner = locker.owner();
    (locker, driver, owner)
}

#[track_caller]
fn would_deadlock<G: Debug>(result: Result<G, AcquireError>, at: &str) {
    let error = result.unwrap_err();
    let AcquireError::WouldDeadlock { resource } = &error else { panic!("{error}") };
    assert_eq!((resource.to_string().as_str(), error.kind(), error.ballot()), (at, "would_deadlock", None));
}

fn names(guard: &Guard) -> Vec<String> {
    guard.resources().map(ToString::to_string).collect()
}

#[test]
fn a_request_for_a_part_of_a_held_batch_gets_a_handle_of_the_whole() {
    let (locker, driver, owner) = start();
    let outer = owner.lock_all(["b", "a", "c"]).fenced().ttl(ms(1_000)).wait().unwrap();
    driver.settle();
    let writes = driver.writes(0);
    let one = owner.lock("b").wait().unwrap();
    let two = owner.lock_all(["c", "a"]).fenced().wait().unwrap();
    let read = owner.read("c").wait().unwrap();
    for guard in [&one, &two, &*read] {
        assert_eq!((guard.token(), guard.fencing_token()), (outer.token(), outer.fencing_token()));
        assert_eq!(names(guard), ["a", "b", "c"]);
    }
    assert_eq!((driver.writes(0), outer.ties().other_handles), (writes, 3));

    let longer = owner.lock("c").ttl(ms(5_000)).wait().unwrap();
    assert!(outer.remaining() > ms(4_900));
    drop(owner.lock("a").ttl(ms(5_000)).wait().unwrap());
    assert_eq!(driver.writes(0), writes + 1, "each of them knows of the longer TTL");
    let error = owner.lock("a").heal().wait().unwrap_err();
    assert!(matches!(error, AcquireError::HeldWithout { missing: Missing::Healing, .. }), "{error}");

    drop((outer, one, two, longer));
    assert!(read.is_valid());
    assert_eq!(read.release().wait(), Ok(Released::Freed));
    assert_eq!(locker.report().acquisitions.reentered, 5);
    driver.end();
}

#[test]
fn a_request_that_would_wait_for_its_own_owner_is_refused_at_once() {
    let (locker, driver, owner) = start();
    let group = || Group::new("team").unwrap();
    let one = owner.lock("b").wait().unwrap();
    let read = owner.read("doc").wait().unwrap();
    let shared = owner.lock_all([Target::share("plan", group())]).wait().unwrap();
    driver.settle();
    let writes = driver.writes(0);
    would_deadlock(owner.lock_all(["a", "b"]).wait(), "b");
    would_deadlock(owner.lock_all([Target::write("c"), Target::read("b")]).wait(), "b");
    would_deadlock(owner.write("doc").wait(), "doc");
    would_deadlock(owner.lock_all([Target::read("a"), Target::write("doc")]).wait(), "doc");
    would_deadlock(owner.lock_all([Target::read("doc"), Target::write("z")]).wait(), "doc");
    would_deadlock(owner.read("plan").wait(), "plan");
    // Two locks of the owner hold a part of this each.
    would_deadlock(owner.lock_all([Target::write("b"), Target::read("doc")]).wait(), "b");
    let error = owner.write("doc").wait().unwrap_err();
    let said = "doc not acquired by its owner, which would wait for its own lock; the outermost request must ask for all of it at once";
    assert_eq!(error.to_string(), said);
    assert_eq!(driver.writes(0), writes);
    assert_eq!(locker.report().acquisitions.refused.would_deadlock, 8);
    assert!(one.ties().is_none() && read.ties().is_none());

    assert_eq!(owner.read("doc").wait().unwrap().token(), read.token());
    assert_eq!(owner.read("b").wait().unwrap().token(), one.token());
    drop(owner.lock_all([Target::share("plan", group())]).wait().unwrap());
    assert_eq!(driver.writes(0), writes);
    drop((one, read, shared));
    drop(owner.lock_all(["b", "doc", "plan"]).wait().unwrap());
    driver.settle();
    assert_eq!(driver.keys(0), 0);
    driver.end();
}

#[test]
fn a_writer_that_became_a_reader_is_its_owners_reader() {
    let (_locker, driver, owner) = start();
    let twin = owner.write("doc").wait().unwrap();
    let inner = owner.read("doc").wait().unwrap();
    let twin = twin.downgrade().expect_err("the inner handle may act as a writer");
    drop(inner);
    let reader = twin.downgrade().unwrap();
    driver.settle();
    let writes = driver.writes(0);
    would_deadlock(owner.write("doc").wait(), "doc");
    let again = owner.read("doc").wait().unwrap();
    assert_eq!((again.token(), driver.writes(0)), (reader.token(), writes));
    drop(reader);
    assert_eq!(again.release().wait(), Ok(Released::Freed));
    drop(owner.write("doc").wait().unwrap());
    driver.end();
}

#[test]
fn an_owner_reads_again_after_its_downgraded_lock_was_released() {
    let (_locker, driver, owner) = start();
    let reader = owner.write("doc").wait().unwrap().downgrade().unwrap();
    driver.settle();
    let token = reader.token();
    // The masters have yet to answer the release.
    let releasing = reader.release();
    let mut again = Task::start(owner.read("doc"));
    driver.settle();
    let again = again.guard();
    assert_ne!(again.token(), token);
    assert_eq!(releasing.wait(), Ok(Released::Freed));
    drop(again);
    driver.end();
}

#[test]
fn a_request_that_meets_a_lost_lock_ends_with_the_loss() {
    let (_locker, driver, owner) = start();
    let outer = owner.lock("b").ttl(ms(1_000)).wait().unwrap();
    driver.pass(ms(2_000));
    // No timer has fired yet.
    for _ in 0..2 {
        let error = owner.lock_all(["a", "b"]).wait().unwrap_err();
        assert_eq!(error, AcquireError::Lost(LossCause::Expired));
        driver.settle();
    }
    drop(outer);
    drop(owner.lock_all(["a", "b"]).wait().unwrap());
    driver.end();
}

#[test]
fn a_grant_of_several_serves_every_request_for_a_part() {
    for first_is_polled in [true, false] {
        let (locker, driver, owner) = start();
        let mut all = Task::start(owner.lock_all(["a", "b"]));
        let mut part = Task::start(owner.lock("b"));
        let mut read = Task::start(owner.read("a"));
        driver.settle();
        let first = first_is_polled.then(|| all.guard());
        let (part, read) = (part.guard(), read.guard());
        let all = first.unwrap_or_else(|| all.guard());
        assert_eq!((part.token(), read.token()), (all.token(), all.token()));
        assert_eq!(all.ties().other_handles, 2);
        drop((part, all));
        assert_eq!(read.release().wait(), Ok(Released::Freed));
        let report = locker.report();
        assert_eq!((report.acquisitions.granted, report.acquisitions.reentered), (1, 2));
        assert_eq!((report.waiting, report.held, driver.keys(0)), (0, 0, 0));
        driver.end();
    }
}

#[test]
fn a_batch_request_whose_caller_gives_up_continues_for_a_request_of_a_part() {
    let (locker, driver, owner) = start();
    let all = Task::start(owner.lock_all(["a", "b"]));
    let mut part = Task::start(owner.lock("b"));
    let mut behind = Task::start(owner.lock_all(["b", "c"]));
    drop(all);
    driver.settle();
    let guard = part.guard();
    assert_eq!(names(&guard), ["a", "b"]);
    would_deadlock(Err::<(), _>(behind.error()), "b");
    drop(guard);
    driver.settle();
    assert_eq!((locker.report().waiting, driver.keys(0)), (0, 0));
    driver.end();
}

#[test]
fn a_batch_request_whose_caller_gives_up_is_not_kept_for_an_earlier_request_of_a_part() {
    let (locker, driver, owner) = start();
    let outer = locker.lock("a").wait().unwrap();
    let mut part = Task::start(owner.lock("a"));
    let all = Task::start(owner.lock_all(["a", "b"]));
    drop(all);
    driver.settle();
    // Nobody wants it any more.
    let other = locker.lock("b").attempts(1).wait().unwrap();
    drop(outer);
    driver.settle();
    assert_eq!(names(&part.guard()), ["a"]);
    drop(other);
    driver.settle();
    assert_eq!((locker.report().waiting, driver.keys(0)), (0, 0));
    driver.end();
}

#[test]
fn a_batch_request_without_a_caller_ends_when_its_owner_gets_a_part_of_it_by_another_lock() {
    let (locker, driver, owner) = start();
    let rival = locker.lock("a").wait().unwrap();
    let mut one = Task::start(owner.lock("a"));
    let all = Task::start(owner.lock_all(["a", "b"]));
    let mut part = Task::start(owner.lock("b"));
    drop(all);
    drop(rival);
    driver.settle();
    let one = one.guard();
    driver.settle();
    // Its request waits no longer behind that of the batch, which cannot be granted now.
    assert_eq!(names(&part.guard()), ["b"]);
    drop(one);
    driver.settle();
    assert_eq!((locker.report().waiting, driver.keys(0)), (0, 0));
    driver.end();
}

#[test]
fn a_grant_of_a_part_is_not_taken_for_the_whole() {
    let (_locker, driver, owner) = start();
    let mut part = Task::start(owner.lock("a"));
    let mut all = Task::start(owner.lock_all(["a", "b"]));
    driver.settle();
    // The part is granted, and its caller has not been polled yet.
    assert!(all.poll().is_pending());
    let part = part.guard();
    would_deadlock(Err::<(), _>(all.error()), "a");
    assert_eq!(names(&part), ["a"]);
    driver.end();
}

#[test]
fn a_grant_refuses_requests_of_its_owner_that_include_other_resources_too() {
    let (locker, driver, owner) = start();
    let mut one = Task::start(owner.lock("b"));
    let mut all = Task::start(owner.lock_all(["a", "b"]));
    let mut behind = Task::start(owner.lock("a"));
    driver.settle();
    let one = one.guard();
    would_deadlock(Err::<(), _>(all.error()), "b");
    driver.settle();
    // The third request waited behind the one that was refused.
    let behind = behind.guard();
    assert!(behind.is_valid() && behind.token() != one.token());
    drop((one, behind));
    driver.settle();
    let report = locker.report();
    assert_eq!((report.acquisitions.granted, report.acquisitions.refused.would_deadlock), (2, 1));
    assert_eq!((report.waiting, report.held, driver.keys(0)), (0, 0, 0));
    driver.end();
}

#[test]
fn readers_of_one_owner_share_one_lock() {
    let (locker, driver, owner) = start();
    let mut tasks: Vec<_> = (0..3).map(|_| Task::start(owner.read("doc"))).collect();
    driver.settle();
    let readers: Vec<_> = tasks.iter_mut().map(Task::guard).collect();
    assert!(readers.iter().all(|reader| reader.token() == readers[0].token()));
    driver.settle();
    let report = locker.report();
    assert_eq!((report.held, report.waiting, report.acquisitions.granted), (1, 0, 1));
    drop(readers);
    driver.settle();
    assert_eq!(driver.keys(0), 0);
    driver.end();
}
