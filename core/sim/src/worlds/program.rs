//! A client's program as a value, and the task that runs it.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use quorlock_core::Instant;
use quorlock_core::front::{Granted, Request, Semaphore};

use super::access::{Access, RESOURCES, are_targets, one, permit, resource, targets};
use super::client::Client;
use super::locked::{Handed, Held, Letterbox, Locked};
use super::violation::Violation;

/// One step of a client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Step {
    /// Requests a lock. A lock that the client still holds is dropped first.
    Lock {
        /// The number of the resource.
        resource: u8,
        /// The TTL.
        ttl: Duration,
        /// The timeout of the request.
        timeout: Duration,
        /// Whether the lock is renewed in the background.
        renewed: bool,
        /// Whether the grant has a fencing token.
        fenced: bool,
        /// Whether the key is restored on masters that have lost it.
        healing: bool,
        /// When the future of the request is dropped, if it is.
        dropped_after: Option<Duration>,
    },
    /// Requests one lock of several resources, or of some that are shared, or a permit. A lock that
    /// the client still holds is dropped first.
    LockAll {
        /// How each resource is locked, by its number.
        accesses: [Access; RESOURCES],
        /// Whether there is a single attempt only.
        once: bool,
        /// The TTL.
        ttl: Duration,
        /// The timeout of the request.
        timeout: Duration,
        /// Whether the lock is renewed in the background.
        renewed: bool,
        /// Whether the grant has a fencing token.
        fenced: bool,
        /// Whether the keys are restored on masters that have lost them.
        healing: bool,
        /// When the future of the request is dropped, if it is.
        dropped_after: Option<Duration>,
    },
    /// Waits until the lock is lost, but no longer than this span.
    Hold(Duration),
    /// Extends the lock that the client holds.
    Extend {
        /// The TTL, counted from now.
        ttl: Duration,
        /// When the future of the extension is dropped, if it is.
        dropped_after: Option<Duration>,
    },
    /// Downgrades the lock to a shared one.
    Downgrade,
    /// Hands the lock over to any client that resumes it.
    HandOn,
    /// Resumes the lock that was handed over first. A lock that the client still holds is dropped
    /// first.
    Resume {
        /// The TTL, counted from now.
        ttl: Duration,
        /// Whether the lock is renewed in the background.
        renewed: bool,
        /// Whether the key is restored on masters that have lost it.
        healing: bool,
    },
    /// Releases the lock that was handed over first, if it is an exclusive one of one resource.
    ReleaseHanded,
    /// Stops the renewal of the lock.
    StopRenewal,
    /// In a plan that is [secured](super::Plan::secured), the masters get another password, and the
    /// client logs in with it on the connections that it has.
    Reauthenticate,
    /// Releases the lock and waits for the outcome.
    Release,
    /// Releases the lock, but keeps others out until this time since its grant has passed, and
    /// waits for the outcome.
    ReleaseAfter(Duration),
    /// Drops the guard.
    Drop,
    /// Waits.
    Rest(Duration),
}

/// How long a client tries to resume a lock.
pub(super) const RESUMED_WITHIN: Duration = ms(500);

impl Step {
    /// The simpler form of a step; `None` if it is the simplest.
    pub(super) fn plainer(&mut self) -> Option<(&mut Self, Self)> {
        let mut plain = *self;
        match &mut plain {
            Self::Lock { fenced, .. } | Self::LockAll { fenced, .. } if *fenced => *fenced = false,
            Self::Lock { healing, .. } | Self::LockAll { healing, .. } | Self::Resume { healing, .. }
                if *healing =>
            {
                *healing = false;
            }
            Self::Lock { renewed, .. } | Self::LockAll { renewed, .. } | Self::Resume { renewed, .. }
                if *renewed =>
            {
                *renewed = false;
            }
            Self::LockAll { once, .. } if *once => *once = false,
            Self::LockAll { accesses, .. } => {
                let mut locked = accesses.iter_mut().filter(|access| **access != Access::None);
                let (first, _) = (locked.next()?, locked.next()?);
                *first = Access::None;
            }
            _ => return None,
        }
        Some((self, plain))
    }
}

/// How much longer a command may take, because a process runs only a little after it has been
/// woken.
const GRACE: Duration = ms(15);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Carries out these steps, one after the other, and reports commands that end late.
pub(super) async fn run(
    client: Client,
    steps: Vec<Step>,
    is_fair: bool,
    answer_limit: Duration,
    letterbox: Letterbox,
) {
    let mut guard: Option<Locked> = None;
    // Whether the end of the lock's validity may move without a step of the program.
    let mut is_renewed = false;
    for step in steps {
        match step {
            Step::Lock { resource: number, ttl, timeout, renewed, fenced, healing, dropped_after } => {
                drop(guard.take());
                is_renewed = renewed;
                let settings = Settings { ttl, timeout, once: false, renewed, fenced, healing };
                let request = settings.of(client.locker().lock(resource(number)));
                let request = if is_fair { request.fair() } else { request };
                let granted = granted(&client, "lock", request, timeout, dropped_after).await;
                guard = granted.map(|held| Locked::new(one(number), held));
            }
            Step::LockAll { accesses, once, ttl, timeout, renewed, fenced, healing, dropped_after } => {
                drop(guard.take());
                is_renewed = renewed;
                let settings = Settings { ttl, timeout, once, renewed, fenced, healing };
                let granted = if let Some(permits) = permit(accesses).and_then(|of| semaphore(&client, of)) {
                    let request = settings.of(permits.acquire());
                    granted(&client, "permit", request, timeout, dropped_after).await
                } else {
                    let request = settings.of(client.locker().lock_all(targets(accesses)));
                    granted(&client, "lock", request, timeout, dropped_after).await
                };
                guard = granted.map(|held| Locked::new(accesses, held));
                let resources: Option<Vec<_>> = guard.as_ref().map(|held| held.resources().collect());
                if let Some(held) = resources.filter(|held| !are_targets(accesses, held)) {
                    client.report(format!("a lock of {accesses:?} was granted as one of {held:?}"));
                }
            }
            Step::Downgrade => guard = guard.take().map(Locked::downgrade),
            Step::HandOn => {
                if let Some(held) = guard.take() {
                    let token = held.token();
                    if let Some(handed) = held.hand_over() {
                        client.handed_over(token);
                        letterbox.borrow_mut().push_back(handed);
                    }
                }
            }
            Step::Resume { ttl, renewed, healing } => {
                let handed = letterbox.borrow_mut().pop_front();
                if let Some(Handed { accesses, proof }) = handed {
                    drop(guard.take());
                    is_renewed = renewed;
                    let timeout = RESUMED_WITHIN;
                    let settings = Settings { ttl, timeout, once: false, renewed, fenced: false, healing };
                    let request = settings.of(client.locker().lock_all(targets(accesses)).resuming(proof));
                    let granted = granted(&client, "resumption", request, RESUMED_WITHIN, None).await;
                    guard = granted.map(|held| Locked::new(accesses, held));
                }
            }
            Step::ReleaseHanded => {
                let handed = letterbox.borrow_mut().pop_front();
                // The keys of other locks stay until they expire.
                if let Some((number, handed)) = handed.and_then(|handed| Some((handed.as_one()?, handed))) {
                    let timed = Timed::begin(&client, "release", answer_limit, true);
                    let _ = client.locker().release(resource(number), handed.proof.token).await;
                    timed.end();
                }
            }
            Step::Hold(span) => match &guard {
                Some(held) => {
                    let (end, leapt) = (client.now() + held.remaining(), client.leapt());
                    let lost = unless(&client, Some(span), held.lost()).await;
                    // Timers do not notice a jump of the clock; a driver reads the clock once a
                    // second while it holds a lock.
                    let unnoticed = if client.leapt() > leapt { ms(1_000) } else { Duration::ZERO };
                    let told_by = end.max(client.stood_until()) + unnoticed + GRACE;
                    if lost.is_none() && !held.is_valid() && !is_renewed && client.now() > told_by {
                        let (took, limit) = (client.now().since(end), GRACE);
                        client.find(Violation::Late {
                            client: client.number(),
                            command: "loss",
                            took,
                            limit,
                        });
                    }
                }
                None => client.sleep(span).await,
            },
            Step::Extend { ttl, dropped_after } => {
                if let Some(held) = &guard {
                    let timed = Timed::begin(&client, "extension", answer_limit, true);
                    // The result is ignored: the observer checks the guard itself.
                    let _ = unless(&client, dropped_after, held.extend(ttl)).await;
                    timed.end();
                }
            }
            Step::Reauthenticate => {
                client.change_password();
                // If no login is available, connections use the next one when they greet.
                let _ = client.locker().reauthenticate();
            }
            Step::StopRenewal => {
                if let Some(held) = &guard {
                    held.stop_renewal();
                }
            }
            Step::Release => {
                if let Some(held) = guard.take() {
                    let timed = Timed::begin(&client, "release", answer_limit, true);
                    let _ = held.release().await;
                    timed.end();
                }
            }
            Step::ReleaseAfter(at_least) => {
                if let Some(held) = guard.take() {
                    let timed = Timed::begin(&client, "release", answer_limit, true);
                    let targets = client.targets_of(held.token());
                    let release = held.release_after(at_least);
                    let kept_until = release.keeps_for().map(|left| client.now() + left);
                    if let (Ok(_), Some(until), Some(targets)) = (release.await, kept_until, targets) {
                        client.keeps(targets, until);
                    }
                    timed.end();
                }
            }
            Step::Drop => drop(guard.take()),
            Step::Rest(span) => client.sleep(span).await,
        }
    }
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
    fn of<G>(&self, request: Request<G>) -> Request<G> {
        let request = request.ttl(self.ttl).timeout(self.timeout);
        let request = if self.once { request.attempts(1) } else { request };
        let request = if self.renewed { request.renew() } else { request };
        let request = if self.fenced { request.fenced() } else { request };
        if self.healing { request.heal() } else { request }
    }
}

/// The semaphore with this number, which has `of` permits.
pub(super) fn semaphore(client: &Client, (number, of): (u8, u8)) -> Option<Semaphore> {
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

/// How long a command takes on its client's clock; while the process is paused it cannot end.
struct Timed<'a> {
    client: &'a Client,
    command: &'static str,
    limit: Duration,
    began: Instant,
    /// Whether the time starts again when the process continues: the time for an answer starts when
    /// its request is sent.
    starts_again: bool,
}

impl<'a> Timed<'a> {
    fn begin(client: &'a Client, command: &'static str, limit: Duration, starts_again: bool) -> Self {
        Self { client, command, limit, began: client.now(), starts_again }
    }

    fn end(self) {
        // Timers that were set before a jump of the clock fire later by the jump, and the driver
        // sets no timer for later deadlines.
        let leap = self.client.leapt();
        let mut end = self.began + self.limit + leap;
        let stood_until = self.client.stood_until() + leap;
        if stood_until > self.began {
            end = end.max(stood_until + if self.starts_again { self.limit } else { Duration::ZERO });
        }
        let (now, limit) = (self.client.now(), (end + GRACE).since(self.began));
        if now > end + GRACE {
            let (client, command, took) = (self.client.number(), self.command, now.since(self.began));
            self.client.find(Violation::Late { client, command, took, limit });
        }
    }
}

/// Returns the result of the future. If it has not ended after this time, it is dropped, and the
/// result is `None`.
pub(super) async fn unless<F: Future>(
    client: &Client,
    limit: Option<Duration>,
    future: F,
) -> Option<F::Output> {
    let Some(limit) = limit else { return Some(future.await) };
    let (mut future, mut over) = (pin!(future), pin!(client.sleep(limit)));
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => over.as_mut().poll(cx).map(|()| None),
    })
    .await
}
