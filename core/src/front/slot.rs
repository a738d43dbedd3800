//! Where the outcome of a command waits for its caller.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::machine::{Event, ExtensionId};
use crate::protocol::{AcquireError, ExtendError, LossCause, ReleaseOutcome};
use crate::time::Instant;

/// One lock as its caller sees it. The machine's events come in on one side, futures look in on the other.
pub(super) struct Slot {
    /// The end of validity in nanoseconds; zero before the grant and after the loss. Apart, so that a holder can look at it
    /// with one reading of the clock.
    valid_until: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    acquired: Option<Result<(), AcquireError>>,
    released: Option<ReleaseOutcome>,
    loss: Option<LossCause>,
    /// Extensions that somebody waits for, with what came of them.
    extended: Vec<(ExtensionId, Option<Result<Instant, ExtendError>>)>,
    driver_ended: bool,
    /// Who waits for any of these. Several may wait for one lock: its holder, and those who watch it.
    waiting: Vec<Waker>,
}

impl Slot {
    pub(super) fn new() -> Self {
        Self { valid_until: AtomicU64::new(0), inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn valid_until(&self) -> Instant {
        Instant::from_nanos(self.valid_until.load(Ordering::Acquire))
    }

    pub(super) fn set_valid_until(&self, instant: Instant) {
        self.valid_until.store(instant.as_nanos(), Ordering::Release);
    }

    /// Keeps an event for whom it concerns, and hands over who is to be woken.
    pub(super) fn deliver(&self, event: Event, woken: &mut Vec<Waker>) {
        let mut inner = self.inner();
        match event {
            Event::Granted { .. } => inner.acquired = Some(Ok(())),
            Event::NotAcquired { error, .. } => inner.acquired = Some(Err(error)),
            // What was decided before the holder let go may be delivered after it, and revives nothing.
            Event::Renewed { valid_until, .. } => {
                if inner.loss.is_none() {
                    self.set_valid_until(valid_until);
                }
                return;
            }
            Event::Extended { extension, result, .. } => {
                if let (Ok(valid_until), None) = (&result, inner.loss) {
                    self.set_valid_until(*valid_until);
                }
                if let Some((_, outcome)) = inner.extended.iter_mut().find(|(other, _)| *other == extension) {
                    *outcome = Some(result);
                }
            }
            Event::Lost { cause, .. } => {
                self.set_valid_until(Instant::ORIGIN);
                inner.loss = Some(cause);
            }
            Event::Released { outcome, .. } => inner.released = Some(outcome),
        }
        woken.append(&mut inner.waiting);
    }

    /// Nobody drives any more: whatever is awaited will not come.
    pub(super) fn driver_ended(&self, woken: &mut Vec<Waker>) {
        let mut inner = self.inner();
        inner.driver_ended = true;
        woken.append(&mut inner.waiting);
    }

    /// The holder has let go: validity ends, and watchers learn it.
    pub(super) fn let_go(&self, woken: &mut Vec<Waker>) {
        let mut inner = self.inner();
        self.set_valid_until(Instant::ORIGIN);
        inner.loss.get_or_insert(LossCause::Released);
        woken.append(&mut inner.waiting);
    }

    pub(super) fn poll_acquired(&self, cx: &Context<'_>) -> Poll<Result<(), AcquireError>> {
        self.poll(cx, |inner| {
            inner.acquired.take().or_else(|| inner.driver_ended.then_some(Err(AcquireError::DriverEnded)))
        })
    }

    pub(super) fn poll_released(&self, cx: &Context<'_>) -> Poll<Option<ReleaseOutcome>> {
        self.poll(cx, |inner| match inner.released.take() {
            Some(outcome) => Some(Some(outcome)),
            None => inner.driver_ended.then_some(None),
        })
    }

    pub(super) fn poll_lost(&self, cx: &Context<'_>) -> Poll<LossCause> {
        self.poll(cx, |inner| inner.loss.or_else(|| inner.driver_ended.then_some(LossCause::DriverEnded)))
    }

    pub(super) fn poll_extended(
        &self,
        id: ExtensionId,
        cx: &Context<'_>,
    ) -> Poll<Result<Instant, ExtendError>> {
        self.poll(cx, |inner| {
            let place = inner.extended.iter().position(|(other, result)| *other == id && result.is_some());
            place
                .and_then(|place| inner.extended.swap_remove(place).1)
                .or_else(|| inner.driver_ended.then_some(Err(ExtendError::Lost(LossCause::DriverEnded))))
        })
    }

    pub(super) fn loss(&self) -> Option<LossCause> {
        self.inner().loss
    }

    /// Somebody waits for this extension.
    pub(super) fn expect_extension(&self, id: ExtensionId) {
        self.inner().extended.push((id, None));
    }

    /// Forgets an extension that nobody waits for any more.
    pub(super) fn forget_extension(&self, id: ExtensionId) {
        self.inner().extended.retain(|(other, _)| *other != id);
    }

    fn poll<T>(&self, cx: &Context<'_>, look: impl FnOnce(&mut Inner) -> Option<T>) -> Poll<T> {
        let mut inner = self.inner();
        match look(&mut inner) {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                if !inner.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                    inner.waiting.push(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }
}
