//! Servers that send garbage, and bounds on memory.

use std::time::{Duration, Instant};

use crate::kit::*;

const MIB: usize = 1 << 20;

fn hostile_servers() -> Vec<FakeMaster> {
    vec![
        FakeMaster::start(behaviour::silent()),
        FakeMaster::start(behaviour::hangs_up()),
        FakeMaster::start(behaviour::says("HTTP/1.1 400 Bad Request\r\n\r\n")),
        FakeMaster::start(behaviour::answers("+OK\n-")),
        FakeMaster::start(behaviour::answers("$3\r\nabcde")),
        FakeMaster::start(behaviour::answers("$-7\r\n")),
        FakeMaster::start(behaviour::answers(vec![0xff; MIB])),
        FakeMaster::start(behaviour::endless_line(usize::MAX)),
        FakeMaster::start(behaviour::endless_ok(usize::MAX)),
        FakeMaster::start(behaviour::huge_bulk(u64::MAX, usize::MAX)),
        FakeMaster::start(behaviour::huge_bulk(1 << 40, usize::MAX)),
        FakeMaster::start(behaviour::nested_arrays(100_000)),
        FakeMaster::start(behaviour::unsolicited_ok(1_000)),
    ]
}

/// The memory of this process in bytes, if the system reports it.
fn occupied() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/statm").ok()?;
    status.split(' ').nth(1)?.parse::<usize>().ok().map(|pages| pages * 4096)
}

pub(crate) fn a_minority_that_talks_garbage_costs_nothing(transport: &Transport) {
    let masters = masters(3);
    let before = occupied();
    for hostile in hostile_servers().chunks(2) {
        let urls = masters.urls().into_iter().chain(hostile.iter().map(FakeMaster::url));
        let config = patient(urls).reconnect_delay(millis(10)..=millis(10)).build().unwrap();
        let locker = transport.open(config);
        let start = Instant::now();
        for _ in 0..20 {
            let guard = locker.lock("job").wait().unwrap();
            assert!(guard.extend(2 * TTL).wait().unwrap() > TTL);
            assert_eq!(guard.release().wait(), Ok(Released::Freed));
        }
        assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
        no_key(&masters, "job");
    }
    let grown = before.and_then(|before| occupied()?.checked_sub(before)).unwrap_or(0);
    // Other scenarios run in this process too, so the bound is generous: storing an endless reply
    // would take gigabytes.
    assert!(grown < 256 * MIB, "{grown} bytes");
}

pub(crate) fn a_majority_that_talks_garbage_is_a_clear_error(transport: &Transport) {
    let masters = masters(1);
    for hostile in hostile_servers().chunks(2).filter(|pair| pair.len() == 2) {
        let urls = masters.urls().into_iter().chain(hostile.iter().map(FakeMaster::url));
        let locker = transport.open(hasty(urls).build().unwrap());

        let error = locker.lock("job").timeout(Duration::from_secs(1)).wait().unwrap_err();

        assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
        for (_, vote) in error.ballot().unwrap().votes().skip(1) {
            let clear = matches!(
                vote,
                Vote::Failed(
                    Cause::Garbage(_)
                        | Cause::UnexpectedReply
                        | Cause::Closed
                        | Cause::HungUp
                        | Cause::NoAnswer { .. }
                        | Cause::NoConnection { .. }
                )
            );
            assert!(clear, "{error}");
        }
        no_key(&masters, "job");
    }
}

pub(crate) fn unsolicited_replies_grant_nothing(transport: &Transport) {
    let masters = masters(3);
    let proxies = proxies(&masters);
    let locker = transport.open(hasty(urls(&proxies)).build().unwrap());
    occupy(&masters, "job");
    for injected in
        ["+OK\r\n", ":1\r\n", "*1\r\n*1\r\n:1\r\n", "\r\n", ">2\r\n+invalidate\r\n*1\r\n$3\r\njob\r\n"]
    {
        all_ready(&locker);
        for proxy in &proxies {
            let before = proxy.accepted();
            proxy.inject(Direction::ToClient, injected.as_bytes());
            // The bytes come before a request: after one they would count as its answer. Pushes are
            // ignored; everything else ends the connection.
            if !injected.starts_with('>') {
                eventually(SOON, "the connection is given up", || proxy.accepted() > before);
            }
        }
        let error = locker.lock("job").timeout(millis(300)).wait().unwrap_err();
        assert!(error.ballot().is_some_and(|ballot| ballot.granted() == 0), "{injected:?}: {error}");
    }
    assert!(masters.iter().all(|master| master.get("job").as_deref() == Some("foreign")));
}

pub(crate) fn a_full_pipeline_is_a_clear_error_and_recovers(transport: &Transport) {
    let masters = masters(3);
    let config = patient(masters.urls()).max_in_flight_requests(4).build().unwrap();
    let locker = transport.open(config);
    all_ready(&locker);
    for master in &*masters {
        master.stop();
    }

    let error = transport.block_on(async {
        let mut waiting: Vec<_> = (0..4).map(|n| locker.try_lock(format!("job{n}")).into_future()).collect();
        for acquiring in &mut waiting {
            assert!(smol::future::poll_once(acquiring).await.is_none());
        }
        locker.try_lock("one too many").await.unwrap_err()
    });

    assert!(error.to_string().contains("not asked: too many requests in flight"), "{error}");
    for master in &*masters {
        master.cont();
    }
    for n in 0..4 {
        no_key(&masters, &format!("job{n}"));
    }
    assert!(locker.lock("job").wait().is_ok());
}

pub(crate) fn many_threads_each_with_its_own_lock_share_five_connections(transport: &Transport) {
    let masters = masters(5);
    let locker = open(transport, &masters);
    let most = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..256)
            .map(|thread| {
                let locker = &locker;
                scope.spawn(move || {
                    for _ in 0..5 {
                        let guard = locker.lock(format!("job{thread}")).wait().unwrap();
                        assert!(guard.is_valid());
                        assert_eq!(guard.release().wait(), Ok(Released::Freed));
                    }
                })
            })
            .collect();
        let mut most = 0;
        while threads.iter().any(|thread| !thread.is_finished()) {
            most = masters.iter().map(RedisServer::connected_clients).fold(most, usize::max);
        }
        most
    });
    assert!(most <= 1, "{most} connections to one master");
    no_keys_at_all(&masters);
}

pub(crate) fn many_tasks_each_with_its_own_lock_share_five_connections(transport: &Transport) {
    let masters = masters(5);
    let locker = open(transport, &masters);
    transport.block_on(async {
        let executor = smol::Executor::new();
        let tasks: Vec<_> = (0..256)
            .map(|task| {
                let locker = &locker;
                executor.spawn(async move {
                    for _ in 0..5 {
                        let guard = locker.lock(format!("job{task}")).await.unwrap();
                        assert_eq!(guard.release().await, Ok(Released::Freed));
                    }
                })
            })
            .collect();
        executor
            .run(async {
                for task in tasks {
                    task.await;
                }
            })
            .await;
    });
    assert!(masters.iter().all(|master| master.connected_clients() == 1));
    no_keys_at_all(&masters);
}

pub(crate) fn one_key_has_one_holder_at_a_time_among_all_clients(transport: &Transport) {
    let masters = masters(3);
    let holders = std::sync::atomic::AtomicUsize::new(0);
    let turns = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let config =
                patient(masters.urls()).retry_delay(millis(1)..=millis(10)).timeout(None).build().unwrap();
            let locker = transport.open(config);
            for _ in 0..4 {
                let (locker, holders, turns) = (locker.clone(), &holders, &turns);
                scope.spawn(move || {
                    for _ in 0..5 {
                        let guard = locker.lock("job").wait().unwrap();
                        assert_eq!(
                            holders.fetch_add(1, std::sync::atomic::Ordering::SeqCst),
                            0,
                            "two holders"
                        );
                        std::thread::yield_now();
                        holders.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        turns.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        assert_eq!(guard.release().wait(), Ok(Released::Freed));
                    }
                });
            }
        }
    });
    assert_eq!(turns.into_inner(), 60);
    no_key(&masters, "job");
}

#[track_caller]
fn no_keys_at_all(masters: &[RedisServer]) {
    eventually(SOON, "no key is left", || {
        masters.iter().all(|master| master.command(&["DBSIZE"]).int() == Some(0))
    });
}
