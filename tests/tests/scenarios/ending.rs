//! Releases, dropped guards, cancelled acquisitions, closed lockers: no key is left.

use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use quorlock_core::front::RunError;

use crate::kit::*;

pub(crate) fn a_release_says_whether_the_lock_was_still_ours(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);

    let ours = locker.lock("ours").wait().unwrap();
    held_on(&masters, &ours, 3);
    masters[0].del("ours");
    assert_eq!(ours.release().wait(), Ok(Released::Freed));

    let gone = locker.lock("gone").wait().unwrap();
    held_on(&masters, &gone, 3);
    masters[0].del("gone");
    masters[1].command(&["SET", "gone", "foreign"]);
    assert_eq!(gone.release().wait(), Err(ReleaseError::NotOurs(None)));
    assert_eq!(masters[1].get("gone").as_deref(), Some("foreign"));
    no_key(&masters[2..], "gone");

    let unknown = locker.lock("unknown").wait().unwrap();
    held_on(&masters, &unknown, 3);
    masters[0].stop();
    masters[1].stop();
    let error = unknown.release().wait().unwrap_err();
    assert!(matches!(error, ReleaseError::Unknown(_)), "{error}");
    assert!(error.to_string().contains(&format!("{} no answer in ", masters[0].address())), "{error}");
    no_key(&masters[2..], "unknown");
    masters[0].cont();
    masters[1].cont();
    no_key(&masters, "unknown");
}

pub(crate) fn a_dropped_guard_leaves_no_key_and_does_not_wait(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    masters[0].stop();

    let start = Instant::now();
    drop(guard);
    assert!(start.elapsed() < PATIENCE / 2, "{:?}", start.elapsed());

    no_key(&masters[1..], "job");
    masters[0].cont();
    no_key(&masters, "job");
}

pub(crate) fn a_forgotten_release_leaves_no_key(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);

    drop(guard.release());

    no_key(&masters, "job");
}

pub(crate) fn a_guard_dropped_as_the_last_statement_of_main_leaves_no_key(transport: &Transport) {
    let masters = masters(3);
    for _ in 0..5 {
        let mut process = Command::new(env!("CARGO_BIN_EXE_drop_at_exit"));
        let process = process.arg(transport.name()).args(masters.urls()).stdin(Stdio::null());

        assert!(process.status().unwrap().success());

        // The process is gone, and the bytes that it wrote before its end arrive.
        no_key(&masters, "job");
        // A quorum granted the lock; the third master may not have been asked in time.
        assert!(masters.iter().filter(|master| master.calls(Calls::Set) > 0).count() >= 2);
    }
}

pub(crate) fn a_forked_child_releases_nothing_and_waits_for_nothing(transport: &Transport) {
    let masters = masters(3);
    let mut process = Command::new(env!("CARGO_BIN_EXE_fork_while_holding"));
    let process =
        process.arg(transport.name()).args(masters.urls()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = process.spawn().unwrap();
    let mut said = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);

    assert_eq!(said.next().as_deref(), Some("child: not valid, lock() refused, dropped"));
    assert_eq!(said.next().as_deref(), Some("parent: child ended, Ok(())"));
    assert!(masters.holding("job") >= 2, "the child has released the parent's lock");
    // The parent continues when its input ends.
    drop(process.stdin.take());
    assert_eq!(said.next().as_deref(), Some("parent: released, Ok(Freed)"));
    assert!(process.wait().unwrap().success());
    no_key(&masters, "job");
}

pub(crate) fn an_acquisition_given_up_at_any_point_leaves_no_key(transport: &Transport) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    let locker = transport.open(patient(urls(&proxies)).build().unwrap());
    all_ready(&locker);
    for proxy in &proxies {
        proxy.delay(Direction::Both, millis(30));
    }

    for wait in [0, 1, 20, 40, 55, 58, 60, 62, 65, 80] {
        transport.block_on(async {
            let mut acquiring = Box::pin(locker.lock("job").into_future());
            let pause = transport.sleep(millis(wait));
            smol::future::or(async { drop(acquiring.as_mut().await) }, pause).await;
            drop(acquiring);
        });
        no_key(&masters, "job");
    }
}

pub(crate) fn an_acquisition_given_up_after_any_number_of_polls_leaves_no_key(transport: &Transport) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    let locker = transport.open(patient(urls(&proxies)).build().unwrap());
    all_ready(&locker);
    for proxy in &proxies {
        proxy.split_bytes(Direction::ToClient);
    }

    for polls in 1..10 {
        transport.block_on(async {
            let mut acquiring = locker.lock("job").into_future();
            for _ in 0..polls {
                if smol::future::poll_once(&mut acquiring).await.is_some() {
                    break;
                }
                smol::future::yield_now().await;
            }
        });
        no_key(&masters, "job");
    }
}

pub(crate) fn a_given_up_acquisition_is_released_behind_a_stopped_master_too(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    all_ready(&locker);
    for master in &*masters {
        master.stop();
    }

    transport.block_on(async {
        let mut acquiring = locker.lock("job").into_future();
        assert!(smol::future::poll_once(&mut acquiring).await.is_none());
    });
    sleep(millis(500));
    for master in &*masters {
        master.cont();
    }

    all_ready(&locker);
    no_key(&masters, "job");
    assert!(masters.iter().all(|master| master.calls(Calls::Set) == 1), "the requests were executed");
}

pub(crate) fn a_release_that_waited_for_a_connection_which_did_not_open_is_sent_over_the_next(
    transport: &Transport,
) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    let locker = transport.open(patient(urls(&proxies)).build().unwrap());
    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    all_ready(&locker);
    let accepted = proxies[0].accepted();
    proxies[0].stall(Direction::Both);
    proxies[0].cut(Cut::Fin);
    eventually(SOON, "a new connection hangs", || proxies[0].accepted() > accepted);

    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    proxies[0].cut(Cut::Fin);
    proxies[0].heal();

    no_key(&masters, "job");
}

pub(crate) fn a_locker_dropped_at_once_leaves_neither_keys_nor_connections(transport: &Transport) {
    let masters = masters(3);
    for _ in 0..5 {
        let locker = open(transport, &masters);
        let guard = locker.lock("job").wait().unwrap();
        drop(locker);
        assert!(guard.is_valid());
        assert!(masters.iter().all(|master| master.connected_clients() <= 1));
        drop(guard);

        no_key(&masters, "job");
        eventually_equals(SOON, "connections", vec![0; 3], || {
            masters.iter().map(RedisServer::connected_clients).collect()
        });
    }
}

pub(crate) fn a_locker_that_was_never_used_closes_its_connections(transport: &Transport) {
    let masters = masters(3);
    drop(open(transport, &masters));
    let locker = open(transport, &masters);
    all_ready(&locker);
    let clone = locker.clone();
    drop(locker);
    assert_eq!(ready(&clone), 3);
    drop(clone);
    eventually_equals(SOON, "connections", vec![0; 3], || {
        masters.iter().map(RedisServer::connected_clients).collect()
    });
}

pub(crate) fn a_scope_returns_its_value_and_leaves_no_key(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);

    let waited = locker.lock("job").run_wait(|watch| {
        assert!(watch.is_valid());
        Ok::<_, Infallible>(masters.holding("job"))
    });
    let awaited = transport.block_on(locker.lock("job").run(async |watch| {
        transport.sleep(millis(10)).await;
        Ok::<_, Infallible>((watch.is_valid(), masters.holding("job")))
    }));

    assert!(waited.unwrap() >= 2);
    assert!(matches!(awaited, Ok((true, 2..))));
    no_key(&masters, "job");
    occupy(&masters, "job");
    let body = |_| -> Result<(), Infallible> { panic!("it is not called") };
    let refused = locker.try_lock("job").run_wait(body);
    assert!(matches!(refused, Err(RunError::NotAcquired(AcquireError::HeldByAnother(_)))));
}

pub(crate) fn a_scope_that_panics_leaves_no_key(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);

    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let body = |_| -> Result<(), Infallible> { std::panic::resume_unwind(Box::new("on purpose")) };
        locker.lock("job").run_wait(body)
    }));

    assert!(panicked.is_err());
    no_key(&masters, "job");
}

pub(crate) fn the_future_of_a_scope_is_dropped_when_its_lock_is_lost(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    let dropped = std::sync::atomic::AtomicBool::new(false);

    let result = transport.block_on(locker.lock("job").ttl(Duration::from_secs(3)).run(async |_| {
        let _flag = Flag(&dropped);
        for master in &masters[..2] {
            eventually(SOON, "the key is there", || master.del("job"));
        }
        std::future::pending::<Result<(), Infallible>>().await
    }));

    assert_eq!(result, Err(RunError::Lost(LossCause::NotHeld)));
    assert!(dropped.into_inner());
    no_key(&masters, "job");
}

struct Flag<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Flag<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}
