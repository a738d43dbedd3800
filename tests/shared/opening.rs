//! Openings with a runtime's own sockets and timers: one source of tests for the async transports.
#![allow(clippy::unwrap_used)]

use std::future::{Future, poll_fn};
use std::net::TcpListener;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use quorlock_core::front::{Addresses, Dial, Runtime};
use quorlock_core::{Cause, Config};

#[path = "black_hole.rs"]
mod black_hole;
use black_hole::BlackHole;

/// An opening that never ends fails the test after this time.
const LONG: Duration = Duration::from_secs(20);

/// Returns the result of a future. If it has not ended within `limit`, it is dropped, and the
/// result is `None`.
async fn timeout<T>(runtime: &impl Runtime, limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let (mut future, mut timer) = (pin!(future), pin!(runtime.sleep(limit)));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
    })
    .await
}

async fn open<R: Runtime>(runtime: &R, dial: Dial) -> Result<R::Socket, Cause> {
    dial.race(|address| runtime.clone().connect(address), |span| runtime.sleep(span)).await
}

pub(crate) async fn a_name_is_reached_whose_first_address_swallows_packets(runtime: impl Runtime) {
    let (black_hole, server) = (BlackHole::open(), TcpListener::bind("127.0.0.1:0").unwrap());
    let server = server.local_addr().unwrap();
    let addresses = Addresses::new(&Config::new(["redis://a"]).unwrap());
    let dial = addresses.dial([black_hole.address(), server]);

    let opened = timeout(&runtime, LONG, open(&runtime, dial)).await;

    assert!(opened.is_some_and(|opened| opened.is_ok()));
    // The opening after that begins with the address that connected.
    let mut next = addresses.dial([black_hole.address(), server]);
    assert_eq!(next.next_attempt(), Some(server));
}

pub(crate) async fn an_opening_that_is_given_up_is_followed_by_one_to_another_address(runtime: impl Runtime) {
    let (black_hole, server) = (BlackHole::open(), TcpListener::bind("127.0.0.1:0").unwrap());
    let server = server.local_addr().unwrap();
    let config = Config::builder(["redis://a"]).connect_timeout(LONG).build();
    let addresses = Addresses::new(&config.unwrap());
    let dial = || addresses.dial([black_hole.address(), server]);

    let given_up = timeout(&runtime, Duration::from_millis(50), open(&runtime, dial())).await;
    let opened = timeout(&runtime, LONG / 8, open(&runtime, dial())).await;

    assert!(given_up.is_none());
    assert!(opened.is_some_and(|opened| opened.is_ok()));
}
