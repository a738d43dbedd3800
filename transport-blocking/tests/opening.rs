//! Connections that cannot be opened.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use quorlock_blocking::{AcquireError, Config, open};

#[test]
fn an_opening_that_fails_at_once_is_reported_before_the_connect_timeout() {
    let connect_timeout = Duration::from_secs(30);
    let config = Config::builder(["unix:///nowhere/redis.sock"]).connect_timeout(connect_timeout);
    let locker = open(config.build().unwrap()).unwrap();
    let since = Instant::now();
    let error = locker.try_lock("job").wait().unwrap_err();
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    let took = since.elapsed();
    assert!(took < connect_timeout / 2, "it took {took:?}");
}
