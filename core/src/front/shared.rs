//! The machine behind its mutex, and the flush that carries its outputs out.

use std::mem;
use std::sync::Arc;

use super::core::Core;
use super::driver_side::DriverSide;
use super::figures::Figures;
use super::host::{Host, HostEntropy};
use super::observe::{Notices, Subject};
use super::outbox::{Outbox, Outputs};
use super::port::Demand;
use super::slot::Slot;
use super::sync::{AtomicU64, Mutex, MutexGuard, Ordering, lock};
use super::wake::Woken;
use super::writer::Writer;
use crate::machine::{Machine, Output};
use crate::protocol::{Acquire, AcquireError, Config, LockId, MasterId, MasterSet, Resumption};
use crate::time::Instant;

pub(super) struct Shared {
    pub(super) host: Arc<dyn Host>,
    core: Mutex<Core>,
    outbox: Outbox<Writer>,
    /// Masters whose sockets are full, one bit each.
    blocked: AtomicU64,
    pub(super) driver: DriverSide,
}

/// What remains of the machine's outputs once the bytes are written: code of others is called under no mutex.
pub(super) struct Rest {
    woken: Woken,
    has_woken_callers: bool,
    notices: Notices,
}

impl Default for Rest {
    fn default() -> Self {
        Self { woken: Woken::default(), has_woken_callers: false, notices: Notices::gather() }
    }
}

impl Shared {
    pub(super) fn new(config: Arc<Config>, host: Arc<dyn Host>) -> Arc<Self> {
        let masters = config.masters.len();
        let machine = Machine::new(config, HostEntropy(Arc::clone(&host)), host.now());
        let core = Core::new(machine, masters);
        let shared = Arc::new(Self {
            host,
            core: Mutex::new(core),
            outbox: Outbox::new(Writer::new(masters)),
            blocked: AtomicU64::new(0),
            driver: DriverSide::default(),
        });
        shared.flush_now();
        shared
    }

    /// Whether this is a forked child's copy, in which nothing may be locked, written or read.
    pub(super) fn is_forked(&self) -> bool {
        self.host.is_forked()
    }

    pub(super) fn core(&self) -> MutexGuard<'_, Core> {
        lock(&self.core)
    }

    /// Looks into the write side.
    pub(super) fn with_writer<R>(&self, look: impl FnOnce(&mut Writer) -> R) -> R {
        self.outbox.with_writer(self, |writer| {
            let result = look(writer);
            self.blocked.store(writer.blocked(), Ordering::SeqCst);
            result
        })
    }

    /// Whether bytes wait for room in this master's socket.
    pub(super) fn is_blocked(&self, master: MasterId) -> bool {
        MasterSet::from_bits(self.blocked.load(Ordering::SeqCst)).contains(master)
    }

    /// Starts to seek a lock, and tells since when.
    pub(super) fn acquire(&self, wanted: &Acquire) -> Result<(LockId, Arc<Slot>, Instant), AcquireError> {
        let mut since = Instant::ORIGIN;
        let sought = self.begin(Subject::of(&wanted.resource), |core, now| {
            since = now;
            core.acquire(wanted, now)
        });
        sought.map(|(id, slot)| (id, slot, since))
    }

    /// Starts what ends with an event.
    pub(super) fn begin<E>(
        &self,
        subject: Subject,
        start: impl FnOnce(&mut Core, Instant) -> Result<LockId, E>,
    ) -> Result<(LockId, Arc<Slot>), E> {
        let slot = Arc::new(Slot::new(subject));
        let id = {
            let mut core = self.core();
            let id = start(&mut core, self.host.now())?;
            core.insert(id, &slot);
            id
        };
        self.flush();
        Ok((id, slot))
    }

    /// Gives a lock up without waiting for what the masters say. `count` is called if it has not ended before.
    pub(super) fn cancel(&self, id: LockId, count: impl FnOnce(&mut Figures)) {
        if self.is_forked() {
            return;
        }
        {
            let mut core = self.core();
            let now = self.host.now();
            core.machine.cancel(id, now);
            if core.forget(id) {
                count(&mut core.figures);
            }
        }
        // The process may end with this.
        self.flush_now();
    }

    /// Leaves a lock to whoever is given its token.
    pub(super) fn hand_on(&self, id: LockId) -> Option<Resumption> {
        let handed = {
            let mut core = self.core();
            let now = self.host.now();
            let handed = core.machine.hand_on(id, now);
            if handed.is_some() {
                core.forget(id);
                core.figures.handed_on();
            }
            handed
        };
        self.flush();
        handed
    }

    /// Changes the machine, then carries out what that brought about.
    pub(super) fn command<R>(&self, change: impl FnOnce(&mut Machine<HostEntropy>, Instant) -> R) -> R {
        let result = change(&mut self.core().machine, self.host.now());
        self.flush();
        result
    }

    /// Has the machine's outputs carried out, by the calling thread or by another one that is at it: [`Outbox::flush`].
    pub(super) fn flush(&self) {
        self.outbox.flush(self);
    }

    /// Carries the machine's outputs out. Returns whether callers were woken.
    pub(super) fn flush_now(&self) -> bool {
        self.outbox.flush_now(self)
    }

    /// See [`Outbox::begin_gathering`].
    pub(super) fn begin_gathering(&self) -> bool {
        self.outbox.begin_gathering(self)
    }

    /// See [`Outbox::end_gathering`].
    pub(super) fn end_gathering(&self) {
        self.outbox.end_gathering(self);
    }

    /// See [`Outbox::changed_in_turn`].
    pub(super) fn changed_in_turn(&self) {
        self.outbox.changed_in_turn();
    }

    /// See [`Outbox::gathered`].
    pub(super) fn gathered<R>(&self, act: impl FnOnce() -> R) -> R {
        self.outbox.gathered(self, act)
    }

    /// The driver is gone: nobody reads any more, so all that wait are told.
    pub(super) fn driver_ended(&self) {
        self.end_gathering();
        let mut woken = Woken::default();
        self.core().driver_ends(&mut woken);
        woken.wake();
    }
}

impl Outputs for Shared {
    type Writer = Writer;
    type Rest = Rest;

    /// Bytes go to sockets, events to callers, demands to the driver.
    fn drain(&self, writer: &mut Writer, rest: &mut Rest) {
        let Rest { woken, has_woken_callers, notices } = rest;
        let before = woken.len();
        let mut demands = Vec::new();
        let deadline = {
            let mut core = self.core();
            core.observe(notices);
            core.machine.writes_begin(self.host.now());
            loop {
                match core.machine.poll_output() {
                    Output::Write { master, generation, bytes } => writer.append(master, generation, bytes),
                    Output::Connect { master, generation } => {
                        demands.push(Demand::Connect { master, generation });
                        core.figures.opening(master);
                    }
                    Output::Close { master, generation } => {
                        writer.close(master, generation);
                        demands.push(Demand::Close { master, generation });
                    }
                    Output::Event(event) => core.deliver(event, woken, notices),
                    Output::Wake(wake) => break wake.map(|wake| wake.at),
                }
            }
        };
        *has_woken_callers |= woken.len() > before;
        let became_blocked = writer.write();
        self.blocked.store(writer.blocked(), Ordering::SeqCst);
        self.driver.tell(demands, deadline, became_blocked, woken);
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
        shared.driver.add_user();
        Self(Arc::clone(shared))
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
            // The sockets are the parent's, too: closing the child's copies may take them out of the parent's reactor.
            mem::forget(Arc::clone(&self.0));
        } else {
            self.0.driver.remove_user();
        }
    }
}
