//! The task that carries out a client's steps.

use std::future::IntoFuture;
use std::time::Duration;

use quorlock_core::front::{Granted, Owner, Request, Semaphore};
use quorlock_core::{AcquireError, Targets};

use super::access::{Access, RESOURCES, are_targets, one, permits, resource, targets};
use super::client::Client;
use super::locked::{Handed, Held, Letterbox, Locked, wanted};
use super::step::Step;
use super::timing::{GRACE, Timed, unless};
use super::violation::Violation;

/// How long a client tries to resume a lock.
pub(super) const RESUMED_WITHIN: Duration = Duration::from_millis(500);

/// How soon the driver of a client that holds a lock reads its clock, whatever its timers say.
const CLOCK_READ_WITHIN: Duration = Duration::from_secs(1);

/// One task of a client.
pub(super) struct Program {
    pub(super) client: Client,
    /// Whose locks its requests are for, if not the client's own.
    pub(super) owner: Option<Owner>,
    pub(super) is_fair: bool,
    /// How long a command that asks the masters once may take.
    pub(super) answer_limit: Duration,
    pub(super) letterbox: Letterbox,
}

impl Program {
    /// Carries out these steps, one after the other, and reports commands that end late.
    pub(super) async fn run(self, steps: Vec<Step>) {
        let mut guard: Option<Locked> = None;
        // Whether the end of the lock's validity may move without a step of this task.
        let mut is_renewed = false;
        // Whether the owner knows of it.
        let mut is_owned = false;
        for step in steps {
            match step {
                Step::Lock { renewed, .. } | Step::LockAll { renewed, .. } => {
                    drop(guard.take());
                    is_owned = self.owner.is_some() && !is_for_permits(step);
                    is_renewed = renewed || is_owned;
                    guard = self.lock(step).await.map(Locked::new);
                }
                Step::Nest if is_owned => guard = self.nest(guard).await,
                Step::Nest => {}
                Step::Share => guard.iter_mut().for_each(Locked::share),
                Step::Downgrade => guard = guard.take().map(Locked::downgrade),
                Step::HandOn => {
                    if let Some(held) = guard.take() {
                        guard = self.hand_on(held).await;
                    }
                }
                Step::Copy => {
                    if let Some(held) = &guard {
                        self.copy(held).await;
                    }
                }
                Step::Repeat => self.repeat(),
                Step::Resume { renewed, .. } => {
                    let handed = self.letterbox.borrow_mut().pop_front();
                    if let Some(handed) = handed {
                        drop(guard.take());
                        (is_renewed, is_owned) = (renewed, false);
                        guard = self.resume(step, &handed).await.map(Locked::new);
                    }
                }
                Step::ReleaseHanded => self.release_handed().await,
                Step::ForceRelease { resource, is_permit } => self.force_release(resource, is_permit).await,
                Step::Hold(span) => match &guard {
                    Some(held) => self.hold(held, span, is_renewed).await,
                    None => self.client.sleep(span).await,
                },
                Step::Extend { ttl, dropped_after } => {
                    if let Some(held) = &guard {
                        let timed = Timed::begin(&self.client, "extension", self.answer_limit, true);
                        // The result is ignored: the observer checks the guard itself.
                        let _ = unless(&self.client, dropped_after, held.extend(ttl)).await;
                        timed.end();
                    }
                }
                Step::Reauthenticate => {
                    self.client.change_password();
                    // If no login is available, connections use the next one when they greet.
                    let _ = self.client.locker().reauthenticate();
                }
                Step::StopRenewal => guard.iter().for_each(|held| held.stop_renewal()),
                Step::Release => guard = self.release(guard, None).await,
                Step::ReleaseAfter(at_least) => guard = self.release(guard, Some(at_least)).await,
                Step::Drop => drop(guard.take()),
                // Masters that do not answer make it fail.
                Step::Bootstrap => drop(self.client.locker().bootstrap().await),
                Step::Rest(span) => self.client.sleep(span).await,
            }
        }
    }

    /// Requests what a step wants.
    async fn lock(&self, step: Step) -> Option<Held> {
        let (_, accesses, _) = Settings::of_lock(step)?;
        let waiting = wanted_targets(&self.client, accesses).map(|targets| self.client.waits(targets));
        let held = self.seek(step).await;
        if let Some(waiting) = waiting {
            self.client.waits_no_more(waiting);
        }
        held
    }

    async fn seek(&self, step: Step) -> Option<Held> {
        let (settings, accesses, dropped_after) = Settings::of_lock(step)?;
        let client = &self.client;
        let (timeout, fair) = (settings.timeout, self.is_fair && matches!(step, Step::Lock { .. }));
        match permits(accesses) {
            Some((number, of, 1)) => {
                let request = settings.of(semaphore(client, number, of)?.acquire());
                granted(client, "permit", request, timeout, dropped_after).await
            }
            Some((number, of, many)) => {
                let request = settings.of(semaphore(client, number, of)?.acquire_many(many.into()));
                granted(client, "permits", request, timeout, dropped_after).await
            }
            None => {
                let request = settings.of(self.request(step, accesses));
                let request = if fair { request.fair() } else { request };
                // An owner's request extends a lock that it finds, if it wants a longer TTL.
                let longer = if self.owner.is_some() { self.answer_limit } else { Duration::ZERO };
                let held = granted(client, "lock", request, timeout + longer, dropped_after).await;
                let resources: Option<Vec<_>> = held.as_ref().map(|held| held.resources().collect());
                let is_whole = self.owner.is_none();
                if let Some(held) = resources.filter(|held| !are_targets(accesses, held, is_whole)) {
                    client.report(format!("a lock of {accesses:?} was granted as one of {held:?}"));
                }
                held
            }
        }
    }

    fn request(&self, step: Step, accesses: [Access; RESOURCES]) -> Request {
        match (&self.owner, step) {
            (Some(owner), Step::Lock { resource: number, .. }) => owner.lock(resource(number)),
            (Some(owner), _) => owner.lock_all(targets(accesses)),
            (None, Step::Lock { resource: number, .. }) => self.client.locker().lock(resource(number)),
            (None, _) => self.client.locker().lock_all(targets(accesses)),
        }
    }

    /// Requests the lock once more from its owner, which must grant it at once.
    async fn nest(&self, guard: Option<Locked>) -> Option<Locked> {
        let (mut held, owner) = (guard?, self.owner.as_ref());
        let targets = self.targets_of(&held).await;
        let (Some(owner), Some(targets)) = (owner, targets) else { return Some(held) };
        let request = owner.lock_all(wanted(&targets));
        let timed = Timed::begin(&self.client, "nested lock", Duration::ZERO, false);
        let again = request.await;
        timed.end();
        match again {
            Ok(again) if again.token() == held.token() => held.add(again.into()),
            Ok(_) => self.client.report("an owner was granted another lock than the one that it held"),
            Err(AcquireError::Lost(_)) => {}
            Err(error) if held.is_valid() => {
                self.client.report(format!("an owner was refused the lock that it held: {error}"));
            }
            Err(_) => {}
        }
        Some(held)
    }

    /// What it holds, as the observer sees it.
    async fn targets_of(&self, held: &Locked) -> Option<Targets> {
        // The observer looks at guards when the client's tasks wait.
        self.client.sleep(Duration::from_nanos(1)).await;
        self.client.targets_of(held.token())
    }

    async fn hand_on(&self, held: Locked) -> Option<Locked> {
        let targets = self.targets_of(&held).await;
        let token = held.token();
        match (held.hand_over(), targets) {
            (Ok(proof), Some(targets)) => {
                self.client.handed_over(token);
                self.letterbox.borrow_mut().push_back(Handed { targets, proof });
                None
            }
            (Ok(_), None) => None,
            (Err(kept), _) => kept.map(|held| *held),
        }
    }

    async fn copy(&self, held: &Locked) {
        if let Some(targets) = self.targets_of(held).await {
            let proof = held.resumption();
            self.client.copied(proof.token);
            self.letterbox.borrow_mut().push_back(Handed { targets, proof });
        }
    }

    fn repeat(&self) {
        let mut letters = self.letterbox.borrow_mut();
        if let Some(handed) = letters.front().cloned() {
            self.client.repeats(handed.proof.token);
            letters.push_back(handed);
        }
    }

    async fn resume(&self, step: Step, handed: &Handed) -> Option<Held> {
        let Step::Resume { ttl, renewed, healing } = step else { return None };
        let (client, timeout) = (&self.client, RESUMED_WITHIN);
        let settings = Settings { ttl, timeout, once: false, renewed, fenced: false, healing };
        let proof = handed.proof;
        let began = client.resumes(proof.token);
        let held = self.resumed(handed, settings).await;
        client.has_resumed(proof.token, began, held.is_some());
        if held.is_some() {
            client.received(proof.token);
        }
        held
    }

    async fn resumed(&self, handed: &Handed, settings: Settings) -> Option<Held> {
        let (client, proof, what) = (&self.client, handed.proof, "resumption");
        match handed.permits() {
            Some((name, of, 1)) => {
                let request = client.locker().semaphore(name, of).ok()?.acquire();
                granted(client, what, settings.of(request.resuming(proof)), settings.timeout, None).await
            }
            Some((name, of, many)) => {
                let request = client.locker().semaphore(name, of).ok()?.acquire_many(many);
                granted(client, what, settings.of(request.resuming(proof)), settings.timeout, None).await
            }
            None => {
                let request = client.locker().lock_all(handed.wanted());
                granted(client, what, settings.of(request.resuming(proof)), settings.timeout, None).await
            }
        }
    }

    async fn release_handed(&self) {
        let handed = self.letterbox.borrow_mut().pop_front();
        // The keys of other locks stay until they expire.
        let Some((handed, name)) = handed.as_ref().and_then(|handed| Some((handed, handed.as_one()?))) else {
            return;
        };
        let token = handed.proof.token;
        let timed = Timed::begin(&self.client, "release", self.answer_limit, true);
        if self.client.locker().release(name, token).await.is_ok() {
            self.client.received(token);
        }
        timed.end();
    }

    /// Deletes a lock's keys. The observer knows the locks that were lost by that from masters'
    /// keys.
    async fn force_release(&self, number: u8, is_permit: bool) {
        let mut timed = Timed::begin(&self.client, "force-release", Duration::ZERO, true);
        self.client.forces(false);
        let _ = match semaphore(&self.client, number, 1).filter(|_| is_permit) {
            Some(semaphore) => semaphore.force_release(0).await,
            None => self.client.locker().force_release(resource(number)).await,
        };
        timed.allow(self.answer_limit * self.client.force_asks());
        timed.end();
        self.client.forces(true);
    }

    async fn hold(&self, held: &Locked, span: Duration, is_renewed: bool) {
        let client = &self.client;
        let (end, leapt) = (client.now() + held.remaining(), client.leapt());
        let lost = unless(client, Some(span), held.lost()).await;
        // Timers do not notice a jump of the clock.
        let unnoticed = if client.leapt() > leapt { CLOCK_READ_WITHIN } else { Duration::ZERO };
        let told_by = end.max(client.stood_until()) + unnoticed + GRACE;
        if lost.is_none() && !held.is_valid() && !is_renewed && client.now() > told_by {
            let (client, took, limit) = (client.number(), client.now().since(end), GRACE);
            self.client.find(Violation::Late { client, command: "loss", took, limit });
        }
    }

    /// Gives a handle up. The last one releases the lock, and with a hold time it keeps others out
    /// until this time since its grant has passed.
    async fn release(&self, guard: Option<Locked>, at_least: Option<Duration>) -> Option<Locked> {
        let held = guard?;
        let client = &self.client;
        let timed = Timed::begin(client, "release", self.answer_limit, true);
        // The observer may not have seen yet that the lock was downgraded.
        let targets = client.targets_of(held.token()).filter(|targets| held.is_of(targets));
        let token = held.token();
        let (release, others) = held.release(at_least);
        let kept_until = release.keeps_for().map(|left| client.now() + left);
        if let (Ok(_), Some(until), Some(targets)) = (release.await, kept_until, targets) {
            client.keeps(token, targets, until);
        }
        timed.end();
        others
    }
}

/// Whether a step requests permits, which belong to no owner.
fn is_for_permits(step: Step) -> bool {
    matches!(step, Step::LockAll { accesses, .. } if permits(accesses).is_some())
}

/// The options of a step's request.
struct Settings {
    ttl: Duration,
    timeout: Duration,
    once: bool,
    renewed: bool,
    fenced: bool,
    healing: bool,
}

impl Settings {
    /// Those of a step that requests a lock, what it wants, and when its future is dropped.
    fn of_lock(step: Step) -> Option<(Self, [Access; RESOURCES], Option<Duration>)> {
        match step {
            Step::Lock { resource: number, ttl, timeout, renewed, fenced, healing, dropped_after } => {
                let settings = Self { ttl, timeout, once: false, renewed, fenced, healing };
                Some((settings, one(number), dropped_after))
            }
            Step::LockAll { accesses, once, ttl, timeout, renewed, fenced, healing, dropped_after } => {
                let settings = Self { ttl, timeout, once, renewed, fenced, healing };
                Some((settings, accesses, dropped_after))
            }
            _ => None,
        }
    }

    fn of<G>(&self, request: Request<G>) -> Request<G> {
        let request = request.ttl(self.ttl).timeout(self.timeout);
        let request = if self.once { request.attempts(1) } else { request };
        let request = if self.renewed { request.renew() } else { request };
        let request = if self.fenced { request.fenced() } else { request };
        if self.healing { request.heal() } else { request }
    }
}

/// The targets of a request for these accesses.
pub(super) fn wanted_targets(client: &Client, accesses: [Access; RESOURCES]) -> Option<Targets> {
    let config = client.locker().config();
    match permits(accesses) {
        Some((number, of, _)) => config.permits(resource(number), of.into()).ok(),
        None => config.targets(targets(accesses)).ok(),
    }
}

/// The semaphore with this number, which has `of` permits.
pub(super) fn semaphore(client: &Client, number: u8, of: u8) -> Option<Semaphore> {
    client.locker().semaphore(resource(number), of.into()).ok()
}

/// Returns the guard that a request is granted, and reports a request that ends too late.
async fn granted<G: Granted + Into<Held>>(
    client: &Client,
    command: &'static str,
    request: Request<G>,
    timeout: Duration,
    dropped_after: Option<Duration>,
) -> Option<Held> {
    let timed = Timed::begin(client, command, timeout, false);
    let guard = unless(client, dropped_after, request.into_future()).await.and_then(Result::ok);
    let guard: Option<Held> = guard.map(Into::into);
    if guard.as_ref().is_some_and(|guard| !guard.is_valid()) {
        client.find(Violation::GrantedTooLate { client: client.number() });
    }
    timed.end();
    guard
}
