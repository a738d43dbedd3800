//! Calls wakers, which belong to others.

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
            waker.wake();
        }
    }
}
