//! Inspecting shared locks and permits, clearing them, releasing readers by their tokens, and
//! clients that do not know kinds.

use quorlock_core::{Group, LockState, Sharing, Target};

use crate::kit::*;

#[track_caller]
fn sharing(locker: &Locker, key: &str) -> Sharing {
    let seen = locker.inspect(key).wait().unwrap();
    let LockState::Shared(sharing) = seen.state() else { panic!("{seen}") };
    sharing
}

/// Waits until all masters have this number of entries: some arrive after the grant.
#[track_caller]
fn shared_on_all(masters: &[RedisServer], key: &str, by: usize) {
    eventually_equals(SOON, "sharers", vec![by; masters.len()], || {
        masters.iter().map(|master| master.sharers(key)).collect()
    });
}

pub(crate) fn an_inspection_counts_readers_and_tells_when_the_last_one_ends(transport: &Transport) {
    let masters = masters(3);
    let [locker, other] = [(); 2].map(|()| open(transport, &masters));
    let first = locker.read("doc").ttl(TTL / 2).wait().unwrap();
    let second = other.read("doc").wait().unwrap();
    shared_on_all(&masters, "doc", 2);
    for locker in [&locker, &other] {
        let seen = transport.block_on(locker.inspect("doc")).unwrap();
        assert!(seen.is_held() && seen.is_ours() && seen.group() == Some(&Group::READERS), "{seen}");
        let sharing = sharing(locker, "doc");
        assert_eq!((sharing.sharers, sharing.on, sharing.wanted_on), (Some(2), 3, 0));
        assert!(seen.remaining().is_some_and(|left| left <= TTL && left > TTL / 2), "{seen}");
        assert!(seen.to_string().starts_with("2 readers, of which one is ours, the last ends in "), "{seen}");
        let digits = [first.token().expose(), second.token().expose()];
        assert!(digits.iter().all(|digits| !format!("{seen:?}{seen}").contains(&digits[..8])));
    }
    drop(second);
    shared_on_all(&masters, "doc", 1);
    assert!(sharing(&locker, "doc").remaining.is_some_and(|left| left <= TTL / 2));
    assert_eq!(sharing(&other, "doc").ours, 0);
    drop(first);
    no_key(&masters, "doc");
    assert!(other.inspect("doc").wait().unwrap().is_free());

    let group = Group::new("job:42").unwrap();
    let _member = locker.share("doc", group.clone()).wait().unwrap();
    shared_on_all(&masters, "doc", 1);
    let seen = other.inspect("doc").wait().unwrap();
    assert_eq!(seen.group(), Some(&group));
    assert!(seen.to_string().starts_with("1 of group job:42, it ends in "), "{seen}");
}

pub(crate) fn an_inspection_of_a_semaphore_tells_which_permits_are_held(transport: &Transport) {
    let masters = masters(3);
    let [locker, other] = [(); 2].map(|()| open(transport, &masters));
    let [gpu, others] = [&locker, &other].map(|locker| locker.semaphore("gpu", 4).unwrap());
    let none = transport.block_on(gpu.inspect()).unwrap();
    assert_eq!((none.to_string().as_str(), none.permits()), ("none of 4 permits held", 4));
    let (ours, theirs) = (gpu.acquire().wait().unwrap(), others.acquire().wait().unwrap());
    let seats = [&ours, &theirs].map(|permit| format!("quorlock:seat:{}/{{gpu}}", permit.index()));
    for seat in &seats {
        eventually(SOON, "a permit on all masters", || masters.iter().all(|master| master.exists(seat)));
    }
    let seen = gpu.inspect().wait().unwrap();
    let mut expected = [ours.index(), theirs.index()];
    expected.sort_unstable();
    assert_eq!(seen.held().map(|(index, _)| index).collect::<Vec<_>>(), expected);
    let said = format!("permits {} and {} of 4 held; ours: {}", expected[0], expected[1], ours.index());
    assert_eq!(seen.to_string(), said);
    assert!(seen.held().all(|(_, held)| held.on == 3 && held.remaining.is_some_and(|left| left <= TTL)));
    assert_eq!(seen.free().count(), 2);

    let cleared = gpu.force_release(theirs.index()).wait().unwrap();
    assert_eq!((cleared.deleted(), cleared.absent()), (3, 0));
    let left = gpu.inspect().wait().unwrap();
    assert_eq!(left.held().map(|(index, _)| index).collect::<Vec<_>>(), [ours.index()]);
    assert!(matches!(gpu.force_release(1024).wait(), Err(quorlock_core::ForceReleaseError::Invalid(_))));
}

pub(crate) fn all_permits_of_a_semaphore_are_reported_in_one_answer(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    for master in masters.iter() {
        let mut client = master.client().unwrap();
        for index in 0..1024 {
            let seat = format!("quorlock:seat:{index}/{{gpu}}");
            assert!(client.command(&["SET", &seat, &"x".repeat(40), "PX", "60000"]).is_ok());
        }
    }
    let seen = locker.semaphore("gpu", 1024).unwrap().inspect().wait().unwrap();
    assert_eq!(seen.to_string(), "permits 0 to 1023 of 1024 held");
}

pub(crate) fn a_thousand_readers_are_reported_in_one_answer(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    let reader = locker.read("doc").wait().unwrap();
    shared_on_all(&masters, "doc", 1);
    for master in masters.iter() {
        let others = (0..1_500).map(|reader| format!("0009000000000000:{reader:040x}"));
        let value = master.get("doc").unwrap() + &others.collect::<String>();
        assert!(master.command(&["SET", "doc", &value, "PX", "60000"]).is_ok());
    }
    let sharing = sharing(&locker, "doc");
    assert_eq!((sharing.sharers, sharing.on), (Some(1_000), 3));
    assert_eq!(reader.release().wait(), Ok(Released::Freed));
}

pub(crate) fn a_token_of_any_kind_of_lock_is_released(transport: &Transport) {
    let masters = masters(3);
    let [locker, other] = [(); 2].map(|()| open(transport, &masters));
    let stays = other.read("doc").wait().unwrap();
    for target in [Target::read("doc"), Target::share("team", Group::new("job:42").unwrap()), "job".into()] {
        let guard = locker.lock_all([target]).wait().unwrap();
        let name = guard.resource().to_string();
        // Waits until the lock's requests have reached all masters: the release uses other
        // connections, and could arrive first.
        match name.as_str() {
            "job" => held_on(&masters, &guard, 3),
            name => shared_on_all(&masters, name, if name == "doc" { 2 } else { 1 }),
        }
        let token = guard.hand_over().unwrap().token;
        let released = transport.block_on(other.release(&name, token)).unwrap();
        assert_eq!(released, Released::Freed, "{name}");
        assert_eq!(other.release(&name, token).wait(), Err(ReleaseError::NotOurs(None)), "{name}");
    }
    shared_on_all(&masters, "doc", 1);
    assert_eq!(stays.release().wait(), Ok(Released::Freed));
    for name in ["doc", "team", "job"] {
        no_key(&masters, name);
    }
}

pub(crate) fn a_shared_lock_can_be_cleared_and_its_readers_are_told(transport: &Transport) {
    let masters = masters(3);
    let [locker, other] = [(); 2].map(|()| open_hasty(transport, &masters));
    let readers = [(); 3].map(|()| locker.read("doc").ttl(SECOND * 3).renew().wait().unwrap());
    shared_on_all(&masters, "doc", 3);
    let cleared = other.force_release("doc").wait().unwrap();
    assert_eq!((cleared.deleted(), cleared.absent()), (3, 0));
    for reader in readers {
        assert_eq!(reader.lost().wait(), LossCause::NotHeld);
    }
    let writer = other.write("doc").wait().unwrap();
    assert_eq!(writer.release().wait(), Ok(Released::Freed));
    no_key(&masters, "doc");
}

pub(crate) fn a_plain_set_nx_and_each_kind_keep_each_other_out(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    let kinds: [(&str, &[Target]); 5] = [
        ("a writer", &[Target::write("a")]),
        ("a reader", &[Target::read("a")]),
        ("a group", &[Target::share("a", Group::new("job:42").unwrap())]),
        ("a batch", &[Target::write("a"), Target::write("b")]),
        ("a mixed batch", &[Target::read("a"), Target::write("b")]),
    ];
    for (kind, targets) in kinds {
        let guard = locker.lock_all(targets.iter().cloned()).wait().unwrap();
        eventually(SOON, "the key on all masters", || masters.iter().all(|master| master.exists("a")));
        for master in masters.iter() {
            // The key is a string for every client, so none gets WRONGTYPE.
            assert_eq!(master.command(&["TYPE", "a"]).text(), Some("string"), "{kind}");
            assert!(!master.set_nx("a", "theirs"), "{kind} is passed by");
        }
        assert_eq!(guard.release().wait(), Ok(Released::Freed), "{kind}");
        no_key(&masters, "a");

        for master in masters.iter() {
            assert!(master.command(&["SET", "a", "theirs", "NX", "PX", "60000"]).is_ok());
        }
        let refused = locker.lock_all(targets.iter().cloned()).attempts(1).wait().unwrap_err();
        assert!(matches!(refused, AcquireError::HeldByAnother(_)), "{kind}: {refused}");
        for master in masters.iter() {
            assert_eq!(master.get("a").as_deref(), Some("theirs"), "{kind}");
            master.del("a");
        }
        no_key(&masters, "b");
    }
}
