//! The lock over the masters, as `run` and `acquire` see it.

use std::future::{Future, IntoFuture};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use quorlock_blocking::{
    AcquireError, Config, ConfigBuilder, FencingToken, Guard, Locker, LossCause, MasterState, OpenError,
    Permit, ReleaseError, Request, Resumption, Semaphore,
};

use quorlock_core::front::{Granted, Lost, Release};
use quorlock_core::{Ballot, Endpoint, EndpointError, Failover, Vote};

use crate::arguments::{Claim, Seek, Terms, Wait};
use crate::cautions;
use crate::ending::Refusal;
use crate::output::Output;
use crate::signals::Notifier;
use crate::waiting::{Changed, Hold, Lock, Released, Standing};

/// How long to wait for answers that are no longer needed: those to a request that got no lock, and
/// those of masters that are slower than the quorum.
const LINGER: Duration = Duration::from_millis(100);
/// How often to check for these answers meanwhile.
const LOOK: Duration = Duration::from_millis(2);

/// A lock that is being acquired.
pub(crate) struct Acquisition {
    future: Pin<Box<dyn Future<Output = Result<Grant, AcquireError>>>>,
    locker: Locker,
    waker: Waker,
    conflict_exit_code: u8,
    /// Whether the key's value alone proves the lock: the lock is of one resource that is not
    /// shared.
    is_plain: bool,
}

/// How a lock is renewed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Renewal {
    /// The longest time to renew it.
    pub(crate) longest: Duration,
    /// Whether it is put back on masters that lost it.
    pub(crate) heal: bool,
}

/// Begins to acquire the lock that `seek` names. `changed` is notified whenever polling it again is
/// worthwhile. `client` is the name for the masters' lists of clients.
pub(crate) fn begin(
    terms: Terms<'_>,
    seek: &Seek,
    renewal: Option<Renewal>,
    client: &str,
    changed: Notifier<Changed>,
) -> Result<Acquisition, Refusal> {
    let locker = match seek.wait() {
        Wait::OneTry => open(terms, client)?,
        Wait::UpTo(_) | Wait::Forever => opened(configuration(terms, client)?)?,
    };
    let Seek { claim, conflict_exit_code, .. } = seek;
    let future = match claim.permits() {
        Some(permits) => {
            let semaphore = semaphore(&locker, claim, permits)?;
            sought(semaphore.acquire(), seek, renewal, Grant::Permit)
        }
        None => sought(locker.lock_all(claim.targets()), seek, renewal, Grant::Lock),
    };
    let waker = Waker::from(Arc::new(Tell(Mutex::new(changed))));
    Ok(Acquisition {
        future,
        locker,
        waker,
        conflict_exit_code: *conflict_exit_code,
        is_plain: claim.is_plain(),
    })
}

fn semaphore(locker: &Locker, claim: &Claim, permits: u32) -> Result<Semaphore, Refusal> {
    locker.semaphore(claim.as_bytes(), permits).map_err(|error| Refusal::Configuration(error.to_string()))
}

/// Resumes a lock that was left held.
pub(crate) fn resume(
    locker: &Locker,
    claim: &Claim,
    lock: Resumption,
) -> Result<Result<Grant, AcquireError>, Refusal> {
    Ok(match claim.permits() {
        Some(permits) => {
            semaphore(locker, claim, permits)?.acquire().resuming(lock).wait().map(Grant::Permit)
        }
        None => locker.lock_all(claim.targets()).resuming(lock).wait().map(Grant::Lock),
    })
}

/// Releases a lock that was left held.
pub(crate) fn release(locker: &Locker, claim: &Claim, lock: Resumption) -> Result<Release, Refusal> {
    Ok(match claim.permits() {
        Some(permits) => semaphore(locker, claim, permits)?.release(lock),
        None => locker.release_all(claim.targets(), lock),
    })
}

/// Begins the request that the options describe.
fn sought<G: Granted + 'static>(
    mut request: Request<G>,
    seek: &Seek,
    renewal: Option<Renewal>,
    grant: fn(G) -> Grant,
) -> Pin<Box<dyn Future<Output = Result<Grant, AcquireError>>>> {
    request = match seek.wait() {
        Wait::OneTry => request.attempts(1).timeout(None::<Duration>),
        Wait::UpTo(limit) => request.timeout(limit),
        Wait::Forever => request.timeout(None::<Duration>),
    };
    if seek.fenced {
        request = request.fenced();
    }
    if seek.fair {
        request = request.fair();
    }
    if let Some(Renewal { longest, heal }) = renewal {
        request = request.renew_for(longest);
        if heal {
            request = request.heal();
        }
    }
    let future = request.into_future();
    Box::pin(async move { future.await.map(grant) })
}

/// Connects to masters that are asked once. They get more time to answer than if another attempt
/// could follow.
pub(crate) fn open(terms: Terms<'_>, client: &str) -> Result<Locker, Refusal> {
    let patience = (terms.ttl / 4).clamp(Duration::from_millis(50), Duration::from_secs(1));
    let builder = configuration(terms, client)?.request_timeout(patience);
    opened(builder.connect_timeout(patience.max(Duration::from_millis(250))))
}

/// Connects to masters that are asked about a lock of this name. Each has a second to be connected,
/// and one for each answer.
pub(crate) fn ask(terms: Terms<'_>, name: &[u8], client: &str) -> Result<Locker, Refusal> {
    let patience = Duration::from_secs(1);
    let builder = configuration(terms, client)?.connect_timeout(patience).request_timeout(patience);
    let config = built(builder)?;
    config.resource(name).map_err(|error| Refusal::Configuration(error.to_string()))?;
    connected(config)
}

/// Builds the configuration alone, without connecting.
pub(crate) fn config(terms: Terms<'_>, client: &str) -> Result<Config, Refusal> {
    built(configuration(terms, client)?)
}

fn built(builder: ConfigBuilder) -> Result<Config, Refusal> {
    builder.build().map_err(|error| Refusal::Configuration(error.to_string()))
}

fn opened(builder: ConfigBuilder) -> Result<Locker, Refusal> {
    connected(built(builder)?)
}

fn connected(config: Config) -> Result<Locker, Refusal> {
    quorlock_blocking::open(config).map_err(|error| match error {
        OpenError::Tls(error) => Refusal::Configuration(error.to_string()),
        error => Refusal::NoQuorum(format!("no I/O loop could be started: {error}")),
    })
}

fn configuration(terms: Terms<'_>, client: &str) -> Result<ConfigBuilder, Refusal> {
    // A master that comes back must be found while there is time for a renewal, even if the TTL is
    // short.
    let shortest = Duration::from_millis(10);
    let longest = (terms.ttl / 8).clamp(shortest, Duration::from_secs(2));
    let mut builder = masters(terms)
        .ttl(terms.ttl)
        .reconnect_delay(shortest..=longest)
        .client_name(client)
        .prefix(terms.prefix);
    if let Some(longest_ttl) = terms.restart_guard {
        builder = builder.restart_guard(longest_ttl);
    }
    let tls = terms.masters.tls.security();
    if let Some(tls) = tls.map_err(|error| Refusal::Configuration(error.to_string()))? {
        builder = builder.tls(tls);
    }
    Ok(terms.evictions.iter().fold(builder, |builder, policy| builder.allow_eviction(*policy)))
}

/// Builds the list of masters. What a failover does to locks matters only to clients that are
/// granted locks, so the others need not declare it.
fn masters(terms: Terms<'_>) -> ConfigBuilder {
    let urls = terms.masters.urls();
    let parsed = urls.clone().map(|url| url.parse::<Endpoint>()?.with_replicas(None));
    match parsed.collect::<Result<Vec<_>, EndpointError>>() {
        Ok(masters) if !terms.grants => {
            masters.into_iter().fold(Config::builder([""; 0]), |builder, master| {
                builder.master(master.with_failover(Failover::MayLoseLocks))
            })
        }
        // An invalid URL is reported when the configuration is built.
        Ok(_) | Err(_) => Config::builder(urls),
    }
}

/// Waits a moment for masters that are slower than the quorum, because the process ends next. They
/// then also execute what a quorum has decided without them. The more masters have executed it, the
/// more may fail.
pub(crate) fn settle(locker: &Locker) {
    settle_within(LINGER, locker);
}

fn settle_within(span: Duration, locker: &Locker) {
    let until = Instant::now() + span;
    while locker.report().masters.iter().any(|master| master.is_awaited) && Instant::now() < until {
        thread::sleep(LOOK);
    }
}

/// Whether no quorum is possible until a configuration is changed.
pub(crate) fn is_misconfigured(ballot: &Ballot) -> bool {
    let is_right = |vote: &Vote| !matches!(vote, Vote::Failed(cause) if cause.is_configuration());
    ballot.votes().filter(|(_, vote)| is_right(vote)).count() < ballot.needed()
}

impl Lock for Acquisition {
    type Hold = Held;

    fn poll(&mut self) -> Poll<Result<Held, Refusal>> {
        let waker = self.waker.clone();
        let outcome = self.future.as_mut().poll(&mut Context::from_waker(&waker));
        let (code, locker, is_plain) = (self.conflict_exit_code, self.locker.clone(), self.is_plain);
        outcome.map(|outcome| {
            outcome
                .map(|grant| Held { lost: grant.lost(), grant, locker, waker, is_plain })
                .map_err(|error| refusal(&error, code))
        })
    }

    fn obstacle(&self) -> Option<String> {
        let needed = self.locker.config().quorum().needed();
        let masters = self.locker.masters();
        let trouble = |(master, state): &(Endpoint, MasterState)| match state {
            MasterState::Ready { .. } => None,
            MasterState::Down(cause) => Some(format!("{master} {}", cause.at(master))),
            _ => Some(format!("{master} not connected yet")),
        };
        let troubles: Vec<_> = masters.iter().filter_map(trouble).collect();
        let ready = masters.len() - troubles.len();
        let text = || {
            let all = masters.len();
            format!("{ready} of {all} masters can vote, {needed} are needed: {}", troubles.join("; "))
        };
        (ready < needed).then(text)
    }

    fn give_up(self) {
        let Self { future, locker, .. } = self;
        // This sends the release to every master that may have granted the lock.
        drop(future);
        // The process ends next. A socket that is closed with an answer unread is reset, and a
        // master that has not read the release by then never does. So there is time for the answers
        // to arrive. A master that waits for its replicas to confirm a vote reads nothing
        // meanwhile.
        let config = locker.config();
        let confirms = config.masters().iter().any(|master| master.replicas().is_some_and(|all| all > 0));
        settle_within(if confirms { config.request_timeout() } else { LINGER }, &locker);
    }
}

fn refusal(error: &AcquireError, conflict_exit_code: u8) -> Refusal {
    let sentence = error.to_string();
    match error {
        AcquireError::HeldByAnother(_) => Refusal::HeldByAnother(sentence, conflict_exit_code),
        AcquireError::Misconfigured(_)
        | AcquireError::Invalid(_)
        | AcquireError::TooManyLocks { .. }
        | AcquireError::NoEntropy
        | AcquireError::Forked => Refusal::Configuration(sentence),
        _ => Refusal::NoQuorum(sentence),
    }
}

/// The grant.
#[derive(Debug)]
pub(crate) enum Grant {
    Lock(Guard),
    Permit(Permit),
}

impl Grant {
    /// Leaves the lock to the process that knows the token. The error is the sentence to print if
    /// it is not held any more.
    pub(crate) fn hand_over(self) -> Result<(), String> {
        let handed = match self {
            Self::Lock(guard) => guard.hand_over(),
            Self::Permit(permit) => permit.hand_over(),
        };
        handed.map(drop).map_err(|cause| cause.to_string())
    }
}

impl Deref for Grant {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        match self {
            Self::Lock(guard) => guard,
            Self::Permit(permit) => permit,
        }
    }
}

/// A lock that is held.
#[derive(Debug)]
pub(crate) struct Held {
    grant: Grant,
    /// Kept from one check to the next: dropping the future removes its waker, and then a loss
    /// wakes no thread.
    lost: Lost,
    locker: Locker,
    waker: Waker,
    is_plain: bool,
}

impl Hold for Held {
    fn token(&self) -> String {
        if self.is_plain { self.grant.token().expose() } else { self.grant.resumption().expose() }
    }

    fn proof(&self) -> String {
        settle(&self.locker);
        let until = Instant::now() + LINGER;
        while !self.grant.resumption().counts_all() && Instant::now() < until {
            thread::sleep(LOOK);
        }
        self.grant.resumption().expose()
    }

    fn fence(&self) -> Option<u64> {
        self.grant.fencing_token().map(FencingToken::get)
    }

    fn permit(&self) -> Option<u32> {
        match &self.grant {
            Grant::Permit(permit) => Some(permit.index()),
            Grant::Lock(_) => None,
        }
    }

    fn tell_cautions(&self, output: &Output) {
        cautions::tell(&self.locker, output);
    }

    fn standing(&mut self) -> Standing {
        let lost = match Pin::new(&mut self.lost).poll(&mut Context::from_waker(&self.waker)) {
            Poll::Ready(cause) => cause != LossCause::Expired,
            Poll::Pending => false,
        };
        Standing { lost, remaining: self.grant.remaining() }
    }

    fn stop_renewal(&self) {
        self.grant.stop_renewal();
    }

    fn hand_over(self) -> Result<(), String> {
        self.grant.hand_over()
    }

    fn release(self, at_least: Option<Duration>) -> Released {
        let release = match (self.grant, at_least) {
            (Grant::Lock(guard), Some(at_least)) => guard.release_after(at_least),
            (Grant::Lock(guard), None) => guard.release(),
            (Grant::Permit(permit), Some(at_least)) => permit.release_after(at_least),
            (Grant::Permit(permit), None) => permit.release(),
        };
        let keeps_for = release.keeps_for();
        let outcome = release.wait();
        // A master whose connection was forgotten while the command ran gets the release over the
        // next one.
        let config = self.locker.config();
        settle_within(config.request_timeout() + config.connect_timeout(), &self.locker);
        match outcome {
            Ok(_) => keeps_for.map_or(Released::Ours, Released::Kept),
            Err(error @ ReleaseError::NotOurs(_)) => Released::NotOurs(error.to_string()),
            Err(error) => Released::Unknown(error.to_string()),
        }
    }
}

/// Tells the deciding thread to check again.
struct Tell(Mutex<Notifier<Changed>>);

impl Wake for Tell {
    fn wake(self: Arc<Self>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).send(Changed);
    }
}
