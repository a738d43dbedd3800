//! What callers ask of a machine.

use super::Machine;
use super::line::{Place, Standing};
use super::slot::Slot;
use super::task::Task;
use crate::bootstrap::Bootstrap;
use crate::lock::{Effects, Lock, Turn};
use crate::protocol::{
    Acquire, BootstrapError, Entropy, ExtensionId, LockId, RequestError, Resource, Resumption, Token, Ttl,
};
use crate::time::Instant;

impl<E: Entropy> Machine<E> {
    /// Seeks a lock. It ends with [`Event::Granted`](super::Event::Granted) or [`Event::NotAcquired`](super::Event::NotAcquired).
    ///
    /// Who asks for a resource that another lock of this machine holds or seeks stands in line behind it, and no master is asked before it is his
    /// turn. When the lock in front lets go, the next one's request follows its releases in the same write.
    ///
    /// # Errors
    /// [`RequestError`], and nothing was sent.
    pub fn acquire(&mut self, wanted: &Acquire, now: Instant) -> Result<LockId, RequestError> {
        self.config.check_ttl(wanted.ttl)?;
        self.check_room()?;
        let id = self.locks.next_id();
        let standing = self.stand_in_line(id, wanted, now);
        let lock = match standing {
            Standing::Outside => Lock::new(id, wanted, Turn::AT_ONCE, now, &mut effects!(self)),
            Standing::Ahead(turn @ Turn { pause: None, .. }) => {
                Lock::new(id, wanted, turn, now, &mut effects!(self))
            }
            Standing::Ahead(_) | Standing::Behind(_) | Standing::Refused { .. } => {
                Ok(Lock::queued(id, wanted, now))
            }
        };
        let place = standing.place();
        let lock = lock.inspect_err(|_| {
            if place != Place::Outside {
                self.lines.leave_front(&wanted.resource);
            }
        })?;
        self.locks.insert(Slot::new(Task::Lock(lock), place));
        match standing {
            Standing::Ahead(turn @ Turn { pause: Some(_), .. }) => {
                self.with_lock(id, |lock, effects| lock.begin(turn, now, effects));
            }
            Standing::Refused { others } => {
                self.with_lock(id, |lock, effects| lock.give_up_in_line(None, others, effects));
            }
            _ => self.task_changed(id, false),
        }
        self.settle(now);
        Ok(id)
    }

    /// Tells at the moment in which the caller takes a granted lock until when it is valid.
    ///
    /// `None` if so little is left that nobody could rely on it: then it is cleared away and sought further within the caller's
    /// limits, and another [`Event::Granted`](super::Event::Granted) or [`Event::NotAcquired`](super::Event::NotAcquired) follows. A lock that nobody has taken is not
    /// lost but sought further, too, when its validity ends.
    pub fn hand_over(&mut self, lock: LockId, now: Instant) -> Option<Instant> {
        let valid_until = self.with_lock(lock, |lock, effects| lock.hand_over(now, effects)).flatten();
        self.settle(now);
        valid_until
    }

    /// Asks for a lock to be valid for `ttl` from now. It ends with [`Event::Extended`](super::Event::Extended).
    ///
    /// # Errors
    /// [`RequestError`], and nothing was sent.
    pub fn extend(&mut self, lock: LockId, ttl: Ttl, now: Instant) -> Result<ExtensionId, RequestError> {
        self.config.check_ttl(ttl)?;
        self.extensions += 1;
        let id = ExtensionId(self.extensions);
        let started = self.with_lock(lock, |lock, effects| {
            lock.look_at_clock(now, effects);
            lock.extend(id, ttl, now, effects)
        });
        self.settle(now);
        started.unwrap_or(Err(RequestError::UnknownLock)).map(|()| id)
    }

    /// Ends the renewal of a lock; it stays valid for what remains.
    pub fn stop_renewal(&mut self, lock: LockId, now: Instant) {
        self.with_lock(lock, |lock, _| lock.stop_renewal());
        self.settle(now);
    }

    /// Releases a lock. It ends with [`Event::Released`](super::Event::Released); a lock that is still sought is cancelled instead, without an event.
    pub fn release(&mut self, lock: LockId, now: Instant) {
        self.with_lock(lock, |lock, effects| {
            lock.look_at_clock(now, effects);
            lock.release(effects);
        });
        self.settle(now);
    }

    /// Leaves a held lock to whoever is given its token: its keys stay, its renewal ends, and it is over without an event. `None` if it
    /// is not held any more.
    pub fn hand_on(&mut self, lock: LockId, now: Instant) -> Option<Resumption> {
        let handed = self.with_lock(lock, |lock, effects| {
            lock.look_at_clock(now, effects);
            let resumption = lock.resumption();
            lock.hand_on(effects).then_some(resumption)
        });
        self.settle(now);
        handed.flatten()
    }

    /// Releases a lock that was handed on, by its token. It ends with [`Event::Released`](super::Event::Released).
    ///
    /// # Errors
    /// [`RequestError::TooManyLocks`], and nothing was sent.
    pub fn release_token(
        &mut self,
        resource: &Resource,
        token: Token,
        now: Instant,
    ) -> Result<LockId, RequestError> {
        self.check_room()?;
        let id = self.locks.next_id();
        let lock = Lock::released(id, resource, token, &mut effects!(self));
        self.locks.insert(Slot::new(Task::Lock(lock), Place::Outside));
        self.task_changed(id, false);
        self.settle(now);
        Ok(id)
    }

    /// Tells all masters that nothing can be locked yet, so that they vote at once under the restart guard. It ends with
    /// [`Event::Bootstrapped`](super::Event::Bootstrapped); only if all masters answer, and none has voted yet or all do, is anything changed.
    ///
    /// # Errors
    /// [`BootstrapError::NoRestartGuard`] and [`BootstrapError::Request`], and nothing was sent.
    pub fn bootstrap(&mut self, now: Instant) -> Result<LockId, BootstrapError> {
        if self.config.fleet.is_none() {
            return Err(BootstrapError::NoRestartGuard);
        }
        self.check_room().map_err(BootstrapError::Request)?;
        let id = self.locks.next_id();
        let bootstrap = Bootstrap::new(id, &mut effects!(self));
        self.locks.insert(Slot::new(Task::Bootstrap(bootstrap), Place::Outside));
        self.settle(now);
        Ok(id)
    }

    fn check_room(&self) -> Result<(), RequestError> {
        let limit = self.config.max_locks;
        if self.locks.len() >= limit { Err(RequestError::TooManyLocks { limit }) } else { Ok(()) }
    }

    /// Gives a lock up, sought or held, without an event: its keys are released wherever they may be.
    pub fn cancel(&mut self, lock: LockId, now: Instant) {
        self.with_lock(lock, |lock, effects| lock.cancel(effects));
        self.settle(now);
    }
}
