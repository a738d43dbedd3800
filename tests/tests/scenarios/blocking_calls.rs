//! `wait()` inside and outside tokio's async code: it panics if the thread would wait for itself,
//! and works everywhere else.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::runtime::{Builder, Runtime};

use crate::kit::*;

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn multi_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// The panic message for a caller that waits inside async code.
fn refused<R>(wait: impl FnOnce() -> R) -> String {
    let Err(payload) = catch_unwind(AssertUnwindSafe(wait)) else { panic!("it waited") };
    message(&*payload)
}

#[test]
fn waiting_inside_async_code_panics_and_says_what_to_do() {
    let masters = masters(3);
    for runtime in [current_thread(), multi_thread()] {
        let config = patient(masters.urls()).build().unwrap();
        let check = async {
            let locker = quorlock_tokio::open(config).unwrap();
            let told = refused(|| locker.lock("job").wait());
            assert!(told.contains("`.await`") && told.contains("spawn_blocking"), "{told}");
            refused(|| locker.lock("job").timeout(millis(10)).wait());
            refused(|| locker.block_on(async {}));
            let guard = locker.lock("job").await.unwrap();
            refused(|| guard.extend(2 * TTL).wait());
            refused(|| guard.lost().wait());
            refused(|| guard.release().wait());
            refused(|| locker.lock("job").run_wait(|_| Ok::<_, std::convert::Infallible>(())));
            // Dropping never waits.
            drop(locker.lock("job").await.unwrap());
            let local = tokio::task::LocalSet::new();
            local.run_until(async { refused(|| locker.lock("job").wait()) }).await;
            let same = locker.clone();
            let task = tokio::spawn(async move { refused(|| locker.lock("job").wait()) });
            task.await.unwrap();
            // The driver ends with the runtime, whether masters have executed the releases or not.
            while same.report().masters.iter().any(|master| master.is_awaited) {
                tokio::time::sleep(millis(1)).await;
            }
        };
        runtime.block_on(check);
    }
    no_key(&masters, "job");
}

#[test]
fn waiting_on_a_thread_for_blocking_work_is_allowed() {
    let masters = masters(3);
    for runtime in [current_thread(), multi_thread()] {
        let config = patient(masters.urls()).build().unwrap();
        let locker = runtime.block_on(async {
            let locker = quorlock_tokio::open(config).unwrap();
            let elsewhere = locker.clone();
            let wait = move || elsewhere.lock("job").wait().unwrap().release().wait();
            assert_eq!(tokio::task::spawn_blocking(wait).await.unwrap(), Ok(Released::Freed));
            let elsewhere = locker.clone();
            let thread = std::thread::spawn(move || drop(elsewhere.lock("job").wait().unwrap()));
            while !thread.is_finished() {
                tokio::time::sleep(millis(1)).await;
            }
            thread.join().unwrap();
            locker
        });
        drop(locker);
    }
    no_key(&masters, "job");
}

#[test]
fn waiting_outside_and_in_block_in_place_is_allowed() {
    let masters = masters(3);
    let runtime = multi_thread();
    let config = patient(masters.urls()).build().unwrap();
    let locker = runtime.block_on(async { quorlock_tokio::open(config).unwrap() });
    drop(locker.lock("job").wait().unwrap());
    {
        let _inside = runtime.enter();
        drop(locker.lock("job").wait().unwrap());
    }
    runtime.block_on(async {
        tokio::task::block_in_place(|| drop(locker.lock("job").wait().unwrap()));
    });
    no_key(&masters, "job");
}
