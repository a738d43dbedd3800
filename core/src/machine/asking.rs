//! Commands about locks of any holder: ask the masters about them, or have their keys deleted.

use super::Machine;
use super::table::{Place, Slot, Task};
use crate::inspection::{Clearance, Inquiry};
use crate::lock::{Effects, Lock};
use crate::protocol::{Entropy, LockId, MasterId, Resource, Said, Targets, Token, TooManyLocks};
use crate::time::Instant;

impl<E: Entropy> Machine<E> {
    /// Asks all masters about a lock, without changing anything there. It ends with
    /// [`Event::Inspected`](super::Event::Inspected) when each master has answered or failed.
    ///
    /// Keys with the token of a lock that this machine holds, or with `token`, are reported as
    /// ours.
    ///
    /// # Errors
    /// [`TooManyLocks`], and nothing was sent.
    pub fn inspect(
        &mut self,
        resource: &Resource,
        token: Option<Token>,
        now: Instant,
    ) -> Result<LockId, TooManyLocks> {
        self.check_room()?;
        let id = self.locks.next_id();
        let tokens: Vec<_> = self.tokens_of(resource).chain(token).collect();
        let inquiry = Inquiry::of_lock(id, resource, &tokens, &mut effects!(self, now));
        self.locks.insert(Slot::new(Task::Inquiry(inquiry), Place::Outside(None)));
        self.settle(now);
        Ok(id)
    }

    /// Asks all masters which of a semaphore's permits are held, without changing anything there.
    /// It ends with [`Event::SemaphoreInspected`](super::Event::SemaphoreInspected) when each
    /// master has answered or failed. `permit` is any of the permits; [`inspect`](Self::inspect)
    /// says which keys are ours.
    ///
    /// # Errors
    /// [`TooManyLocks`], and nothing was sent.
    pub fn inspect_permits(
        &mut self,
        permit: &Targets,
        token: Option<Token>,
        now: Instant,
    ) -> Result<LockId, TooManyLocks> {
        self.check_room()?;
        let id = self.locks.next_id();
        let (name, permits, _) = permit.as_permit().unwrap_or((permit.first(), 0, 0));
        let tokens: Vec<_> = self.tokens_of(name).chain(token).collect();
        let inquiry = Inquiry::of_semaphore(id, name, permits, &tokens, &mut effects!(self, now));
        self.locks.insert(Slot::new(Task::Inquiry(inquiry), Place::Outside(None)));
        self.settle(now);
        Ok(id)
    }

    /// The tokens of held locks with this target.
    fn tokens_of(&self, resource: &Resource) -> impl Iterator<Item = Token> {
        let held = self.locks.iter().filter(|slot| slot.is_held()).filter_map(|slot| slot.task.as_lock());
        let ours = held.filter(move |lock| lock.targets().resources().any(|target| target == resource));
        ours.filter_map(Lock::token)
    }

    /// Makes all masters delete a lock's key, even that of another holder or of readers. It ends
    /// with [`Event::ForceReleased`](super::Event::ForceReleased) when each master has answered or
    /// failed.
    ///
    /// # Errors
    /// [`TooManyLocks`], and nothing was sent.
    pub fn force_release(&mut self, resource: &Resource, now: Instant) -> Result<LockId, TooManyLocks> {
        self.check_room()?;
        let id = self.locks.next_id();
        let clearance = Clearance::new(id, resource, &mut effects!(self, now));
        self.locks.insert(Slot::new(Task::Clearance(clearance), Place::Outside(None)));
        self.settle(now);
        Ok(id)
    }

    /// A master has answered an inspection.
    pub(super) fn told(&mut self, master: MasterId, id: LockId, said: Box<Said>, now: Instant) {
        if let Some(Slot { task: Task::Inquiry(inquiry), .. }) = self.locks.get_mut(id) {
            inquiry.told(master, said, &mut effects!(self, now));
        }
    }
}
