//! Extension, renewal and loss.

use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use crate::kit::*;

pub(crate) fn an_extension_moves_the_end_and_a_shorter_one_never_shortens(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);

    let longer = guard.extend(2 * TTL).wait().unwrap();
    assert!(longer > TTL && guard.remaining() > TTL, "{longer:?}");
    eventually(SOON, "every key lives longer", || masters.iter().all(|master| master.pttl("job") > 70_000));

    let shorter = guard.extend(TTL / 2).wait().unwrap();
    assert!(shorter > TTL && guard.remaining() > TTL, "{shorter:?}");
    eventually(SOON, "all masters have answered", || {
        masters.iter().all(|master| master.pttl("job") > 70_000)
    });
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
}

pub(crate) fn an_extension_of_a_lost_lock_says_so_and_creates_no_key(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    assert!(masters.iter().all(|master| master.del("job")));

    assert_eq!(guard.extend(TTL).wait().unwrap_err(), ExtendError::Lost(LossCause::NotHeld));

    assert!(!guard.is_valid());
    assert_eq!(guard.check(), Err(LossCause::NotHeld));
    assert_eq!(guard.lost().wait(), LossCause::NotHeld);
    assert_eq!(guard.extend(TTL).wait().unwrap_err(), ExtendError::Lost(LossCause::NotHeld));
    assert_eq!(masters.holding("job"), 0);
}

pub(crate) fn an_extension_without_answers_leaves_the_lock_as_valid_as_it_was(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    masters[0].stop();
    masters[1].stop();

    let error = guard.extend(2 * TTL).wait().unwrap_err();

    assert!(matches!(error, ExtendError::NoQuorum(_)), "{error}");
    assert!(guard.is_valid() && guard.remaining() <= TTL);
    masters[0].cont();
    masters[1].cont();
    all_ready(&locker);
    held_on(&masters, &guard, 3);
    assert!(guard.extend(2 * TTL).wait().unwrap() > TTL);
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    no_key(&masters, "job");
}

pub(crate) fn the_quorum_of_an_extension_is_counted_over_all_masters(transport: &Transport) {
    let masters = masters(5);
    let locker = open(transport, &masters);
    occupy(&masters[3..], "job");
    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    // Two of the three that granted it still hold it: a majority of the three, but not of five.
    assert!(masters[0].del("job"));

    assert_eq!(guard.extend(TTL).wait().unwrap_err(), ExtendError::Lost(LossCause::NotHeld));

    assert!(!guard.is_valid());
    no_key(&masters[..3], "job");
}

pub(crate) fn a_shorter_extension_that_reaches_one_of_five_masters_makes_no_second_holder(
    transport: &Transport,
) {
    let masters = masters(5);
    let proxies = proxies(&masters);
    let config = hasty(urls(&proxies)).request_timeout(millis(100)).build().unwrap();
    let locker = transport.open(config);
    let rival = open_hasty(transport, &masters);
    all_ready(&locker);
    all_ready(&rival);
    occupy(&masters[3..], "job");
    let ttl = Duration::from_secs(4);
    let guard = locker.lock("job").ttl(ttl).wait().unwrap();
    held_on(&masters, &guard, 3);
    proxies[1].black_hole(Direction::ToServer);
    proxies[2].black_hole(Direction::ToServer);

    let error = guard.extend(ttl / 4).wait().unwrap_err();

    assert!(matches!(error, ExtendError::NoQuorum(_)), "{error}");
    for master in &masters[3..] {
        master.del("job");
    }
    // From here on the rival tries continuously; it gets the lock only after the guard has ended.
    let second = loop {
        match rival.try_lock("job").ttl(ttl).wait() {
            Ok(second) => break second,
            Err(error) => assert!(error.ballot().is_some(), "{error}"),
        }
    };
    assert!(!guard.is_valid(), "two holders");
    let holding = masters.iter().filter(|master| master.get("job") == Some(second.token().expose())).count();
    assert!(holding >= 3 || !second.is_valid(), "{holding}");
    drop(guard);
    assert_eq!(second.release().wait(), Ok(Released::Freed));
}

pub(crate) fn renewal_keeps_a_lock_for_several_ttls_and_ends_with_the_release(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    let ttl = Duration::from_secs(2);
    let guard = locker.lock("job").ttl(ttl).renew().wait().unwrap();

    let start = Instant::now();
    while start.elapsed() < 3 * ttl {
        assert!(guard.is_valid());
        sleep(millis(20));
    }
    held_on(&masters, &guard, 3);
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    no_key(&masters, "job");

    let renewals: Vec<_> = masters.iter().map(|master| master.calls(Calls::Extension)).collect();
    // With a renewal at each third of the TTL there are about nine. If renewal spun, or outlived
    // its lock, there would be thousands.
    assert!(renewals.iter().all(|renewals| (3..=30).contains(renewals)), "{renewals:?}");
    sleep(ttl);
    assert_eq!(masters.iter().map(|master| master.calls(Calls::Extension)).collect::<Vec<_>>(), renewals);
}

pub(crate) fn renewal_stops_at_the_longest_hold_and_the_holder_is_told(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    let ttl = Duration::from_secs(1);
    let guard = locker.lock("job").ttl(ttl).renew_for(2 * ttl).wait().unwrap();

    let start = Instant::now();
    assert_eq!(guard.lost().wait(), LossCause::Expired);

    assert!(!guard.is_valid());
    assert!(start.elapsed() >= ttl && start.elapsed() < 10 * ttl, "{:?}", start.elapsed());
    no_key(&masters, "job");
}

pub(crate) fn a_holder_whose_masters_die_is_told_not_later_than_the_end_of_validity(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    let ttl = Duration::from_secs(2);
    let guard = locker.lock("job").ttl(ttl).renew().wait().unwrap();
    held_on(&masters, &guard, 3);
    let watch = guard.watch();
    for master in &*masters {
        master.kill();
    }

    let end = Instant::now() + watch.remaining();
    // A renewal that was under way may have moved the end; the guard never ends before that is
    // reported.
    let told = scope(|scope| {
        let told = scope.spawn(|| (guard.lost().wait(), Instant::now(), guard.is_valid()));
        while watch.is_valid() {
            sleep(millis(1));
        }
        told.join().unwrap()
    });

    assert_eq!((told.0, told.2), (LossCause::Expired, false));
    assert!(told.1 < end + ttl, "the end was {:?} before", told.1 - end);
    let error = guard.release().wait().unwrap_err();
    assert!(matches!(error, ReleaseError::NotOurs(Some(LossCause::Expired))), "{error}");
}

pub(crate) fn renewal_of_dead_masters_does_not_spin(transport: &Transport) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    let config = hasty(urls(&proxies)).request_timeout(millis(50)).build().unwrap();
    let locker = transport.open(config);
    let guard = locker.lock("job").ttl(Duration::from_secs(1)).renew().wait().unwrap();
    for proxy in &proxies {
        proxy.black_hole(Direction::ToClient);
    }

    assert_eq!(guard.lost().wait(), LossCause::Expired);

    let scripts: Vec<_> = masters.iter().map(|master| master.calls(Calls::Script)).collect();
    assert!(scripts.iter().all(|scripts| *scripts < 200), "{scripts:?}");
}

pub(crate) fn keys_deleted_by_an_administrator_on_a_majority_are_reported_at_the_next_renewal(
    transport: &Transport,
) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    let ttl = Duration::from_secs(9);
    let guard = locker.lock("job").ttl(ttl).renew().wait().unwrap();
    held_on(&masters, &guard, 3);
    let start = Instant::now();
    masters[0].del("job");
    masters[2].del("job");

    assert_eq!(guard.lost().wait(), LossCause::NotHeld);

    assert!(start.elapsed() < ttl, "only its end told");
    no_key(&masters, "job");
    let error = guard.release().wait().unwrap_err();
    assert_eq!(error, ReleaseError::NotOurs(Some(LossCause::NotHeld)));
}

pub(crate) fn keys_deleted_by_an_administrator_on_a_minority_lose_nothing(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    let guard = locker.lock("job").ttl(Duration::from_secs(2)).renew().wait().unwrap();
    held_on(&masters, &guard, 3);
    masters[1].del("job");

    sleep(Duration::from_secs(4));

    assert_eq!(guard.check(), Ok(()));
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
}

pub(crate) fn a_watch_outlives_its_guard_and_says_released(transport: &Transport) {
    let masters = masters(1);
    let locker = open(transport, &masters);
    let dropped = locker.lock("dropped").wait().unwrap();
    let released = locker.lock("released").wait().unwrap();
    let watches = [dropped.watch(), released.watch()];

    scope(|scope| {
        let told = watches.clone().map(|watch| scope.spawn(move || watch.lost().wait()));
        drop(dropped);
        released.release().wait().unwrap();
        for told in told {
            assert_eq!(told.join().unwrap(), LossCause::Released);
        }
    });

    assert!(watches.iter().all(|watch| !watch.is_valid() && watch.check() == Err(LossCause::Released)));
}

pub(crate) fn no_late_answer_makes_a_released_lock_valid_again(transport: &Transport) {
    let masters = masters(1);
    let config = hasty(masters.urls()).request_timeout(millis(50)).build().unwrap();
    let locker = transport.open(config);
    all_ready(&locker);
    let ttl = millis(90);
    for round in 0..100 {
        let keys = 0..20;
        let guards: Vec<_> =
            keys.filter_map(|key| locker.lock(format!("job{key}")).ttl(ttl).renew().wait().ok()).collect();
        let watches: Vec<_> = guards.iter().map(Guard::watch).collect();
        sleep(millis(24 + round % 8));
        // At about this time all guards are renewed.
        drop(guards);
        for _ in 0..20 {
            assert!(watches.iter().all(|watch| !watch.is_valid()), "in round {round}");
            sleep(Duration::from_micros(100));
        }
    }
}

pub(crate) fn an_extension_whose_future_was_dropped_is_known_to_the_guard(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    let guard = locker.lock("job").wait().unwrap();

    transport.block_on(async {
        drop(smol::future::poll_once(guard.extend(2 * TTL)).await);
    });

    eventually(SOON, "the guard is valid for longer", || guard.remaining() > TTL);
    assert!(masters.iter().filter(|master| master.pttl("job") > 70_000).count() >= 2);
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
}
