//! How a thread waits for a future.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// A transport's way of waiting: the two methods of a [`Host`](quorlock_core::front::Host) in which
/// transports differ.
pub trait Wait: Send + Sync + 'static {
    /// Whether the calling thread may wait:
    /// [`Host::may_wait`](quorlock_core::front::Host::may_wait).
    fn may_wait(&self) -> bool {
        true
    }

    /// Blocks the calling thread until `poll` is ready:
    /// [`Host::block_on`](quorlock_core::front::Host::block_on).
    fn block_on(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        park(poll);
    }
}

impl<W: Wait> Wait for Arc<W> {
    fn may_wait(&self) -> bool {
        W::may_wait(self)
    }

    fn block_on(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        W::block_on(self, poll);
    }
}

/// Waiting by parking the thread: the driver, on another thread, unparks it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Park;

impl Wait for Park {}

/// Parks the calling thread until `poll` is ready. It is called once at first, and again after each
/// wake-up.
pub fn park(poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    while poll(&mut context).is_pending() {
        thread::park();
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parked_thread_polls_again_after_each_wake_up() {
        let mut polls = 0;
        park(&mut |cx| {
            polls += 1;
            if polls == 3 {
                return Poll::Ready(());
            }
            let waker = cx.waker().clone();
            thread::spawn(move || waker.wake());
            Poll::Pending
        });
        assert_eq!(polls, 3);
    }
}
