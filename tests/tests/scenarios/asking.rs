//! Inspecting locks, clearing them, and keeping others out after a release.

use std::time::Instant;

use quorlock_core::{Deletion, ForceReleaseError, InspectError, KeyState, LockState, Target};

use crate::kit::*;

pub(crate) fn an_inspection_reports_the_holder_of_a_lock_and_for_how_long(transport: &Transport) {
    let masters = masters(3);
    let [locker, other] = [(); 2].map(|()| open(transport, &masters));
    assert!(locker.inspect("job").wait().unwrap().is_free());

    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    let seen = transport.block_on(locker.inspect("job")).unwrap();
    assert!(seen.is_held() && seen.is_ours(), "{seen}");
    assert!(seen.remaining().is_some_and(|left| left <= TTL && left > TTL / 2), "{seen}");
    let theirs = other.inspect("job").wait().unwrap();
    assert!(theirs.is_held() && !theirs.is_ours(), "{theirs}");
    assert!(other.inspect("job").token(guard.token()).wait().unwrap().is_ours());
    let digits = guard.token().expose();
    assert!(!format!("{theirs:?} {theirs}").contains(&digits[..8]), "{theirs:?}");
    for (_, answer) in theirs.masters() {
        let server = &answer.unwrap().server;
        assert!(server.version.is_some() && server.role.as_deref() == Some("master"), "{server:?}");
    }
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    assert!(other.inspect("job").wait().unwrap().is_free());
    assert!(matches!(locker.inspect("").wait(), Err(InspectError::Invalid(_))));
}

pub(crate) fn a_key_of_a_plain_client_shows_in_an_inspection(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    occupy(&masters[..2], "job");
    assert!(masters[2].set_nx("job", "another"));
    let seen = locker.inspect("job").wait().unwrap();
    assert!(matches!(seen.state(), LockState::Held(holding) if holding.on == 2), "{seen:?}");
    let holders: Vec<_> = seen.holders().map(|(holder, on)| (holder.to_string(), on)).collect();
    assert_eq!(holders, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
    let last = seen.masters().last().unwrap().1.unwrap().key;
    assert!(matches!(last, KeyState::Held { remaining: None, .. }), "{last:?}");
    masters[2].del("job");
    masters[2].command(&["LPUSH", "job", "x"]);
    let seen = locker.inspect("job").wait().unwrap();
    assert_eq!(seen.masters().last().unwrap().1.unwrap().key, KeyState::OtherType);
}

pub(crate) fn an_inspection_does_not_wait_for_a_silent_master_for_long(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    all_ready(&locker);
    masters[0].stop();
    let begun = Instant::now();
    let seen = locker.inspect("job").wait().unwrap();
    assert!(begun.elapsed() < SOON && seen.is_free(), "{seen} after {:?}", begun.elapsed());
    assert!(seen.masters().next().unwrap().1.is_err());
    masters[1].kill();
    let seen = locker.inspect("job").wait().unwrap();
    assert_eq!(seen.state(), LockState::Unknown, "{seen}");
    masters[0].cont();
}

pub(crate) fn a_lock_of_any_client_can_be_cleared_and_its_holder_is_notified(transport: &Transport) {
    let masters = masters(3);
    let [locker, other] = [(); 2].map(|()| open_hasty(transport, &masters));
    let guard = locker.lock("job").ttl(SECOND * 3).renew().wait().unwrap();
    held_on(&masters, &guard, 3);
    let cleared = other.force_release("job").wait().unwrap();
    assert_eq!((cleared.deleted(), cleared.absent()), (3, 0));
    no_key(&masters, "job");
    assert_eq!(guard.lost().wait(), LossCause::NotHeld);

    occupy(&masters, "job");
    masters[2].del("job");
    masters[2].command(&["LPUSH", "job", "x"]);
    let cleared = transport.block_on(other.force_release("job")).unwrap();
    let deletions: Vec<_> = cleared.masters().map(|(_, deletion)| deletion.unwrap()).collect();
    assert_eq!(deletions, [Deletion::Deleted, Deletion::Deleted, Deletion::OtherType]);
    assert!(masters[2].exists("job"));
}

pub(crate) fn a_waiter_of_the_clearing_process_is_woken(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    occupy(&masters, "job");
    let waiter = {
        let locker = locker.clone();
        std::thread::spawn(move || locker.lock("job").wait().map(drop))
    };
    eventually(SOON, "a caller waits", || locker.report().waiting == 1);
    locker.force_release("job").wait().unwrap();
    assert_eq!(waiter.join().unwrap(), Ok(()));
}

pub(crate) fn too_few_masters_that_clear_a_lock_are_an_error(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    occupy(&masters, "job");
    masters[0].kill();
    masters[1].kill();
    let error = locker.force_release("job").wait().unwrap_err();
    let ForceReleaseError::TooFew(outcome) = &error else { panic!("{error}") };
    assert_eq!((outcome.deleted(), outcome.absent()), (1, 0));
    assert!(error.to_string().contains("too few to free it"), "{error}");
}

pub(crate) fn a_minimum_hold_time_keeps_others_out_until_it_is_over(transport: &Transport) {
    let masters = masters(3);
    let [locker, other] = [(); 2].map(|()| open(transport, &masters));
    let guard = locker.lock("job").renew().wait().unwrap();
    let granted = Instant::now();
    held_on(&masters, &guard, 3);
    let watch = guard.watch();
    let release = guard.release_after(SECOND);
    assert!(release.keeps_for().is_some_and(|left| left <= SECOND));
    assert_eq!(release.wait(), Ok(Released::Freed));
    assert_eq!(watch.check(), Err(LossCause::Released));
    // The remaining life of the key is the rest of the second plus the drift, not the TTL of a
    // minute.
    eventually(SOON, "all masters have answered", || {
        masters.iter().all(|master| master.pttl("job") <= 1_012)
    });
    drop(locker);
    let refused = other.try_lock("job").wait();
    let is_early = granted.elapsed() < SECOND;
    assert!(!is_early || matches!(refused, Err(AcquireError::HeldByAnother(_))), "{refused:?}");
    drop(refused);
    let next = other.lock("job").wait().unwrap();
    assert!(granted.elapsed() >= SECOND - millis(5), "{:?}", granted.elapsed());
    assert_eq!(next.release().wait(), Ok(Released::Freed));
    no_key(&masters, "job");
}

pub(crate) fn a_minimum_hold_time_longer_than_the_ttl_lengthens_the_keys(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    let token = guard.token();
    assert_eq!(guard.release_after(TTL * 5).wait(), Ok(Released::Freed));
    eventually(SOON, "all masters have answered", || {
        masters.iter().all(|master| master.pttl("job") > 240_000)
    });
    // The keys have no holder now.
    assert_eq!(locker.release("job", token).wait(), Err(ReleaseError::NotOurs(None)));
    assert!(!locker.inspect("job").token(token).wait().unwrap().is_ours());
    assert!(locker.inspect("job").wait().unwrap().is_held());
    assert_eq!(locker.force_release("job").wait().unwrap().deleted(), 3);
}

pub(crate) fn a_minimum_hold_time_works_for_every_kind_of_lock(transport: &Transport) {
    let masters = masters(3);
    let [locker, other] = [(); 2].map(|()| open(transport, &masters));
    let granted = Instant::now();
    let span = SECOND * 2;
    let mixed = locker.lock_all([Target::write("x"), Target::read("doc")]).fenced().wait().unwrap();
    let reader = locker.read("plan").wait().unwrap();
    let permit = locker.semaphore("gpu", 3).unwrap().acquire().wait().unwrap();
    let permits = locker.semaphore("gpu", 3).unwrap().acquire_many(2).wait().unwrap();
    let releases = [
        mixed.release_after(span),
        reader.release_after(span),
        permit.release_after(span),
        permits.release_after(span),
    ];
    for release in releases {
        assert_eq!(release.wait(), Ok(Released::Freed));
    }
    drop(locker);
    drop(other.read("doc").attempts(1).wait().unwrap());
    drop(other.read("plan").attempts(1).wait().unwrap());
    let writers = [other.lock("x"), other.write("doc"), other.write("plan")];
    let refused = other.semaphore("gpu", 3).unwrap().acquire().attempts(1).wait();
    assert!(refused.is_err() || granted.elapsed() > span, "{refused:?}");
    for request in writers {
        let refused = request.attempts(1).wait();
        assert!(refused.is_err() || granted.elapsed() > span, "{refused:?}");
    }
    let all = other.lock_all(["x", "doc", "plan"]).wait().unwrap();
    assert!(granted.elapsed() >= span - millis(5), "{:?}", granted.elapsed());
    assert_eq!(all.release().wait(), Ok(Released::Freed));
}

pub(crate) fn a_minimum_hold_time_that_is_over_is_an_ordinary_release(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    std::thread::sleep(millis(20));
    let release = guard.release_after(millis(10));
    assert_eq!(release.keeps_for(), None);
    assert_eq!(release.wait(), Ok(Released::Freed));
    no_key(&masters, "job");

    // This is longer than any key may live, so nothing is sent, and the keys expire after the TTL.
    let guard = locker.lock("long").wait().unwrap();
    held_on(&masters, &guard, 3);
    let watch = guard.watch();
    let error = guard.release_after(TTL * 60 * 24 * 400).wait().unwrap_err();
    assert!(matches!(error, ReleaseError::Invalid(_)), "{error}");
    assert_eq!(watch.check(), Err(LossCause::Released));
    assert!(masters.iter().all(|master| master.pttl("long") > 30_000));

    let handed = locker.lock("handed").wait().unwrap();
    held_on(&masters, &handed, 3);
    let proof = handed.hand_over().unwrap();
    assert_eq!(locker.release_after("handed", proof.token, TTL * 5).wait(), Ok(Released::Freed));
    // A key whose answer had not been read is not the other's to know: the hand-over deletes it.
    let kept = masters.iter().filter(|master| master.pttl("handed") > 240_000).count();
    assert!(kept >= 2, "{kept} masters keep it");
}
