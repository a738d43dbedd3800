//! The driver of the async transports: users run it themselves, and it may end before its locker.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use crate::kit::*;

/// Everything happens on one thread: answers stay on it, and nothing waits for another thread.
async fn locks_beside_its_driver(locker: Locker, driver: impl Future<Output = ()>, masters: &[RedisServer]) {
    let locking = async move {
        let guard = locker.lock("job").await.unwrap();
        // Two masters are enough here: waiting for the third would keep the driver from asking it.
        let token = Some(guard.token().expose());
        assert!(masters.iter().filter(|master| master.get("job") == token).count() >= 2);
        assert!(guard.extend(2 * TTL).await.unwrap() > TTL);
        assert_eq!(guard.release().await, Ok(Released::Freed));

        let executor = smol::LocalExecutor::new();
        let tasks: Vec<_> = (0..64)
            .map(|task| {
                let locker = locker.clone();
                executor.spawn(async move {
                    let guard = locker.lock(format!("job{task}")).await.unwrap();
                    assert_eq!(guard.release().await, Ok(Released::Freed));
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

        // An acquisition that is dropped in a `select!` like this one leaves no key.
        occupy(masters, "held");
        let never = async { drop(locker.lock("held").timeout(None).await) };
        smol::future::or(never, async { _ = smol::Timer::after(millis(300)).await }).await;
        drop(locker.lock("dropped").await.unwrap());
    };
    // The driver ends when the last user of the locker is gone.
    smol::future::zip(driver, locking).await;
    assert!(masters.iter().all(|master| master.command(&["DBSIZE"]).int() == Some(1)));
    eventually(SOON, "connections are closed", || {
        masters.iter().all(|master| master.connected_clients() == 0)
    });
}

/// When a driver is dropped, waiters get an error, and later requests do not wait.
async fn the_end_of_its_driver_is_reported(
    locker: Locker,
    driver: impl Future<Output = ()>,
    masters: &[RedisServer],
) {
    let mut driver = Box::pin(driver);
    let ended = async {
        driver.as_mut().await;
        panic!("the driver ended while its locker was used")
    };
    let guard = smol::future::or(ended, async { locker.lock("job").await.unwrap() }).await;
    let mut waiting = locker.lock("job").into_future();
    assert!(smol::future::poll_once(&mut waiting).await.is_none());

    drop(driver);

    assert!(matches!(waiting.await, Err(AcquireError::DriverEnded)));
    assert_eq!(guard.lost().await, LossCause::DriverEnded);
    assert!(matches!(locker.lock("other").await, Err(AcquireError::DriverEnded)));
    assert!(matches!(guard.extend(2 * TTL).await, Err(ExtendError::Lost(LossCause::DriverEnded))));
    // It cannot report the masters' answers, but bytes that the sockets accept are sent.
    assert_eq!(guard.release().await, Err(ReleaseError::DriverEnded));
    no_key(masters, "job");
}

/// Creates the tests of one transport from its functions that open a locker with a driver and run a
/// future on this thread.
macro_rules! drivers {
    ($transport:ident: $open:path, $block_on:expr) => {
        pub(crate) mod $transport {
            use super::*;

            #[test]
            fn a_locker_and_its_driver_share_one_thread() {
                let masters = masters(3);
                let block_on = $block_on;
                block_on(Box::pin(async {
                    let (locker, driver) = $open(patient(masters.urls()).build().unwrap());
                    locks_beside_its_driver(locker, driver, &masters).await;
                }));
            }

            #[test]
            fn a_waiter_learns_that_the_driver_has_ended() {
                let masters = masters(3);
                let block_on = $block_on;
                block_on(Box::pin(async {
                    let (locker, driver) = $open(patient(masters.urls()).build().unwrap());
                    the_end_of_its_driver_is_reported(locker, driver, &masters).await;
                }));
            }
        }
    };
}

#[cfg(feature = "tokio")]
drivers!(on_tokio: quorlock_tokio::open_with_driver, |future: Pin<Box<dyn Future<Output = ()> + '_>>| {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future);
});

drivers!(on_smol: quorlock_smol::open_with_driver, |future: Pin<Box<dyn Future<Output = ()> + '_>>| smol::block_on(future));

#[cfg(feature = "tokio")]
#[test]
fn tokio_says_that_there_is_no_runtime() {
    let error = quorlock_tokio::open(Config::new(["redis://127.0.0.1:1"]).unwrap()).unwrap_err();
    assert!(error.to_string().contains("no async runtime"), "{error}");
}

/// A runtime that is shut down takes the driver with it.
#[cfg(feature = "tokio")]
#[test]
fn the_end_of_a_tokio_runtime_is_reported_and_a_guard_is_dropped_after_it() {
    let masters = masters(3);
    let transport = Transport::named("tokio");
    let locker = open(&transport, &masters);
    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);

    drop(transport);

    assert_eq!(guard.lost().wait(), LossCause::DriverEnded);
    if Transport::opens_sockets() {
        drop(guard);
        no_key(&masters, "job");
    } else {
        // A stream of a connector belongs to the runtime, and can no longer be written to.
        let token = guard.token();
        drop(guard);
        assert!(masters.iter().all(|master| master.get("job").as_deref() == Some(&*token.expose())));
    }
    assert!(matches!(locker.lock("job").wait(), Err(AcquireError::DriverEnded)));
}
