//! Primitives with which threads wait: the standard library's, or the model checker's in tests with
//! `--cfg loom`.

use std::sync::PoisonError;

pub(crate) use imp::*;

/// Locks a mutex, also after a thread has panicked while holding it.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(not(all(loom, test)))]
mod imp {
    pub(crate) use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
    pub(crate) use std::sync::{Mutex, MutexGuard};
    pub(crate) use std::thread::{Thread, ThreadId, current, park, park_timeout};
}

#[cfg(all(loom, test))]
mod imp {
    use std::sync::Arc;
    use std::time::Duration;

    use loom::sync::Condvar;
    pub(crate) use loom::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard};
    pub(crate) use loom::thread::ThreadId;

    use super::{PoisonError, lock};

    /// A thread that can be unparked.
    ///
    /// `loom::thread::Thread::unpark` also wakes a thread that waits for a mutex. This one keeps
    /// the token for the next [`park`], as the standard library does.
    #[derive(Clone)]
    pub(crate) struct Thread {
        id: ThreadId,
        token: Arc<(Mutex<bool>, Condvar)>,
    }

    loom::thread_local! {
        static CURRENT: Thread = Thread { id: loom::thread::current().id(), token: Arc::default() };
    }

    impl Thread {
        pub(crate) fn id(&self) -> ThreadId {
            self.id
        }

        pub(crate) fn unpark(&self) {
            let (token, is_there) = &*self.token;
            *lock(token) = true;
            is_there.notify_one();
        }
    }

    pub(crate) fn current() -> Thread {
        CURRENT.with(Thread::clone)
    }

    pub(crate) fn park() {
        let thread = current();
        let (token, is_there) = &*thread.token;
        let mut token = lock(token);
        while !*token {
            token = is_there.wait(token).unwrap_or_else(PoisonError::into_inner);
        }
        *token = false;
    }

    /// Time may pass at any speed, so it may return at any moment, with or without a token.
    pub(crate) fn park_timeout(_limit: Duration) {
        loom::thread::yield_now();
    }
}
