//! Calls wakers, which belong to others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakers to be called once no mutex is held.
#[derive(Default)]
#[must_use = "whoever waits is not woken until `wake` is called"]
pub(super) struct Woken(Vec<Waker>);

impl Woken {
    pub(super) fn push(&mut self, waker: Option<Waker>) {
        self.0.extend(waker);
    }

    pub(super) fn extend(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        self.0.extend(wakers);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn wake(self) {
        for waker in self.0 {
            contain(|| waker.wake());
        }
    }
}

/// Calls code of others, a waker or a subscriber, and ends its panic here. The calling thread carries out for many callers, who
/// must not pay for it; the panic hook has reported it by then.
pub(super) fn contain(call: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(call)) {
        // Dropping the payload would be one more call of that code.
        std::mem::forget(payload);
    }
}
