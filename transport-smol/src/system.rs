//! What the operating system lends: a clock that runs in suspend, and entropy.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use quorlock_core::front::Host;
use quorlock_core::{EntropyFailed, Instant};

/// The system as a thread of any executor sees it.
pub(crate) struct System {
    /// As it was when the locker was opened: what it detects has happened since.
    forks: forkguard::Guard,
    #[cfg(not(target_os = "linux"))]
    origin: std::time::Instant,
}

impl System {
    pub(crate) fn new() -> Self {
        Self {
            forks: forkguard::new(),
            #[cfg(not(target_os = "linux"))]
            origin: std::time::Instant::now(),
        }
    }
}

impl Host for System {
    /// CLOCK_BOOTTIME: `std::time::Instant` stands still on Linux while the machine sleeps.
    #[cfg(target_os = "linux")]
    fn now(&self) -> Instant {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Instant::from_nanos(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0))
    }

    #[cfg(not(target_os = "linux"))]
    fn now(&self) -> Instant {
        Instant::ORIGIN + self.origin.elapsed()
    }

    /// It compares a number with one that `pthread_atfork` counts up in each child.
    fn is_forked(&self) -> bool {
        self.forks.clone().detected_fork()
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        getrandom::fill(bytes).map_err(|_| EntropyFailed)
    }

    /// Parks the thread until the driver, on an executor elsewhere, has an outcome for it.
    fn block_on(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        while poll(&mut context).is_pending() {
            thread::park();
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
