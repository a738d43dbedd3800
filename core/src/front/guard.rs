//! What the holder of a lock holds.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::figures::Figures;
use super::release::Release;
use super::shared::Handle;
use super::slot::{Slot, Waiter};
use super::wake::Woken;
use crate::protocol::{
    ConfigError, ExtendError, ExtensionId, FencingToken, LockId, LossCause, Resource, Resumption, Token, Ttl,
};

/// A lock that is held.
///
/// It is a promise with an end: ask [`Guard::is_valid`] or [`Guard::check`] before whatever must not happen without the lock, or have
/// [`Guard::lost`] tell. Validity is counted on this process's clock from before the first request was sent, less the drift.
///
/// When the transport's I/O loop ends, nobody renews or watches the lock any more: from then on the guard is lost
/// ([`LossCause::DriverEnded`]), although its keys live on until it is released or their TTL has run out.
///
/// Dropping it releases the lock without waiting: what the sockets take at once is sent, the rest by the I/O loop, and what can
/// no longer be sent expires with the TTL. [`Guard::release`] waits for the masters, and says whether the lock was still ours.
///
/// In a forked child of the process that holds it, a guard is not valid ([`LossCause::Forked`]), and dropping it releases nothing: the
/// lock remains the parent's.
///
/// Dropped as the last statement of `main` it writes its release, but nobody waits for it to be read: a busy master whose connection
/// is reset by the end of the process may never read it, and then the key expires with the TTL. Whoever must be sure waits for
/// [`Guard::release`].
#[must_use = "dropping a guard releases its lock"]
pub struct Guard {
    watch: Watch,
    id: LockId,
    resource: Resource,
    proof: Resumption,
    /// Whether [`Guard::release`] or [`Guard::hand_over`] has taken over what dropping would do.
    released: bool,
}

impl Guard {
    pub(super) fn new(
        handle: Handle,
        id: LockId,
        slot: Arc<Slot>,
        resource: Resource,
        proof: Resumption,
    ) -> Self {
        Self { watch: Watch { handle, slot }, id, resource, proof, released: false }
    }

    /// What is locked.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The token that the masters keep. Whoever knows it can release the lock.
    pub fn token(&self) -> Token {
        self.proof.token
    }

    /// The number of this grant, if it was asked for ([`super::Request::fenced`]). A store that remembers the largest one it has seen and
    /// refuses smaller ones keeps late writers out.
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.proof.fencing_token
    }

    /// What another process needs to extend or release the lock meanwhile; [`Guard::hand_over`] gives it away.
    pub fn resumption(&self) -> Resumption {
        let shared = &self.watch.handle.0;
        let latest = if shared.is_forked() { None } else { shared.engine.look().machine.resumption(self.id) };
        latest.unwrap_or(self.proof)
    }

    /// Gives the lock to another process or another locker: renewal ends, the keys stay, and whoever is given this can go on with it
    /// ([`Locker::resume`](super::Locker::resume)) or release it ([`Locker::release`](super::Locker::release)) until its TTL has run out.
    ///
    /// # Errors
    /// [`LossCause`] if the lock is not held any more.
    pub fn hand_over(mut self) -> Result<Resumption, LossCause> {
        if self.watch.is_forked() {
            return Err(LossCause::Forked);
        }
        let Some(proof) = self.watch.handle.0.hand_over(self.id) else {
            return Err(self.watch.slot.loss().unwrap_or(LossCause::Expired));
        };
        self.released = true;
        self.watch.end(LossCause::HandedOver);
        Ok(proof)
    }

    /// Whether the lock is valid now: one reading of the clock.
    pub fn is_valid(&self) -> bool {
        self.watch.is_valid()
    }

    /// How long it is valid from now on; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        self.watch.remaining()
    }

    /// Whether the lock is valid now, as a result.
    ///
    /// # Errors
    /// [`LossCause`] if it is not.
    pub fn check(&self) -> Result<(), LossCause> {
        self.watch.check()
    }

    /// Something that tells about the lock without holding it.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// A future that ends when the lock is lost or released, never later than its validity. From then on [`check`](Self::check) gives
    /// the same cause.
    ///
    /// *Cancel safety*: it may be dropped and asked for again at any time.
    pub fn lost(&self) -> Lost {
        self.watch.lost()
    }

    /// Makes the lock valid for `ttl` from now, if a quorum of masters still holds it for us. Nothing ever shortens it:
    /// a TTL that ends before the present validity leaves that as it is.
    ///
    /// *Cancel safety*: dropped after its first poll, the extension may happen all the same; the guard knows if it did.
    pub fn extend(&self, ttl: Duration) -> Extending<'_> {
        Extending { guard: self, state: ExtendingState::Start(Ttl::new(ttl)) }
    }

    /// Ends the renewal in the background. The lock stays valid for what remains, and can still be extended by hand.
    pub fn stop_renewal(&self) {
        if !self.watch.is_forked() {
            self.watch.handle.0.command(|machine, now| machine.stop_renewal(self.id, now));
        }
    }

    /// Releases the lock and tells whether a quorum of masters still held it for us.
    ///
    /// *Cancel safety*: the release is sent by this call itself; the future only waits for the answers.
    pub fn release(mut self) -> Release {
        self.released = true;
        let loss = self.watch.check().err();
        let id = self.id;
        if !self.watch.is_forked() {
            self.watch.end(LossCause::Released);
            self.watch.handle.0.command(|machine, now| machine.release(id, now));
        }
        Release::new(self.watch.handle.clone(), Arc::clone(&self.watch.slot), id, loss)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.released && !self.watch.is_forked() {
            self.watch.end(LossCause::Released);
            self.watch.handle.0.cancel(self.id, Figures::dropped);
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("resource", &self.resource)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

/// Tells about a lock without holding it. Cheap to clone; may outlive the guard, and then says that the lock was released.
#[derive(Clone)]
pub struct Watch {
    handle: Handle,
    slot: Arc<Slot>,
}

impl Watch {
    /// Whether the lock is valid now: one reading of the clock.
    pub fn is_valid(&self) -> bool {
        self.handle.0.host.now() < self.slot.valid_until() && !self.is_forked()
    }

    /// How long the lock is valid from now on; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        if self.is_forked() {
            return Duration::ZERO;
        }
        self.slot.valid_until().since(self.handle.0.host.now())
    }

    /// Whether the lock is valid now, as a result.
    ///
    /// # Errors
    /// [`LossCause`] if it is not.
    pub fn check(&self) -> Result<(), LossCause> {
        if self.is_valid() {
            Ok(())
        } else if self.is_forked() {
            Err(LossCause::Forked)
        } else {
            Err(self.slot.loss().unwrap_or(LossCause::Expired))
        }
    }

    /// A future that ends when the lock is lost or released, never later than its validity. From then on [`check`](Self::check) gives
    /// the same cause.
    ///
    /// *Cancel safety*: it may be dropped and asked for again at any time.
    pub fn lost(&self) -> Lost {
        Lost { watch: self.clone(), waiter: None }
    }

    fn is_forked(&self) -> bool {
        self.handle.0.is_forked()
    }

    /// The holder has let go.
    fn end(&self, cause: LossCause) {
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

/// The future of [`Guard::lost`]. It borrows nothing.
#[must_use = "futures do nothing until they are polled"]
pub struct Lost {
    watch: Watch,
    /// Since the first poll.
    waiter: Option<Waiter>,
}

impl Lost {
    /// Keeps the calling thread until the lock is lost.
    ///
    /// # Panics
    /// With quorlock-tokio inside of async code, which it would block: await it, or wait in `spawn_blocking`.
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
        match watch.slot.poll_lost(waiter, cx) {
            // The first poll after the machine has slept past the end says so, whether or not a timer has fired.
            Poll::Pending if !watch.is_valid() => Poll::Ready(LossCause::Expired),
            outcome => outcome,
        }
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

/// The future of [`Guard::extend`].
#[must_use = "futures do nothing until they are polled"]
pub struct Extending<'a> {
    guard: &'a Guard,
    state: ExtendingState,
}

enum ExtendingState {
    Start(Result<Ttl, ConfigError>),
    Waiting(ExtensionId),
    Done,
}

impl Extending<'_> {
    /// Keeps the calling thread until the extension is settled.
    ///
    /// # Errors
    /// [`ExtendError`].
    ///
    /// # Panics
    /// With quorlock-tokio inside of async code, which it would block: await it, or wait in `spawn_blocking`.
    #[track_caller]
    pub fn wait(self) -> Result<Duration, ExtendError> {
        let handle = self.guard.watch.handle.clone();
        handle.wait(self).unwrap_or(Err(ExtendError::Lost(LossCause::DriverEnded)))
    }
}

impl Future for Extending<'_> {
    /// How long the lock is valid from now on.
    type Output = Result<Duration, ExtendError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Guard { watch, id, .. } = self.guard;
        if watch.is_forked() {
            return Poll::Ready(Err(ExtendError::Lost(LossCause::Forked)));
        }
        if let ExtendingState::Start(ttl) = &self.state {
            let started = match ttl.clone() {
                Ok(ttl) => watch.handle.0.command(|machine, now| {
                    machine.extend(*id, ttl, now).inspect(|extension| watch.slot.expect_extension(*extension))
                }),
                Err(error) => Err(error.into()),
            };
            match started {
                Ok(extension) => self.state = ExtendingState::Waiting(extension),
                Err(error) => {
                    self.state = ExtendingState::Done;
                    return Poll::Ready(Err(match error {
                        // What ended it is known here.
                        ExtendError::Lost(_) => {
                            ExtendError::Lost(watch.slot.loss().unwrap_or(LossCause::Expired))
                        }
                        error => error,
                    }));
                }
            }
        }
        let ExtendingState::Waiting(extension) = self.state else { return Poll::Pending };
        watch.slot.poll_extended(extension, cx).map(|result| {
            self.state = ExtendingState::Done;
            result.map(|_| watch.remaining())
        })
    }
}

impl Drop for Extending<'_> {
    fn drop(&mut self) {
        if let (ExtendingState::Waiting(extension), false) = (&self.state, self.guard.watch.is_forked()) {
            self.guard.watch.slot.forget_extension(*extension);
        }
    }
}

impl fmt::Debug for Extending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extending").finish_non_exhaustive()
    }
}
