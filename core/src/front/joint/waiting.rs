//! One request of an owner: it waits for its own grant and for that of the owner's first request.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Held, Joint, Obstacle, Seeker};
use crate::front::slot::{Slot, Waiter};
use crate::front::sync::Woken;
use crate::protocol::{AcquireError, LockId, Resumption, Targets};
use crate::time::Instant;

/// One request of an owner while it waits.
pub(in crate::front) struct Waiting {
    joint: Arc<Joint>,
    targets: Targets,
    id: LockId,
    slot: Arc<Slot>,
    /// The targets of the grant that this request took.
    took: Option<Targets>,
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
    /// The owner holds a part of the requested targets by another lock.
    Blocked(Obstacle),
    Refused(AcquireError),
}

/// What a request leaves behind, for the caller to cancel.
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
    Blocked(Obstacle),
    /// The owner's first request whose grant would serve this one, if that is another one.
    Behind(Option<(LockId, Arc<Slot>)>),
}

impl Waiting {
    /// A request that has [entered](Joint::enter) and waits.
    pub(in crate::front) fn new(joint: Arc<Joint>, targets: Targets, id: LockId, slot: Arc<Slot>) -> Self {
        Self { joint, targets, id, slot, took: None, first: None }
    }

    pub(in crate::front) fn id(&self) -> LockId {
        self.id
    }

    /// `take` makes a grant a held lock, or returns `None` if it came too late and the lock is
    /// still sought.
    pub(in crate::front) fn poll<G>(
        &mut self,
        cx: &Context<'_>,
        mut take: impl FnMut(LockId, &Slot, Instant) -> Option<(Resumption, G)>,
    ) -> Poll<Joined<G>> {
        let mut registered = None;
        loop {
            let first = match self.look() {
                Look::Held(held) => return Poll::Ready(Joined::Found(held)),
                Look::Blocked(obstacle) => return Poll::Ready(Joined::Blocked(obstacle)),
                Look::Behind(first) => first,
            };
            let first_id = first.as_ref().map(|(id, _)| *id);
            // This second look finds a change between the first one and the registration.
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
        self.joint.with(|entries| {
            if let Some(held) = entries.held_by(self.id, &self.targets) {
                return Look::Held(held.clone());
            }
            match entries.join(&self.targets) {
                Ok(Some(held)) => Look::Held(held),
                Ok(None) => Look::Behind(entries.first_for(self.id, &self.targets)),
                Err(obstacle) => Look::Blocked(obstacle),
            }
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
                self.joint.with(|entries| {
                    entries.seeker(id).into_iter().for_each(|seeker| seeker.is_refused = true);
                });
                None
            }
        }
    }

    /// Makes a grant a lock that the owner holds. `None` if the owner holds a part of it, or if the
    /// grant was too late.
    fn take<G>(
        &mut self,
        granted: LockId,
        take: &mut impl FnMut(LockId, &Slot, Instant) -> Option<(Resumption, G)>,
    ) -> Option<Joined<G>> {
        let mut woken = Woken::default();
        let took = self.joint.with(|entries| {
            let Seeker { slot, since, targets, .. } = entries.seeker(granted)?;
            let (slot, since, targets) = (Arc::clone(slot), *since, targets.clone());
            // A lost lock remains the owner's until its last handle has gone. That may be before
            // the next look, which then needs this grant.
            if entries.holds_any(&targets) {
                slot.put_grant_back(&mut woken);
                return None;
            }
            let (proof, grant) = take(granted, &slot, since)?;
            let Seeker { id, terms, is_adopted, .. } = entries.remove(granted)?;
            if id != self.id && !is_adopted {
                // The lock's first handle is for the caller whose request was granted. This caller
                // needs another one.
                let _ = slot.handles.join(false);
            }
            slot.wake_all(&mut woken);
            entries.about(&targets).for_each(|seeker| seeker.slot.wake_all(&mut woken));
            let held = Held { id, slot, proof, targets, terms };
            entries.hold(&held);
            Some(Joined::Took { held, grant, was_adopted: is_adopted })
        });
        woken.wake();
        if let Some(Joined::Took { held, .. }) = &took {
            self.took = Some(held.targets.clone());
        }
        took
    }

    fn forget_first(&mut self) {
        if let Some((slot, waiter)) = self.first.take() {
            slot.forget(waiter);
        }
    }

    /// Removes the request, once [`Waiting::poll`] has returned how it ended.
    pub(in crate::front) fn end(&mut self) -> Left {
        self.forget_first();
        self.slot.forget(Waiter::Holder);
        let mut woken = Woken::default();
        let left = self.joint.with(|entries| {
            let own = entries.remove(self.id);
            // Others may wait for this one.
            own.iter().for_each(|seeker| seeker.slot.wake_all(&mut woken));
            let adopted = entries.take_needless(self.took.as_ref().unwrap_or(&self.targets));
            Left { own: own.map(|seeker| seeker.id), adopted, held: None }
        });
        woken.wake();
        left
    }

    /// The caller has gone. Its request is kept for the owner's other requests, if its grant would
    /// give them what they ask for.
    pub(in crate::front) fn leave(&mut self) -> Left {
        self.forget_first();
        self.slot.forget(Waiter::Holder);
        let mut woken = Woken::default();
        let left = self.joint.with(|entries| {
            let held = entries.held_by(self.id, &self.targets).cloned();
            let mut left = Left { own: None, adopted: Vec::new(), held };
            if entries.adopt(self.id) {
                return left;
            }
            let own = entries.remove(self.id);
            // Others may wait for this one.
            own.iter().for_each(|seeker| seeker.slot.wake_all(&mut woken));
            left.own = own.map(|seeker| seeker.id);
            left.adopted = entries.take_needless(&self.targets);
            left
        });
        woken.wake();
        left
    }
}
