//! What all handles of a locker and its driver share: the engine, the outbox and the mailbox, and
//! the flush between them.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::engine::{Engine, Running};
use super::figures::Figures;
use super::host::{Host, HostEntropy};
use super::mailbox::{Demand, Mailbox};
use super::observe::{Notices, Subject};
use super::outbox::queue::Queue;
use super::outbox::{Outbox, Outputs};
use super::slot::Slot;
use super::wake::Woken;
use crate::machine::Machine;
use crate::protocol::{Config, LockId, Resumption};
use crate::time::Instant;

/// The parts of the front. Commands change the engine; the outbox carries out what that brought
/// about, and tells the mailbox what only the driver can do.
pub(super) struct Shared {
    pub(super) host: Arc<dyn Host>,
    pub(super) engine: Engine,
    pub(super) outbox: Outbox,
    pub(super) mailbox: Mailbox,
}

/// What remains of the machine's outputs once they are collected: code of others is called under no
/// mutex.
pub(super) struct Rest {
    demands: Vec<Demand>,
    deadline: Option<Instant>,
    woken: Woken,
    has_woken_callers: bool,
    notices: Notices,
}

impl Default for Rest {
    fn default() -> Self {
        Self {
            demands: Vec::new(),
            deadline: None,
            woken: Woken::default(),
            has_woken_callers: false,
            notices: Notices::gather(),
        }
    }
}

impl Shared {
    pub(super) fn new(config: Arc<Config>, host: Arc<dyn Host>) -> Arc<Self> {
        let masters = config.masters.len();
        let shared = Arc::new(Self {
            engine: Engine::new(config, Arc::clone(&host)),
            host,
            outbox: Outbox::new(masters),
            mailbox: Mailbox::default(),
        });
        shared.flush_now();
        shared
    }

    /// Whether this is a forked child's copy, in which nothing may be locked, written or read.
    pub(super) fn is_forked(&self) -> bool {
        self.host.is_forked()
    }

    // Commands.

    /// Starts what ends with an event.
    pub(super) fn begin<E>(
        &self,
        subject: Subject,
        start: impl FnOnce(&mut Running, Instant) -> Result<LockId, E>,
    ) -> Result<(LockId, Arc<Slot>), E> {
        let slot = Arc::new(Slot::new(subject));
        let id = self.engine.change(|running, now| {
            let id = start(running, now)?;
            running.insert(id, &slot);
            Ok(id)
        })?;
        self.flush();
        Ok((id, slot))
    }

    /// Changes the machine, then carries out what that brought about.
    pub(super) fn command<R>(&self, change: impl FnOnce(&mut Machine<HostEntropy>, Instant) -> R) -> R {
        let result = self.engine.change(|running, now| change(&mut running.machine, now));
        self.flush();
        result
    }

    /// Gives a lock up without waiting for what the masters say. `count` is called if it has not
    /// ended before.
    pub(super) fn cancel(&self, id: LockId, count: impl FnOnce(&mut Figures)) {
        if self.is_forked() {
            return;
        }
        self.engine.change(|running, now| running.cancel(id, count, now));
        // The process may end with this.
        self.flush_now();
    }

    /// Leaves a lock to the process that is given its token.
    pub(super) fn hand_over(&self, id: LockId) -> Option<Resumption> {
        let handed = self.engine.change(|running, now| running.hand_over(id, now));
        self.flush();
        handed
    }

    /// Ends a lock without touching its keys.
    pub(super) fn abandon(&self, id: LockId) {
        self.engine.change(|running, now| {
            running.machine.hand_over(id, now);
            running.forget(id);
        });
        self.flush();
    }

    /// The driver is gone: nothing is read any more, so all that wait are told.
    pub(super) fn driver_ended(&self) {
        self.outbox.end_gathering(self);
        let mut woken = Woken::default();
        self.engine.look().driver_ends(&mut woken);
        woken.wake();
    }

    // Flushing.

    /// See [`Outbox::flush`].
    pub(super) fn flush(&self) {
        self.outbox.flush(self);
    }

    /// See [`Outbox::flush_now`].
    pub(super) fn flush_now(&self) -> bool {
        self.outbox.flush_now(self)
    }
}

impl Outputs for Shared {
    type Rest = Rest;

    fn collect(&self, queue: &mut Queue, rest: &mut Rest) {
        let Rest { demands, deadline, woken, has_woken_callers, notices } = rest;
        let before = woken.len();
        *deadline = self.engine.collect(queue, demands, woken, notices);
        *has_woken_callers |= woken.len() > before;
    }

    fn written(&self, became_full: bool, rest: &mut Rest) {
        self.mailbox.post(&mut rest.demands, rest.deadline, became_full, &mut rest.woken);
    }

    fn finish(&self, rest: Rest) -> bool {
        rest.notices.tell(&*self.host);
        rest.woken.wake();
        rest.has_woken_callers
    }
}

/// A user's share of the whole; the driver ends when the last one is gone.
pub(super) struct Handle(pub(super) Arc<Shared>);

impl Handle {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        shared.mailbox.add_user();
        Self(Arc::clone(shared))
    }

    /// Keeps the calling thread until a future is ready, in the way of the transport; `None` if
    /// that gave up first.
    ///
    /// # Panics
    /// In a thread that runs async code for the runtime that drives the locker: it would wait for
    /// itself.
    #[track_caller]
    pub(super) fn wait<F: Future + Unpin>(&self, mut future: F) -> Option<F::Output> {
        let shared = &self.0;
        if shared.is_forked() {
            // Nothing in the child could wake it.
            return match Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(ready) => Some(ready),
                Poll::Pending => None,
            };
        }
        assert!(
            shared.host.may_wait(),
            "this thread runs async code, which cannot go on while the thread waits: use `.await` instead of `wait()`, \
             or wait on a thread for blocking work (`spawn_blocking`)"
        );
        let mut output = None;
        let mut poll =
            |cx: &mut Context<'_>| Pin::new(&mut future).poll(cx).map(|ready| output = Some(ready));
        shared.host.block_on(&mut |cx| shared.outbox.gathered(&**shared, || poll(cx)));
        output
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.0.is_forked() {
            // The sockets are the parent's, too: closing the child's copies may take them out of
            // the parent's reactor.
            mem::forget(Arc::clone(&self.0));
        } else {
            self.0.mailbox.remove_user();
        }
    }
}
