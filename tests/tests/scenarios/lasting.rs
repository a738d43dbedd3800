//! Locks that outlive their masters' data and their holders' processes, and one that does not
//! outlive its end.

use std::path::Path;
use std::thread::sleep;

use quorlock_tests::chaos::client::Orders;
use quorlock_tests::chaos::history::{Event, What, Writer};
use quorlock_tests::chaos::{ClientProcess, Program, checker, history};

use crate::kit::*;

pub(crate) fn a_healed_lock_outlives_all_masters_that_granted_it(transport: &Transport) {
    let masters = masters(5);
    masters[3].kill();
    masters[4].kill();
    // Shorter than the bound of every wait, and far longer than a renewal takes on a busy machine.
    let ttl = 6 * SECOND;
    let locker = transport.open(hasty(masters.iter().map(RedisServer::url)).build().unwrap());
    let guard = locker.lock("job").ttl(ttl).renew().heal().wait().unwrap();
    held_on(&masters[..3], &guard, 3);
    let token = guard.token().expose();
    let put_back = |place: usize| {
        eventually(SOON, "the lock was put back", || {
            assert!(guard.is_valid(), "{:?}", guard.check());
            masters[place].get("job").as_deref() == Some(token.as_str())
        });
    };

    masters[3].restart();
    masters[4].restart();
    put_back(3);
    put_back(4);
    for place in 0..3 {
        masters[place].kill();
        masters[place].restart();
        assert_eq!(masters[place].get("job"), None);
        put_back(place);
    }

    held_on(&masters, &guard, 5);
    assert!(guard.is_valid());
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    no_key(&masters, "job");
}

pub(crate) fn a_lock_that_was_handed_over_is_extended_and_released_by_another_locker(transport: &Transport) {
    let masters = masters(3);
    let (first, second) = (open(transport, &masters), open(transport, &masters));
    let guard = first.lock("job").renew().wait().unwrap();
    held_on(&masters, &guard, 3);
    let (watch, token) = (guard.watch(), guard.token());

    let resumption = guard.hand_over().unwrap();

    assert_eq!(watch.check(), Err(LossCause::HandedOver));
    // A key whose answer had not been read is not the other's to know: the hand-over deletes it.
    assert!(masters.holding("job") >= 2, "a quorum holds it");
    assert!(second.try_lock("job").wait().is_err(), "it is held as before");
    let guard = second.resume("job", resumption).wait().unwrap();
    assert!(guard.is_valid() && !watch.is_valid());
    assert_eq!(guard.token(), token);
    assert!(guard.extend(2 * TTL).wait().unwrap() > TTL);
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    no_key(&masters, "job");

    let error = first.resume("job", resumption).wait().unwrap_err();
    assert!(matches!(error, AcquireError::NotHeld(_)), "{error}");
    assert_eq!(masters.holding("job"), 0);
}

pub(crate) fn a_lock_that_was_handed_over_is_released_by_its_token(transport: &Transport) {
    let masters = masters(3);
    let (first, second) = (open(transport, &masters), open(transport, &masters));
    let guard = first.lock("job").wait().unwrap();
    // A quorum grants the lock. The release uses other connections, and could arrive before the
    // third master's request.
    held_on(&masters, &guard, 3);
    let resumption = guard.hand_over().unwrap();

    assert_eq!(second.release("job", resumption.token).wait(), Ok(Released::Freed));

    no_key(&masters, "job");
    let again = second.release("job", resumption.token).wait();
    assert_eq!(again, Err(ReleaseError::NotOurs(None)));
    // The old token does not affect another client's lock.
    let next = second.lock("job").wait().unwrap();
    held_on(&masters, &next, 3);
    assert_eq!(first.release("job", resumption.token).wait(), Err(ReleaseError::NotOurs(None)));
    assert_eq!(next.release().wait(), Ok(Released::Freed));
}

pub(crate) fn a_process_that_was_stopped_past_its_ttl_never_calls_itself_valid(transport: &Transport) {
    let masters = masters(3);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history");
    let writer = Writer::open(&path).unwrap();
    let ttl = 1_000;
    let orders = Orders {
        name: "holder".to_owned(),
        seed: 1,
        transport: transport.name().to_owned(),
        history: path.clone(),
        store: None,
        fenced: false,
        restart_guard: None,
        request_timeout: None,
        ttl: (ttl, ttl),
        hold: (600_000, 600_000),
        varied: false,
        exchange: None,
        resources: vec!["job".to_owned()],
        masters: masters.urls(),
        routes: Vec::new(),
    };
    let program = Program { path: env!("CARGO_BIN_EXE_chaos_client").into(), arguments: Vec::new() };
    let holder = ClientProcess::start(&program, &orders).unwrap();
    eventually(SOON, "it holds the lock", || counted(&path, |what| matches!(what, What::Valid { .. })) > 0);

    holder.pause(&writer);
    // Renewal stops with the process, and the keys expire.
    no_key(&masters, "job");
    sleep(millis(ttl));
    let rival = open(transport, &masters).lock("job").wait().unwrap();
    holder.resume(&writer);

    eventually(SOON, "it knows that it was lost", || {
        counted(&path, |what| matches!(what, What::Ended { .. })) > 0
    });
    assert!(rival.is_valid());
    assert_eq!(rival.release().wait(), Ok(Released::Freed));
    drop(holder);
    let events = history::read(&path).unwrap();
    assert_eq!(checker::check(&events), []);
    let of_the_first = |event: &&Event| match &event.what {
        What::Valid { by } | What::Ended { by, .. } => by.attempt == 1,
        _ => false,
    };
    let continued = events.iter().find(|event| matches!(event.what, What::Continued { .. })).unwrap();
    // It may have been stopped between a look at its guard and the note of that.
    let told = events.iter().filter(of_the_first).filter(|event| event.at > continued.at);
    let told: Vec<_> = told.map(|event| &event.what).collect();
    assert!(matches!(told[..], [What::Ended { .. }]), "{told:?}");
}

fn counted(path: &Path, is_it: impl Fn(&What) -> bool) -> usize {
    // The last line may be incomplete, so errors are ignored.
    let events = history::read(path).unwrap_or_default();
    events.iter().filter(|event| is_it(&event.what)).count()
}
