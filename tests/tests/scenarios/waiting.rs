//! Waiters: those of other processes are notified when a lock becomes free, or else they poll.

use std::thread::{ScopedJoinHandle, scope, sleep};
use std::time::{Duration, Instant};

use quorlock_core::Warning;

use crate::kit::*;

/// A retry delay so large that during a scenario no waiter asks again without a notification.
pub(crate) const NEVER: Duration = Duration::from_secs(60);

type Waiter<'scope> = ScopedJoinHandle<'scope, Result<Guard, AcquireError>>;

/// Settings of lockers that are notified or else wait for [`NEVER`]. The last attempt before their
/// timeout is also far later than [`SOON`].
pub(crate) fn told<U: AsRef<str>>(urls: impl IntoIterator<Item = U>) -> ConfigBuilder {
    patient(urls).retry_delay(NEVER..=NEVER).timeout(NEVER)
}

fn open_told(transport: &Transport, masters: &[RedisServer]) -> Locker {
    transport.open(told(masters.iter().map(RedisServer::url)).build().unwrap())
}

/// Waits until all masters have told this number of waiters that the key is held. From then on they
/// also notify these waiters when the key changes.
#[track_caller]
fn all_refused(masters: &[RedisServer], waiters: u64) {
    eventually(SOON, "the waiters have been refused", || {
        masters.iter().all(|master| master.calls(Calls::Script) >= waiters)
    });
}

#[track_caller]
fn has_it_soon(waiter: Waiter<'_>) -> Guard {
    eventually(SOON, "the waiter has the lock", || waiter.is_finished());
    waiter.join().unwrap().unwrap()
}

fn delete(masters: &[RedisServer], key: &str) {
    for master in masters {
        assert!(master.del(key));
    }
}

fn real_servers() -> Vec<RedisServer> {
    (0..3).map(|_| RedisServer::start()).collect()
}

/// A number in INFO.
#[track_caller]
fn info(master: &RedisServer, section: &str, field: &str) -> i64 {
    let info = master.command(&["INFO", section]);
    let value = info.text().unwrap().lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("INFO {section} tells no {field}")).trim().parse().unwrap()
}

/// The statistics of a master's `CLIENT` commands.
#[track_caller]
fn client_commands(master: &RedisServer) -> String {
    let executed = master.command(&["INFO", "commandstats"]);
    let lines = executed.text().unwrap().lines().filter(|line| line.starts_with("cmdstat_client"));
    lines.collect::<Vec<_>>().join("\n")
}

/// How many connections each master notifies of changes.
fn tracked(masters: &[RedisServer]) -> Vec<i64> {
    masters.iter().map(|master| info(master, "clients", "tracking_clients")).collect()
}

pub(crate) fn a_foreign_release_wakes_a_waiter(transport: &Transport) {
    for freed in [3, 2] {
        let masters = masters(3);
        let locker = open_told(transport, &masters);
        all_ready(&locker);
        occupy(&masters, "job");

        scope(|scope| {
            let waiter = scope.spawn(|| locker.lock("job").wait());
            all_refused(&masters, 1);
            delete(&masters[..freed], "job");

            let guard = has_it_soon(waiter);
            let token = Some(guard.token().expose());
            assert!(masters.get("job").iter().filter(|held| **held == token).count() >= 2);
            assert_eq!(guard.release().wait(), Ok(Released::Freed));
        });
        no_key(&masters[..freed], "job");
    }
}

pub(crate) fn a_foreign_release_wakes_one_waiter_whose_release_wakes_the_other(transport: &Transport) {
    for freed in [3, 2] {
        let masters = masters(3);
        let lockers = [open_told(transport, &masters), open_told(transport, &masters)];
        lockers.iter().for_each(all_ready);
        occupy(&masters, "job");

        scope(|scope| {
            let waiters = lockers.each_ref().map(|locker| {
                scope.spawn(|| {
                    let guard = locker.lock("job").wait().unwrap();
                    assert!(guard.is_valid());
                    guard.release().wait().unwrap();
                })
            });
            all_refused(&masters, 2);
            delete(&masters[..freed], "job");

            eventually(SOON, "both have had it", || waiters.iter().all(ScopedJoinHandle::is_finished));
        });
        no_key(&masters[..freed], "job");
    }
}

pub(crate) fn a_waiter_asks_nothing_while_it_waits(transport: &Transport) {
    let masters = real_servers();
    let locker = open_told(transport, &masters);
    all_ready(&locker);
    occupy(&masters, "job");
    let executed_within = |span| -> Vec<i64> {
        let executed = |master: &RedisServer| info(master, "stats", "total_commands_processed");
        let before: Vec<_> = masters.iter().map(executed).collect();
        sleep(span);
        masters.iter().zip(before).map(|(master, before)| executed(master) - before).collect()
    };
    // The inspection itself executes a login and one command.
    let nothing = vec![2; 3];

    scope(|scope| {
        let waiter = scope.spawn(|| locker.lock("job").wait());
        all_refused(&masters, 1);
        eventually_equals(SOON, "commands", nothing.clone(), || executed_within(millis(100)));
        assert_eq!(executed_within(SECOND), nothing);
        delete(&masters, "job");
        drop(has_it_soon(waiter));
    });
}

pub(crate) fn a_waiter_gets_the_lock_when_its_key_ends(transport: &Transport) {
    let masters = masters(3);
    let locker = open_told(transport, &masters);
    all_ready(&locker);
    for master in &*masters {
        assert!(master.command(&["SET", "job", "foreign", "PX", "700"]).is_ok());
    }

    scope(|scope| {
        let guard = has_it_soon(scope.spawn(|| locker.lock("job").wait()));
        assert_eq!(guard.release().wait(), Ok(Released::Freed));
    });
    no_key(&masters, "job");
}

pub(crate) fn a_waiter_keeps_waiting_after_renewals_of_the_holder(transport: &Transport) {
    let masters = masters(3);
    let (first, second) = (open(transport, &masters), open_told(transport, &masters));
    all_ready(&second);
    let guard = first.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);

    scope(|scope| {
        let waiter = scope.spawn(|| second.lock("job").wait());
        all_refused(&masters, 1);
        // No key ends while the waiter waits, or it would ask again then.
        for renewal in 1..=5 {
            guard.extend(TTL + 10 * renewal * SECOND).wait().unwrap();
            sleep(millis(100));
        }
        assert!(guard.is_valid() && !waiter.is_finished());
        assert_eq!(guard.release().wait(), Ok(Released::Freed));

        drop(has_it_soon(waiter));
    });
    no_key(&masters, "job");
}

pub(crate) fn without_wake_ups_a_waiter_polls(transport: &Transport) {
    let masters = real_servers();
    let config = patient(masters.iter().map(RedisServer::url)).timeout(NEVER).wake_ups(false);
    let locker = transport.open(config.build().unwrap());
    all_ready(&locker);
    // Some versions of servers also count the CLIENT commands of the greeting.
    let asked = || masters.iter().map(client_commands).collect::<Vec<_>>();
    let greeted = asked();
    occupy(&masters, "job");

    scope(|scope| {
        let waiter = scope.spawn(|| locker.lock("job").wait());
        all_refused(&masters, 5);
        assert_eq!(tracked(&masters), [0; 3]);
        delete(&masters, "job");
        drop(has_it_soon(waiter));
    });
    assert_eq!(asked(), greeted);
}

pub(crate) fn nothing_is_tracked_when_no_caller_waits(transport: &Transport) {
    const PAIRS: u64 = 100;
    let masters = real_servers();
    let (first, second) = (open(transport, &masters), open_told(transport, &masters));
    all_ready(&second);
    for _ in 0..PAIRS {
        second.lock("job").wait().unwrap().release().wait().unwrap();
    }
    // A caller waits for its release only until a quorum has answered. The last master may be many
    // pairs behind, and between two pairs it has no key.
    eventually(SOON, "all masters have executed all releases", || {
        masters.iter().all(|master| master.calls(Calls::Script) >= PAIRS)
    });
    no_key(&masters, "job");
    let guard = first.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    second.try_lock("job").wait().unwrap_err();
    assert_eq!(tracked(&masters), [0; 3]);

    scope(|scope| {
        let waiter = scope.spawn(|| second.lock("job").wait());
        // The waiter met a rival a moment ago, so it may have asked only one master.
        eventually(SOON, "the waiter is told", || tracked(&masters).contains(&1));
        let start = Instant::now();
        guard.release().wait().unwrap();
        has_it_soon(waiter).release().wait().unwrap();
        // Tracking is ended together with the next request, some seconds later.
        eventually_equals(SOON, "masters that still notify a client", vec![0; 3], || {
            second.lock("other").wait().unwrap().release().wait().unwrap();
            tracked(&masters)
        });
        assert!(start.elapsed() > SECOND, "it would be asked for again by the next waiter");
    });
}

pub(crate) fn a_waiter_without_resp3_polls(transport: &Transport) {
    let masters = Fleet::start(3, |options, _| options.without_hello());
    let locker = transport.open(patient(masters.urls()).timeout(NEVER).build().unwrap());
    all_ready(&locker);
    occupy(&masters, "job");

    scope(|scope| {
        let waiter = scope.spawn(|| locker.lock("job").wait());
        all_refused(&masters, 3);
        delete(&masters, "job");
        drop(has_it_soon(waiter));
    });
    no_key(&masters, "job");
}

pub(crate) fn denied_tracking_is_a_warning_and_the_waiter_polls(transport: &Transport) {
    let rule = "few on >secret ~* +set +get +del +pttl +pexpire +evalsha +eval +script|load +info";
    let masters: Vec<_> = (0..3).map(|_| ServerOptions::new().acl_user(rule).start()).collect();
    let urls = masters.iter().map(|master| url_of(format_args!("few:secret@{}", master.address())));
    let locker = transport.open(patient(urls).timeout(NEVER).build().unwrap());
    occupy(&masters, "job");
    all_ready(&locker);
    assert!(locker.masters().iter().all(|(_, state)| *state == MasterState::Ready { warnings: vec![] }));

    scope(|scope| {
        let waiter = scope.spawn(|| locker.lock("job").wait());
        all_refused(&masters, 3);
        let warned = MasterState::Ready { warnings: vec![Warning::TrackingDenied] };
        eventually_equals(SOON, "states", vec![warned; 3], || {
            locker.masters().into_iter().map(|(_, state)| state).collect()
        });
        delete(&masters, "job");
        drop(has_it_soon(waiter));
    });
    no_key(&masters, "job");
}
