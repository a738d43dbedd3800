//! Masters that hang, are stopped or killed.

use std::time::{Duration, Instant};

use crate::kit::*;

/// Takes twenty locks, none of which may wait for the silent master: one wait would take
/// [`PATIENCE`].
#[track_caller]
fn twenty_locks_without_waiting(locker: &Locker, votes: &[RedisServer]) {
    let start = Instant::now();
    for _ in 0..20 {
        let guard = locker.lock("job").wait().unwrap();
        held_on(votes, &guard, votes.len());
        guard.release().wait().unwrap();
    }
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    no_key(votes, "job");
}

pub(crate) fn a_hung_master_costs_nothing(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    all_ready(&locker);
    masters[0].stop();

    twenty_locks_without_waiting(&locker, &masters[1..]);

    masters[0].cont();
    no_key(&masters, "job");
}

pub(crate) fn a_master_that_hangs_from_the_start_costs_nothing(transport: &Transport) {
    let masters = masters(3);
    masters[0].stop();

    twenty_locks_without_waiting(&open(transport, &masters), &masters[1..]);

    masters[0].cont();
    no_key(&masters, "job");
}

pub(crate) fn a_hung_master_that_was_given_up_costs_nothing(transport: &Transport) {
    let masters = masters(3);
    let config = patient(masters.urls()).request_timeout(millis(50));
    let locker = transport.open(config.build().unwrap());
    all_ready(&locker);
    masters[0].stop();
    eventually(SOON, "the silence is noticed", || {
        // Other slow masters do not matter for this scenario.
        let _ = locker.lock("job").wait().map(|guard| guard.release().wait());
        matches!(locker.masters()[0].1, MasterState::Down(Cause::NoAnswer { .. }))
    });
    let patient = open(transport, &masters);

    twenty_locks_without_waiting(&patient, &masters[1..]);
}

pub(crate) fn a_killed_master_costs_nothing(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    all_ready(&locker);
    masters[2].kill();

    twenty_locks_without_waiting(&locker, &masters[..2]);
}

pub(crate) fn a_hung_master_is_named_in_the_error(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    all_ready(&locker);
    masters[1].stop();
    occupy(&masters[..1], "held");
    masters[2].kill();

    let no_quorum = locker.try_lock("job").wait().unwrap_err();
    masters[2].restart();
    all_but_one_ready(&locker);
    let held = locker.try_lock("held").wait().unwrap_err();

    assert!(matches!(no_quorum, AcquireError::NoQuorum(_)), "{no_quorum}");
    // Grants and answers that the lock is held form a quorum together.
    assert!(matches!(held, AcquireError::HeldByAnother(_)), "{held}");
    for text in [no_quorum.to_string(), held.to_string()] {
        assert!(text.contains(&format!("{} no ", masters[1].address())), "{text}");
    }
    assert!(held.to_string().contains(&format!("{} held by another for ", masters[0].address())), "{held}");
    no_key(&masters[..1], "job");
    no_key(&masters[2..], "held");
}

pub(crate) fn beside_a_dead_master_held_by_another_is_returned_however_slow_the_third_answers(
    transport: &Transport,
) {
    let masters = masters(3);
    let proxy = FaultProxy::start(masters[1].address());
    let urls = [masters[0].url(), proxy.url(), masters[2].url()];
    let locker = transport.open(patient(urls).build().unwrap());
    all_ready(&locker);
    occupy(&masters[..2], "job");
    masters[2].kill();
    all_but_one_ready(&locker);
    proxy.delay(Direction::Both, millis(100));

    let error = locker.try_lock("job").wait().unwrap_err();

    assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
}

#[track_caller]
fn all_but_one_ready(locker: &Locker) {
    let most = locker.masters().len() - 1;
    eventually_equals(SOON, "all masters but one are connected", most, || ready(locker));
}

pub(crate) fn two_refusals_and_a_hung_master_are_decided_at_once(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    all_ready(&locker);
    occupy(&masters[..2], "job");
    masters[2].stop();

    let start = Instant::now();
    let error = locker.try_lock("job").wait().unwrap_err();

    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
    masters[2].cont();
    no_key(&masters[2..], "job");
}

pub(crate) fn two_of_three_stopped_is_no_quorum_within_the_wait_and_leaves_no_key(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    all_ready(&locker);
    masters[0].stop();
    masters[1].stop();

    let start = Instant::now();
    let error = locker.lock("job").timeout(Duration::from_secs(1)).wait().unwrap_err();

    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    for master in &masters[..2] {
        assert!(error.to_string().contains(&format!("{} no ", master.address())), "{error}");
    }
    no_key(&masters[2..], "job");
    masters[0].cont();
    masters[1].cont();
    no_key(&masters, "job");
}

pub(crate) fn a_hung_master_that_continues_votes_again_despite_the_backoff(transport: &Transport) {
    let masters = masters(3);
    // A pause that no caller would outwait.
    let pause = Duration::from_secs(300);
    let config = hasty(masters.urls()).reconnect_delay(pause..=pause).build().unwrap();
    let locker = transport.open(config);
    all_ready(&locker);
    masters[0].stop();
    eventually(SOON, "the silence is noticed", || {
        locker.lock("job").wait().unwrap().release().wait().unwrap();
        matches!(
            locker.masters()[0].1,
            MasterState::Down(Cause::NoAnswer { .. } | Cause::NoConnection { .. })
        )
    });

    masters[0].cont();

    all_ready(&locker);
    held_on(&masters, &locker.lock("job").wait().unwrap(), 3);
}

pub(crate) fn a_master_stopped_past_several_attempts_keeps_no_key_of_theirs(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    all_ready(&locker);
    occupy(&masters[1..2], "job");
    masters[0].stop();

    let error = locker.lock("job").attempts(4).timeout(SOON).wait().unwrap_err();

    assert_eq!(error.ballot().unwrap().attempts(), 4, "{error}");
    masters[0].cont();
    all_ready(&locker);
    no_key(&masters[..1], "job");
    no_key(&masters[2..], "job");
    assert_eq!(masters[1].get("job").as_deref(), Some("foreign"));
}

pub(crate) fn a_lock_released_while_a_master_was_stopped_leaves_no_key_there(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    masters[2].stop();

    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    // Sleeps past the timeout, so that the connection with the release on it is given up.
    std::thread::sleep(millis(600));
    masters[2].cont();

    no_key(&masters, "job");
}

pub(crate) fn a_stop_of_all_masters_past_the_ttl_grants_nothing_for_longer_than_its_keys(
    transport: &Transport,
) {
    let ttl = millis(500);
    for timeout in [millis(200), SOON] {
        let masters = masters(3);
        let locker = open_hasty(transport, &masters);
        all_ready(&locker);
        for master in &*masters {
            master.stop();
        }

        let result = std::thread::scope(|scope| {
            let seeking = scope.spawn(|| locker.lock("job").ttl(ttl).timeout(timeout).wait());
            std::thread::sleep(3 * ttl);
            for master in &*masters {
                master.cont();
            }
            seeking.join().unwrap()
        });

        match result {
            // The lock was granted to a later attempt, after the masters continued.
            Ok(guard) => {
                assert_eq!(timeout, SOON);
                let holding = || {
                    let token = Some(guard.token().expose());
                    masters.iter().filter(|master| master.get("job") == token).count()
                };
                // The keys are read first, because the fault would be a key that is gone while the
                // guard is still valid.
                let (holding, valid) = (holding(), guard.is_valid());
                assert!(holding >= 2 || !valid, "{holding} masters hold a lock that is called valid");
                assert!(guard.remaining() <= ttl);
            }
            Err(error) => assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}"),
        }
        no_key(&masters, "job");
    }
}

pub(crate) fn validity_counts_from_before_the_first_request(transport: &Transport) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    let locker = transport.open(patient(urls(&proxies)).build().unwrap());
    all_ready(&locker);
    let delay = millis(400);
    for proxy in &proxies {
        proxy.delay(Direction::Both, delay);
    }

    let guard = locker.lock("job").wait().unwrap();

    let drift = TTL / 100 + millis(2);
    assert!(guard.remaining() <= TTL - drift - 2 * delay, "{:?}", guard.remaining());
}

pub(crate) fn a_grant_that_arrives_after_its_validity_does_not_count(transport: &Transport) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    let config = patient(urls(&proxies)).request_timeout(millis(480)).build().unwrap();
    let locker = transport.open(config);
    all_ready(&locker);
    // The answer arrives in time for the request, but too late for the lock.
    for proxy in &proxies {
        proxy.delay(Direction::ToClient, millis(496));
    }

    // Any error may be returned, but not a guard that is valid without its keys.
    match locker.try_lock("job").ttl(millis(500)).wait() {
        Ok(guard) => assert!(guard.remaining() <= millis(4)),
        Err(AcquireError::TooLate(_) | AcquireError::NoQuorum(_)) => {}
        Err(error) => panic!("{error}"),
    }
    no_key(&masters, "job");
}
