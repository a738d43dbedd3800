//! Fair waiting: lockers of different processes are served in order of arrival, on every transport.

use std::sync::Mutex;
use std::thread::{scope, sleep};

use quorlock_core::{ConfigError, QueuePlace, Resource, Target};
use quorlock_tests::Value;

use crate::kit::*;

fn key(of: impl Fn(&Resource) -> Vec<u8>) -> String {
    String::from_utf8(of(&Resource::new("job").unwrap())).unwrap()
}

/// The places in a master's queue.
fn places_of(master: &RedisServer) -> Vec<Value> {
    match master.command(&["ZREVRANGE", &key(Resource::queue_key), "0", "-1"]) {
        // Behind them is the largest number.
        Value::Array(places) => places.into_iter().skip(1).collect(),
        _ => Vec::new(),
    }
}

/// How many places there are in a master's queue.
fn places(master: &RedisServer) -> usize {
    places_of(master).len()
}

/// Waits until this many places are in each queue.
#[track_caller]
fn queued(masters: &[RedisServer], expected: usize) {
    eventually_equals(SOON, "places in the queues", vec![expected; masters.len()], || {
        masters.iter().map(places).collect()
    });
}

/// A waiter that has died: its place expires, because it is not renewed.
fn die_waiting(master: &RedisServer, number: u8) {
    let place = QueuePlace::from_bytes([number; QueuePlace::BYTES]);
    let digits = String::from_utf8(place.to_hex().to_vec()).unwrap();
    let (number, lease) = (number.to_string(), QueuePlace::LEASE.as_millis().to_string());
    let queue = key(Resource::queue_key);
    assert_eq!(master.command(&["ZADD", &queue, &number, &digits]), Value::Int(1));
    let own = key(|resource| resource.place_key(place));
    assert!(master.command(&["SET", &own, &number, "PX", &lease]).is_ok());
}

pub(crate) fn fair_waiters_are_served_in_order_of_arrival(transport: &Transport) {
    let masters = masters(3);
    let lockers: Vec<_> = (0..6).map(|_| open(transport, &masters)).collect();
    lockers.iter().for_each(all_ready);
    let held = lockers[0].lock("job").fair().fenced().wait().unwrap();
    let served = Mutex::new(Vec::new());
    scope(|scope| {
        for (number, locker) in lockers.iter().enumerate().skip(1) {
            let served = &served;
            // The holder's place is in a queue for a while, and must not be taken for a waiter's.
            let before: Vec<_> = masters.iter().flat_map(places_of).collect();
            let has_another = |master| places_of(master).iter().any(|place| !before.contains(place));
            scope.spawn(move || {
                let guard = locker.lock("job").fair().fenced().wait().unwrap();
                served.lock().unwrap().push((number, guard.fencing_token()));
                sleep(millis(2));
                assert_eq!(guard.release().wait(), Ok(Released::Freed));
            });
            eventually(SOON, "its place", || masters.iter().all(has_another));
        }
        held.release().wait().unwrap();
    });
    let served = served.into_inner().unwrap();
    assert_eq!(served.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert!(served.windows(2).all(|pair| pair[0].1 < pair[1].1), "{served:?}");
    queued(&masters, 0);
    no_key(&masters, "job");
}

pub(crate) fn fair_waiters_that_died_cost_no_more_than_a_lease(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    all_ready(&locker);
    for number in 1..=20 {
        masters.iter().for_each(|master| die_waiting(master, number));
    }
    // No dead waiter gives up its place, so only expiry removes these places.
    let guard = locker.lock("job").fair().wait().unwrap();
    held_by_quorum(&masters, &guard);
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    queued(&masters, 0);
}

pub(crate) fn a_fair_waiter_that_reaches_one_master_blocks_no_other_waiter(transport: &Transport) {
    let masters = masters(3);
    let other = open(transport, &masters);
    let [half_way, most] = [proxies(&masters), proxies(&masters)];
    let [half, locker] = [&half_way, &most].map(|way| transport.open(hasty(urls(way)).build().unwrap()));
    [&other, &locker, &half].into_iter().for_each(all_ready);
    let held = other.lock("job").fair().wait().unwrap();
    // Both waiters need the first master: one reaches no other master, and the other has no quorum
    // without it.
    for proxy in half_way[1..].iter().chain(&most[2..]) {
        proxy.refuse(true);
        proxy.cut(Cut::Reset);
    }
    scope(|scope| {
        let waiter = scope.spawn(|| half.lock("job").fair().wait());
        sleep(millis(400));
        let next = scope.spawn(|| locker.lock("job").fair().wait());
        eventually(SOON, "the next one's place", || places(&masters[1]) >= 1);
        held.release().wait().unwrap();
        eventually(SOON, "the next one has the lock", || next.is_finished());
        next.join().unwrap().unwrap().release().wait().unwrap();
        half_way.iter().for_each(FaultProxy::heal);
        let guard = waiter.join().unwrap().unwrap();
        held_by_quorum(&masters, &guard);
    });
}

pub(crate) fn fair_and_other_waiters_exclude_each_other(transport: &Transport) {
    let masters = masters(3);
    let (fair, plain) = (open(transport, &masters), open(transport, &masters));
    let held = fair.lock("job").fair().renew().wait().unwrap();
    let error = plain.try_lock("job").wait().unwrap_err();
    assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
    scope(|scope| {
        let waiter = scope.spawn(|| plain.lock("job").wait());
        sleep(millis(50));
        held.release().wait().unwrap();
        let barged = waiter.join().unwrap().unwrap();
        let error = fair.try_lock("job").fair().wait().unwrap_err();
        assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
        let waiter = scope.spawn(|| fair.lock("job").fair().wait());
        queued(&masters, 1);
        barged.release().wait().unwrap();
        let guard = waiter.join().unwrap().unwrap();
        guard.extend(TTL).wait().unwrap();
        held_by_quorum(&masters, &guard);
        drop(guard);
    });
    no_key(&masters, "job");
}

pub(crate) fn fair_requests_of_anything_else_are_errors_and_send_nothing(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    all_ready(&locker);
    let before: u64 = masters.iter().map(|master| master.calls(Calls::Script)).sum();
    let read = locker.read("job").fair().wait().map(drop);
    let both = locker.lock_all(["job", "job:2"]).fair().wait().map(drop);
    let mixed = locker.lock_all([Target::read("job")]).fair().wait().map(drop);
    let permit = locker.semaphore("job", 4).unwrap().acquire().fair().wait().map(drop);
    for refused in [read, both, mixed, permit] {
        assert_eq!(refused.unwrap_err(), AcquireError::Invalid(ConfigError::FairOfSeveral));
    }
    assert_eq!(masters.iter().map(|master| master.calls(Calls::Script)).sum::<u64>(), before);
}
