//! The guard of a held lock, and the watch that observes it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::extending::Extending;
use super::figures::Figures;
use super::release::Release;
use super::shared::Handle;
use super::slot::{Slot, Waiter};
use super::sync::Woken;
use crate::protocol::{FencingToken, LockId, LossCause, Resource, Resumption, Targets, Token, Ttl};

/// A lock that is held.
///
/// # Validity
/// A guard is valid for a limited time. Call [`Guard::is_valid`] or [`Guard::check`] before
/// anything that must not happen without the lock, or await [`Guard::lost`]. On this process's
/// clock, validity lasts for the TTL less the drift ([`Ttl::drift`]). It is counted from just
/// before the first request of the grant, or of the latest extension, was sent.
///
/// # Dropping
/// Dropping a guard releases the lock without waiting. The drop itself writes as much as the
/// sockets take at once, and the I/O loop writes the rest. A key whose release cannot be written
/// expires with its TTL. [`Guard::release`] waits for the masters and returns whether the lock was
/// still ours.
///
/// A guard that is dropped by the last statement of `main` writes its release, but nothing waits
/// for the masters to read it. A busy master whose connection is reset by the end of the process
/// may never read it, and then the key expires with the TTL. To be sure, call [`Guard::release`].
///
/// # Handles
/// A lock can have several guards, its handles: [`Guard::share`], [`Owner`](super::Owner). All of
/// the above applies to the last one to be released or dropped. The others end without a request to
/// any master.
///
/// A guard that is forgotten (`std::mem::forget`) is a handle that never ends. Its renewal ends
/// after the longest hold, and its keys expire with their TTL.
///
/// # Other ends
/// - When the transport's I/O loop ends, the guard is lost ([`LossCause::DriverEnded`]), because
///   nothing renews or watches it. Its keys live on until the guard is released or their TTL runs
///   out.
/// - In a forked child of the process that holds it, a guard is not valid ([`LossCause::Forked`]),
///   and dropping it releases nothing: the lock remains the parent's.
#[must_use = "dropping a guard releases its lock"]
pub struct Guard {
    pub(super) watch: Watch,
    pub(super) id: LockId,
    pub(super) targets: Targets,
    pub(super) proof: Resumption,
    /// Whether a release or [`Guard::hand_over`] has taken over what dropping would do.
    pub(super) has_left: bool,
}

impl Guard {
    pub(super) fn new(
        handle: Handle,
        id: LockId,
        slot: Arc<Slot>,
        targets: Targets,
        proof: Resumption,
    ) -> Self {
        Self { watch: Watch { handle, slot }, id, targets, proof, has_left: false }
    }

    /// Returns the locked resource. If there are several, it is the first one in the order of their
    /// keys.
    pub fn resource(&self) -> &Resource {
        self.targets.first()
    }

    /// Returns all locked resources, in the order of their keys.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = &Resource> {
        self.targets.resources()
    }

    /// Returns the token that the masters keep. It is a secret: any process that knows it can
    /// release the lock. [`Guard::ties`] does not report copies of it, so give a process that is to
    /// act for the lock its [`resumption`](Self::resumption) instead.
    pub fn token(&self) -> Token {
        self.proof.token
    }

    /// Returns the fencing token of this grant, if the request was
    /// [fenced](super::Request::fenced). A store that remembers the largest fencing token that it
    /// has seen, and refuses smaller ones, keeps late writers out.
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.proof.fencing_token
    }

    /// Returns what another process needs to extend or release the lock while this guard keeps
    /// holding it. [`Guard::hand_over`] gives the lock away.
    ///
    /// From then on, no master in the restart guard's quarantine counts for the lock: the other
    /// process may have released it there.
    pub fn resumption(&self) -> Resumption {
        let shared = &self.watch.handle.0;
        self.watch.slot.handles.note_resumption_read();
        let latest = if shared.is_forked() { None } else { shared.engine().machine.resumption(self.id) };
        latest.unwrap_or(self.proof)
    }

    /// Returns whether the lock is valid now. It costs one reading of the clock.
    pub fn is_valid(&self) -> bool {
        self.watch.is_valid()
    }

    /// Returns the remaining validity; zero once the lock is lost.
    pub fn remaining(&self) -> Duration {
        self.watch.remaining()
    }

    /// Returns `Ok` if the lock is valid now, for use with `?`. It costs one reading of the clock.
    ///
    /// # Errors
    /// [`LossCause`] if the lock is not valid.
    pub fn check(&self) -> Result<(), LossCause> {
        self.watch.check()
    }

    /// Returns a handle that observes the lock without holding it.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Returns a future that ends when the lock is lost or released, at the latest when its
    /// validity ends. From then on [`check`](Self::check) returns the same cause.
    ///
    /// # Cancel safety
    /// It may be dropped and requested again at any time.
    pub fn lost(&self) -> Lost {
        self.watch.lost()
    }

    /// Makes the lock valid for `ttl` from now, if a quorum of masters still holds it for us. The
    /// future returns the new remaining validity.
    ///
    /// `ttl` is in whole milliseconds. An extension never shortens a lock: if `ttl` from now ends
    /// before the present validity does, the validity stays as it is. The future's errors are
    /// [`ExtendError`](crate::ExtendError)'s.
    ///
    /// # Cancel safety
    /// Nothing is sent before the first poll. If the future is dropped after it, the extension may
    /// still happen, and the guard's validity then includes it.
    pub fn extend(&self, ttl: Duration) -> Extending<'_> {
        Extending::new(self, Ttl::new(ttl))
    }

    /// Ends the renewal in the background. The lock stays valid for its remaining validity and can
    /// still be extended by [`Guard::extend`].
    pub fn stop_renewal(&self) {
        if !self.watch.is_forked() {
            self.watch.slot.handles.note_renewal_stopped();
            self.watch.handle.0.command(|engine, now| engine.machine.stop_renewal(self.id, now));
        }
    }

    /// Releases the lock. The future waits for the masters' answers and returns whether a quorum
    /// still held the lock for us.
    ///
    /// If the lock has other handles ([`Guard::share`], [`Owner`](super::Owner)), only this one is
    /// given up. Nothing is sent, and the future is ready at once with
    /// [`Released::Kept`](super::Released::Kept), or with an error if the lock was lost.
    ///
    /// The future's errors are [`ReleaseError`](super::ReleaseError)'s.
    ///
    /// # Cancel safety
    /// This call itself requests the release. Dropping the future only forgoes the outcome.
    pub fn release(mut self) -> Release {
        let loss = self.watch.check().err();
        let id = self.id;
        if self.watch.is_forked() {
            self.has_left = true;
        } else {
            let others = self.leave();
            if others > 0 {
                return Release::kept(self.watch.handle.clone(), others, loss);
            }
            self.watch.end(LossCause::Released);
            self.watch.handle.0.command(|engine, now| engine.machine.release(id, now));
        }
        Release::new(self.watch.handle.clone(), Arc::clone(&self.watch.slot), id, loss)
    }

    /// Releases the lock as its last handle, without waiting for the masters' answers.
    pub(super) fn abandon(&self) {
        self.watch.end(LossCause::Released);
        self.watch.handle.0.cancel(self.id, Figures::dropped);
    }
}

impl Guard {
    /// Releases the lock, but not before `at_least` has passed since it was granted: until then its
    /// keys stay, and then they expire. It is for scheduled jobs on several machines: when a job
    /// ends quickly, a machine whose clock is a little behind does not run it again.
    ///
    /// This guard and its renewal end at once, as with [`Guard::release`]. The process may end,
    /// too. The lock then has no holder, and no client gets it before the time is over. The time is
    /// measured on this process's clock, from the grant, or from the moment at which this process
    /// [resumed](super::Locker::resume) the lock. Requests for the lock wait, or end with
    /// [`HeldByAnother`](crate::AcquireError::HeldByAnother). The keys' value is no longer the
    /// token: a copy of [`Guard::resumption`] no longer works, and only
    /// [`Locker::force_release`](super::Locker::force_release) frees the lock earlier.
    ///
    /// The keys' TTL becomes the rest of the time, plus 1 % and 2 ms for clock drift
    /// ([`Ttl::drift`]), whether it was longer or shorter before. If the time is over already, this
    /// is an ordinary release. [`Release::keeps_for`] tells the two apart.
    ///
    /// The future waits for the masters' answers. `Ok` means that a quorum held the lock for us
    /// until now and keeps the keys. The future's errors are
    /// [`ReleaseError`](super::ReleaseError)'s. After [`Unknown`](super::ReleaseError::Unknown), a
    /// master that did not answer may get the request later, and then its key expires at the end of
    /// the time; otherwise the key expires with its TTL. [`Invalid`](super::ReleaseError::Invalid)
    /// means that the rest of the time is longer than [`Ttl::MAX`] or than the restart guard's
    /// longest TTL: nothing is sent, and the keys expire with their TTL.
    ///
    /// If the lock has other handles, only this one is given up, as with [`Guard::release`]: the
    /// last handle decides whether and for how long the keys stay.
    ///
    /// Each of several resources stays locked for that time. A shared lock stays shared: writers
    /// are kept out, and clients that share it can still join. The index of a permit stays taken.
    ///
    /// If the process is killed before it calls this, the keys expire with the TTL.
    ///
    /// # Cancel safety
    /// This call itself requests the release. Dropping the future only forgoes the outcome.
    pub fn release_after(mut self, at_least: Duration) -> Release {
        let loss = self.watch.check().err();
        let (id, handle) = (self.id, self.watch.handle.clone());
        let mut keeps_for = None;
        if self.watch.is_forked() {
            self.has_left = true;
        } else {
            let others = self.leave();
            if others > 0 {
                return Release::kept(handle, others, loss);
            }
            self.watch.end(LossCause::Released);
            match handle.0.command(|engine, now| engine.machine.release_after(id, at_least, now)) {
                Ok(left) => keeps_for = left,
                Err(error) => {
                    handle.0.leave_keys(id);
                    return Release::refused(handle, error.into());
                }
            }
        }
        Release::new(handle, Arc::clone(&self.watch.slot), id, loss).keeping(keeps_for)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.has_left && !self.watch.is_forked() && self.leave() == 0 {
            self.abandon();
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("targets", &self.targets)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

/// Observes a lock without holding it.
///
/// It is cheap to clone. It may outlive the guard, and then reports that the lock was released.
#[derive(Clone)]
pub struct Watch {
    pub(super) handle: Handle,
    pub(super) slot: Arc<Slot>,
}

impl Watch {
    /// Returns whether the lock is valid now. It costs one reading of the clock.
    pub fn is_valid(&self) -> bool {
        self.handle.0.host.now() < self.slot.valid_until() && !self.is_forked()
    }

    /// Returns the remaining validity; zero once the lock is lost.
    pub fn remaining(&self) -> Duration {
        if self.is_forked() {
            return Duration::ZERO;
        }
        self.slot.valid_until().since(self.handle.0.host.now())
    }

    /// Returns `Ok` if the lock is valid now, for use with `?`. It costs one reading of the clock.
    ///
    /// # Errors
    /// [`LossCause`] if the lock is not valid.
    pub fn check(&self) -> Result<(), LossCause> {
        if self.is_valid() {
            Ok(())
        } else if self.is_forked() {
            Err(LossCause::Forked)
        } else {
            Err(self.slot.loss().unwrap_or(LossCause::Expired))
        }
    }

    /// Returns a future that ends when the lock is lost or released, at the latest when its
    /// validity ends. From then on [`check`](Self::check) returns the same cause.
    ///
    /// # Cancel safety
    /// It may be dropped and requested again at any time.
    pub fn lost(&self) -> Lost {
        Lost { watch: self.clone(), waiter: None }
    }

    pub(super) fn is_forked(&self) -> bool {
        self.handle.0.is_forked()
    }

    /// The holder has given the lock up.
    pub(super) fn end(&self, cause: LossCause) {
        let mut woken = Woken::default();
        self.slot.end(cause, &mut woken);
        woken.wake();
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("remaining", &self.remaining()).finish_non_exhaustive()
    }
}

/// The future of [`Guard::lost`] and [`Watch::lost`]. It returns the cause of the loss, and borrows
/// nothing.
///
/// # Cancel safety
/// It may be dropped and requested again at any time.
#[must_use = "futures do nothing until they are polled"]
pub struct Lost {
    watch: Watch,
    /// Registered with the first poll.
    waiter: Option<Waiter>,
}

impl Lost {
    /// Blocks the calling thread until the lock is lost, and returns the cause.
    ///
    /// # Panics
    /// With quorlock-tokio, in async code: it would block a thread of the runtime. Await the future
    /// there, or wait in `spawn_blocking`.
    #[track_caller]
    pub fn wait(self) -> LossCause {
        let handle = self.watch.handle.clone();
        handle.wait(self).unwrap_or(LossCause::DriverEnded)
    }
}

impl Future for Lost {
    type Output = LossCause;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LossCause> {
        let Self { watch, waiter } = self.get_mut();
        if watch.is_forked() {
            return Poll::Ready(LossCause::Forked);
        }
        let waiter = *waiter.get_or_insert_with(|| watch.slot.new_watcher());
        watch.slot.poll_lost(waiter, watch.handle.0.host.now(), cx)
    }
}

impl Clone for Lost {
    fn clone(&self) -> Self {
        self.watch.lost()
    }
}

impl Drop for Lost {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.filter(|_| !self.watch.is_forked()) {
            self.watch.slot.forget(waiter);
        }
    }
}

impl fmt::Debug for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lost").field("watch", &self.watch).finish_non_exhaustive()
    }
}
