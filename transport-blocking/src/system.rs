//! What the operating system lends: a clock that runs in suspend, entropy, and threads that wait.

use std::sync::{OnceLock, Weak};
use std::task::{Context, Poll};

use quorlock_core::front::Host;
use quorlock_core::{EntropyFailed, Instant};

use crate::lead::{Lead, wait_without_leading};

/// The system under synchronous code.
pub(crate) struct System {
    /// As it was when the locker was opened: what it detects has happened since.
    forks: forkguard::Guard,
    /// The I/O loop; it owns the other end of the locker, so it is not owned from here.
    lead: OnceLock<Weak<Lead>>,
    #[cfg(not(target_os = "linux"))]
    origin: std::time::Instant,
}

impl System {
    pub(crate) fn new() -> Self {
        Self {
            forks: forkguard::new(),
            lead: OnceLock::new(),
            #[cfg(not(target_os = "linux"))]
            origin: std::time::Instant::now(),
        }
    }

    /// Makes the I/O loop known to those who wait.
    pub(crate) fn led_by(&self, lead: Weak<Lead>) {
        // It is made known once, by the only place that makes it.
        let _ = self.lead.set(lead);
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

    /// The waiting thread serves the sockets itself, unless another does.
    fn block_on(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        match self.lead.get().and_then(Weak::upgrade) {
            Some(lead) => lead.wait(poll),
            None => wait_without_leading(poll),
        }
    }
}
