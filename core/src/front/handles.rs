//! The handles of one lock: how many guards it has, and whether copies of its token exist.
//!
//! The process that holds a lock is the only writer of this count. No master keeps one: counts that
//! several masters increment differ as soon as one of them misses an increment.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::guard::{Guard, Watch};
use super::sync::{AtomicBool, AtomicUsize, Ordering};
use crate::protocol::{LossCause, Resumption};

/// Counts the guards of one lock. The last one to leave ends the lock.
pub(super) struct Handles {
    /// The number of handles, which stays zero once the last one has left, and the flags
    /// [`CLOSED`], [`COPIED`] and [`RESUMED`]. They are one word, so that no handle can join, copy
    /// the resumption and leave between a look at one of them and a decision about another.
    word: AtomicUsize,
    renewal_was_stopped: AtomicBool,
}

/// A writer's lock has become a reader's.
const CLOSED: usize = 1 << (usize::BITS - 1);
/// [`Guard::resumption`] was called on a handle.
const COPIED: usize = CLOSED >> 1;
/// The lock was resumed with a token that another guard had before.
const RESUMED: usize = CLOSED >> 2;
/// The bits of the count: far more than handles that fit in memory.
const COUNT: usize = RESUMED - 1;

impl Handles {
    /// The handle of the caller that acquires the lock.
    pub(super) fn one() -> Self {
        Self { word: AtomicUsize::new(1), renewal_was_stopped: AtomicBool::new(false) }
    }

    /// Adds a handle. Returns `false` if the last one has left: then the lock is over, whatever its
    /// release finds. It also returns `false` if it has become a reader's lock, unless the handle
    /// is for a reader.
    pub(super) fn join(&self, as_reader: bool) -> bool {
        let may_join = |word: usize| word & COUNT != 0 && (as_reader || word & CLOSED == 0);
        let add = |word| may_join(word).then_some(word + 1);
        self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok()
    }

    /// Removes a handle and returns how many others there are. If it returns zero, the caller must
    /// release the lock.
    pub(super) fn leave(&self) -> usize {
        (self.word.fetch_sub(1, Ordering::AcqRel) & COUNT) - 1
    }

    /// Adds a handle beside an existing one.
    fn add(&self) {
        self.word.fetch_add(1, Ordering::AcqRel);
    }

    /// Turns the lock into a reader's. Fails if anything besides one handle can act for it: see
    /// [`Ties`].
    pub(super) fn close(&self) -> bool {
        self.word.compare_exchange(1, 1 | CLOSED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Removes the only handle, so that no other can join it or copy the resumption. If there are
    /// other handles, fails with their number.
    pub(super) fn leave_alone(&self) -> Result<(), usize> {
        let take = |word: usize| (word & COUNT == 1).then_some(word - 1);
        let left = self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        left.map(drop).map_err(|word| ties(word).other_handles)
    }

    /// Whether the lock has a handle.
    pub(super) fn is_any(&self) -> bool {
        self.word.load(Ordering::Acquire) & COUNT > 0
    }

    pub(super) fn ties(&self) -> Ties {
        ties(self.word.load(Ordering::Acquire))
    }

    pub(super) fn note_resumed(&self) {
        self.word.fetch_or(RESUMED, Ordering::AcqRel);
    }

    /// The caller has a handle, and keeps it until it has read the resumption.
    pub(super) fn note_resumption_read(&self) {
        self.word.fetch_or(COPIED, Ordering::AcqRel);
    }

    pub(super) fn note_renewal_stopped(&self) {
        self.renewal_was_stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_renewal_stopped(&self) -> bool {
        self.renewal_was_stopped.load(Ordering::Relaxed)
    }
}

/// What a word of [`Handles`] says to one of the handles.
fn ties(word: usize) -> Ties {
    Ties {
        other_handles: (word & COUNT).saturating_sub(1),
        resumption_read: word & COPIED != 0,
        resumed: word & RESUMED != 0,
    }
}

/// What can act for a lock besides one of its handles: see [`Guard::ties`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Ties {
    /// Other handles of the lock: from [`Guard::share`] or an [`Owner`](super::Owner).
    pub other_handles: usize,
    /// [`Guard::resumption`] was called on a handle of the lock, so another process may act with
    /// it.
    pub resumption_read: bool,
    /// The lock was resumed ([`Locker::resume`](super::Locker::resume)), so the process that handed
    /// it over may still know its token.
    pub resumed: bool,
}

impl Ties {
    /// Returns whether only this handle can act for the lock.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

impl Guard {
    /// Returns another handle of this lock: same token, fencing token and validity. Nothing is
    /// sent.
    ///
    /// The last handle to be released or dropped releases the lock. Until then [`Guard::release`]
    /// of a handle returns [`Released::Kept`](super::Released::Kept). What one handle does to the
    /// lock affects all: [`Guard::extend`], [`Guard::stop_renewal`], and the loss of the lock.
    ///
    /// Handles do not exclude each other. Code under one handle runs beside code under another.
    /// [`Owner`](super::Owner) returns further handles by name.
    ///
    /// ```
    /// # use quorlock_core::front::{Guard, Released};
    /// # async fn work(guard: Guard) -> Result<(), quorlock_core::front::ReleaseError> {
    /// let other = guard.share();
    /// assert_eq!(guard.release().await?, Released::Kept { others: 1 });
    /// assert_eq!(other.release().await?, Released::Freed);
    /// # Ok(())
    /// # }
    /// ```
    pub fn share(&self) -> Self {
        self.watch.slot.handles.add();
        self.twin()
    }

    /// Returns what can act for the lock besides this handle.
    ///
    /// [`Guard::hand_over`] needs a lock with a single handle. The number of handles is a snapshot
    /// if other threads use an [`Owner`](super::Owner) of the lock.
    pub fn ties(&self) -> Ties {
        self.watch.slot.handles.ties()
    }

    /// Hands the lock over to another process or another locker. Renewal ends and the keys stay.
    ///
    /// The process that gets the returned value can resume the lock
    /// ([`Locker::resume`](super::Locker::resume)) or release it
    /// ([`Locker::release`](super::Locker::release)) until its TTL has run out. This does not wait.
    /// To masters that have yet to answer the acquisition, a release is sent, so that no key is
    /// left there: they do not count for the receiver. If [`Guard::resumption`] was read, or the
    /// lock was resumed, the key is left there until it expires, because a holder of an earlier
    /// copy may count it.
    ///
    /// # Errors
    /// - [`HandOverError::Shared`] if the lock has other handles, which would still report it as
    ///   valid while the receiver holds it. The error returns the guard, and the lock is unchanged.
    /// - [`HandOverError::Lost`] if the lock is no longer held.
    pub fn hand_over(mut self) -> Result<Resumption, HandOverError> {
        if self.watch.is_forked() {
            return Err(HandOverError::Lost(LossCause::Forked));
        }
        if let Err(others) = self.watch.slot.handles.leave_alone() {
            return Err(HandOverError::Shared { guard: Box::new(self), others });
        }
        self.has_left = true;
        let Some(proof) = self.watch.handle.0.command(|engine, now| engine.hand_over(self.id, now)) else {
            let cause = self.watch.slot.loss().unwrap_or(LossCause::Expired);
            self.abandon();
            return Err(HandOverError::Lost(cause));
        };
        self.watch.end(LossCause::HandedOver);
        Ok(proof)
    }

    /// Gives this handle up and returns how many others there are. If it returns zero, the caller
    /// must release the lock.
    pub(super) fn leave(&mut self) -> usize {
        self.has_left = true;
        self.watch.slot.handles.leave()
    }

    /// Another guard of the same lock. The caller has counted it.
    fn twin(&self) -> Self {
        let Watch { handle, slot } = &self.watch;
        Self::new(handle.clone(), self.id, Arc::clone(slot), self.targets.clone(), self.proof)
    }
}

/// Why a lock was not handed over.
#[derive(Debug)]
#[non_exhaustive]
pub enum HandOverError {
    /// The lock is no longer held.
    Lost(LossCause),
    /// The lock has other handles. Nothing has changed.
    Shared {
        /// The guard that was to be handed over.
        guard: Box<Guard>,
        /// The number of other handles.
        others: usize,
    },
}

impl HandOverError {
    /// Returns the guard, if the lock is held as before.
    pub fn into_guard(self) -> Option<Guard> {
        match self {
            Self::Lost(_) => None,
            Self::Shared { guard, .. } => Some(*guard),
        }
    }

    /// Returns a word for this kind of error, for the labels of metrics. It is the same in every
    /// version.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Lost(_) => "lost",
            Self::Shared { .. } => "shared",
        }
    }
}

impl fmt::Display for HandOverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(cause) => cause.fmt(f),
            Self::Shared { guard, others } => write!(
                f,
                "{} not handed over: other handles of the lock are alive: {others}; release them first",
                guard.resource()
            ),
        }
    }
}

impl Error for HandOverError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Lost(cause) => Some(cause),
            Self::Shared { .. } => None,
        }
    }
}
