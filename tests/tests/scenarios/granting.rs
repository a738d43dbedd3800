//! Grants and refusals, as seen from outside.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::kit::*;

pub(crate) fn one_three_and_five_masters_grant_and_release(transport: &Transport) {
    for n in [1, 3, 5] {
        granted_and_released(transport, n);
    }
}

pub(crate) fn even_numbers_of_masters_grant_and_release(transport: &Transport) {
    for n in [2, 4] {
        granted_and_released(transport, n);
    }
}

fn granted_and_released(transport: &Transport, n: usize) {
    let masters = masters(n);
    let locker = open(transport, &masters);

    let guard = locker.lock("job").wait().unwrap();

    assert!(guard.is_valid());
    assert_eq!(guard.check(), Ok(()));
    held_on(&masters, &guard, n);
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    no_key(&masters, "job");
}

pub(crate) fn the_very_first_lock_after_start_holds_on_all_masters(transport: &Transport) {
    let masters = masters(5);
    for _ in 0..10 {
        let guard = open(transport, &masters).try_lock("job").wait().unwrap();
        held_on(&masters, &guard, 5);
        guard.release().wait().unwrap();
    }
}

pub(crate) fn every_key_is_a_plain_string_with_the_token_and_the_ttl(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);

    let guard = locker.lock("invoice:42").ttl(Duration::from_secs(30)).wait().unwrap();

    held_on(&masters, &guard, 3);
    assert_eq!(guard.token().expose().len(), 40);
    for master in &*masters {
        assert_eq!(master.command(&["TYPE", "invoice:42"]).text(), Some("string"));
        let pttl = master.pttl("invoice:42");
        assert!((20_000..=30_000).contains(&pttl), "{pttl}");
        // The key outlives the validity.
        assert!(u128::try_from(pttl).unwrap() >= guard.remaining().as_millis());
    }
}

pub(crate) fn keys_may_be_any_bytes(transport: &Transport) {
    let masters = masters(1);
    let locker = open(transport, &masters);
    let name = [0, 255, b'\r', b'\n', b' ', b'$'];

    let guard = locker.lock(name).wait().unwrap();

    let mut client = masters[0].client().unwrap();
    assert_eq!(client.command(&[b"GET".as_slice(), &name]).text(), Some(guard.token().expose().as_str()));
    guard.release().wait().unwrap();
    assert!(client.command(&[b"GET".as_slice(), &name]).is_nil());
}

pub(crate) fn a_foreign_set_nx_is_excluded_and_excludes(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);

    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    assert!(masters.iter().all(|master| !master.set_nx("job", "x")));
    guard.release().wait().unwrap();
    no_key(&masters, "job");

    assert!(masters.iter().all(|master| master.set_nx("job", "x")));
    let error = locker.try_lock("job").wait().unwrap_err();
    assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
    assert!(masters.iter().all(|master| master.get("job").as_deref() == Some("x")));
}

pub(crate) fn held_by_another_reports_the_remaining_time_at_once_and_after_a_wait(transport: &Transport) {
    let masters = masters(3);
    let (first, second) = (open(transport, &masters), open(transport, &masters));
    let guard = first.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);

    let at_once = second.try_lock("job").wait().unwrap_err();
    let wait = Instant::now();
    let later = second.lock("job").timeout(millis(500)).wait().unwrap_err();

    assert!(wait.elapsed() >= millis(250), "it did not wait");
    for error in [at_once, later] {
        assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
        let told = error.ballot().unwrap().votes().filter(|(_, vote)| match vote {
            Vote::HeldByAnother { remaining: Some(remaining), .. } => {
                *remaining <= TTL && *remaining > TTL / 3
            }
            _ => false,
        });
        assert!(told.count() >= 2, "{error}");
        assert!(error.to_string().contains("held by another for"), "{error}");
        assert!(error.to_string().starts_with("job not acquired: 0 of 3 votes, 2 needed ("), "{error}");
    }
    assert!(guard.is_valid());
    guard.release().wait().unwrap();
}

pub(crate) fn a_waiter_gets_the_lock_once_it_is_released(transport: &Transport) {
    let masters = masters(3);
    let (first, second) = (open(transport, &masters), open(transport, &masters));
    let guard = first.lock("job").wait().unwrap();

    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| second.lock("job").timeout(SOON).wait());
        std::thread::sleep(millis(300));
        assert!(!waiter.is_finished());
        guard.release().wait().unwrap();
        // A quorum is enough: the release may reach the last master after the waiter has asked it.
        held_by_quorum(&masters, &waiter.join().unwrap().unwrap());
    });
}

pub(crate) fn no_quorum_says_what_each_master_said(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    all_ready(&locker);
    masters[1].kill();
    masters[2].kill();

    let error = locker.lock("job").timeout(millis(500)).wait().unwrap_err();

    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("job not acquired: 1 of 3 votes, 2 needed ("), "{text}");
    for (place, master) in masters.iter().enumerate() {
        let said = if place == 0 { "granted" } else { "connection refused" };
        assert!(text.contains(&format!("{} {said}", master.address())), "{text}");
    }
    no_key(&masters[..1], "job");
}

pub(crate) fn split_votes_of_two_and_four_masters_end_on_both_sides_at_once(transport: &Transport) {
    for n in [2, 4] {
        let masters = masters(n);
        let (ours, theirs) = (proxies(&masters), proxies(&masters));
        let (first, second) = (
            transport.open(patient(urls(&ours)).build().unwrap()),
            transport.open(patient(urls(&theirs)).build().unwrap()),
        );
        all_ready(&first);
        all_ready(&second);
        // For each locker, the other's half of the masters is far away. So each wins its near half
        // before the other's request arrives there.
        for place in 0..n {
            let far = if place < n / 2 { &theirs } else { &ours };
            far[place].delay(Direction::Both, Duration::from_secs(1));
        }

        let start = Instant::now();
        let results = std::thread::scope(|scope| {
            [&first, &second]
                .map(|locker| scope.spawn(|| locker.try_lock("job").wait()))
                .map(|side| side.join())
        });

        for result in results {
            let error = result.unwrap().unwrap_err();
            assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
            assert_eq!(error.ballot().unwrap().granted(), n / 2, "{error}");
        }
        assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
        no_key(&masters, "job");
    }
}

pub(crate) fn every_attempt_has_its_own_token(transport: &Transport) {
    let server = RedisServer::start();
    let masters = std::slice::from_ref(&server);
    let locker = transport.open(patient([server.url()]).wake_ups(false).build().unwrap());
    occupy(masters, "job");
    let mut monitor = server.client().expect("the server answers");
    assert!(monitor.command(&["MONITOR"]).is_ok());

    locker.lock("job").attempts(3).wait().unwrap_err();
    let guard = locker.lock("other").wait().unwrap();

    let mut tokens = BTreeSet::new();
    while tokens.len() < 4 {
        let line = monitor.receive().unwrap();
        let words: Vec<_> =
            line.text().unwrap().split(' ').skip(3).map(|word| word.trim_matches('"')).collect();
        let token = match words[..] {
            ["SET", _, token, ..] => token,
            // The master's key has a TTL. On the other masters the lock is released.
            ["EVAL" | "EVALSHA", .., "1", _, token, _] => token,
            _ => continue,
        };
        assert!(tokens.insert(token.to_owned()), "{words:?}");
    }
    assert!(tokens.contains(&guard.token().expose()));
}

pub(crate) fn a_wait_shorter_than_the_request_timeout_is_used_for_more_than_one_attempt(
    transport: &Transport,
) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    all_ready(&locker);
    occupy(&masters, "job");

    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| locker.lock("job").timeout(PATIENCE / 2).wait());
        std::thread::sleep(millis(300));
        assert!(masters.iter().all(|master| master.del("job")));
        // An attempt may come between the second deletion and the third.
        assert!(waiter.join().unwrap().unwrap().is_valid());
    });
}

pub(crate) fn requests_that_make_no_sense_are_errors_and_send_nothing(transport: &Transport) {
    let masters = masters(1);
    let locker = open(transport, &masters);
    all_ready(&locker);

    for request in [
        locker.lock(""),
        locker.lock(vec![b'x'; 1 << 20]),
        locker.lock("job").ttl(Duration::ZERO),
        locker.lock("job").ttl(Duration::MAX),
        locker.lock("job").ttl(PATIENCE),
    ] {
        let error = request.wait().unwrap_err();
        assert!(matches!(error, AcquireError::Invalid(_)), "{error}");
    }

    assert_eq!(masters[0].calls(Calls::Set), 0);
    // A timeout of zero and zero attempts are small but valid.
    let result = locker.lock("job").timeout(Duration::ZERO).wait();
    assert!(matches!(result, Ok(_) | Err(AcquireError::NoQuorum(_))), "{result:?}");
    drop(result);
    assert!(locker.lock("job").attempts(0).wait().is_ok());
    no_key(&masters, "job");
}
