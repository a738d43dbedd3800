//! The machine behind its mutex, and the flush that carries its outputs out.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Waker;

use super::core::Core;
use super::figures::Figures;
use super::host::{Host, HostEntropy};
use super::observe::{Notices, Subject};
use super::port::Demand;
use super::slot::Slot;
use super::writer::Writer;
use crate::machine::{Acquire, LockId, Machine, Output, Resumption};
use crate::protocol::{AcquireError, Config, MasterId, MasterSet};
use crate::time::Instant;

pub(super) struct Shared {
    pub(super) host: Arc<dyn Host>,
    core: Mutex<Core>,
    writer: Mutex<Writer>,
    /// Set by whoever has changed the machine; cleared by whoever is about to drain it.
    dirty: AtomicBool,
    /// Whether the driver is about to carry out, once those have run whom it has woken.
    gathers: AtomicBool,
    /// Masters whose sockets are full, one bit each.
    blocked: AtomicU64,
    driver: Mutex<DriverSide>,
    /// Lockers, guards and futures; without any the driver ends.
    pub(super) users: AtomicUsize,
}

/// What the driver is to learn the next time that it looks.
struct DriverSide {
    demands: VecDeque<Demand>,
    /// When the machine wants to be woken.
    deadline: Option<Instant>,
    /// For when the driver has set its timer, as far as is known.
    armed: Option<Instant>,
    waker: Option<Waker>,
    /// When the present turn began, before the sockets were read.
    turn_began: Instant,
}

impl DriverSide {
    fn new() -> Self {
        Self {
            demands: VecDeque::new(),
            deadline: None,
            armed: None,
            waker: None,
            turn_began: Instant::ORIGIN,
        }
    }
}

thread_local! {
    /// Whose outputs this thread is going to carry out, if any: see [`Shared::gathered`]. Nothing is ever read through it.
    static GATHERS_HERE: Cell<*const Shared> = const { Cell::new(ptr::null()) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that runs under these mutexes panics; if it did, the state is as valid as the machine left it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(config: Arc<Config>, host: Arc<dyn Host>) -> Arc<Self> {
        let masters = config.masters.len();
        let machine = Machine::new(config, HostEntropy(Arc::clone(&host)), host.now());
        let core = Core::new(machine, masters);
        let shared = Arc::new(Self {
            host,
            core: Mutex::new(core),
            writer: Mutex::new(Writer::new(masters)),
            dirty: AtomicBool::new(false),
            gathers: AtomicBool::new(false),
            blocked: AtomicU64::new(0),
            driver: Mutex::new(DriverSide::new()),
            users: AtomicUsize::new(0),
        });
        shared.flush_now();
        shared
    }

    pub(super) fn core(&self) -> MutexGuard<'_, Core> {
        lock(&self.core)
    }

    /// Looks into the write side. Whoever found it taken meanwhile has left his outputs to us.
    pub(super) fn with_writer<R>(&self, look: impl FnOnce(&mut Writer) -> R) -> R {
        let result = {
            let mut writer = lock(&self.writer);
            let result = look(&mut writer);
            self.blocked.store(writer.blocked(), Ordering::SeqCst);
            result
        };
        fence(Ordering::SeqCst);
        self.carry_out();
        result
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

    /// Has the machine's outputs carried out: by the caller at once, unless somebody else is going to do that anyway: then what many ask for
    /// goes out in one write.
    pub(super) fn flush(&self) {
        self.dirty.store(true, Ordering::SeqCst);
        // Pairs with the one behind the unlocking: a mutex that is found taken orders nothing by itself.
        fence(Ordering::SeqCst);
        if !self.gathers.load(Ordering::SeqCst) && !ptr::eq(GATHERS_HERE.get(), self) {
            self.carry_out();
        }
    }

    /// Carries the machine's outputs out: bytes to sockets, events to callers, demands to the driver. Returns whether callers were woken.
    pub(super) fn flush_now(&self) -> bool {
        self.dirty.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.carry_out()
    }

    /// The driver carries out, and those whom it wakes are to run before it does so again, at the latest with [`Shared::end_gathering`]. Returns
    /// whether there are any.
    pub(super) fn begin_gathering(&self) -> bool {
        self.gathers.store(true, Ordering::SeqCst);
        let has_woken = self.flush_now();
        if !has_woken {
            self.end_gathering();
        }
        has_woken
    }

    pub(super) fn end_gathering(&self) {
        if self.gathers.swap(false, Ordering::SeqCst) {
            self.carry_out();
        }
    }

    /// Does what may ask for many things on this thread, and carries them out behind it.
    pub(super) fn gathered<R>(&self, act: impl FnOnce() -> R) -> R {
        /// Also if `act` panics.
        struct Gathering<'a>(&'a Shared, *const Shared);
        impl Drop for Gathering<'_> {
            fn drop(&mut self) {
                GATHERS_HERE.set(self.1);
                self.0.carry_out();
            }
        }
        let _gathering = Gathering(self, GATHERS_HERE.replace(self));
        act()
    }

    /// Somebody who is at it already does it for all: he looks again after he has let go, so nothing is left.
    fn carry_out(&self) -> bool {
        let mut has_woken = false;
        while self.dirty.load(Ordering::SeqCst) {
            let mut writer = match self.writer.try_lock() {
                Ok(writer) => writer,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return has_woken,
            };
            let mut woken = Vec::new();
            let mut notices = Notices::gather();
            while self.dirty.swap(false, Ordering::SeqCst) {
                has_woken |= self.drain(&mut writer, &mut woken, &mut notices);
            }
            drop(writer);
            notices.tell(&*self.host);
            for waker in woken {
                waker.wake();
            }
            fence(Ordering::SeqCst);
        }
        has_woken
    }

    /// Returns whether callers are to be woken, besides the driver.
    fn drain(&self, writer: &mut Writer, woken: &mut Vec<Waker>, notices: &mut Notices) -> bool {
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
        let has_woken = woken.len() > before;
        let became_blocked = writer.write();
        self.blocked.store(writer.blocked(), Ordering::SeqCst);
        let mut driver = lock(&self.driver);
        driver.deadline = deadline;
        let sooner = deadline.is_some_and(|at| driver.armed.is_none_or(|armed| at < armed));
        if became_blocked || sooner || !demands.is_empty() {
            driver.demands.extend(demands);
            woken.extend(driver.waker.take());
        }
        has_woken
    }

    // The driver's side.

    pub(super) fn register(&self, waker: &Waker) {
        let now = self.host.now();
        let mut driver = lock(&self.driver);
        driver.turn_began = now;
        if driver.waker.as_ref().is_some_and(|registered| registered.will_wake(waker)) {
            return;
        }
        let replaced = driver.waker.replace(waker.clone());
        drop(driver);
        // Not under the mutex: a waker may be the last thing that keeps a task, and the task a locker.
        drop(replaced);
    }

    pub(super) fn turn_began(&self) -> Instant {
        lock(&self.driver).turn_began
    }

    pub(super) fn next_demand(&self) -> Option<Demand> {
        lock(&self.driver).demands.pop_front()
    }

    /// When the driver is to look again: at the machine's deadline, or at an earlier one that it has set its timer for already.
    /// From here on it counts as having set its timer for that.
    ///
    /// The earlier one stays although it has lost its meaning: to wake once in vain costs less than to be woken
    /// for each request, whose deadline would be sooner than that of the lock which was granted last.
    pub(super) fn arm(&self, now: Instant) -> Option<Instant> {
        let mut driver = lock(&self.driver);
        let ahead = driver.armed.filter(|armed| *armed > now);
        driver.armed = driver.deadline.into_iter().chain(ahead).min();
        driver.armed
    }

    pub(super) fn is_due(&self) -> bool {
        let deadline = lock(&self.driver).deadline;
        deadline.is_some_and(|at| at <= self.host.now())
    }

    pub(super) fn has_demands(&self) -> bool {
        !lock(&self.driver).demands.is_empty()
    }

    pub(super) fn wake_driver(&self) {
        let waker = lock(&self.driver).waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The driver is gone: nobody reads any more, so whoever waits is told.
    pub(super) fn driver_ended(&self) {
        self.end_gathering();
        let mut woken = Vec::new();
        {
            let mut core = self.core();
            core.driver_ends(&mut woken);
        }
        for waker in woken {
            waker.wake();
        }
    }
}

/// A user's share of the whole; the driver ends when the last one is gone.
pub(super) struct Handle(pub(super) Arc<Shared>);

impl Handle {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        shared.users.fetch_add(1, Ordering::Relaxed);
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
        if self.0.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.wake_driver();
        }
    }
}
