//! What the requests of one owner share: the locks that it holds, and the requests that are under
//! way for the same resources.
//!
//! Each request has its own lock in the machine, with its own limits, and waits in the queues of
//! the process. Each request watches its own slot, and that of the owner's first request whose
//! grant would also serve it. The request that finds a grant takes it for all. The granted lock
//! then belongs to the owner, and requests that it covers join it as further handles.
//!
//! No two locks that an owner holds have a resource in common. A request for a part of such a lock
//! and for something else is refused, even if the request was under way before the lock was
//! granted.
//!
//! This mutex is locked before the engine's. No waker is called or dropped under it.

use std::sync::Arc;
use std::time::Duration;

use self::entries::Entries;
use super::slot::Slot;
use super::sync::{Mutex, lock};
use crate::protocol::{Acquire, AcquireError, LockId, Missing, Resource, Resumption, Targets, Ttl};
use crate::time::Instant;

mod entries;
#[cfg(all(test, loom))]
mod loom_tests;
mod waiting;

pub(super) use self::waiting::{Joined, Left, Waiting};

/// What one owner holds and requests.
pub(super) struct Joint {
    entries: Mutex<Entries>,
}

/// A lock that the owner acquired.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) id: LockId,
    pub(super) slot: Arc<Slot>,
    pub(super) proof: Resumption,
    pub(super) targets: Targets,
    pub(super) terms: Terms,
}

/// A lock of the owner that covers a part of what a request asks for.
pub(super) struct Obstacle {
    pub(super) slot: Arc<Slot>,
    /// The resource that both the lock and the request name.
    pub(super) resource: Resource,
}

/// What a request finds when it starts.
pub(super) enum Entered {
    /// The owner holds the lock. A handle has been counted for the caller.
    Found(Held),
    Blocked(Obstacle),
    /// The request is under way from now on.
    Begun,
}

/// A request that is under way.
pub(super) struct Seeker {
    id: LockId,
    slot: Arc<Slot>,
    since: Instant,
    targets: Targets,
    terms: Terms,
    /// Its future was dropped, but it is kept for the owner's other requests.
    is_adopted: bool,
    /// It ended without a grant.
    is_refused: bool,
}

/// What a lock has, or what a request asks for.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) ttl: Ttl,
    renew_for: Option<Duration>,
    fenced: bool,
    healing: bool,
}

impl Terms {
    pub(super) fn of(wanted: &Acquire) -> Self {
        let Acquire { ttl, renew_for, fenced, healing, .. } = *wanted;
        Self { ttl, renew_for, fenced, healing }
    }

    /// What `asked` requires and a lock with these terms lacks.
    fn lack(&self, asked: &Self, limits_renewal: bool) -> Option<Missing> {
        if asked.fenced && !self.fenced {
            Some(Missing::FencingToken)
        } else if asked.healing && !self.healing {
            Some(Missing::Healing)
        } else if asked.renew_for.is_some() && self.renew_for.is_none() {
            Some(Missing::Renewal)
        } else if limits_renewal && asked.renew_for > self.renew_for {
            Some(Missing::LongerRenewal)
        } else {
            None
        }
    }
}

impl Seeker {
    pub(super) fn new(id: LockId, slot: &Arc<Slot>, since: Instant, wanted: &Acquire) -> Self {
        let (slot, targets, terms) = (Arc::clone(slot), wanted.targets.clone(), Terms::of(wanted));
        Self { id, slot, since, targets, terms, is_adopted: false, is_refused: false }
    }

    pub(super) fn id(&self) -> LockId {
        self.id
    }
}

impl Held {
    /// Counts a handle for a request of these targets. Returns `false` if the lock does not cover
    /// them, or is over.
    fn join(&self, asked: &Targets) -> bool {
        // A handle that became a reader covers readers' requests.
        let as_reader = self.targets.covers_downgraded(asked);
        self.targets.covers(asked) && self.slot.handles.join(as_reader)
    }

    /// What `asked` requires and this lock lacks.
    pub(super) fn lack(&self, asked: &Terms, limits_renewal: bool) -> Option<Missing> {
        let is_renewed_no_more = self.slot.handles.is_renewal_stopped() && asked.renew_for.is_some();
        let missing = self.terms.lack(asked, limits_renewal);
        missing.or_else(|| is_renewed_no_more.then_some(Missing::Renewal))
    }
}

impl Joint {
    pub(super) fn new() -> Self {
        Self { entries: Mutex::new(Entries::new()) }
    }

    fn with<R>(&self, change: impl FnOnce(&mut Entries) -> R) -> R {
        change(&mut lock(&self.entries))
    }

    /// A lock that the owner holds was extended to this TTL.
    pub(super) fn extended(&self, targets: &Targets, id: LockId, ttl: Ttl) {
        self.with(|entries| entries.extended(targets, id, ttl));
    }

    /// Returns another handle of what the owner holds, or begins to seek it.
    pub(super) fn enter(
        &self,
        targets: &Targets,
        begin: impl FnOnce() -> Result<Seeker, AcquireError>,
    ) -> Result<Entered, AcquireError> {
        self.with(|entries| match entries.join(targets) {
            Ok(Some(held)) => Ok(Entered::Found(held)),
            Ok(None) => begin().map(|seeker| {
                entries.add(seeker);
                Entered::Begun
            }),
            Err(obstacle) => Ok(Entered::Blocked(obstacle)),
        })
    }
}
