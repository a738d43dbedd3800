//! Locks of several resources, readers and writers, on every transport.

use std::sync::atomic::{AtomicUsize, Ordering};

use quorlock_core::front::{Permit, ReadGuard};
use quorlock_core::{ConfigError, Resumption, Target};

use crate::kit::*;

fn readers(locker: &Locker, count: usize) -> Vec<ReadGuard> {
    (0..count).map(|_| locker.read("doc").fenced().renew().wait().unwrap()).collect()
}

pub(crate) fn several_resources_are_held_together_or_not_at_all(transport: &Transport) {
    let masters = masters(3);
    let (locker, other) = (open(transport, &masters), open(transport, &masters));
    let both = locker.lock_all(["stock:3", "order:7"]).fenced().renew().wait().unwrap();
    let names: Vec<_> = both.resources().map(ToString::to_string).collect();
    assert_eq!(names, ["order:7", "stock:3"]);
    for key in ["order:7", "stock:3"] {
        let error = other.try_lock(key).wait().unwrap_err();
        assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
    }
    let overlap = other.lock_all(["stock:3", "stock:4"]).attempts(1).wait().unwrap_err();
    assert!(overlap.to_string().starts_with("stock:3 and 1 more not acquired"), "{overlap}");
    no_key(&masters, "stock:4");
    both.extend(TTL).wait().unwrap();
    let first = both.fencing_token().unwrap();
    assert_eq!(both.release().wait(), Ok(Released::Freed));
    no_key(&masters, "order:7");
    no_key(&masters, "stock:3");
    let next = other.lock("stock:3").fenced().wait().unwrap();
    assert!(next.fencing_token().unwrap() > first);
}

pub(crate) fn a_waiter_for_several_resources_is_notified_of_each(transport: &Transport) {
    let masters = masters(3);
    let (locker, other) = (open(transport, &masters), open(transport, &masters));
    let held = [locker.lock("a").wait().unwrap(), locker.lock("b").wait().unwrap()];
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock_all(["b", "a", "c"]).wait());
        std::thread::sleep(millis(100));
        for guard in held {
            assert!(!waiter.is_finished());
            guard.release().wait().unwrap();
            std::thread::sleep(millis(50));
        }
        let all = waiter.join().unwrap().unwrap();
        assert_eq!(all.resources().len(), 3);
    });
    for key in ["a", "b", "c"] {
        no_key(&masters, key);
    }
}

pub(crate) fn readers_share_and_a_writer_that_waits_comes_next(transport: &Transport) {
    let masters = masters(3);
    let (locker, other, third) =
        (open(transport, &masters), open(transport, &masters), open(transport, &masters));
    let first = locker.write("doc").fenced().wait().unwrap().fencing_token().unwrap();
    no_key(&masters, "doc");
    let mut all = readers(&locker, 3);
    all.extend(readers(&other, 3));
    assert!(all.iter().all(|reader| reader.is_valid() && reader.fencing_token().unwrap() >= first));
    let error = other.write("doc").attempts(1).wait().unwrap_err();
    assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| third.write("doc").fenced().wait().unwrap());
        eventually(SOON, "a mark that keeps readers out", || {
            masters.iter().filter(|master| master.exists("quorlock:want/{doc}")).count() >= 2
        });
        let late = locker.read("doc").attempts(1).wait().unwrap_err();
        assert!(matches!(late, AcquireError::HeldByAnother(_)), "{late}");
        let last = all.iter().map(|reader| reader.fencing_token().unwrap()).max().unwrap();
        drop(all);
        let writer = writer.join().unwrap();
        assert!(writer.fencing_token().unwrap() > last);
        // Its release removes the mark, so readers need not wait until it expires.
        writer.release().wait().unwrap();
    });
    let reader = locker.read("doc").wait().unwrap();
    assert_eq!(reader.release().wait(), Ok(Released::Freed));
    no_key(&masters, "doc");
}

pub(crate) fn a_writer_becomes_a_reader_at_once(transport: &Transport) {
    let masters = masters(3);
    let (locker, other) = (open(transport, &masters), open(transport, &masters));
    let writer = locker.write("doc").fenced().renew().wait().unwrap();
    let number = writer.fencing_token();
    let twin = writer.share();
    let writer = writer.downgrade().unwrap_err();
    drop(twin);
    let reader = writer.downgrade().unwrap();
    assert_eq!(reader.fencing_token(), number);
    let second = other.read("doc").fenced().wait().unwrap();
    assert!(second.fencing_token() >= number && reader.is_valid());
    let error = other.write("doc").attempts(1).wait().unwrap_err();
    assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
    reader.extend(TTL).wait().unwrap();
    assert_eq!(reader.release().wait(), Ok(Released::Freed));
    assert!(second.is_valid());
    drop(second);
    no_key(&masters, "doc");
    let copied = locker.write("doc").wait().unwrap();
    let _ = copied.resumption();
    assert!(copied.downgrade().is_err(), "another process may know the token");
}

/// Waits until all masters have the key, before the lock is handed over. Otherwise a request of
/// this process could be executed after the release by another process, and leave its key.
#[track_caller]
fn everywhere(masters: &[RedisServer], key: &str) {
    eventually_equals(SOON, "all masters have the key", vec![true; masters.len()], || {
        masters.iter().map(|master| master.exists(key)).collect()
    });
}

pub(crate) fn a_reader_that_was_handed_over_is_resumed_as_a_reader(transport: &Transport) {
    let masters = masters(3);
    let (locker, other) = (open(transport, &masters), open(transport, &masters));
    let reader = locker.read("doc").wait().unwrap();
    everywhere(&masters, "doc");
    let handed = reader.hand_over().unwrap();
    let as_writer = other.resume("doc", handed).wait().unwrap_err();
    assert!(matches!(as_writer, AcquireError::Invalid(_)), "{as_writer}");
    let reader = other.read("doc").resuming(handed).wait().unwrap();
    assert_eq!(reader.token(), handed.token);
    reader.release().wait().unwrap();
    no_key(&masters, "doc");
}

pub(crate) fn a_lock_that_was_handed_over_is_released_only_as_its_own_kind(transport: &Transport) {
    let masters = masters(3);
    let (locker, other) = (open(transport, &masters), open(transport, &masters));
    let mixed = || [Target::write("order"), Target::read("tariff")];
    let reader = other.read("tariff").wait().unwrap();
    // Hands the lock over after all masters have it: a request that was executed after the release
    // would leave its key.
    let everywhere = |guard: Guard| {
        eventually(SOON, "all masters have it", || masters.iter().all(|master| master.exists("order")));
        guard.hand_over().unwrap()
    };
    let handed = everywhere(locker.lock_all(mixed()).wait().unwrap());
    for wrong in [vec![Target::write("order")], vec![Target::write("order"), Target::write("tariff")]] {
        let error = other.release_all(wrong, handed).wait().unwrap_err();
        assert_eq!(error, ReleaseError::Invalid(ConfigError::ResumedAsAnother));
    }
    assert!(other.try_lock("order").wait().is_err(), "nothing was released");
    let [first, second] = mixed();
    assert_eq!(other.release_all([second, first], handed).wait(), Ok(Released::Freed));
    no_key(&masters, "order");
    // The release did not affect the other reader.
    reader.extend(TTL).wait().unwrap();
    let again = other.release_all(mixed(), handed).wait();
    assert_eq!(again, Err(ReleaseError::NotOurs(None)));

    let handed = everywhere(locker.lock("order").wait().unwrap());
    assert_eq!(other.release_all(["order"], handed).wait(), Ok(Released::Freed), "one resource as well");
    no_key(&masters, "order");

    let permits = locker.semaphore("gpu", 4).unwrap().acquire_many(2).wait().unwrap();
    let seats: Vec<_> = permits.indexes().map(|index| format!("quorlock:seat:{index}/{{gpu}}")).collect();
    eventually(SOON, "all masters have both", || {
        masters.iter().all(|master| seats.iter().all(|seat| master.exists(seat)))
    });
    let handed = permits.hand_over().unwrap();
    let refused = Err(ReleaseError::Invalid(ConfigError::ResumedAsAnother));
    assert_eq!(other.semaphore("cpu", 4).unwrap().release(handed).wait(), refused);
    assert_eq!(other.release_all(["gpu"], handed).wait(), refused);
    assert_eq!(other.semaphore("gpu", 8).unwrap().release(handed).wait(), Ok(Released::Freed));
    seats.iter().for_each(|seat| no_key(&masters, seat));
}

pub(crate) fn mixed_targets_read_and_write(transport: &Transport) {
    let masters = masters(3);
    let (locker, other) = (open(transport, &masters), open(transport, &masters));
    let mixed = || [Target::write("order"), Target::read("tariff")];
    let held = locker.lock_all(mixed()).wait().unwrap();
    let reader = other.read("tariff").wait().unwrap();
    assert!(other.write("tariff").attempts(1).wait().is_err());
    assert!(other.lock("order").attempts(1).wait().is_err());
    drop(reader);
    drop(held);
    let again = other.lock_all(mixed()).wait().unwrap();
    assert_eq!(again.release().wait(), Ok(Released::Freed));
    no_key(&masters, "order");
    no_key(&masters, "tariff");
}

pub(crate) fn permits_are_granted_up_to_their_number(transport: &Transport) {
    for count in [1, 3, 4, 5] {
        let masters = masters(count);
        let lockers: Vec<_> = (0..3).map(|_| open(transport, &masters)).collect();
        let semaphore = |locker: usize| lockers[locker].semaphore("gpu", 3).unwrap();
        let mut held: Vec<_> =
            (0..3).map(|locker| semaphore(locker).acquire().fenced().renew().wait().unwrap()).collect();
        let mut indexes: Vec<_> = held.iter().map(Permit::index).collect();
        indexes.sort_unstable();
        assert_eq!(indexes, [0, 1, 2], "{count} masters");
        let error = semaphore(0).acquire().attempts(1).wait().unwrap_err();
        assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
        // A lock of the same name is independent of the semaphore.
        drop(lockers[0].lock("gpu").wait().unwrap());
        let gone = held.remove(1);
        let (index, number) = (gone.index(), gone.fencing_token());
        let next = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| semaphore(2).acquire().fenced().wait().unwrap());
            std::thread::sleep(millis(100));
            assert!(!waiter.is_finished());
            assert_eq!(gone.release().wait(), Ok(Released::Freed));
            waiter.join().unwrap()
        });
        assert_eq!(next.index(), index);
        assert!(next.fencing_token() > number);
        held.push(next);
        for permit in held {
            let seat = format!("quorlock:seat:{}/{{gpu}}", permit.index());
            permit.extend(TTL).wait().unwrap();
            assert_eq!(permit.release().wait(), Ok(Released::Freed));
            no_key(&masters, &seat);
        }
    }
}

pub(crate) fn a_permit_that_was_handed_over_has_the_same_index(transport: &Transport) {
    let masters = masters(3);
    let (locker, other) = (open(transport, &masters), open(transport, &masters));
    let [ours, theirs] = [&locker, &other].map(|locker| locker.semaphore("gpu", 2).unwrap());
    let first = ours.acquire().wait().unwrap();
    let second = ours.acquire().fenced().renew().wait().unwrap();
    let (index, number) = (second.index(), second.fencing_token());
    let twin = first.share();
    assert!(first.hand_over().unwrap_err().into_guard().is_some(), "another handle would go on with it");
    everywhere(&masters, &format!("quorlock:seat:{index}/{{gpu}}"));
    let handed = second.hand_over().unwrap();
    assert_eq!(handed.permits().collect::<Vec<_>>(), [index]);
    assert!(theirs.acquire().attempts(1).wait().is_err(), "it is held");
    let as_lock = other.resume("gpu", handed).wait().unwrap_err();
    assert!(matches!(as_lock, AcquireError::Invalid(_)), "{as_lock}");
    let handed = Resumption::from_text(&handed.expose(), number).unwrap();
    let permit = theirs.acquire().resuming(handed).wait().unwrap();
    assert_eq!((permit.index(), permit.fencing_token()), (index, number));
    permit.extend(TTL).wait().unwrap();
    assert_eq!(permit.release().wait(), Ok(Released::Freed));
    no_key(&masters, &format!("quorlock:seat:{index}/{{gpu}}"));
    drop(twin);
}

pub(crate) fn several_permits_are_held_together_or_not_at_all(transport: &Transport) {
    let masters = masters(3);
    let (locker, other) = (open(transport, &masters), open(transport, &masters));
    let [ours, theirs] = [&locker, &other].map(|locker| locker.semaphore("gpu", 3).unwrap());
    let two = ours.acquire_many(2).fenced().renew().wait().unwrap();
    let mut indexes: Vec<_> = two.indexes().collect();
    let error = theirs.acquire_many(2).attempts(1).wait().unwrap_err();
    assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
    let one = theirs.acquire().wait().unwrap();
    indexes.push(one.index());
    indexes.sort_unstable();
    assert_eq!(indexes, [0, 1, 2]);
    two.extend(TTL).wait().unwrap();
    let number = two.fencing_token().unwrap();
    let all = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| theirs.acquire_many(3).fenced().wait().unwrap());
        std::thread::sleep(millis(100));
        assert_eq!(two.release().wait(), Ok(Released::Freed));
        std::thread::sleep(millis(50));
        assert!(!waiter.is_finished(), "two are not enough");
        assert_eq!(one.release().wait(), Ok(Released::Freed));
        waiter.join().unwrap()
    });
    assert!(all.fencing_token().unwrap() > number);
    for index in 0..3 {
        everywhere(&masters, &format!("quorlock:seat:{index}/{{gpu}}"));
    }
    let handed = all.hand_over().unwrap();
    let all = ours.acquire_many(3).resuming(handed).wait().unwrap();
    assert_eq!(all.indexes().count(), 3);
    drop(all);
    for index in 0..3 {
        no_key(&masters, &format!("quorlock:seat:{index}/{{gpu}}"));
    }
    for at_once in [0, 4] {
        let error = ours.acquire_many(at_once).wait().unwrap_err();
        assert!(matches!(error, AcquireError::Invalid(_)), "{error}");
    }
}

pub(crate) fn threads_that_want_several_permits_do_not_wait_for_each_other(transport: &Transport) {
    let masters = masters(3);
    let lockers: Vec<_> = (0..2).map(|_| open(transport, &masters)).collect();
    let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for worker in 0..6 {
            let semaphore = lockers[worker % 2].semaphore("gpu", 3).unwrap();
            let (inside, most) = (&inside, &most);
            let (at_once, wanted) = [(1, 1), (2, 2), (3, 3)][worker / 2];
            scope.spawn(move || {
                for _ in 0..10 {
                    let permits = semaphore.acquire_many(wanted).timeout(None).wait().unwrap();
                    most.fetch_max(inside.fetch_add(at_once, Ordering::SeqCst) + at_once, Ordering::SeqCst);
                    std::thread::sleep(millis(1));
                    inside.fetch_sub(at_once, Ordering::SeqCst);
                    drop(permits);
                }
            });
        }
    });
    assert!((2..=3).contains(&most.into_inner()));
}

pub(crate) fn threads_that_come_back_never_hold_more_permits_than_there_are(transport: &Transport) {
    let masters = masters(3);
    let lockers: Vec<_> = (0..2).map(|_| open(transport, &masters)).collect();
    let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let semaphore = lockers[worker % 2].semaphore("gpu", 3).unwrap();
            let (inside, most) = (&inside, &most);
            scope.spawn(move || {
                for _ in 0..15 {
                    let permit = semaphore.acquire().timeout(None).wait().unwrap();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(millis(1));
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(permit);
                }
            });
        }
    });
    assert!((2..=3).contains(&most.into_inner()));
}
