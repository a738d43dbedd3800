//! The floor of many threads: each worker has its own thread, which is parked until a majority
//! has answered. So a pair costs two wake-ups on top of the exchange.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle, Thread};

/// Threads that only wake up and report that they have.
pub(super) struct Crowd {
    threads: Vec<(Arc<AtomicBool>, JoinHandle<()>)>,
    shared: Arc<Shared>,
}

struct Shared {
    /// Threads that were woken and have not reported it.
    abroad: AtomicUsize,
    ends: AtomicBool,
    /// The thread that does the input and output.
    exchange: Thread,
}

impl Crowd {
    /// `threads` threads beside the calling one.
    pub(super) fn start(threads: usize) -> Self {
        let (abroad, ends) = (AtomicUsize::new(0), AtomicBool::new(false));
        let shared = Arc::new(Shared { abroad, ends, exchange: thread::current() });
        let start = |_| {
            let (shared, is_woken) = (Arc::clone(&shared), Arc::new(AtomicBool::new(false)));
            let own = Arc::clone(&is_woken);
            (is_woken, thread::spawn(move || shared.take_part(&own)))
        };
        Self { threads: (0..threads).map(start).collect(), shared }
    }

    /// Wakes these, and sleeps until each of them has run.
    pub(super) fn wake(&self, workers: &[usize]) {
        self.shared.abroad.store(workers.len(), Ordering::Release);
        for (is_woken, thread) in workers.iter().filter_map(|worker| self.threads.get(*worker)) {
            is_woken.store(true, Ordering::Release);
            thread.thread().unpark();
        }
        while self.shared.abroad.load(Ordering::Acquire) > 0 {
            thread::park();
        }
    }
}

impl Shared {
    fn take_part(&self, is_woken: &AtomicBool) {
        while !self.ends.load(Ordering::Acquire) {
            if !is_woken.swap(false, Ordering::AcqRel) {
                thread::park();
            } else if self.abroad.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.exchange.unpark();
            }
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        for (_, thread) in self.threads.drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
