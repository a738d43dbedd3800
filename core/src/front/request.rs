//! The request for a lock, and its future.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::figures::Figures;
use super::guard::Guard;
use super::joining::{Joining, Set};
use super::joint::Joint;
use super::observe::Acquisition;
use super::shared::{Handle, Shared, Taken};
use super::sharing::Granted;
use super::slot::Slot;
use crate::protocol::{Acquire, AcquireError, Config, ConfigError, LockId, Resumption, Targets, Ttl};
use crate::time::Instant;

/// A request for a lock. Await it for a [`Guard`], or call [`Request::wait`] in code that is not
/// async.
///
/// It does nothing until then. Invalid settings are also reported then, as
/// [`AcquireError::Invalid`].
///
/// # Cancel safety
/// See [`Acquiring`], the future that it becomes.
#[must_use = "a request does nothing until it is awaited or waited for"]
pub struct Request<G = Guard> {
    handle: Handle,
    targets: Result<Targets, ConfigError>,
    ttl: Result<Ttl, ConfigError>,
    timeout: Option<Duration>,
    attempts: Option<u32>,
    renew_for: Option<Duration>,
    longest_hold: Duration,
    fenced: bool,
    healing: bool,
    fair: bool,
    resumption: Option<Resumption>,
    set: Set,
    /// The locks of the owner that makes this request, if an owner makes it.
    joint: Option<Arc<Joint>>,
    granted: PhantomData<fn() -> G>,
}

impl<G> Request<G> {
    pub(super) fn new(
        handle: Handle,
        config: &Config,
        targets: Result<Targets, ConfigError>,
        resumption: Option<Resumption>,
    ) -> Self {
        Self {
            handle,
            targets,
            ttl: Ok(config.ttl),
            timeout: config.timeout,
            attempts: None,
            renew_for: None,
            longest_hold: config.longest_hold,
            fenced: false,
            healing: false,
            fair: false,
            resumption,
            set: Set::default(),
            joint: None,
            granted: PhantomData,
        }
    }

    /// The same request, for a guard of the plain type.
    pub(super) fn plain(self) -> Request {
        let Self { handle, targets, ttl, timeout, attempts, renew_for, longest_hold, .. } = self;
        let Self { fenced, healing, fair, resumption, set, joint, .. } = self;
        let granted = PhantomData;
        Request {
            handle,
            targets,
            ttl,
            timeout,
            attempts,
            renew_for,
            longest_hold,
            fenced,
            healing,
            fair,
            resumption,
            set,
            joint,
            granted,
        }
    }

    /// Makes it a request of an owner.
    pub(super) fn owned_by(mut self, joint: &Arc<Joint>) -> Self {
        self.joint = Some(Arc::clone(joint));
        self
    }

    /// Sets the TTL of the keys, in whole milliseconds. The default is the configuration's TTL.
    ///
    /// If an [`Owner`](super::Owner) already holds the lock, a TTL that is longer than the lock's
    /// extends it, and a shorter one changes nothing.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Ttl::new(ttl);
        self.set.ttl = true;
        self
    }

    /// Sets how long to wait for the lock. The default is the configuration's timeout, which is 10
    /// s unless set; `None` waits without a limit.
    ///
    /// Zero is a single try, as with [`Locker::try_lock`](super::Locker::try_lock): its only round
    /// is not cut short.
    ///
    /// The driver ends the wait. So the request does not end, whatever its timeout, while nobody
    /// polls the driver: one from `open_with_driver` that runs on no executor, or one on a
    /// current-thread runtime of tokio while no thread is in its `block_on`.
    pub fn timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.timeout = limit.into();
        self
    }

    /// Sets the maximum number of attempts. The default is as many as the timeout allows; zero
    /// counts as one.
    ///
    /// Unlike [`Request::timeout`], it does not limit the time: each attempt is made when the lock
    /// may be free, and before the first one, other callers of this process may have their turn.
    pub fn attempts(mut self, limit: u32) -> Self {
        self.attempts = Some(limit.max(1));
        self
    }

    /// Renews the lock in the background, every third of its TTL, for at most the configuration's
    /// longest hold, which is an hour by default.
    pub fn renew(mut self) -> Self {
        self.renew_for = Some(self.longest_hold);
        self.set.longest_hold = false;
        self
    }

    /// Renews the lock in the background, every third of its TTL, until `longest_hold` has passed
    /// since the start of the round that won it. Then its validity runs out.
    pub fn renew_for(mut self, longest_hold: Duration) -> Self {
        self.renew_for = Some(longest_hold);
        self.set.longest_hold = true;
        self
    }

    /// Requests a fencing token with the lock: [`Guard::fencing_token`] is larger than that of
    /// every earlier fenced grant of this resource, whatever the clocks do.
    ///
    /// It takes one round trip if the masters agree on the fencing token, and two if not. Holders
    /// whose requests are not fenced still exclude others and are excluded.
    ///
    /// Each master counts the grants of a resource under
    /// [`Resource::counter_key`](crate::Resource::counter_key), in a key that never expires.
    /// Fencing tokens stay in order as long as a majority of the masters keeps its counters: use
    /// persistence, and under a memory limit `noeviction` or a policy that evicts only keys with a
    /// TTL (`volatile-…`). With the restart guard, lost counters restart above all fencing tokens
    /// that were issued before, if the masters' clocks differ by no more than its longest TTL.
    /// Deleting a counter restarts it: delete it only together with its resource.
    pub fn fenced(mut self) -> Self {
        self.fenced = true;
        self
    }

    /// Makes each renewal and extension restore the lock on masters that lost it or never had it,
    /// while a quorum still holds it.
    ///
    /// So a lock survives even if the masters that granted it lose it one after the other. A
    /// restored master counts again from the next renewal on.
    pub fn heal(mut self) -> Self {
        self.healing = true;
        self
    }

    /// Waits in one queue with the fair requests of all processes: first come, first served.
    ///
    /// It is for an exclusive lock of one resource. For readers, several resources or permits the
    /// request ends with [`ConfigError::FairOfSeveral`], and nothing is sent.
    ///
    /// No later fair request overtakes a waiter whose place is on a majority of the masters, as
    /// long as the place is renewed, every third of a second. A release wakes one waiter. A waiter
    /// that dies delays the others by one second at most.
    ///
    /// Exclusion never depends on the queue. Clients that do not request a fair lock, and other
    /// libraries, get few turns beside a busy queue; if they get one, they overtake it. A user
    /// without the queue's permissions gets an error. The [page on waiting](crate::guide::waiting)
    /// has more.
    pub fn fair(mut self) -> Self {
        self.fair = true;
        self
    }

    /// Resumes a lock that was handed over, instead of acquiring a new one. For a lock of one
    /// resource, [`Locker::resume`](super::Locker::resume) does the same.
    ///
    /// The request must name the targets of the lock that was handed over, shared in the same way.
    /// Permits are resumed by a request for the same number of permits of a semaphore with the same
    /// name, and keep their indexes; the semaphore's own number of permits may differ. Otherwise
    /// the request ends with [`ConfigError::ResumedAsAnother`], and nothing is sent. One mismatch
    /// is noticed only by the masters: another name for a lock of one exclusive resource. That
    /// request ends with [`AcquireError::NotHeld`].
    pub fn resuming(mut self, lock: Resumption) -> Self {
        self.resumption = Some(lock);
        self
    }

    /// Requests the lock and blocks the calling thread until it is granted or has failed.
    ///
    /// # Errors
    /// [`AcquireError`].
    ///
    /// # Panics
    /// With quorlock-tokio, in async code: it would block a thread of the runtime. Await the future
    /// there, or wait in `spawn_blocking`.
    #[track_caller]
    pub fn wait(self) -> Result<G, AcquireError>
    where
        G: Granted,
    {
        let handle = self.handle.clone();
        handle.wait(self.into_future()).unwrap_or(Err(AcquireError::DriverEnded))
    }

    /// With renewal: for the requested time, or for the configuration's longest hold.
    pub(super) fn renewed(self) -> Self {
        if self.renew_for.is_some() { self } else { self.renew() }
    }
}

impl<G: Granted> IntoFuture for Request<G> {
    type Output = Result<G, AcquireError>;
    type IntoFuture = Acquiring<G>;

    fn into_future(self) -> Acquiring<G> {
        let Self { handle, targets, ttl, timeout, attempts, renew_for, .. } = self;
        let Self { fenced, healing, fair, resumption, set, joint, .. } = self;
        let state = match (targets, ttl) {
            (Ok(targets), Ok(ttl)) => {
                let wanted =
                    Acquire { targets, ttl, timeout, attempts, renew_for, fenced, healing, fair, resumption };
                match joint {
                    Some(joint) => State::Joining(Box::new(Joining::new(joint, wanted, set))),
                    None => State::Start(Ok(wanted)),
                }
            }
            (Err(error), _) | (_, Err(error)) => State::Start(Err(error.into())),
        };
        Acquiring { handle, state, granted: PhantomData }
    }
}

impl<G> fmt::Debug for Request<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("targets", &self.targets)
            .field("ttl", &self.ttl)
            .field("timeout", &self.timeout)
            .field("attempts", &self.attempts)
            .field("renew_for", &self.renew_for)
            .field("fenced", &self.fenced)
            .field("healing", &self.healing)
            .field("fair", &self.fair)
            .finish_non_exhaustive()
    }
}

/// The future of a [`Request`]. It returns a [`Guard`], or a [`ReadGuard`](super::ReadGuard).
///
/// # Cancel safety
/// Nothing is sent before the first poll. If it is dropped at any point after that, it gives the
/// attempt up and releases the lock on every master that may have granted it, including those whose
/// answers are still on their way. If other requests of the same [`Owner`](super::Owner) wait for
/// the lock, the attempt continues for them.
#[must_use = "futures do nothing until they are polled"]
pub struct Acquiring<G = Guard> {
    handle: Handle,
    state: State,
    granted: PhantomData<fn() -> G>,
}

enum State {
    Start(Result<Acquire, AcquireError>),
    /// The request of an owner.
    Joining(Box<Joining>),
    Seeking {
        id: LockId,
        slot: Arc<Slot>,
        targets: Targets,
        since: Instant,
        seen: Acquisition,
    },
    Done,
}

impl<G: Granted> Future for Acquiring<G> {
    type Output = Result<G, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_guard(cx).map_ok(G::of)
    }
}

impl<G> Acquiring<G> {
    fn poll_guard(&mut self, cx: &mut Context<'_>) -> Poll<Result<Guard, AcquireError>> {
        let this = self;
        if this.handle.0.is_forked() {
            return Poll::Ready(Err(AcquireError::Forked));
        }
        if let State::Start(wanted) = &this.state {
            match wanted.as_ref().map_err(Clone::clone).and_then(|wanted| State::seek(&this.handle.0, wanted))
            {
                Ok(seeking) => this.state = seeking,
                Err(error) => {
                    this.handle.0.engine().figures.refused_at_once(&error);
                    this.state = State::Done;
                    return Poll::Ready(Err(error));
                }
            }
        }
        let (id, slot, targets, since, seen) = match &mut this.state {
            State::Seeking { id, slot, targets, since, seen } => (id, slot, targets, since, seen),
            State::Joining(joining) => return joining.poll(&this.handle, cx),
            State::Start(_) | State::Done => return Poll::Pending,
        };
        loop {
            match slot.poll_acquired(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => {
                    seen.refused(&error);
                    if error == AcquireError::DriverEnded {
                        this.handle.0.cancel(*id, Figures::driver_ended);
                    }
                    this.state = State::Done;
                    return Poll::Ready(Err(error));
                }
                Poll::Ready(Ok(())) => {}
            }
            // Validity is checked again, now that the caller takes the lock.
            if let Some(Taken { proof, grant, seats }) = this.handle.0.take(*id, slot, *since) {
                seen.granted(&grant);
                let targets = seats.map_or_else(|| targets.clone(), |seats| targets.at_seats(seats));
                let guard = Guard::new(this.handle.clone(), *id, Arc::clone(slot), targets, proof);
                this.state = State::Done;
                return Poll::Ready(Ok(guard));
            }
            this.handle.0.outbox.flush(&*this.handle.0);
        }
    }
}

impl State {
    /// Starts seeking a lock.
    fn seek(shared: &Shared, wanted: &Acquire) -> Result<Self, AcquireError> {
        let mut seen = Acquisition::begin(wanted);
        let (id, slot, since) = shared.seek(wanted).inspect_err(|error| seen.refused(error))?;
        shared.outbox.flush(shared);
        Ok(Self::Seeking { id, slot, targets: wanted.targets.clone(), since, seen })
    }
}

impl<G> Drop for Acquiring<G> {
    fn drop(&mut self) {
        match &mut self.state {
            State::Seeking { id, .. } => self.handle.0.cancel(*id, Figures::abandoned),
            State::Joining(joining) => joining.leave(&self.handle),
            State::Start(_) | State::Done => {}
        }
    }
}

impl<G> fmt::Debug for Acquiring<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquiring").finish_non_exhaustive()
    }
}
