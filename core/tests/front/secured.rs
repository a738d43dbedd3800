//! Masters that are reached over encrypted channels.

use std::future::IntoFuture;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use quorlock_core::front::{Acquiring, Guard, Locker};
use quorlock_core::{Address, Cause, Config, MasterState, TlsFault, Warning};

use super::driver::{Driver, Manner, ms};
use super::toy_channel::{Toy, Toys};

fn start(urls: &[&str]) -> (Locker, Arc<Driver>, Arc<Toy>) {
    let toy = Arc::new(Toy::default());
    let config = Config::builder(urls).tls(Toys(Arc::clone(&toy))).build().unwrap();
    let (locker, driver) = Driver::over(config, true);
    (locker, driver, toy)
}

fn poll(seeking: &mut std::pin::Pin<&mut Acquiring>) -> Option<Guard> {
    match seeking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Some(outcome.unwrap()),
        Poll::Pending => None,
    }
}

fn lock(locker: &Locker, driver: &Arc<Driver>, name: &str) -> Guard {
    let mut seeking = pin!(locker.lock(name).into_future());
    assert!(poll(&mut seeking).is_none());
    driver.settle();
    poll(&mut seeking).expect("the lock is free")
}

#[test]
fn locks_work_over_channels_beside_plain_ones() {
    let (locker, driver, toy) = start(&["rediss://a", "redis://b", "valkeys://c"]);
    driver.settle();
    let guard = lock(&locker, &driver, "job");
    assert_eq!([0, 1, 2].map(|master| driver.keys(master)), [1, 1, 1]);
    drop(guard);
    driver.settle();
    assert_eq!([0, 1, 2].map(|master| driver.keys(master)), [0, 0, 0]);
    assert_eq!(toy.made.load(Ordering::SeqCst), 2);
    driver.end();
}

#[test]
fn nothing_is_lost_or_sent_twice_where_sockets_take_a_few_bytes() {
    for few in [1, 3, 50] {
        let (locker, driver, _) = start(&["rediss://a"]);
        driver.takes(0, Manner::Few(few));
        let mut seeking = pin!(locker.lock("job").into_future());
        let guard = loop {
            if let Some(guard) = poll(&mut seeking) {
                break guard;
            }
            driver.settle();
            while driver.is_blocked(0) {
                driver.retry(0);
                driver.settle();
            }
        };
        assert_eq!(driver.keys(0), 1);
        drop(guard);
        while !driver.retry(0) {}
        driver.settle();
        assert_eq!(driver.keys(0), 0);
        driver.end();
    }
}

#[test]
fn a_channel_is_made_for_the_address_that_the_connection_goes_to() {
    let toy = Arc::new(Toy::default());
    let map = |_: &Address| Address::Tcp { host: "outside".into(), port: 1 };
    let config = Config::builder(["rediss://a"]).tls(Toys(Arc::clone(&toy))).address_map(map);
    let (_locker, driver) = Driver::over(config.build().unwrap(), true);
    driver.settle();
    assert_eq!(*toy.addresses.lock().unwrap(), ["outside:1"]);
    driver.end();
}

#[test]
fn outdated_files_are_a_warning_until_the_next_connection() {
    let (locker, driver, toy) = start(&["rediss://a"]);
    driver.settle();
    for warnings in [vec![], vec![Warning::OutdatedFiles], vec![]] {
        toy.has_outdated_files.store(!warnings.is_empty(), Ordering::SeqCst);
        driver.end_channel(0);
        driver.settle();
        driver.pass(ms(10_000));
        driver.settle();
        assert_eq!(locker.masters()[0].1, MasterState::Ready { warnings });
    }
    driver.end();
}

#[test]
fn a_channel_that_cannot_be_made_is_a_fault_of_its_master_alone() {
    let (locker, driver, _) = start(&["rediss://a", "rediss://untrusted", "rediss://c"]);
    driver.settle();
    drop(lock(&locker, &driver, "job"));
    assert_eq!(locker.masters()[1].1, MasterState::Down(Cause::Tls(TlsFault::UnknownIssuer)));
    driver.end();
}

#[test]
fn a_tls_master_without_a_tls_implementation_is_reported_as_such() {
    let config = Config::new(["rediss://a"]).unwrap();
    let (locker, driver) = Driver::over(config, true);
    driver.settle();
    assert_eq!(locker.masters()[0].1, MasterState::Down(Cause::Tls(TlsFault::NotBuiltIn)));
    driver.end();
}

#[test]
fn an_unanswered_handshake_is_distinguished_from_a_connection_that_does_not_open() {
    let (locker, driver, _) = start(&["rediss://a"]);
    driver.hush(0, true);
    driver.settle();
    driver.pass(ms(250));
    driver.settle();
    let waited = ms(250);
    assert_eq!(locker.masters()[0].1, MasterState::Down(Cause::NoHandshake { waited }));
    driver.hush(0, false);
    driver.pass(ms(2_500));
    driver.settle();
    assert!(matches!(locker.masters()[0].1, MasterState::Ready { .. }));
    driver.end();
}

#[test]
fn control_messages_of_a_channel_do_not_count_as_answers_of_a_master() {
    let (locker, driver, toy) = start(&["rediss://a"]);
    driver.settle();
    drop(lock(&locker, &driver, "job"));
    driver.settle();
    let mut seeking = pin!(locker.lock("other").into_future());
    driver.hush(0, true);
    assert!(poll(&mut seeking).is_none());
    // This takes longer than the request's timeout. The channel gets a message all the while.
    for _ in 0..30 {
        driver.pass(ms(20));
        driver.channel_asks(0);
        driver.turn();
    }
    assert_eq!(toy.made.load(Ordering::SeqCst), 2, "the silent connection is given up");
    driver.end();
}

#[test]
fn answers_that_a_channel_must_give_are_written_before_the_next_request() {
    let (locker, driver, _) = start(&["rediss://a"]);
    driver.settle();
    let guard = lock(&locker, &driver, "job");
    driver.channel_asks(0);
    drop(guard);
    driver.settle();
    assert_eq!(driver.keys(0), 0);
    driver.end();
}

#[test]
fn a_peer_that_ends_its_channel_is_connected_to_again() {
    let (locker, driver, toy) = start(&["rediss://a"]);
    driver.settle();
    drop(lock(&locker, &driver, "job"));
    driver.settle();
    driver.end_channel(0);
    driver.settle();
    drop(lock(&locker, &driver, "job"));
    assert_eq!(toy.made.load(Ordering::SeqCst), 2);
    driver.end();
}

#[test]
fn a_channel_near_the_limit_of_its_keys_is_replaced_without_a_loss() {
    let (locker, driver, toy) = start(&["rediss://a", "rediss://b", "rediss://c"]);
    toy.worn_at.store(8, Ordering::SeqCst);
    toy.most.store(12, Ordering::SeqCst);
    driver.settle();
    let guard = lock(&locker, &driver, "held");
    for number in 0..100 {
        drop(lock(&locker, &driver, &format!("job {number}")));
        driver.settle();
    }
    assert!(guard.is_valid());
    assert!(toy.made.load(Ordering::SeqCst) >= 3 * 200 / 12, "{toy:?}");
    driver.end();
}

#[test]
fn a_channel_that_cannot_encrypt_any_more_ends_its_connection() {
    let (locker, driver, toy) = start(&["rediss://a"]);
    toy.most.store(4, Ordering::SeqCst);
    driver.settle();
    for _ in 0..10 {
        let mut seeking = pin!(locker.lock("job").into_future());
        let guard = (0..1_000).find_map(|_| {
            driver.settle();
            driver.pass(ms(5));
            poll(&mut seeking)
        });
        drop(guard.expect("the next connection has its own keys"));
        driver.settle();
        driver.pass(ms(11_000));
    }
    assert!(toy.made.load(Ordering::SeqCst) > 3, "{toy:?}");
    driver.end();
}
