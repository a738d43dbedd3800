//! A panic in the caller's code affects no other caller.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::driver::Driver;

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics, on purpose");
    }
}

#[derive(Default)]
struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_waker_that_panics_does_not_keep_others_from_being_woken() {
    let (locker, driver) = Driver::start(3);
    driver.settle();
    let panics = Waker::from(Arc::new(Panics));
    let counts = Arc::new(Counts::default());
    let waker = Waker::from(Arc::clone(&counts));
    let mut seeking = ["a", "b", "c", "d"].map(|name| locker.lock(name).into_future());
    for (seeking, waker) in seeking.iter_mut().zip([&panics, &waker, &panics, &waker]) {
        assert!(Pin::new(seeking).poll(&mut Context::from_waker(waker)).is_pending());
    }

    driver.settle();

    assert_eq!(counts.0.load(Ordering::SeqCst), 2);
    for seeking in &mut seeking {
        assert!(matches!(Pin::new(seeking).poll(&mut Context::from_waker(&waker)), Poll::Ready(Ok(_))));
    }
    driver.end();
}

#[test]
fn a_waker_that_panics_does_not_keep_others_from_learning_that_the_driver_has_ended() {
    let (locker, driver) = Driver::start(3);
    let panics = Waker::from(Arc::new(Panics));
    let counts = Arc::new(Counts::default());
    let waker = Waker::from(Arc::clone(&counts));
    let mut seeking = ["a", "b"].map(|name| locker.lock(name).into_future());
    for (seeking, waker) in seeking.iter_mut().zip([&panics, &waker]) {
        assert!(Pin::new(seeking).poll(&mut Context::from_waker(waker)).is_pending());
    }

    driver.end();

    assert_eq!(counts.0.load(Ordering::SeqCst), 1);
}
