//! The locker, from which users request locks.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::bootstrap::Bootstrap;
use super::force_releasing::ForceReleasing;
use super::inspecting::Inspecting;
use super::observe::Subject;
use super::owner::Owner;
use super::release::{Release, ReleaseError};
use super::report::Report;
use super::request::Request;
use super::semaphore::Semaphore;
use super::shared::Handle;
use super::sharing::ReadGuard;
use super::slot::Slot;
use crate::endpoint::Endpoint;
use crate::machine::{MasterState, kept_life};
use crate::protocol::{
    Config, ConfigError, Group, LockId, Resumption, SemaphoreInspection, Target, Targets, Token, Unavailable,
};

/// Locks over a set of masters: the entry point, which a transport's `open` returns.
///
/// [`Locker::lock`] and [`Locker::try_lock`] request locks. A locker is cheap to clone; clones
/// share connections and may be used from any thread and task. The connections close when the last
/// clone, guard and future is dropped.
///
/// # Forks
/// A locker works only in the process that opened it. In a forked child of that process every
/// request ends at once with [`AcquireError::Forked`](crate::AcquireError::Forked), guards are not
/// valid, and dropping them releases nothing. The child opens its own locker. `fork` copies memory
/// and sockets, but none of the other threads, so [`Locker::masters`] and [`Locker::report`] must
/// not be called in the child: another thread may have been copied while it held their mutex.
#[derive(Clone)]
pub struct Locker {
    handle: Handle,
    config: Arc<Config>,
}

impl Locker {
    pub(super) fn new(handle: Handle, config: Arc<Config>) -> Self {
        Self { handle, config }
    }

    /// Requests a lock and waits for it for at most 10 s, unless [`Request::timeout`] or
    /// [`ConfigBuilder::timeout`](crate::ConfigBuilder::timeout) sets another limit;
    /// `.timeout(None)` waits for as long as it takes.
    ///
    /// The request does nothing until it is awaited, or [`Request::wait`] is called.
    ///
    /// The default is limited because a call that never returns while masters are down hides the
    /// outage. To wait without a limit, as for a mutex in memory:
    ///
    /// ```
    /// # async fn wait(locker: quorlock_core::front::Locker) -> Result<(), quorlock_core::AcquireError> {
    /// let guard = locker.lock("invoice:42").timeout(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock(&self, resource: impl AsRef<[u8]>) -> Request {
        Request::new(self.handle.clone(), &self.config, self.config.one(resource), None)
    }

    /// Resumes a lock that was handed over ([`Guard::hand_over`](super::Guard::hand_over)) by this
    /// process or another one.
    ///
    /// The request asks the masters once, to extend the lock by the request's TTL. The lock is then
    /// valid as after an extension. Its fencing token, if it has one, stays the same.
    /// [`AcquireError::NotHeld`](crate::AcquireError::NotHeld) means that too few masters have its
    /// token: the lock has ended, or is of another resource. After
    /// [`AcquireError::NoQuorum`](crate::AcquireError::NoQuorum) the lock is unchanged, and may be
    /// resumed again.
    pub fn resume(&self, resource: impl AsRef<[u8]>, lock: Resumption) -> Request {
        Request::new(self.handle.clone(), &self.config, self.config.one(resource), Some(lock))
    }

    /// Releases a lock that was handed over, by its token. The future waits for the masters'
    /// answers and returns whether a quorum still held the lock.
    ///
    /// The token may hold the resource alone, or share it as a reader or in any group: only what
    /// this token holds is released. A mark that the holder left as a waiting writer is not
    /// deleted; it expires within a second of the writer's last attempt.
    ///
    /// The future's errors are [`ReleaseError`]'s.
    ///
    /// # Cancel safety
    /// This call itself requests the release. Dropping the future only forgoes the outcome.
    pub fn release(&self, resource: impl AsRef<[u8]>, token: Token) -> Release {
        self.send_release(self.config.one(resource), token, None)
    }

    /// Releases a lock of several or shared targets that was handed over; `lock` is what
    /// [`hand_over`](super::Guard::hand_over) returned. The future waits for the masters' answers
    /// and returns whether a quorum still held all of it.
    ///
    /// The targets must be those of the lock, shared in the same way; their order does not matter.
    /// Otherwise the future ends with [`ConfigError::ResumedAsAnother`], and nothing is sent. Only
    /// the masters notice another name of one exclusive resource: then it ends with
    /// [`ReleaseError::NotOurs`]. Its other errors are [`ReleaseError`]'s.
    ///
    /// # Cancel safety
    /// This call itself requests the release. Dropping the future only forgoes the outcome.
    pub fn release_all<T: Into<Target>>(
        &self,
        targets: impl IntoIterator<Item = T>,
        lock: Resumption,
    ) -> Release {
        let targets = self.config.targets(targets.into_iter().map(Into::into)).and_then(|targets| {
            if targets.digest() == lock.of { Ok(targets) } else { Err(ConfigError::ResumedAsAnother) }
        });
        self.send_release(targets, lock.token, None)
    }

    /// Releases permits of a semaphore that were handed over.
    pub(super) fn release_permits(&self, permit: &Targets, lock: Resumption) -> Release {
        let is_same = permit.digest() == lock.of && lock.seats.count() > 0;
        let targets =
            if is_same { Ok(permit.at_seats(lock.seats)) } else { Err(ConfigError::ResumedAsAnother) };
        self.send_release(targets, lock.token, None)
    }

    /// Releases a lock that was handed over, but keeps its keys for `remaining` from now: this
    /// locker cannot count from the grant, as [`Guard::release_after`](super::Guard) does.
    ///
    /// A shared lock is not kept: the future ends with [`ReleaseError::NotOurs`], and the lock with
    /// its TTL; use [`Locker::release`] for it. Other errors are [`ReleaseError`]'s.
    ///
    /// # Cancel safety
    /// This call itself requests the release. Dropping the future only forgoes the outcome.
    pub fn release_after(&self, resource: impl AsRef<[u8]>, token: Token, remaining: Duration) -> Release {
        let keeps_for = Some(remaining).filter(|remaining| !remaining.is_zero());
        self.send_release(self.config.one(resource), token, keeps_for)
    }

    fn send_release(
        &self,
        targets: Result<Targets, ConfigError>,
        token: Token,
        keeps_for: Option<Duration>,
    ) -> Release {
        match self.try_send_release(targets, token, keeps_for) {
            Ok((id, slot)) => Release::new(self.handle.clone(), slot, id, None).keeping(keeps_for),
            Err(error) => Release::refused(self.handle.clone(), error),
        }
    }

    fn try_send_release(
        &self,
        targets: Result<Targets, ConfigError>,
        token: Token,
        keeps_for: Option<Duration>,
    ) -> Result<(LockId, Arc<Slot>), ReleaseError> {
        let targets = targets?;
        let life = keeps_for.map(|left| kept_life(&self.config, left)).transpose()?;
        if self.handle.0.is_forked() {
            return Err(ReleaseError::Forked);
        }
        let sent = self.handle.0.begin(Subject::of(&targets), |engine, now| match life {
            Some(life) => engine.machine.release_token_keeping(targets.first(), token, life, now),
            None => engine.machine.release_token(&targets, token, now),
        })?;
        Ok(sent)
    }

    /// Requests a lock with a single attempt: it does not wait for the current holder.
    ///
    /// It never overtakes callers of this process that wait for the lock: while there are any, it
    /// ends with [`HeldByAnother`](crate::AcquireError::HeldByAnother), and nothing is sent.
    ///
    /// If a middlebox has dropped all connections while they were quiet, the attempt reaches no
    /// master. Then it is repeated once, on new connections.
    pub fn try_lock(&self, resource: impl AsRef<[u8]>) -> Request {
        self.lock(resource).attempts(1).timeout(None::<Duration>)
    }

    /// Requests a lock that is shared with other readers. It keeps writers out, and no other
    /// reader.
    ///
    /// A waiting writer keeps new readers out until it has had its turn; the readers that it kept
    /// out often get the lock before the next writer. A reader that is [fenced](Request::fenced)
    /// gets a fencing token that is at least that of every writer before it and below that of every
    /// writer after it.
    pub fn read(&self, resource: impl AsRef<[u8]>) -> Request<ReadGuard> {
        self.share(resource, Group::READERS)
    }

    /// Requests the same exclusive lock as [`Locker::lock`], for a resource that others read. Any
    /// other client of the resource respects it. [`Guard::downgrade`](super::Guard::downgrade)
    /// turns it into a reader.
    pub fn write(&self, resource: impl AsRef<[u8]>) -> Request {
        self.lock(resource)
    }

    /// Requests a lock that is shared within this group only: it keeps out other groups, readers
    /// and writers.
    pub fn share(&self, resource: impl AsRef<[u8]>, group: Group) -> Request<ReadGuard> {
        let targets = self.config.targets([Target::share(resource, group)]);
        Request::new(self.handle.clone(), &self.config, targets, None)
    }

    /// Requests permits of a semaphore.
    pub(super) fn permit<G>(&self, targets: Result<Targets, ConfigError>) -> Request<G> {
        Request::new(self.handle.clone(), &self.config, targets, None)
    }

    /// Returns the semaphore of this name with this number of permits: at most that many holders
    /// are let in at once. Nothing is sent before a permit is requested.
    ///
    /// A semaphore is independent of a lock of the same name. Clients should agree on the number.
    /// If they do not, the largest number that any of them names is the limit, and a lower number
    /// takes effect as the permits above it are released.
    ///
    /// # Errors
    /// The errors of [`Config::resource`], and [`ConfigError::UnusablePermits`].
    pub fn semaphore(&self, name: impl AsRef<[u8]>, permits: u32) -> Result<Semaphore, ConfigError> {
        let targets = self.config.permits(name, permits)?;
        Ok(Semaphore::new(self.clone(), targets))
    }

    /// Requests all these targets under one lock: all of them are held, or none.
    ///
    /// One request asks each master for all of them, so that no two locks can wait for each other,
    /// whatever the order of their names. The guard has one validity, and one fencing token if the
    /// request is [fenced](Request::fenced): it is larger than every earlier one of *each* target.
    ///
    /// A target of text or bytes is locked as by [`Locker::lock`]; [`Target::read`] and
    /// [`Target::share`] share it with others. A name that is given twice counts once.
    ///
    /// The limits are those of [`Targets`](crate::Targets), and are checked before anything is
    /// sent: the request then ends with [`AcquireError::Invalid`](crate::AcquireError::Invalid). A
    /// lock of many targets needs all of them free at one moment, and may wait long while others
    /// take them one by one.
    pub fn lock_all<T: Into<Target>>(&self, targets: impl IntoIterator<Item = T>) -> Request {
        let targets = self.config.targets(targets.into_iter().map(Into::into));
        Request::new(self.handle.clone(), &self.config, targets, None)
    }

    /// Returns a new owner of locks, for reentrancy: it gets a lock that it holds again at once.
    pub fn owner(&self) -> Owner {
        Owner::new(self.clone())
    }

    /// Declares to all masters that nothing can be locked yet, so that they vote at once instead of
    /// after the restart guard's longest TTL. It is for the first use of a new set of masters.
    ///
    /// Call it only if nothing is locked. All masters must answer. If some of them vote already and
    /// others do not, nothing is changed, because locks may be held. If all vote already, there is
    /// nothing to do.
    ///
    /// The future's errors are [`BootstrapError`](crate::BootstrapError)'s.
    pub fn bootstrap(&self) -> Bootstrap {
        Bootstrap::new(self.handle.clone())
    }

    /// Asks all masters about a lock: whether it has one holder, is shared or is free, on how many
    /// masters and for how long, with each master's answer. It changes nothing.
    ///
    /// For a shared lock the answer also has the number of holders, their group, when the last one
    /// ends, and whether a writer waits. [`Semaphore::inspect`] asks about permits.
    ///
    /// It is for people, for tests and for metrics. To do something that needs the lock, take it:
    /// the answer may be outdated when it is read.
    ///
    /// A key with the token of a guard of this locker or its clones is reported as ours
    /// ([`Inspection::is_ours`](crate::Inspection::is_ours)); [`Inspecting::token`] adds another
    /// token. Tokens are never returned: letters and fingerprints distinguish the holders. The
    /// request waits for each master's answer, within the configuration's timeouts; it never waits
    /// for a holder. It also sees keys that other clients set.
    ///
    /// ```
    /// # async fn look(locker: quorlock_core::front::Locker) -> Result<(), quorlock_core::InspectError> {
    /// let seen = locker.inspect("invoice:42").await?;
    /// println!("{}: {seen}", seen.resource());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The future's errors are [`InspectError`](crate::InspectError)'s. Masters that do not answer
    /// are no error.
    pub fn inspect(&self, resource: impl AsRef<[u8]>) -> Inspecting {
        Inspecting::of_lock(self.handle.clone(), self.config.resource(resource))
    }

    /// Asks all masters about a semaphore's permits.
    pub(super) fn inspect_permits(&self, permit: Targets) -> Inspecting<SemaphoreInspection> {
        Inspecting::of_permits(self.handle.clone(), permit)
    }

    /// Deletes the keys of one of a semaphore's permits.
    pub(super) fn force_release_permit(&self, permit: &Targets, index: u32) -> ForceReleasing {
        let most = Targets::MAX_PERMITS.into();
        let seat = if index < most {
            Ok(permit.first().seat(index))
        } else {
            Err(ConfigError::UnusablePermits { permits: index.saturating_add(1) })
        };
        ForceReleasing::new(self.handle.clone(), seat)
    }

    /// Deletes a lock's keys on all masters, whatever its holder: for a lock with a long TTL whose
    /// holder is known to be dead. If several holders share it, all of them lose it.
    /// [`Semaphore::force_release`] deletes one permit.
    ///
    /// The holder is not notified. It learns of the loss with its next extension. Until then it may
    /// act as if it held the lock, while another client already holds it. Only
    /// [fencing](Request::fenced) keeps it out of what the lock protects.
    ///
    /// Each master first names the holder of the key, and then deletes that holder's key. So a
    /// request that is executed late deletes no later holder's key. A master whose key has another
    /// holder by then is asked again, at most eight times
    /// ([`Deletion::Contended`](crate::Deletion::Contended)). A key that is not a string is no
    /// lock, and is never deleted. Fencing counters stay.
    ///
    /// The future's errors are [`ForceReleaseError`](crate::ForceReleaseError)'s: `Ok` means that a
    /// quorum of masters no longer has a key.
    pub fn force_release(&self, resource: impl AsRef<[u8]>) -> ForceReleasing {
        ForceReleasing::new(self.handle.clone(), self.config.resource(resource))
    }

    /// Runs any future on the calling thread and returns its output. The thread waits as the
    /// transport does.
    ///
    /// It is for many locks at once on one thread. With the blocking transport the thread serves
    /// the sockets itself whenever the future waits, so that no other thread is involved between a
    /// request and its answer. If the future is an executor of several tasks, the requests of all
    /// of them go out in one write for each master.
    ///
    /// Returns `None` if the transport's [`Host`](super::Host) stops waiting before the future is
    /// ready, which this project's transports never do, or if this process is a forked child and
    /// the future is not ready at once.
    ///
    /// # Panics
    /// With quorlock-tokio, in async code: it would block a thread of the runtime. Await the future
    /// there, or wait in `spawn_blocking`.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> Option<F::Output> {
        self.handle.wait(pin!(future))
    }

    /// Logs in again on all connections, with the present password files and
    /// [credentials](crate::Credentials). Call it to use a new user's permissions, or before a
    /// token expires if the server closes connections whose token has expired. Locks, waiters and
    /// requests under way are not disturbed.
    ///
    /// It returns without waiting. If a master refuses the new login, its connection is opened
    /// again, with the login of that moment. Passwords in URLs are sent again.
    ///
    /// # Errors
    /// If some masters have no login, the reason of the first of them. Their connections stay as
    /// they are, and the logins of all others have been sent.
    pub fn reauthenticate(&self) -> Result<(), Unavailable> {
        let shared = &self.handle.0;
        if shared.is_forked() {
            return Ok(());
        }
        let mut outcome = Ok(());
        for master in self.config.master_ids() {
            match shared.login(master) {
                Ok(Some(login)) => {
                    shared.change(|engine, now| engine.machine.reauthenticate(master, login, now));
                }
                Ok(None) => {}
                Err(why) => outcome = outcome.and(Err(why)),
            }
        }
        shared.outbox.flush(&**shared);
        outcome
    }

    /// Returns the state of each master, in the order of the configuration.
    pub fn masters(&self) -> Vec<(Endpoint, MasterState)> {
        let engine = self.handle.0.engine();
        self.config.masters.iter().cloned().zip(engine.machine.masters().map(|(_, state)| state)).collect()
    }

    /// Returns what this locker and its clones have done since it was opened, in numbers, and the
    /// present state: for metrics.
    ///
    /// Counting costs almost nothing and is always on. A report allocates the list of masters, and
    /// blocks other callers while it is copied.
    pub fn report(&self) -> Report {
        let shared = &self.handle.0;
        let engine = shared.engine();
        engine.figures.report(&self.config, &engine.machine, shared.host.now())
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

impl fmt::Debug for Locker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locker").field("masters", &self.config.masters).finish_non_exhaustive()
    }
}
