//! What all handles of a locker and its driver share: the engine behind its mutex, the outbox and
//! the mailbox, and how outputs pass from one to the next.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::figures::Figures;
use super::growth::make_room;
use super::host::Host;
use super::mailbox::{Demand, Mailbox};
use super::observe::{GrantFields, Notices, Subject, Told};
use super::outbox::{Outbox, Outputs, Queue, Trouble};
use super::slot::Slot;
use super::sync::{Mutex, MutexGuard, Woken, lock};
use crate::machine::{Machine, Output};
#[cfg(feature = "internals")]
use crate::protocol::Targets;
use crate::protocol::{
    Acquire, AcquireError, Config, Entropy, EntropyFailed, Event, LockId, Resumption, Seats,
};
use crate::time::Instant;

/// The parts of the front. Commands change the engine. The outbox carries out the outputs, and
/// passes to the mailbox what only the driver can do.
pub(super) struct Shared {
    pub(super) host: Arc<dyn Host>,
    pub(super) config: Arc<Config>,
    engine: Mutex<Engine>,
    pub(super) outbox: Outbox,
    pub(super) mailbox: Mailbox,
}

/// What remains to be done once the machine's outputs are collected: user code is called without a
/// mutex held.
#[derive(Default)]
pub(super) struct Rest {
    demands: Vec<Demand>,
    deadline: Option<Instant>,
    woken: Woken,
    has_woken_callers: bool,
    notices: Notices,
}

impl Shared {
    pub(super) fn new(config: Arc<Config>, host: Arc<dyn Host>) -> Arc<Self> {
        let masters = config.masters.len();
        let shared = Arc::new(Self {
            engine: Mutex::new(Engine {
                machine: Machine::new(Arc::clone(&config), HostEntropy(Arc::clone(&host)), host.now()),
                figures: Figures::new(masters),
                slots: Vec::new(),
                told: Told::nothing(),
                driver_ended: false,
            }),
            host,
            config,
            outbox: Outbox::new(masters),
            mailbox: Mailbox::default(),
        });
        shared.outbox.flush_now(&*shared);
        shared
    }

    /// Whether this is a forked child's copy, in which nothing may be locked, written or read.
    pub(super) fn is_forked(&self) -> bool {
        self.host.is_forked()
    }

    /// The engine, for reading, or for changes that produce no outputs.
    pub(super) fn engine(&self) -> MutexGuard<'_, Engine> {
        lock(&self.engine)
    }

    /// Changes the engine at this instant. The outputs wait in it for a flush of the outbox.
    #[inline]
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Engine, Instant) -> R) -> R {
        let mut engine = lock(&self.engine);
        let now = self.host.now();
        change(&mut engine, now)
    }

    // Commands.

    /// Starts a command that ends with an event.
    pub(super) fn begin<E>(
        &self,
        subject: Subject,
        start: impl FnOnce(&mut Engine, Instant) -> Result<LockId, E>,
    ) -> Result<(LockId, Arc<Slot>), E> {
        let begun = self.begin_unflushed(subject, start)?;
        self.outbox.flush(self);
        Ok(begun)
    }

    /// Starts a command that ends with an event. The caller flushes.
    fn begin_unflushed<E>(
        &self,
        subject: Subject,
        start: impl FnOnce(&mut Engine, Instant) -> Result<LockId, E>,
    ) -> Result<(LockId, Arc<Slot>), E> {
        let slot = Arc::new(Slot::new(subject));
        let id = self.change(|engine, now| {
            let id = start(engine, now)?;
            engine.insert(id, &slot);
            Ok(id)
        })?;
        Ok((id, slot))
    }

    /// Starts seeking a lock, and returns the start time. The caller flushes.
    pub(super) fn seek(&self, wanted: &Acquire) -> Result<(LockId, Arc<Slot>, Instant), AcquireError> {
        let mut since = Instant::ORIGIN;
        let (id, slot) = self.begin_unflushed(Subject::of(&wanted.targets), |engine, now| {
            since = now;
            if engine.driver_ended {
                return Err(AcquireError::DriverEnded);
            }
            let id = engine.machine.acquire(wanted, now)?;
            engine.figures.sought();
            Ok(id)
        })?;
        if wanted.resumption.is_some() {
            slot.handles.note_resumed();
        }
        Ok((id, slot, since))
    }

    /// The caller takes a granted lock, if it is still valid and the driver watches it.
    pub(super) fn take(&self, id: LockId, slot: &Slot, since: Instant) -> Option<Taken> {
        self.change(|engine, now| {
            if engine.driver_ended {
                return None;
            }
            let valid_until = engine.machine.take(id, now)?;
            let lock = engine.machine.lock(id)?;
            let proof = lock.resumption(engine.machine.config().masters().len())?;
            engine.figures.granted(lock.attempts(), now.since(since));
            let grant = GrantFields::of(lock, engine.machine.config().quorum, valid_until.since(now));
            // Under the machine's mutex, so that a loss delivered next is not overwritten.
            slot.set_valid_until(valid_until);
            Some(Taken { proof, grant, seats: lock.seats() })
        })
    }

    /// Changes the engine, then carries out the outputs.
    pub(super) fn command<R>(&self, change: impl FnOnce(&mut Engine, Instant) -> R) -> R {
        let result = self.change(change);
        self.outbox.flush(self);
        result
    }

    /// Gives a lock up without waiting for the masters' answers. `count` is called if the lock had
    /// not ended before.
    pub(super) fn cancel(&self, id: LockId, count: impl FnOnce(&mut Figures)) {
        if self.is_forked() {
            return;
        }
        self.change(|engine, now| {
            engine.machine.cancel(id, now);
            if engine.forget(id) {
                count(&mut engine.figures);
            }
        });
        // The process may end with this.
        self.outbox.flush_now(self);
    }

    /// Ends a lock without touching its keys.
    pub(super) fn leave_keys(&self, id: LockId) {
        self.command(|engine, now| {
            // As if another locker knew the token: then a hand-over sends nothing.
            let _ = engine.machine.resumption(id);
            engine.machine.hand_over(id, now);
            engine.forget(id);
        });
    }

    /// The driver is gone: nothing is read any more, so all waiting callers are notified.
    pub(super) fn driver_ended(&self) {
        self.outbox.end_gathering(self);
        let mut woken = Woken::default();
        self.engine().driver_ends(&mut woken);
        woken.wake();
    }
}

impl Outputs for Shared {
    type Rest = Rest;

    /// Bytes go to the queue, events to the slots of their callers, demands to the driver.
    fn collect(&self, queue: &mut Queue, rest: &mut Rest) {
        let woken = rest.woken.len();
        self.change(|engine, now| {
            rest.notices.masters(&engine.machine, &mut engine.told);
            engine.machine.writes_begin(now);
            rest.deadline = loop {
                match engine.machine.poll_output() {
                    Output::Write { master, generation, .. } => {
                        queue.append(master, generation, engine.machine.shown());
                    }
                    Output::Connect { master, generation, address } => {
                        rest.demands.push(Demand::Connect { master, generation, address });
                        if !engine.machine.asks_sentinel(master) {
                            engine.figures.opening(master);
                        }
                    }
                    Output::Close { master, generation } => {
                        queue.close(master, generation);
                        rest.demands.push(Demand::Close { master, generation });
                    }
                    Output::Event(event) => engine.deliver(event, rest),
                    Output::Wake(wake) => break wake.map(|wake| wake.at),
                }
            };
        });
        rest.has_woken_callers |= rest.woken.len() > woken;
    }

    fn troubled(&self, troubles: Vec<Trouble>) {
        self.change(|engine, now| {
            for Trouble { master, generation, cause } in troubles {
                match cause {
                    Some(cause) => engine.machine.closed(master, generation, cause, now),
                    None => engine.machine.renew_connection(master, generation, now),
                }
            }
        });
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

/// The machine, with the slots of the callers that wait for its events, and the counts for reports.
///
/// While its mutex is held, the only system calls read the clock and random bytes, and no user code
/// runs.
pub(super) struct Engine {
    pub(super) machine: Machine<HostEntropy>,
    pub(super) figures: Figures,
    /// By [`LockId::index`], with the id, because indexes are reused.
    slots: Vec<Option<(LockId, Arc<Slot>)>>,
    /// What has been reported of the masters.
    told: Told,
    driver_ended: bool,
}

/// A granted lock that its caller has taken.
pub(super) struct Taken {
    pub(super) proof: Resumption,
    pub(super) grant: GrantFields,
    /// The seats, if it is a permit.
    pub(super) seats: Option<Seats>,
}

impl Engine {
    /// Leaves a lock to the process that gets its token.
    pub(super) fn hand_over(&mut self, id: LockId, now: Instant) -> Option<Resumption> {
        let handed = self.machine.hand_over(id, now)?;
        self.forget(id);
        self.figures.handed_over();
        Some(handed)
    }

    /// Delivers a lock's events to this slot.
    fn insert(&mut self, id: LockId, slot: &Arc<Slot>) {
        if self.driver_ended {
            slot.driver_ended(&mut Woken::default());
        }
        if self.slots.len() <= id.index() {
            make_room(&mut self.slots, id.index());
            self.slots.resize(id.index() + 1, None);
        }
        if let Some(place) = self.slots.get_mut(id.index()) {
            *place = Some((id, Arc::clone(slot)));
        }
    }

    /// From now on no slot gets this lock's events. Returns whether one did before.
    pub(super) fn forget(&mut self, id: LockId) -> bool {
        let place = self.slots.get_mut(id.index());
        place.is_some_and(|place| place.take_if(|(other, _)| *other == id).is_some())
    }

    fn deliver(&mut self, event: Event, rest: &mut Rest) {
        let (lock, is_last) = (event.lock(), event.is_last());
        let place = self.slots.get_mut(lock.index());
        let place = place.filter(|place| place.as_ref().is_some_and(|(id, _)| *id == lock));
        self.figures.count(&event, place.is_some());
        let Some(place) = place else { return };
        if let Some((_, slot)) = place {
            rest.notices.event(&slot.subject, &event);
            slot.deliver(event, &mut rest.woken);
        }
        if is_last {
            *place = None;
        }
    }

    fn driver_ends(&mut self, woken: &mut Woken) {
        self.driver_ended = true;
        for (_, slot) in self.slots.iter().flatten() {
            slot.driver_ended(woken);
        }
    }

    #[cfg(feature = "internals")]
    pub(super) fn each_guard(&self, look: &mut dyn FnMut(LockId, &Targets, Resumption, Instant)) {
        for (id, slot) in self.slots.iter().flatten() {
            let valid_until = slot.valid_until();
            if valid_until > Instant::ORIGIN {
                if let Some((targets, proof)) = self.machine.claim(*id) {
                    look(*id, &targets, proof, valid_until);
                }
            }
        }
    }
}

/// A host as the machine's source of tokens.
#[derive(Clone)]
pub(super) struct HostEntropy(Arc<dyn Host>);

impl Entropy for HostEntropy {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        self.0.fill_random(bytes)
    }
}

/// A user's reference to the front; the driver ends when the last one is gone.
pub(super) struct Handle(pub(super) Arc<Shared>);

impl Handle {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        shared.mailbox.add_user();
        Self(Arc::clone(shared))
    }

    /// Blocks the calling thread until a future is ready, as the transport waits; `None` if the
    /// transport gave up first.
    ///
    /// # Panics
    /// In a thread that runs async code for the runtime that drives the locker: it would wait for
    /// itself.
    #[track_caller]
    pub(super) fn wait<F: Future + Unpin>(&self, mut future: F) -> Option<F::Output> {
        let shared = &self.0;
        if shared.is_forked() {
            // Nothing in the child could wake the thread.
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
            // The sockets also belong to the parent: closing the child's copies may remove them
            // from the parent's reactor.
            mem::forget(Arc::clone(&self.0));
        } else {
            self.0.mailbox.remove_user();
        }
    }
}
