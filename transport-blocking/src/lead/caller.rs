//! A thread that waits, and what wakes it.

use std::sync::Arc;
use std::task::Wake;

use crate::sync::{AtomicU8, AtomicUsize, Ordering, Thread, current};

/// What a wake-up needs. It is apart from the event loop: a waker may be kept for as long as its
/// keeper likes, and must not keep the connections open.
pub(super) struct Signals {
    /// Ends the sleep of a turn, or the next one if no turn sleeps.
    pub(super) interrupt: Box<dyn Fn() + Send + Sync>,
    /// Followers that have been woken since the background thread looked last.
    pub(super) woken: AtomicUsize,
}

/// A thread that waits for its own future.
pub(super) struct Caller {
    pub(super) thread: Thread,
    /// One of the three constants below. A single variable, so that a wake-up sees whether the
    /// caller leads, and a caller that begins to lead sees the wake-up.
    state: AtomicU8,
    signals: Arc<Signals>,
}

/// Not woken since its last poll began: it may be parked, or about to be.
const WAITING: u8 = 0;
/// Not woken since its last poll began, and leading: it may sleep in a turn.
const LEADING: u8 = 1;
/// Woken since its last poll began.
const WOKEN: u8 = 2;

impl Caller {
    /// The present thread.
    pub(super) fn new(signals: &Arc<Signals>) -> Self {
        Self { thread: current(), state: AtomicU8::new(WAITING), signals: Arc::clone(signals) }
    }

    /// From here on, a wake-up requests another poll. The poll sees everything that happened before
    /// earlier wake-ups.
    pub(super) fn begin_poll(&self) {
        self.state.swap(WAITING, Ordering::AcqRel);
    }

    pub(super) fn is_woken(&self) -> bool {
        self.state.load(Ordering::Acquire) == WOKEN
    }

    pub(super) fn begin_leading(&self) {
        self.replace(WAITING, LEADING);
    }

    pub(super) fn end_leading(&self) {
        self.replace(LEADING, WAITING);
    }

    /// Has no effect on a caller that has been woken.
    fn replace(&self, from: u8, to: u8) {
        let _ = self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    }
}

impl Wake for Caller {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let before = self.state.swap(WOKEN, Ordering::AcqRel);
        // On its own thread the caller is neither asleep in a turn nor parked.
        if self.thread.id() == current().id() {
            return;
        }
        match before {
            LEADING => (self.signals.interrupt)(),
            WAITING => {
                self.signals.woken.fetch_add(1, Ordering::AcqRel);
                self.thread.unpark();
            }
            _ => {}
        }
    }
}
