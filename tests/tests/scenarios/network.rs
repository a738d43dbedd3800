//! Networks that split or coalesce bytes, cut or forget connections, or drop bytes.

use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use crate::kit::*;

pub(crate) fn bytes_that_come_one_by_one_or_all_at_once_change_nothing(transport: &Transport) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    occupy(&masters, "held");
    for splits in [true, false] {
        for proxy in &proxies {
            proxy.heal();
            if splits {
                proxy.split_bytes(Direction::Both);
            } else {
                proxy.coalesce(Direction::Both, millis(20));
            }
        }
        let locker = transport.open(patient(urls(&proxies)).build().unwrap());
        scope(|scope| {
            for thread in 0..2 {
                let locker = locker.clone();
                scope.spawn(move || {
                    for _ in 0..2 {
                        let guard = locker.lock(format!("job{thread}")).wait().unwrap();
                        assert!(guard.extend(2 * TTL).wait().unwrap() > TTL);
                        assert_eq!(guard.release().wait(), Ok(Released::Freed));
                        let error = locker.try_lock("held").wait().unwrap_err();
                        // The other thread's request may be in front, and then the answer is also
                        // "held by another".
                        assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
                    }
                });
            }
        });
        for thread in 0..2 {
            no_key(&masters, &format!("job{thread}"));
        }
    }
}

pub(crate) fn connections_that_are_cut_in_the_middle_of_a_round_leave_no_key(transport: &Transport) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    let locker = transport.open(hasty(urls(&proxies)).build().unwrap());
    for how in [Cut::Fin, Cut::Reset] {
        all_ready(&locker);
        for proxy in &proxies {
            proxy.stall(Direction::ToClient);
        }
        let result = scope(|scope| {
            let seeking = scope.spawn(|| locker.lock("job").wait());
            eventually(SOON, "the requests have been executed", || masters.holding("job") == 3);
            for proxy in &proxies {
                proxy.cut(how);
                proxy.heal();
            }
            seeking.join().unwrap()
        });

        // The attempt whose connection was cut is lost, and a later one has the lock.
        let guard = result.unwrap();
        assert!(guard.is_valid());
        // A third master whose connection was not open yet was not asked.
        let token = guard.token().expose();
        let holds = |master: &&RedisServer| master.get("job").as_deref() == Some(token.as_str());
        eventually(SOON, "a quorum holds it", || masters.iter().filter(holds).count() >= 2);
        assert_eq!(guard.release().wait(), Ok(Released::Freed));
        no_key(&masters, "job");
    }
}

pub(crate) fn one_cut_connection_costs_a_round_nothing(transport: &Transport) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    let locker = transport.open(patient(urls(&proxies)).build().unwrap());
    all_ready(&locker);
    for how in [Cut::Fin, Cut::Reset] {
        for proxy in &proxies {
            let guard = locker.try_lock("job").wait().unwrap();
            proxy.cut(how);
            let start = Instant::now();
            assert!(guard.extend(2 * TTL).wait().unwrap() > TTL);
            assert_eq!(guard.release().wait(), Ok(Released::Freed));
            assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
            all_ready(&locker);
            no_key(&masters, "job");
        }
    }
}

pub(crate) fn a_cut_connection_delays_no_caller_while_a_lock_is_held(transport: &Transport) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    let locker = transport.open(hasty(urls(&proxies)).build().unwrap());
    let guard = locker.lock("job").ttl(Duration::from_secs(3)).renew().wait().unwrap();
    held_on(&masters, &guard, 3);
    for _ in 0..5 {
        for proxy in &proxies {
            proxy.cut(Cut::Reset);
        }
        sleep(Duration::from_secs(1));
        assert_eq!(guard.check(), Ok(()));
    }
    held_on(&masters, &guard, 3);
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
}

pub(crate) fn half_open_connections_are_found_out(transport: &Transport) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    let locker = transport.open(hasty(urls(&proxies)).build().unwrap());
    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    for proxy in &proxies {
        proxy.half_open();
    }

    // The first extension detects it, and the next one uses new connections.
    eventually(SOON, "it is extended", || guard.extend(2 * TTL).wait().is_ok());
    assert!(guard.remaining() > TTL);
    // Two masters are enough for an extension. The third may still be opening a connection, and
    // would get no request before the lock is granted.
    all_ready(&locker);
    for proxy in &proxies {
        proxy.half_open();
    }
    let second = locker.lock("other").wait().unwrap();

    // A master that was not reconnected in time has no key of this lock, and no other key is left.
    assert!(second.is_valid());
    all_ready(&locker);
    eventually(SOON, "a lock is held on all masters", || {
        let third = locker.lock("third").wait().unwrap();
        masters.get("third").iter().all(|held| *held == Some(third.token().expose()))
    });
    drop((guard, second));
    no_key(&masters, "job");
    no_key(&masters, "other");
}

pub(crate) fn the_first_lock_after_idle_connections_were_swallowed_succeeds(transport: &Transport) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    let config = hasty(urls(&proxies)).timeout(Duration::from_secs(5)).build().unwrap();
    let (once, several) = (transport.open(config.clone()), transport.open(config));
    for locker in [&once, &several] {
        locker.lock("job").wait().unwrap().release().wait().unwrap();
        all_ready(locker);
    }
    // After this time without traffic, a connection does not count as being in use.
    sleep(Duration::from_secs(6));
    for proxy in &proxies {
        proxy.half_open();
    }

    for request in [once.try_lock("job"), several.lock("job")] {
        let guard = request.wait().unwrap();
        let token = Some(guard.token().expose());
        assert!(masters.get("job").iter().filter(|held| **held == token).count() >= 2);
        assert_eq!(guard.release().wait(), Ok(Released::Freed));
    }
    no_key(&masters, "job");
}

pub(crate) fn locks_over_forgotten_connections_are_extended_and_released(transport: &Transport) {
    let masters = masters(3);
    let held = |key| {
        let proxies = proxies(&masters);
        let locker = transport.open(hasty(urls(&proxies)).build().unwrap());
        let guard = locker.lock(key).ttl(Duration::from_secs(60)).wait().unwrap();
        held_on(&masters, &guard, 3);
        (proxies, locker, guard)
    };
    let [extended, released, left] = [["a", "b"], ["c", "d"], ["e", "f"]].map(|keys| keys.map(held));
    // After this time without traffic, a connection does not count as being in use.
    sleep(Duration::from_secs(6));
    for [dropped, reset] in [&extended, &released, &left] {
        dropped.0.iter().for_each(FaultProxy::half_open);
        reset.0.iter().for_each(FaultProxy::half_open_until_used);
    }

    for (_, _, guard) in &extended {
        let extended = guard.extend(Duration::from_secs(60)).wait();
        assert!(matches!(extended, Ok(left) if left > Duration::from_secs(58)), "{extended:?}");
    }
    for ((_proxies, _locker, guard), key) in released.into_iter().zip(["c", "d"]) {
        assert_eq!(guard.release().wait(), Ok(Released::Freed));
        no_key(&masters, key);
    }
    // The driver goes on until the releases have been executed.
    for ((_proxies, locker, guard), key) in left.into_iter().zip(["e", "f"]) {
        drop((guard, locker));
        no_key(&masters, key);
    }
}

pub(crate) fn requests_that_are_swallowed_leave_no_key_and_no_holder(transport: &Transport) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    let locker = transport.open(hasty(urls(&proxies)).build().unwrap());
    all_ready(&locker);
    proxies[0].black_hole(Direction::ToServer);
    proxies[1].black_hole(Direction::ToClient);

    let error = locker.lock("job").timeout(Duration::from_secs(1)).wait().unwrap_err();

    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    no_key(&masters, "job");
    for proxy in &proxies {
        proxy.heal();
    }
    all_ready(&locker);
    held_on(&masters, &locker.lock("job").wait().unwrap(), 3);
    no_key(&masters, "job");
}

pub(crate) fn replies_slower_than_the_timeout_are_still_matched_in_order(transport: &Transport) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    let locker = transport.open(hasty(urls(&proxies)).build().unwrap());
    all_ready(&locker);
    // The delay is longer than the request timeout, but answers to other requests keep the
    // connection from being silent.
    for proxy in &proxies {
        proxy.delay(Direction::ToClient, millis(300));
    }
    for _ in 0..5 {
        // Refused or not, no answer is matched with another request.
        let _ = locker.try_lock("slow").wait().map(|guard| guard.release().wait());
    }
    for proxy in &proxies {
        proxy.heal();
    }
    all_ready(&locker);
    for round in 0..10 {
        let key = format!("job{round}");
        let guard = locker.lock(&key).wait().unwrap();
        held_on(&masters, &guard, 3);
        guard.release().wait().unwrap();
        no_key(&masters, &key);
    }
    no_key(&masters, "slow");
}
