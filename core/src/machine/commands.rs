//! The commands of callers.

use super::Machine;
use super::locks::NESTED_AFTER;
use super::table::{Place, Slot, Task};
use crate::bootstrap::Bootstrap;
use crate::lock::{Attempt, Effects, Lock};
use crate::protocol::{
    Acquire, AcquireError, BootstrapError, ConfigError, Entropy, EntropyFailed, ExtendError, ExtensionId,
    LockId, LossCause, Resumption, Targets, Token, TooManyLocks, Ttl,
};
use crate::time::Instant;
use crate::waiting::{Bid, Entry};

impl<E: Entropy> Machine<E> {
    /// Seeks a lock. It ends with [`Event::Granted`](super::Event::Granted) or
    /// [`Event::NotAcquired`](super::Event::NotAcquired).
    ///
    /// If another lock of this machine holds or seeks the resource, the new one waits in the queue
    /// behind it, and asks no master before it comes to the front. When the lock in front ends, the
    /// next one's request follows its releases in the same write.
    ///
    /// # Errors
    /// [`AcquireError::Invalid`], [`AcquireError::TooManyLocks`] and [`AcquireError::NoEntropy`].
    /// Nothing was sent.
    pub fn acquire(&mut self, wanted: &Acquire, now: Instant) -> Result<LockId, AcquireError> {
        self.config.check_ttl(wanted.ttl)?;
        if wanted.fenced {
            self.config.check_fenced()?;
        }
        if wanted.fair && wanted.targets.as_one().is_none() {
            return Err(ConfigError::FairOfSeveral.into());
        }
        let is_as_handed = |resumption: Resumption| {
            let permits = wanted.targets.as_permit().map_or(0, |(_, _, take)| take.into());
            resumption.of == wanted.targets.digest() && resumption.seats.count() == permits
        };
        if wanted.resumption.is_some_and(|resumption| !is_as_handed(resumption)) {
            return Err(ConfigError::ResumedAsAnother.into());
        }
        self.check_room()?;
        let id = self.locks.next_id();
        if let Some(resumption) = wanted.resumption {
            let lock = Lock::resumed(id, wanted, resumption, &mut effects!(self, now));
            self.locks.insert(Slot::new(Task::Lock(lock), Place::Outside(None)));
        } else {
            self.enter(id, wanted, now)?;
        }
        self.changed(id, false, now);
        self.settle(now);
        Ok(id)
    }

    /// Puts a new lock into its queue, or has it ask if it need not wait.
    fn enter(&mut self, id: LockId, wanted: &Acquire, now: Instant) -> Result<(), EntropyFailed> {
        let locks = &self.locks;
        let is_taken = |id| locks.get(id).is_some_and(Slot::is_taken);
        let entry = self.contenders.enter(wanted, id, is_taken, &mut self.jitter, now);
        self.locks.insert(Slot::new(Task::Lock(Lock::queued(id, wanted, now)), Place::Gone));
        let Some(Slot { task: Task::Lock(lock), place, .. }) = self.locks.get_mut(id) else { return Ok(()) };
        let effects = &mut effects!(self, now);
        let begun = match entry {
            Entry::Outside => {
                *place = Place::Outside(None);
                lock.attempt(Attempt::default(), effects)
            }
            Entry::Front(start) => {
                let start = if lock.queues_up(effects) { start.of_queue() } else { start };
                let mut bid = Bid::for_start(start, || self.contenders.lets_pass(&wanted.targets), now);
                let begun = match &mut bid {
                    Some(bid) => bid.begin(start, lock, effects),
                    None => lock.attempt(Attempt::default(), effects),
                };
                *place = Place::Front(bid);
                begun
            }
            Entry::Behind(places) => {
                *place = Place::Behind(places, Some(now + NESTED_AFTER));
                Ok(())
            }
            Entry::Refused { others } => {
                lock.give_up_behind(others, effects);
                Ok(())
            }
        };
        if begun.is_err() {
            if matches!(place, Place::Front(_)) {
                self.contenders.leave_front(&wanted.targets, id);
            }
            self.locks.remove(id);
        }
        begun
    }

    /// Returns until when a granted lock is valid, at the moment in which the caller takes it.
    ///
    /// `None` if too little validity is left to rely on: then the lock is released, but still
    /// sought within the caller's limits, and another [`Event::Granted`](super::Event::Granted) or
    /// [`Event::NotAcquired`](super::Event::NotAcquired) follows. A lock that the caller has not
    /// taken is not lost when its validity ends, but still sought.
    pub fn take(&mut self, lock: LockId, now: Instant) -> Option<Instant> {
        let mut valid_until = None;
        self.input(lock, now, |lock, effects| {
            let (until, report) = lock.take(effects);
            valid_until = until;
            report
        });
        self.admit_writers(lock, now);
        self.settle(now);
        valid_until
    }

    /// Asks for a lock to be valid for `ttl` from now. It ends with
    /// [`Event::Extended`](super::Event::Extended).
    ///
    /// # Errors
    /// [`ExtendError::Invalid`], [`ExtendError::TooManyExtensions`], and [`ExtendError::Lost`] if
    /// the lock is not held: one that the machine does not know counts as released. Nothing was
    /// sent.
    pub fn extend(&mut self, lock: LockId, ttl: Ttl, now: Instant) -> Result<ExtensionId, ExtendError> {
        self.config.check_ttl(ttl)?;
        self.extensions += 1;
        let id = ExtensionId(self.extensions);
        let started = self.with_lock(lock, now, |lock, effects| {
            lock.look_at_clock(effects);
            lock.extend(id, ttl, effects)
        });
        self.settle(now);
        started.unwrap_or(Err(ExtendError::Lost(LossCause::Released))).map(|()| id)
    }

    /// Ends the renewal of a lock; it stays valid for what remains.
    pub fn stop_renewal(&mut self, lock: LockId, now: Instant) {
        self.with_lock(lock, now, |lock, _| lock.stop_renewal());
        self.settle(now);
    }

    /// Releases a lock. It ends with [`Event::Released`](super::Event::Released); a lock that is
    /// still sought is cancelled instead, without an event.
    pub fn release(&mut self, lock: LockId, now: Instant) {
        self.with_lock(lock, now, |lock, effects| {
            lock.look_at_clock(effects);
            lock.release(effects);
        });
        self.settle(now);
    }

    /// Turns an exclusive lock into a reader's. Returns whether it is held. Its token and number
    /// stay, and it is extended by its TTL.
    pub fn downgrade(&mut self, lock: LockId, now: Instant) -> bool {
        let done = self.with_lock(lock, now, |lock, effects| {
            lock.look_at_clock(effects);
            lock.downgrade(effects)
        });
        if done == Some(true) {
            self.shares(lock, now);
        }
        self.settle(now);
        done == Some(true)
    }

    /// Leaves a held lock to the process that gets its token: its keys stay, its renewal ends, and
    /// this machine forgets the lock without an event. `None` if it is no longer held.
    pub fn hand_over(&mut self, lock: LockId, now: Instant) -> Option<Resumption> {
        let handed = self.with_lock(lock, now, |lock, effects| {
            lock.look_at_clock(effects);
            lock.hand_over(effects)
        });
        self.settle(now);
        handed.flatten()
    }

    /// Releases a lock that was handed over, by its token. It ends with
    /// [`Event::Released`](super::Event::Released).
    ///
    /// # Errors
    /// [`TooManyLocks`], and nothing was sent.
    pub fn release_token(
        &mut self,
        targets: &Targets,
        token: Token,
        now: Instant,
    ) -> Result<LockId, TooManyLocks> {
        self.check_room()?;
        let id = self.locks.next_id();
        let lock = Lock::released(id, targets, token, None, &mut effects!(self, now));
        self.locks.insert(Slot::new(Task::Lock(lock), Place::Outside(None)));
        self.changed(id, false, now);
        self.settle(now);
        Ok(id)
    }

    /// Declares to all masters that nothing can be locked yet, so that they vote at once under the
    /// restart guard. It ends with [`Event::Bootstrapped`](super::Event::Bootstrapped). It changes
    /// something only if all masters answer, and either none or all of them vote already.
    ///
    /// # Errors
    /// [`BootstrapError::NoRestartGuard`] and [`BootstrapError::TooManyLocks`], and nothing was
    /// sent.
    pub fn bootstrap(&mut self, now: Instant) -> Result<LockId, BootstrapError> {
        if self.config.fleet.is_none() {
            return Err(BootstrapError::NoRestartGuard);
        }
        self.check_room()?;
        let id = self.locks.next_id();
        let bootstrap = Bootstrap::new(id, &mut effects!(self, now));
        self.locks.insert(Slot::new(Task::Bootstrap(bootstrap), Place::Outside(None)));
        self.settle(now);
        Ok(id)
    }

    pub(super) fn check_room(&self) -> Result<(), TooManyLocks> {
        let limit = self.config.max_locks;
        if self.locks.len() >= limit { Err(TooManyLocks { limit }) } else { Ok(()) }
    }

    /// Gives a lock up, sought or held, without an event: its keys are released wherever they may
    /// be.
    pub fn cancel(&mut self, lock: LockId, now: Instant) {
        self.with_lock(lock, now, |lock, effects| lock.cancel(effects));
        self.settle(now);
    }
}
