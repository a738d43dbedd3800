//! Where the outcome of a command waits for its caller.

use std::task::{Context, Poll, Waker};

use super::handles::Handles;
use super::observe::Subject;
use super::sync::{AtomicU64, Mutex, Ordering, Woken, lock};
use crate::protocol::{
    AcquireError, BootstrapError, Event, ExtendError, ExtensionId, ForceReleased, Inspection, LossCause,
    ReleaseOutcome, SemaphoreInspection,
};
use crate::time::Instant;

/// One lock as its caller sees it. The machine's events come in on one side, futures poll on the
/// other.
pub(super) struct Slot {
    /// The end of validity in nanoseconds; zero before the grant and after the loss. Outside the
    /// mutex, so that a check costs a holder one reading of the clock.
    valid_until: AtomicU64,
    inner: Mutex<Inner>,
    /// The guards of the lock.
    pub(super) handles: Handles,
    /// The lock's targets, for observers.
    pub(super) subject: Subject,
}

#[derive(Default)]
struct Inner {
    outcome: Option<Outcome>,
    loss: Option<LossCause>,
    driver_ended: bool,
    /// The waker of the caller that waits for any of these. There is nearly always one only, which
    /// seeks or releases the lock.
    holder: Option<Waker>,
    /// `None` for most locks.
    others: Option<Box<Others>>,
}

/// State of the callers that extend a lock or watch it.
#[derive(Default)]
struct Others {
    /// Extensions that a caller waits for, with their results.
    extended: Vec<(ExtensionId, Option<Result<Instant, ExtendError>>)>,
    waiting: Vec<(Waiter, Waker)>,
    /// How many watchers there have ever been.
    watchers: u64,
}

/// The result of the last command. The caller reads it before it gives another one.
enum Outcome {
    Acquired(Result<(), Box<AcquireError>>),
    Released(ReleaseOutcome),
    Bootstrapped(Result<(), Box<BootstrapError>>),
    Inspected(Box<Inspection>),
    SemaphoreInspected(Box<SemaphoreInspection>),
    ForceReleased(Box<ForceReleased>),
}

/// One future that waits. A dropped future removes its waker; otherwise wakers would pile up during
/// a long hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiter {
    /// The caller that seeks the lock, and later the one that releases it.
    Holder,
    Extension(ExtensionId),
    Watcher(u64),
}

impl Inner {
    fn wake_all(&mut self, woken: &mut Woken) {
        woken.push(self.holder.take());
        if let Some(others) = &mut self.others {
            woken.extend(others.waiting.drain(..).map(|(_, waker)| waker));
        }
    }

    fn stop_waiting(&mut self, waiter: Waiter) -> Option<Waker> {
        if waiter == Waiter::Holder {
            return self.holder.take();
        }
        let waiting = &mut self.others.as_mut()?.waiting;
        let place = waiting.iter().position(|(other, _)| *other == waiter)?;
        Some(waiting.swap_remove(place).1)
    }

    fn others(&mut self) -> &mut Others {
        self.others.get_or_insert_default()
    }

    /// Registers this waker for the waiter, and returns the one that it replaces.
    fn wait(&mut self, waiter: Waiter, waker: &Waker) -> Option<Waker> {
        if waiter == Waiter::Holder {
            let is_there = self.holder.as_ref().is_some_and(|there| there.will_wake(waker));
            return if is_there { None } else { self.holder.replace(waker.clone()) };
        }
        let waiting = &mut self.others().waiting;
        match waiting.iter_mut().find(|(other, _)| *other == waiter) {
            Some((_, there)) if there.will_wake(waker) => None,
            Some((_, there)) => Some(std::mem::replace(there, waker.clone())),
            None => {
                waiting.push((waiter, waker.clone()));
                None
            }
        }
    }
}

impl Slot {
    pub(super) fn new(subject: Subject) -> Self {
        Self { valid_until: AtomicU64::new(0), inner: Mutex::default(), handles: Handles::one(), subject }
    }

    pub(super) fn valid_until(&self) -> Instant {
        Instant::from_nanos(self.valid_until.load(Ordering::Acquire))
    }

    pub(super) fn set_valid_until(&self, instant: Instant) {
        self.valid_until.store(instant.as_nanos(), Ordering::Release);
    }

    /// Keeps an event for the callers that it concerns, and collects their wakers.
    pub(super) fn deliver(&self, event: Event, woken: &mut Woken) {
        let mut inner = lock(&self.inner);
        match event {
            // Observers have it.
            Event::WaitsForOwn { .. } => return,
            Event::Granted { .. } => inner.outcome = Some(Outcome::Acquired(Ok(()))),
            Event::NotAcquired { error, .. } => {
                inner.outcome = Some(Outcome::Acquired(Err(Box::new(error))));
            }
            // An event from before the holder gave the lock up may be delivered later; it must not
            // revive the lock.
            Event::Renewed { valid_until, .. } => {
                if inner.loss.is_none() {
                    self.set_valid_until(valid_until);
                }
                return;
            }
            Event::Extended { extension, mut result, .. } => {
                match (&result, inner.loss) {
                    (Ok(_), Some(cause)) => result = Err(ExtendError::Lost(cause)),
                    (Ok(valid_until), None) => self.set_valid_until(*valid_until),
                    (Err(_), _) => {}
                }
                let extended = inner.others.iter_mut().flat_map(|others| &mut others.extended);
                if let Some((_, outcome)) = extended.into_iter().find(|(other, _)| *other == extension) {
                    *outcome = Some(result);
                }
            }
            Event::Lost { cause, .. } => {
                self.set_valid_until(Instant::ORIGIN);
                // The first cause remains.
                inner.loss.get_or_insert(cause);
            }
            Event::Released { outcome, .. } => inner.outcome = Some(Outcome::Released(outcome)),
            Event::Bootstrapped { result, .. } => {
                inner.outcome = Some(Outcome::Bootstrapped(result.map_err(Box::new)));
            }
            Event::Inspected { inspection, .. } => inner.outcome = Some(Outcome::Inspected(inspection)),
            Event::SemaphoreInspected { inspection, .. } => {
                inner.outcome = Some(Outcome::SemaphoreInspected(inspection));
            }
            Event::ForceReleased { outcome, .. } => inner.outcome = Some(Outcome::ForceReleased(outcome)),
        }
        inner.wake_all(woken);
    }

    /// The driver is gone: awaited events will not come, and a held lock is lost, as nothing
    /// watches it.
    pub(super) fn driver_ended(&self, woken: &mut Woken) {
        lock(&self.inner).driver_ended = true;
        self.end(LossCause::DriverEnded, woken);
    }

    /// Validity ends, and watchers learn it. The first cause remains.
    pub(super) fn end(&self, cause: LossCause, woken: &mut Woken) {
        let mut inner = lock(&self.inner);
        self.set_valid_until(Instant::ORIGIN);
        inner.loss.get_or_insert(cause);
        inner.wake_all(woken);
    }

    pub(super) fn poll_acquired(&self, cx: &Context<'_>) -> Poll<Result<(), AcquireError>> {
        self.poll(Waiter::Holder, cx, |inner| match inner.outcome.take() {
            Some(Outcome::Acquired(result)) => Some(result.map_err(|error| *error)),
            _ => inner.driver_ended.then_some(Err(AcquireError::DriverEnded)),
        })
    }

    /// For another caller that would share the grant: returns `true` if the grant has come, and
    /// `false` if it never will. An error is left for the caller that it belongs to.
    pub(super) fn poll_granted(&self, watcher: Waiter, cx: &Context<'_>) -> Poll<bool> {
        self.poll(watcher, cx, |inner| match inner.outcome {
            Some(Outcome::Acquired(Ok(()))) => inner.outcome.take().map(|_| true),
            Some(Outcome::Acquired(Err(_))) => Some(false),
            _ => inner.driver_ended.then_some(false),
        })
    }

    /// Leaves a grant that a poll has returned to the next poll, unless another outcome has come.
    pub(super) fn put_grant_back(&self, woken: &mut Woken) {
        let mut inner = lock(&self.inner);
        inner.outcome.get_or_insert(Outcome::Acquired(Ok(())));
        inner.wake_all(woken);
    }

    /// Wakes all waiters, so that they look at a change outside this slot.
    pub(super) fn wake_all(&self, woken: &mut Woken) {
        lock(&self.inner).wake_all(woken);
    }

    pub(super) fn poll_released(&self, cx: &Context<'_>) -> Poll<Option<ReleaseOutcome>> {
        self.poll(Waiter::Holder, cx, |inner| match inner.outcome.take() {
            Some(Outcome::Released(outcome)) => Some(Some(outcome)),
            _ => inner.driver_ended.then_some(None),
        })
    }

    pub(super) fn poll_bootstrapped(&self, cx: &Context<'_>) -> Poll<Result<(), BootstrapError>> {
        self.poll(Waiter::Holder, cx, |inner| match &inner.outcome {
            Some(Outcome::Bootstrapped(result)) => Some(result.clone().map_err(|error| *error)),
            _ => inner.driver_ended.then_some(Err(BootstrapError::DriverEnded)),
        })
    }

    /// `None` if the driver has ended.
    pub(super) fn poll_inspected(&self, cx: &Context<'_>) -> Poll<Option<Box<Inspection>>> {
        self.poll(Waiter::Holder, cx, |inner| match inner.outcome.take() {
            Some(Outcome::Inspected(inspection)) => Some(Some(inspection)),
            _ => inner.driver_ended.then_some(None),
        })
    }

    /// `None` if the driver has ended.
    pub(super) fn poll_semaphore_inspected(
        &self,
        cx: &Context<'_>,
    ) -> Poll<Option<Box<SemaphoreInspection>>> {
        self.poll(Waiter::Holder, cx, |inner| match inner.outcome.take() {
            Some(Outcome::SemaphoreInspected(inspection)) => Some(Some(inspection)),
            _ => inner.driver_ended.then_some(None),
        })
    }

    /// `None` if the driver has ended.
    pub(super) fn poll_force_released(&self, cx: &Context<'_>) -> Poll<Option<Box<ForceReleased>>> {
        self.poll(Waiter::Holder, cx, |inner| match inner.outcome.take() {
            Some(Outcome::ForceReleased(outcome)) => Some(Some(outcome)),
            _ => inner.driver_ended.then_some(None),
        })
    }

    /// A number for a watcher that calls [`Slot::poll_lost`], until [`Slot::forget`].
    pub(super) fn new_watcher(&self) -> Waiter {
        let mut inner = lock(&self.inner);
        let others = inner.others();
        others.watchers += 1;
        Waiter::Watcher(others.watchers)
    }

    /// Also ends the lock if its validity has run out by `now`: after the computer has slept, the
    /// first poll reports the loss, whether or not a timer fired. The holder may have released it
    /// meanwhile, even between the two lines; then that is the cause.
    pub(super) fn poll_lost(&self, watcher: Waiter, now: Instant, cx: &Context<'_>) -> Poll<LossCause> {
        if self.valid_until() <= now {
            let mut woken = Woken::default();
            self.end(LossCause::Expired, &mut woken);
            woken.wake();
        }
        self.poll(watcher, cx, |inner| inner.loss)
    }

    pub(super) fn poll_extended(
        &self,
        id: ExtensionId,
        cx: &Context<'_>,
    ) -> Poll<Result<Instant, ExtendError>> {
        self.poll(Waiter::Extension(id), cx, |inner| {
            let extended = &mut inner.others().extended;
            let place = extended.iter().position(|(other, result)| *other == id && result.is_some());
            place
                .and_then(|place| extended.swap_remove(place).1)
                .or_else(|| inner.driver_ended.then_some(Err(ExtendError::Lost(LossCause::DriverEnded))))
        })
    }

    pub(super) fn loss(&self) -> Option<LossCause> {
        lock(&self.inner).loss
    }

    /// A caller waits for this extension.
    pub(super) fn expect_extension(&self, id: ExtensionId) {
        lock(&self.inner).others().extended.push((id, None));
    }

    /// Forgets an extension whose caller no longer waits.
    pub(super) fn forget_extension(&self, id: ExtensionId) {
        lock(&self.inner).others().extended.retain(|(other, _)| *other != id);
        self.forget(Waiter::Extension(id));
    }

    /// A waiter is gone.
    pub(super) fn forget(&self, waiter: Waiter) {
        let forgotten = lock(&self.inner).stop_waiting(waiter);
        // Not under the mutex: the waker may be the last reference to a task, and the task may own
        // a guard.
        drop(forgotten);
    }

    fn poll<T>(
        &self,
        waiter: Waiter,
        cx: &Context<'_>,
        look: impl FnOnce(&mut Inner) -> Option<T>,
    ) -> Poll<T> {
        let mut inner = lock(&self.inner);
        if let Some(outcome) = look(&mut inner) {
            return Poll::Ready(outcome);
        }
        let replaced = inner.wait(waiter, cx.waker());
        drop(inner);
        drop(replaced);
        Poll::Pending
    }
}

#[cfg(all(test, loom))]
mod loom_tests;

#[cfg(test)]
mod tests;
