//! One request of an owner: it waits for its own grant and for that of the owner's first request.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Held, Joint, Seeker};
use crate::front::slot::{Slot, Waiter};
use crate::front::sync::Woken;
use crate::protocol::{AcquireError, LockId, Resource, Resumption};
use crate::time::Instant;

/// One request of an owner while it waits.
pub(in crate::front) struct Waiting {
    joint: Arc<Joint>,
    resource: Resource,
    id: LockId,
    slot: Arc<Slot>,
    /// The slot of the owner's first request, if that is another one.
    first: Option<(Arc<Slot>, Waiter)>,
}

/// How waiting ends. A held lock has a handle counted for the caller.
pub(in crate::front) enum Joined<G> {
    /// This request took a grant: its own, or that of another request of the owner.
    Took {
        held: Held,
        grant: G,
        /// Whether the caller of the request that was granted had gone.
        was_adopted: bool,
    },
    /// The owner holds the lock already.
    Found(Held),
    Refused(AcquireError),
}

/// What a request leaves behind, to be cancelled.
pub(in crate::front) struct Left {
    /// Its own lock, if that is still sought.
    pub(in crate::front) own: Option<LockId>,
    /// Requests that were kept for it alone.
    pub(in crate::front) adopted: Vec<Seeker>,
    /// What it was granted, with the handle that was counted for it.
    pub(in crate::front) held: Option<Held>,
}

enum Look {
    Held(Held),
    /// The owner's first request, if that is another one.
    Behind(Option<(LockId, Arc<Slot>)>),
}

impl Waiting {
    /// A request that has [entered](Joint::enter) and waits.
    pub(in crate::front) fn new(joint: Arc<Joint>, resource: Resource, id: LockId, slot: Arc<Slot>) -> Self {
        Self { joint, resource, id, slot, first: None }
    }

    pub(in crate::front) fn id(&self) -> LockId {
        self.id
    }

    /// `take` makes a grant a held lock, or returns `None` if it came too late and the lock is
    /// sought further.
    pub(in crate::front) fn poll<G>(
        &mut self,
        cx: &Context<'_>,
        mut take: impl FnMut(LockId, &Slot, Instant) -> Option<(Resumption, G)>,
    ) -> Poll<Joined<G>> {
        let mut registered = None;
        loop {
            let first = match self.look() {
                Look::Held(held) => return Poll::Ready(Joined::Found(held)),
                Look::Behind(first) => first,
            };
            let first_id = first.as_ref().map(|(id, _)| *id);
            // A change between the look and the registration is found by this second look.
            if registered == Some(first_id) {
                return Poll::Pending;
            }
            let granted = match self.slot.poll_acquired(cx) {
                Poll::Ready(Ok(())) => self.id,
                Poll::Ready(Err(error)) => return Poll::Ready(Joined::Refused(error)),
                Poll::Pending => match self.poll_first(first, cx) {
                    Some(id) => id,
                    None => {
                        registered = Some(first_id);
                        continue;
                    }
                },
            };
            registered = None;
            if let Some(took) = self.take(granted, &mut take) {
                return Poll::Ready(took);
            }
        }
    }

    fn look(&self) -> Look {
        self.joint.with(&self.resource, |entry| {
            if let Some(held) = entry.held_by(self.id) {
                return Look::Held(held.clone());
            }
            if let Some(held) = entry.join() {
                return Look::Held(held);
            }
            let first = entry.seekers.iter().find(|seeker| !seeker.is_refused || seeker.id == self.id);
            let first = first.filter(|seeker| seeker.id != self.id);
            Look::Behind(first.map(|seeker| (seeker.id, Arc::clone(&seeker.slot))))
        })
    }

    /// The id of the owner's first request, if that is another one and it has been granted.
    fn poll_first(&mut self, first: Option<(LockId, Arc<Slot>)>, cx: &Context<'_>) -> Option<LockId> {
        let Some((id, slot)) = first else {
            self.forget_first();
            return None;
        };
        if !self.first.as_ref().is_some_and(|(watched, _)| Arc::ptr_eq(watched, &slot)) {
            self.forget_first();
            let waiter = slot.new_watcher();
            self.first = Some((slot, waiter));
        }
        let (slot, waiter) = self.first.as_ref()?;
        match slot.poll_granted(*waiter, cx) {
            Poll::Pending => None,
            Poll::Ready(true) => Some(id),
            Poll::Ready(false) => {
                self.joint.with(&self.resource, |entry| {
                    let seeker = entry.seekers.iter_mut().find(|seeker| seeker.id == id);
                    seeker.into_iter().for_each(|seeker| seeker.is_refused = true);
                });
                None
            }
        }
    }

    /// Makes a grant the lock that the owner holds. `None` if the owner holds one, or if the grant
    /// was too late.
    fn take<G>(
        &self,
        granted: LockId,
        take: &mut impl FnMut(LockId, &Slot, Instant) -> Option<(Resumption, G)>,
    ) -> Option<Joined<G>> {
        let mut woken = Woken::default();
        let took = self.joint.with(&self.resource, |entry| {
            // A lost lock with a handle is the owner's until that has gone.
            let place = entry.position(granted).filter(|_| !entry.is_held())?;
            let seeker = entry.seekers.get(place)?;
            let (proof, grant) = take(granted, &seeker.slot, seeker.since)?;
            let Seeker { id, slot, terms, is_adopted, .. } = entry.seekers.remove(place);
            if id != self.id && !is_adopted {
                // The first handle is for the caller whose request was granted.
                let _ = slot.handles.join();
            }
            slot.wake_all(&mut woken);
            entry.seekers.iter().for_each(|seeker| seeker.slot.wake_all(&mut woken));
            let held = Held { id, slot, proof, terms };
            entry.held = Some(held.clone());
            Some(Joined::Took { held, grant, was_adopted: is_adopted })
        });
        woken.wake();
        took
    }

    fn forget_first(&mut self) {
        if let Some((slot, waiter)) = self.first.take() {
            slot.forget(waiter);
        }
    }

    /// The request has ended, as [`Waiting::poll`] said.
    pub(in crate::front) fn end(&mut self) -> Left {
        self.forget_first();
        self.slot.forget(Waiter::Holder);
        self.joint.with(&self.resource, |entry| {
            let own = entry.position(self.id).map(|place| entry.seekers.remove(place).id);
            let is_needed = !entry.is_held() && entry.seekers.iter().any(|seeker| !seeker.is_adopted);
            let adopted = if is_needed { Vec::new() } else { entry.take_adopted() };
            Left { own, adopted, held: None }
        })
    }

    /// The caller has gone. Its request goes on for the owner's other requests, if its grant would
    /// have what they ask for.
    pub(in crate::front) fn leave(&mut self) -> Left {
        self.forget_first();
        self.slot.forget(Waiter::Holder);
        let mut woken = Woken::default();
        let left = self.joint.with(&self.resource, |entry| {
            let held = entry.held_by(self.id).cloned();
            let mut left = Left { own: None, adopted: Vec::new(), held };
            let Some(place) = entry.position(self.id) else { return left };
            let mut seeker = entry.seekers.remove(place);
            let others = || entry.seekers.iter().filter(|seeker| !seeker.is_adopted);
            let has_others = others().next().is_some();
            if has_others && others().all(|other| seeker.terms.lack(&other.terms, true).is_none()) {
                seeker.is_adopted = true;
                entry.seekers.insert(place, seeker);
                return left;
            }
            left.own = Some(seeker.id);
            // Others may wait for this one.
            seeker.slot.wake_all(&mut woken);
            if !has_others {
                left.adopted = entry.take_adopted();
            }
            left
        });
        woken.wake();
        left
    }
}
