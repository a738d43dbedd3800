//! Code that waits for a lock that it holds.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::task::{Context, Waker};

use tracing::Level;

use super::driver::{Driver, ms};
use super::observed;

#[test]
fn a_wait_for_a_lock_of_the_same_process_is_reported() {
    observed(|capture| {
        let (locker, driver) = Driver::start(3);
        driver.settle();
        let _outer = locker.lock("job").ttl(ms(60_000)).wait().unwrap();
        let mut inner = pin!(locker.lock("job").into_future());
        assert!(inner.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        driver.pass(ms(1_000));
        driver.settle();
        let told = capture.events("quorlock.waits_for_own");
        assert_eq!((told.len(), told[0].level, told[0].field("quorlock.resource")), (1, Level::INFO, "job"));
        driver.end();
    });
}
