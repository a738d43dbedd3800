//! The order of addresses, and when an attempt starts.

use std::future::{Ready, ready};
use std::pin::pin;
use std::task::{Context, Waker};

use super::*;
use crate::protocol::IoFault;

const TIMEOUT: Duration = Duration::from_millis(200);
const REFUSED: Cause = Cause::Connect(IoFault::new(io::ErrorKind::ConnectionRefused));

fn addresses() -> Addresses {
    let config = Config::builder(["redis://a"]).connect_timeout(TIMEOUT);
    Addresses::new(&config.build().unwrap())
}

fn v4(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 6379))
}

fn v6(last: u16) -> SocketAddr {
    SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, last], 6379))
}

/// The order in which an opening would try these.
fn order(addresses: &Addresses, resolved: &[SocketAddr]) -> Vec<SocketAddr> {
    addresses.memory().order(resolved.iter().copied()).into()
}

/// An opening with this number of attempts that do not answer.
fn hanging(addresses: &Addresses, resolved: &[SocketAddr], attempts: usize) -> Dial {
    let mut dial = addresses.dial(resolved.iter().copied());
    for _ in 0..attempts {
        assert!(dial.next_attempt().is_some());
    }
    dial
}

#[test]
fn families_alternate_beginning_with_the_resolvers_first_address() {
    let addresses = addresses();
    assert_eq!(order(&addresses, &[v6(1), v6(2), v6(3), v4(1)]), [v6(1), v4(1), v6(2), v6(3)]);
    assert_eq!(order(&addresses, &[v4(1), v4(2), v6(1), v6(2)]), [v4(1), v6(1), v4(2), v6(2)]);
    assert_eq!(order(&addresses, &[v4(1), v4(1), v4(2)]), [v4(1), v4(2)]);
    assert_eq!(order(&addresses, &[]), []);
}

#[test]
fn the_address_that_connected_comes_first_and_then_the_other_family() {
    let addresses = addresses();
    let all = [v6(1), v6(2), v4(1), v4(2)];
    let mut dial = hanging(&addresses, &all, 1);
    dial.failed(v6(1), REFUSED);
    dial.next_attempt();
    dial.connected(v4(1));
    drop(dial);
    assert_eq!(order(&addresses, &all), [v4(1), v6(1), v4(2), v6(2)]);
    // An address that the name no longer has is treated as unknown.
    assert_eq!(order(&addresses, &[v6(1), v4(2)]), [v6(1), v4(2)]);
}

#[test]
fn addresses_that_did_not_connect_in_time_come_last_and_the_last_of_them_at_the_end() {
    let addresses = addresses();
    let all = [v4(1), v4(2), v4(3), v4(4)];
    drop(hanging(&addresses, &all, 2));
    assert_eq!(order(&addresses, &all), [v4(3), v4(4), v4(1), v4(2)]);
    drop(hanging(&addresses, &all, 3));
    assert_eq!(order(&addresses, &all), [v4(2), v4(3), v4(4), v4(1)]);
    // An attempt that lost to another address also counts as too slow.
    let mut dial = hanging(&addresses, &all, 2);
    dial.connected(v4(3));
    drop(dial);
    assert_eq!(order(&addresses, &all), [v4(3), v4(4), v4(1), v4(2)]);
}

#[test]
fn an_address_that_connected_before_and_hangs_now_loses_its_place() {
    let addresses = addresses();
    let all = [v4(1), v4(2)];
    hanging(&addresses, &all, 1).connected(v4(1));
    drop(hanging(&addresses, &all, 1));
    assert_eq!(order(&addresses, &all), [v4(2), v4(1)]);
}

#[test]
fn an_address_whose_connection_did_not_serve_comes_last() {
    let addresses = addresses();
    let all = [v4(1), v4(2)];
    hanging(&addresses, &all, 1).connected(v4(1));
    addresses.avoid_last();
    assert_eq!(order(&addresses, &all), [v4(2), v4(1)]);
    hanging(&addresses, &all, 1).connected(v4(2));
    addresses.avoid_last();
    assert_eq!(order(&addresses, &all), [v4(1), v4(2)]);
    // There is no connection left to avoid.
    addresses.avoid_last();
    assert_eq!(order(&addresses, &all), [v4(1), v4(2)]);
}

#[test]
fn attempts_follow_one_another_after_a_quarter_of_the_timeout_and_are_bounded() {
    let addresses = addresses();
    let all: Vec<SocketAddr> = (0..40).map(v4).collect();
    let mut dial = addresses.dial(all.clone());
    for (started, address) in all.iter().enumerate().take(MOST_AT_ONCE) {
        assert_eq!(dial.pause(), Some(TIMEOUT / 4), "after {started}");
        assert_eq!(dial.next_attempt(), Some(*address));
    }
    assert_eq!((dial.pause(), dial.next_attempt()), (None, None));
    // A failure makes room for one more at once.
    dial.failed(all[1], REFUSED);
    assert_eq!(dial.next_attempt(), Some(all[MOST_AT_ONCE]));
    assert_eq!((dial.pause(), dial.failure()), (None, None));
    let mut tried = MOST_AT_ONCE + 1;
    for address in &all {
        dial.failed(*address, REFUSED);
        tried += usize::from(dial.next_attempt().is_some());
    }
    assert_eq!((tried, dial.failure()), (MOST_ADDRESSES, Some(REFUSED)));
}

#[test]
fn every_address_of_a_name_is_reached_although_the_others_hang() {
    let addresses = addresses();
    let all: Vec<SocketAddr> = (0..16).map(v4).collect();
    let mut tried = std::collections::BTreeSet::new();
    for _ in 0..MOST_ADDRESSES / MOST_AT_ONCE {
        let mut dial = addresses.dial(all.clone());
        tried.extend(std::iter::from_fn(|| dial.next_attempt()));
    }
    assert_eq!(tried.len(), all.len());
}

#[test]
fn the_number_of_avoided_addresses_is_bounded() {
    let addresses = addresses();
    for number in 0..100 {
        drop(hanging(&addresses, &[v4(number)], 1));
    }
    assert_eq!(addresses.memory().avoided.len(), MOST_ADDRESSES);
}

/// The result of a race whose timer fires at once, and the attempts that it makes.
fn raced(
    addresses: &Addresses,
    outcome: impl Fn(SocketAddr) -> Option<io::Result<SocketAddr>>,
) -> (Poll<Result<SocketAddr, Cause>>, Vec<SocketAddr>) {
    let mut tried = Vec::new();
    let polled = {
        let connect = |address| {
            tried.push(address);
            let mut outcome = outcome(address);
            poll_fn(move |_| outcome.take().map_or(Poll::Pending, Poll::Ready))
        };
        let sleep = |_| -> Ready<()> { ready(()) };
        let race = addresses.dial([v4(1), v4(2), v4(3)]).race(connect, sleep);
        pin!(race).poll(&mut Context::from_waker(Waker::noop()))
    };
    (polled, tried)
}

#[test]
fn the_first_to_connect_wins_a_race_and_is_the_first_in_the_next() {
    let addresses = addresses();
    let only_second = |address| (address == v4(2)).then_some(Ok(address));
    assert_eq!(raced(&addresses, only_second), (Poll::Ready(Ok(v4(2))), vec![v4(1), v4(2)]));
    assert_eq!(raced(&addresses, only_second), (Poll::Ready(Ok(v4(2))), vec![v4(2)]));
    assert_eq!(order(&addresses, &[v4(1), v4(2), v4(3)]), [v4(2), v4(3), v4(1)]);
}

#[test]
fn a_race_ends_when_all_have_failed_and_lasts_while_one_is_under_way() {
    let refused = || Some(Err(io::ErrorKind::ConnectionRefused.into()));
    let all = vec![v4(1), v4(2), v4(3)];
    assert_eq!(raced(&addresses(), |_| refused()), (Poll::Ready(Err(REFUSED)), all.clone()));
    let first_hangs = |address| if address == v4(1) { None } else { refused() };
    assert_eq!(raced(&addresses(), first_hangs), (Poll::Pending, all));
    let nothing = addresses().dial([]).race(|_| ready(Ok(())), |_| ready(()));
    let polled = pin!(nothing).poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(polled, Poll::Ready(Err(Cause::UnknownHost)));
}
