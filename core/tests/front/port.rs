//! What a port answers its driver.

use std::future::{Future, IntoFuture};
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock_core::front::Demand;
use quorlock_core::{Cause, Config};

use super::driver::{Driver, Manner, ms};
use super::task::Woken;
use super::toy_channel::Toys;

const A_MOMENT: Duration = Duration::from_nanos(1);

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_turn_is_due_from_the_deadline_on() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let is_due = || {
        driver.with_port(|port| {
            port.register(Waker::noop());
            port.is_due()
        })
    };
    assert!(!is_due(), "there is no deadline");
    let mut seeking = locker.lock("job").into_future();
    assert!(poll(&mut seeking).is_pending());
    let left = driver.with_port(|port| port.sleep()).unwrap();
    assert!(!is_due());
    driver.pass(left - A_MOMENT);
    assert!(!is_due());
    driver.pass(A_MOMENT);
    assert!(is_due());
    driver.end();
}

#[test]
fn a_timer_that_is_set_stays_set_until_its_time_although_the_deadline_is_later() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let mut seeking = locker.lock("job").into_future();
    assert!(poll(&mut seeking).is_pending());
    let sleep = || driver.with_port(|port| port.sleep()).unwrap();
    let timeout = sleep();
    driver.settle();
    let Poll::Ready(Ok(_guard)) = poll(&mut seeking) else { panic!("all masters have granted") };
    assert_eq!(sleep(), timeout, "for the request, which is answered");

    // The next request times out later than that, so the driver need not know of it.
    driver.pass(A_MOMENT);
    let woken = Arc::new(Woken::default());
    driver.with_port(|port| port.register(&Waker::from(Arc::clone(&woken))));
    let mut seeking = locker.lock("other").into_future();
    assert!(poll(&mut seeking).is_pending());
    assert!(!woken.take());

    driver.settle();
    driver.pass(timeout - A_MOMENT);
    driver.settle();
    assert!(sleep() > Duration::ZERO, "the time for which it was set has come");
    driver.end();
}

#[test]
fn a_master_has_served_if_its_last_connection_was_greeted() {
    let (locker, driver) = Driver::start(2);
    let masters: Vec<_> = locker.config().master_ids().collect();
    let served = || -> Vec<_> {
        let served = |master: &_| driver.with_port(|port| port.has_served(*master));
        masters.iter().map(served).collect()
    };
    driver.hush(1, true);
    assert_eq!(served(), [false, false]);
    driver.settle();
    assert_eq!(served(), [true, false]);
    driver.hush(1, false);
    driver.settle();
    assert_eq!(served(), [true, true]);
    driver.hush(0, true);
    driver.lose(0);
    driver.pass(ms(50));
    driver.settle();
    assert_eq!(served(), [false, true]);
    driver.end();
}

/// A socket that takes everything, and lives as long as the count says.
struct Counted(#[allow(dead_code)] Arc<()>);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_socket_that_opened_too_late_is_dropped_in_the_turn_in_which_it_ends() {
    let (locker, driver) = Driver::start(1);
    driver.with_port(|port| {
        port.register(Waker::noop());
        port.tick();
        let Some(Demand::Connect { master, generation, .. }) = port.next_demand() else {
            panic!("no connection is asked for");
        };
        driver.pass(locker.config().connect_timeout() * 100);
        port.register(Waker::noop());
        port.tick();
        assert_eq!(port.next_demand(), Some(Demand::Close { master, generation }));
        let count = Arc::new(());
        port.opened(master, generation, Counted(Arc::clone(&count)));
        port.closed(master, generation, Cause::Closed);
        port.tick();
        assert_eq!(Arc::strong_count(&count), 1);
    });
    driver.end();
}

#[test]
fn a_socket_is_blocked_until_it_takes_everything_or_its_connection_ends() {
    for url in ["redis://a", "rediss://a"] {
        for ends in [false, true] {
            let config = Config::builder([url]).tls(Toys(Arc::default())).build().unwrap();
            let (_locker, driver) = Driver::over(config, true);
            driver.takes(0, Manner::Full);
            driver.settle();
            assert!(driver.is_blocked(0));
            assert!(!driver.retry(0) && driver.is_blocked(0), "it has no room yet");
            if ends {
                driver.lose(0);
                driver.with_port(|port| port.tick());
            } else {
                driver.takes(0, Manner::Whole);
                assert!(driver.retry(0));
            }
            assert!(!driver.is_blocked(0), "{url} {ends}");
            driver.end();
        }
    }
}
