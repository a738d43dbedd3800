//! Tasks that are polled only when they were woken, as an executor does.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use quorlock_core::AcquireError;
use quorlock_core::front::{Acquiring, Granted, Guard, Request};

/// How often it was woken.
#[derive(Default)]
pub struct Woken(AtomicUsize);

impl Woken {
    /// Whether it was woken since this was last asked.
    pub fn take(&self) -> bool {
        self.0.swap(0, Ordering::SeqCst) > 0
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A request that is under way.
pub struct Task<G = Guard> {
    future: Pin<Box<Acquiring<G>>>,
    woken: Arc<Woken>,
}

impl<G: Granted> Task<G> {
    /// Polls it once.
    pub fn start(request: Request<G>) -> Self {
        let mut task = Self { future: Box::pin(request.into_future()), woken: Arc::default() };
        assert!(task.poll().is_pending());
        task
    }

    pub fn poll(&mut self) -> Poll<Result<G, AcquireError>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    pub fn poll_if_woken(&mut self) -> Poll<Result<G, AcquireError>> {
        if self.woken.take() { self.poll() } else { Poll::Pending }
    }

    #[track_caller]
    pub fn guard(&mut self) -> G {
        let Poll::Ready(result) = self.poll_if_woken() else { panic!("it was not woken, or still waits") };
        result.unwrap()
    }

    #[track_caller]
    pub fn error(&mut self) -> AcquireError {
        let Poll::Ready(Err(error)) = self.poll_if_woken() else { panic!("it was not told of an error") };
        error
    }
}
