//! What the front's threads share: mutexes and atomics (the standard library's, or loom's where
//! loom checks what is built on them), and how users' wakers are called.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::task::Waker;

#[cfg(all(test, loom))]
pub(super) use self::explored::TryMutex;
#[cfg(not(all(test, loom)))]
pub(super) use self::real::TryMutex;
#[cfg(all(test, loom))]
pub(super) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(all(test, loom))]
pub(super) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(all(test, loom)))]
pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(not(all(test, loom)))]
pub(super) use std::sync::{Mutex, MutexGuard};

/// Locks a mutex, poisoned or not: the front's code keeps the data under its mutexes valid at every
/// point.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakers to be called once no mutex is held.
#[derive(Default)]
#[must_use = "no waiter is woken until `wake` is called"]
pub(super) struct Woken(Vec<Waker>);

impl Woken {
    pub(super) fn push(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.0.push(waker);
        }
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

/// Calls user code, such as a waker or a subscriber, and contains its panic: the calling thread
/// works for many callers, which must not suffer from it. The panic hook has already reported it.
/// Returns `None` if the code panicked.
pub(super) fn contain<R>(call: impl FnOnce() -> R) -> Option<R> {
    // Dropping the panic's payload would call that code again.
    catch_unwind(AssertUnwindSafe(call)).map_err(std::mem::forget).ok()
}

#[cfg(not(all(test, loom)))]
mod real {
    use std::sync::TryLockError;

    use super::{Mutex, MutexGuard};

    /// A mutex that callers may try instead of waiting for it.
    pub(in crate::front) struct TryMutex<T>(Mutex<T>);

    impl<T> TryMutex<T> {
        pub(in crate::front) fn new(value: T) -> Self {
            Self(Mutex::new(value))
        }

        pub(in crate::front) fn lock(&self) -> MutexGuard<'_, T> {
            super::lock(&self.0)
        }

        pub(in crate::front) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            match self.0.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            }
        }
    }
}

/// loom releases a mutex in one step with the previous operation of the thread that holds it, so
/// that no other thread finds it locked between the two. This type adds an operation in between, on
/// an atomic that threads that try the mutex also touch.
#[cfg(all(test, loom))]
mod explored {
    use std::ops::{Deref, DerefMut};

    use super::{AtomicUsize, Mutex, MutexGuard, Ordering};

    pub(in crate::front) struct TryMutex<T> {
        mutex: Mutex<T>,
        step: AtomicUsize,
    }

    pub(in crate::front) struct TryGuard<'a, T> {
        guard: MutexGuard<'a, T>,
        step: &'a AtomicUsize,
    }

    impl<T> TryMutex<T> {
        pub(in crate::front) fn new(value: T) -> Self {
            Self { mutex: Mutex::new(value), step: AtomicUsize::new(0) }
        }

        pub(in crate::front) fn lock(&self) -> TryGuard<'_, T> {
            TryGuard { guard: super::lock(&self.mutex), step: &self.step }
        }

        pub(in crate::front) fn try_lock(&self) -> Option<TryGuard<'_, T>> {
            self.step.fetch_add(1, Ordering::Relaxed);
            let guard = self.mutex.try_lock().ok()?;
            Some(TryGuard { guard, step: &self.step })
        }
    }

    impl<T> Drop for TryGuard<'_, T> {
        fn drop(&mut self) {
            self.step.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl<T> Deref for TryGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.guard
        }
    }

    impl<T> DerefMut for TryGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            &mut self.guard
        }
    }
}
