//! An owner's request for a lock, while it is under way.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::extending::Extension;
use super::figures::Figures;
use super::guard::{Guard, Watch};
use super::joint::{Entered, Held, Joined, Joint, Left, Obstacle, Seeker, Terms, Waiting};
use super::observe::{Acquisition, GrantFields};
use super::shared::{Handle, Shared};
use crate::protocol::{Acquire, AcquireError, ExtendError, LossCause};

/// A request of an owner, which may already hold or request the lock.
pub(super) struct Joining {
    joint: Arc<Joint>,
    wanted: Acquire,
    set: Set,
    stage: Stage,
}

/// Which settings the caller has made. The others are those of the lock that the owner holds.
#[derive(Clone, Copy, Default)]
pub(super) struct Set {
    pub(super) ttl: bool,
    pub(super) longest_hold: bool,
}

enum Stage {
    Start,
    Waiting(Waiting, Acquisition),
    /// The owner holds the lock; the request may ask for a longer TTL.
    Found(Guard, Option<Extension>, Account),
    Done,
}

/// How a request that found a held lock is reported to observers.
struct Account {
    seen: Acquisition,
    /// The grant, if this request took it.
    grant: Option<GrantFields>,
    /// Whether the outcome of this request is among the locker's figures.
    is_counted: bool,
}

impl Joining {
    pub(super) fn new(joint: Arc<Joint>, wanted: Acquire, set: Set) -> Self {
        Self { joint, wanted, set, stage: Stage::Start }
    }

    pub(super) fn poll(&mut self, handle: &Handle, cx: &Context<'_>) -> Poll<Result<Guard, AcquireError>> {
        if let Stage::Start = self.stage {
            self.start(handle)?;
        }
        if let Stage::Waiting(..) = self.stage {
            ready!(self.wait(handle, cx))?;
        }
        let Stage::Found(guard, extension, _) = &mut self.stage else { return Poll::Pending };
        let extended = match extension {
            Some(extension) => ready!(extension.poll(guard, cx)).map(Some),
            None => Ok(None),
        };
        let Stage::Found(guard, _, account) = mem::replace(&mut self.stage, Stage::Done) else {
            return Poll::Pending;
        };
        Poll::Ready(match extended {
            Ok(remaining) => {
                if remaining.is_some() {
                    self.joint.extended(&guard.targets, guard.id, self.wanted.ttl);
                }
                account.granted(&handle.0);
                Ok(guard)
            }
            Err(ExtendError::Lost(cause)) => Err(account.refused(&handle.0, lost(cause))),
            Err(error) => Err(account.refused(&handle.0, AcquireError::NotExtended(Box::new(error)))),
        })
    }

    /// Finds a lock that the owner holds, or starts to seek one.
    fn start(&mut self, handle: &Handle) -> Result<(), AcquireError> {
        let Self { joint, wanted, .. } = self;
        // A subscriber may be called, which must not happen under a mutex.
        let seen = Acquisition::begin(wanted);
        let (shared, targets) = (&handle.0, &wanted.targets);
        let mut begun = None;
        let entered = joint.enter(targets, || {
            let (id, slot, since) = shared.seek(wanted)?;
            let seeker = Seeker::new(id, &slot, since, wanted);
            begun = Some((id, slot));
            Ok(seeker)
        });
        self.stage = Stage::Done;
        let account = |seen| Account { seen, grant: None, is_counted: false };
        match entered {
            Err(error) => return Err(account(seen).refused(shared, error)),
            Ok(Entered::Found(held)) => return self.found(handle, held, account(seen)),
            Ok(Entered::Blocked(obstacle)) => {
                return Err(account(seen).refused(shared, obstacle.into_error(handle)));
            }
            Ok(Entered::Begun) => {}
        }
        shared.outbox.flush(&**shared);
        self.stage = begun.map_or(Stage::Done, |(id, slot)| {
            let waiting = Waiting::new(Arc::clone(&self.joint), self.wanted.targets.clone(), id, slot);
            Stage::Waiting(waiting, seen)
        });
        Ok(())
    }

    fn wait(&mut self, handle: &Handle, cx: &Context<'_>) -> Poll<Result<(), AcquireError>> {
        let Stage::Waiting(waiting, _) = &mut self.stage else { return Poll::Pending };
        let shared = &handle.0;
        let mut is_late = false;
        let joined = waiting.poll(cx, |id, slot, since| {
            let taken = shared.take(id, slot, since);
            is_late |= taken.is_none();
            taken.map(|taken| (taken.proof, taken.grant))
        });
        if is_late {
            // The lock is still sought.
            shared.outbox.flush(&**shared);
        }
        let joined = ready!(joined);
        let left = waiting.end();
        let own = waiting.id();
        let Stage::Waiting(_, mut seen) = mem::replace(&mut self.stage, Stage::Done) else {
            return Poll::Pending;
        };
        Poll::Ready(match joined {
            Joined::Refused(error) => {
                seen.refused(&error);
                left.cancel(shared, Figures::driver_ended);
                Err(error)
            }
            Joined::Blocked(obstacle) => {
                left.cancel(shared, Figures::joined);
                let account = Account { seen, grant: None, is_counted: false };
                Err(account.refused(shared, obstacle.into_error(handle)))
            }
            Joined::Took { held, grant, was_adopted } => {
                // If the granted request's own caller has gone, the grant counts for this caller,
                // and this caller's own request counts as given up instead.
                left.cancel(shared, if was_adopted { Figures::abandoned } else { Figures::joined });
                let is_counted = was_adopted || held.id == own;
                self.found(handle, held, Account { seen, grant: Some(grant), is_counted })
            }
            Joined::Found(held) => {
                left.cancel(shared, Figures::joined);
                let is_counted = held.id == own;
                self.found(handle, held, Account { seen, grant: None, is_counted })
            }
        })
    }

    /// The owner holds the lock, and a handle has been counted for this request.
    fn found(&mut self, handle: &Handle, held: Held, account: Account) -> Result<(), AcquireError> {
        let asked = Terms::of(&self.wanted);
        let missing = held.lack(&asked, self.set.longest_hold);
        let is_longer = self.set.ttl && asked.ttl > held.terms.ttl;
        let guard = held.into_guard(handle);
        if let Err(cause) = guard.check() {
            return Err(account.refused(&handle.0, lost(cause)));
        }
        if let Some(missing) = missing {
            let resource = self.wanted.targets.first().clone();
            return Err(account.refused(&handle.0, AcquireError::HeldWithout { resource, missing }));
        }
        let extension = is_longer.then_some(Extension::Start(Ok(asked.ttl)));
        self.stage = Stage::Found(guard, extension, account);
        Ok(())
    }

    /// The caller has gone.
    pub(super) fn leave(&mut self, handle: &Handle) {
        let stage = mem::replace(&mut self.stage, Stage::Done);
        if handle.0.is_forked() {
            return;
        }
        match stage {
            Stage::Waiting(mut waiting, _) => {
                let mut left = waiting.leave();
                let held = left.held.take();
                left.cancel(&handle.0, Figures::abandoned);
                drop(held.map(|held| held.into_guard(handle)));
            }
            Stage::Found(guard, extension, account) => {
                extension.iter().for_each(|extension| extension.forget(&guard));
                if !account.is_counted {
                    handle.0.engine().figures.gave_up();
                }
            }
            Stage::Start | Stage::Done => {}
        }
    }
}

impl Account {
    fn granted(mut self, shared: &Shared) {
        match &self.grant {
            Some(grant) => self.seen.granted(grant),
            None => self.seen.reentered(),
        }
        if !self.is_counted {
            shared.engine().figures.reentered();
        }
    }

    fn refused(mut self, shared: &Shared, error: AcquireError) -> AcquireError {
        self.seen.refused(&error);
        if !self.is_counted {
            shared.engine().figures.refused_at_once(&error);
        }
        error
    }
}

impl Held {
    /// A guard for the handle that was counted for it.
    fn into_guard(self, handle: &Handle) -> Guard {
        Guard::new(handle.clone(), self.id, self.slot, self.targets, self.proof)
    }
}

impl Obstacle {
    /// The error with which the owner's request ends.
    fn into_error(self, handle: &Handle) -> AcquireError {
        let Self { slot, resource } = self;
        match (Watch { handle: handle.clone(), slot }).check() {
            Ok(()) => AcquireError::WouldDeadlock { resource },
            Err(cause) => lost(cause),
        }
    }
}

impl Left {
    fn cancel(self, shared: &Shared, count: impl FnOnce(&mut Figures)) {
        if let Some(own) = self.own {
            shared.cancel(own, count);
        }
        for seeker in self.adopted {
            shared.cancel(seeker.id(), Figures::abandoned);
        }
    }
}

fn lost(cause: LossCause) -> AcquireError {
    match cause {
        LossCause::DriverEnded => AcquireError::DriverEnded,
        LossCause::Forked => AcquireError::Forked,
        cause => AcquireError::Lost(cause),
    }
}
