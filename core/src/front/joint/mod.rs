//! What the requests of one owner share: the locks that it holds, and the requests that are under
//! way for the same resource.
//!
//! Each request has its own lock in the machine, with its own limits, and waits in the queue of the
//! process. Only the first of them is known to the masters. Each request watches its own slot and
//! that of the owner's first one. The request that finds a grant takes it for all: it becomes the
//! lock that the owner holds, and the others join it as further handles.
//!
//! The mutex here comes before the engine's. No waker is called or dropped under it.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::slot::Slot;
use super::sync::{Mutex, lock};
use crate::protocol::{Acquire, AcquireError, LockId, Missing, Resource, Resumption, Ttl};
use crate::time::Instant;

#[cfg(all(test, loom))]
mod loom_tests;
mod waiting;

pub(super) use self::waiting::{Joined, Left, Waiting};

/// How many resources an owner keeps before it looks for locks that are over. More keeps memory,
/// fewer looks more often.
const KEPT: usize = 64;

/// What one owner holds and requests.
pub(super) struct Joint {
    entries: Mutex<Entries>,
}

struct Entries {
    by_resource: BTreeMap<Resource, Entry>,
    tidy_at: usize,
}

#[derive(Default)]
struct Entry {
    /// A weak reference: it counts as no handle, and may be of a lock that is over.
    held: Option<Held>,
    /// Requests that are under way, in the order of the queue.
    seekers: Vec<Seeker>,
}

/// A lock that the owner acquired.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) id: LockId,
    pub(super) slot: Arc<Slot>,
    pub(super) proof: Resumption,
    pub(super) terms: Terms,
}

/// A request that is under way.
pub(super) struct Seeker {
    id: LockId,
    slot: Arc<Slot>,
    since: Instant,
    terms: Terms,
    /// Its future was dropped, and it goes on for the owner's other requests.
    is_adopted: bool,
    /// It has ended without a grant.
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

    /// What `asked` has and a lock with these terms does not.
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
    pub(super) fn new(id: LockId, slot: &Arc<Slot>, since: Instant, terms: Terms) -> Self {
        Self { id, slot: Arc::clone(slot), since, terms, is_adopted: false, is_refused: false }
    }

    pub(super) fn id(&self) -> LockId {
        self.id
    }
}

impl Held {
    /// What `asked` has and this lock does not.
    pub(super) fn lack(&self, asked: &Terms, limits_renewal: bool) -> Option<Missing> {
        let is_renewed_no_more = self.slot.handles.is_renewal_stopped() && asked.renew_for.is_some();
        let missing = self.terms.lack(asked, limits_renewal);
        missing.or_else(|| is_renewed_no_more.then_some(Missing::Renewal))
    }
}

impl Entry {
    /// The lock that the owner holds, with one more handle counted for the caller.
    fn join(&mut self) -> Option<Held> {
        let joined = self.held.as_ref().filter(|held| held.slot.handles.join()).cloned();
        if joined.is_none() {
            self.held = None;
        }
        joined
    }

    /// The lock that was acquired by this request, whose handle was counted when that was taken.
    fn held_by(&self, id: LockId) -> Option<&Held> {
        self.held.as_ref().filter(|held| held.id == id)
    }

    /// Whether a handle of what the owner holds lives.
    fn is_held(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.slot.handles.is_any())
    }

    fn position(&self, id: LockId) -> Option<usize> {
        self.seekers.iter().position(|seeker| seeker.id == id)
    }

    fn is_over(&self) -> bool {
        self.seekers.is_empty() && !self.is_held()
    }

    /// Takes out the requests that go on for others.
    fn take_adopted(&mut self) -> Vec<Seeker> {
        let (adopted, seekers) =
            mem::take(&mut self.seekers).into_iter().partition(|seeker| seeker.is_adopted);
        self.seekers = seekers;
        adopted
    }
}

impl Joint {
    pub(super) fn new() -> Self {
        Self { entries: Mutex::new(Entries { by_resource: BTreeMap::new(), tidy_at: KEPT }) }
    }

    fn with<R>(&self, resource: &Resource, change: impl FnOnce(&mut Entry) -> R) -> R {
        let mut entries = lock(&self.entries);
        if !entries.by_resource.contains_key(resource) {
            entries.tidy();
        }
        change(entries.by_resource.entry(resource.clone()).or_default())
    }

    /// The lock of this request was extended to this TTL.
    pub(super) fn extended(&self, resource: &Resource, id: LockId, ttl: Ttl) {
        self.with(resource, |entry| {
            let held = entry.held.as_mut().filter(|held| held.id == id);
            held.into_iter().for_each(|held| held.terms.ttl = held.terms.ttl.max(ttl));
        });
    }

    /// Returns another handle of what the owner holds, or begins to seek it.
    pub(super) fn enter(
        &self,
        resource: &Resource,
        begin: impl FnOnce() -> Result<Seeker, AcquireError>,
    ) -> Result<Option<Held>, AcquireError> {
        self.with(resource, |entry| match entry.join() {
            Some(held) => Ok(Some(held)),
            None => begin().map(|seeker| {
                entry.seekers.push(seeker);
                None
            }),
        })
    }
}

impl Entries {
    fn tidy(&mut self) {
        if self.by_resource.len() >= self.tidy_at {
            self.by_resource.retain(|_, entry| !entry.is_over());
            self.tidy_at = KEPT.max(2 * self.by_resource.len());
        }
    }
}
