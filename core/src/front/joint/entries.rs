//! An owner's held locks and requests under way, by resource.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Held, Obstacle, Seeker};
use crate::front::slot::Slot;
use crate::protocol::{LockId, Resource, Targets, Ttl};

/// How many resources an owner keeps before it looks for ended locks. Larger: more memory. Smaller:
/// more frequent looks.
const KEPT: usize = 64;

pub(super) struct Entries {
    by_resource: BTreeMap<Resource, Entry>,
    seekers: BTreeMap<LockId, Seeker>,
    tidy_at: usize,
}

/// One resource.
#[derive(Default)]
struct Entry {
    /// The lock of the owner that has the resource. It does not count as a handle here, and may
    /// have ended.
    held: Option<Held>,
    /// Requests under way that name the resource, in the order of the queue.
    seekers: Vec<LockId>,
}

impl Entry {
    /// Whether the owner's lock still has a handle.
    fn is_held(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.slot.handles.is_any())
    }
}

impl Entries {
    pub(super) fn new() -> Self {
        Self { by_resource: BTreeMap::new(), seekers: BTreeMap::new(), tidy_at: KEPT }
    }

    // Locks that are held.

    /// The lock that covers all of these, with one more handle counted for the caller.
    pub(super) fn join(&mut self, targets: &Targets) -> Result<Option<Held>, Obstacle> {
        for (place, resource) in targets.resources().enumerate() {
            let Some(entry) = self.by_resource.get_mut(resource) else { continue };
            let Some(held) = &entry.held else { continue };
            // A lock that covers all of them covers the first.
            if place == 0 && held.join(targets) {
                return Ok(Some(held.clone()));
            }
            if entry.is_held() {
                return Err(Obstacle { slot: Arc::clone(&held.slot), resource: resource.clone() });
            }
            entry.held = None;
        }
        Ok(None)
    }

    /// The lock that this request acquired. Its handle was counted when the grant was taken.
    pub(super) fn held_by(&self, id: LockId, targets: &Targets) -> Option<&Held> {
        self.by_resource.get(targets.first())?.held.as_ref().filter(|held| held.id == id)
    }

    /// Whether a lock that the owner holds has any of these.
    pub(super) fn holds_any(&self, targets: &Targets) -> bool {
        targets.resources().any(|resource| self.by_resource.get(resource).is_some_and(Entry::is_held))
    }

    pub(super) fn hold(&mut self, held: &Held) {
        for resource in held.targets.resources() {
            self.by_resource.entry(resource.clone()).or_default().held = Some(held.clone());
        }
    }

    pub(super) fn extended(&mut self, targets: &Targets, id: LockId, ttl: Ttl) {
        for resource in targets.resources() {
            let held = self.by_resource.get_mut(resource).and_then(|entry| entry.held.as_mut());
            let held = held.filter(|held| held.id == id);
            held.into_iter().for_each(|held| held.terms.ttl = held.terms.ttl.max(ttl));
        }
    }

    // Requests under way.

    pub(super) fn add(&mut self, seeker: Seeker) {
        self.tidy();
        for resource in seeker.targets.resources() {
            self.by_resource.entry(resource.clone()).or_default().seekers.push(seeker.id);
        }
        self.seekers.insert(seeker.id, seeker);
    }

    pub(super) fn seeker(&mut self, id: LockId) -> Option<&mut Seeker> {
        self.seekers.get_mut(&id)
    }

    pub(super) fn remove(&mut self, id: LockId) -> Option<Seeker> {
        let seeker = self.seekers.remove(&id)?;
        for resource in seeker.targets.resources() {
            if let Some(entry) = self.by_resource.get_mut(resource) {
                entry.seekers.retain(|other| *other != id);
            }
        }
        Some(seeker)
    }

    fn of(&self, resource: &Resource) -> impl Iterator<Item = &Seeker> {
        let ids = self.by_resource.get(resource).into_iter().flat_map(|entry| &entry.seekers);
        ids.filter_map(|id| self.seekers.get(id))
    }

    /// The requests that name any of these. A request that names several of them is repeated.
    pub(super) fn about<'a>(&'a self, targets: &'a Targets) -> impl Iterator<Item = &'a Seeker> {
        targets.resources().flat_map(|resource| self.of(resource))
    }

    /// The owner's first request whose grant would serve this one, if that is another one.
    pub(super) fn first_for(&self, id: LockId, targets: &Targets) -> Option<(LockId, Arc<Slot>)> {
        let serves = |other: &&Seeker| {
            other.id == id
                || !other.is_refused && other.targets.covers(targets) && !self.holds_any(&other.targets)
        };
        let first = self.of(targets.first()).find(serves).filter(|first| first.id != id);
        first.map(|first| (first.id, Arc::clone(&first.slot)))
    }

    /// Later requests that still have a caller and that this one's grant would serve. Earlier ones
    /// do not wait for this one.
    pub(super) fn served_by<'a>(&'a self, seeker: &'a Seeker) -> impl Iterator<Item = &'a Seeker> {
        let is_served = |other: &&Seeker| !other.is_adopted && seeker.targets.covers(&other.targets);
        let behind = |resource| self.of(resource).skip_while(|other| other.id != seeker.id).skip(1);
        let first_of = move |resource: &'a Resource| {
            behind(resource).filter(move |other| other.targets.first() == resource)
        };
        seeker.targets.resources().flat_map(first_of).filter(is_served)
    }

    /// Keeps a request without its caller, if others need it and its grant would give them what
    /// they ask for.
    pub(super) fn adopt(&mut self, id: LockId) -> bool {
        let Some(seeker) = self.seekers.get(&id) else { return false };
        let is_enough = |other: &Seeker| seeker.terms.lack(&other.terms, true).is_none();
        let is_adopted = self.served_by(seeker).next().is_some() && self.served_by(seeker).all(is_enough);
        self.seeker(id).into_iter().for_each(|seeker| seeker.is_adopted |= is_adopted);
        is_adopted
    }

    /// Removes requests without a caller that no other request needs.
    pub(super) fn take_needless(&mut self, targets: &Targets) -> Vec<Seeker> {
        let needless = |seeker: &&Seeker| {
            let is_needed = || !self.holds_any(&seeker.targets) && self.served_by(seeker).next().is_some();
            seeker.is_adopted && !is_needed()
        };
        let needless: Vec<_> = self.about(targets).filter(needless).map(Seeker::id).collect();
        needless.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    fn tidy(&mut self) {
        if self.by_resource.len() >= self.tidy_at {
            self.by_resource.retain(|_, entry| !entry.seekers.is_empty() || entry.is_held());
            self.tidy_at = KEPT.max(2 * self.by_resource.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::front::observe::Subject;
    use crate::protocol::Acquire;
    use crate::time::Instant;

    fn seeker(index: u32, resource: &Resource) -> Seeker {
        let (id, slot) = (LockId { index, generation: 0 }, Arc::new(Slot::new(Subject::none())));
        let wanted = Acquire::new(resource.clone(), Ttl::new(Duration::from_secs(1)).unwrap());
        Seeker::new(id, &slot, Instant::ORIGIN, &wanted)
    }

    #[test]
    fn resources_that_no_request_names_any_more_are_forgotten_and_others_are_not() {
        for stay in [0, 1, 200] {
            let mut entries = Entries::new();
            for index in 0..stay + 2_000 {
                let seeker = seeker(index, &Resource::new(format!("job {index}")).unwrap());
                let id = seeker.id;
                entries.add(seeker);
                if index >= stay {
                    assert!(entries.remove(id).is_some());
                }
                assert!(entries.by_resource.len() <= KEPT.max(2 * stay as usize));
            }
            for index in 0..stay {
                let resource = Resource::new(format!("job {index}")).unwrap();
                let ids: Vec<_> = entries.of(&resource).map(|seeker| seeker.id.index).collect();
                assert_eq!(ids, [index]);
            }
        }
    }
}
