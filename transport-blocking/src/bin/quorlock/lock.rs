//! The lock over the masters, as `run` sees it.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use quorlock_blocking::{
    AcquireError, Acquiring, Config, ConfigError, Endpoint, Guard, LossCause, ReleaseError,
};

use crate::arguments::{RunArguments, Wait};
use crate::run::{Changed, Hold, Lock, Refusal, Released, Standing};
use crate::signals::Notifier;

/// How long answers are waited for that nobody needs, when the wait for the lock was interrupted.
const LINGER: Duration = Duration::from_millis(100);

/// A lock that is being acquired.
#[derive(Debug)]
pub(crate) struct Acquisition {
    future: Acquiring,
    waker: Waker,
}

/// Begins to acquire the lock that `arguments` name. `changed` is told whenever polling it again is worthwhile.
pub(crate) fn begin(arguments: &RunArguments, changed: Notifier<Changed>) -> Result<Acquisition, Refusal> {
    let config =
        configuration(arguments).map_err(|error| Refusal::Configuration(explained(arguments, &error)))?;
    let locker = quorlock_blocking::open(config)
        .map_err(|error| Refusal::NoQuorum(format!("no I/O loop could be started: {error}")))?;
    let request = match arguments.wait {
        Wait::OneTry => locker.try_lock(&arguments.resource),
        Wait::UpTo(limit) => locker.lock(&arguments.resource).within(limit),
        Wait::Forever => locker.lock(&arguments.resource).within(None::<Duration>),
    };
    let request = if arguments.renew {
        request.renew_for(arguments.max_hold.unwrap_or(Duration::MAX))
    } else {
        request
    };
    let waker = Waker::from(Arc::new(Tell(Mutex::new(changed))));
    Ok(Acquisition { future: request.into_future(), waker })
}

fn configuration(arguments: &RunArguments) -> Result<Config, ConfigError> {
    // A master that comes back has to be found while there is time for a renewal, also where the TTL is short.
    let shortest = Duration::from_millis(10);
    let longest = (arguments.ttl / 8).clamp(shortest, Duration::from_secs(2));
    Config::builder(&arguments.masters)
        .ttl(arguments.ttl)
        .reconnect_delay(shortest..=longest)
        .client_name("quorlock-run")
        .build()
}

/// The error as a sentence. One about a URL does not repeat it, for it may hold a password, so its place is told.
fn explained(arguments: &RunArguments, error: &ConfigError) -> String {
    let masters = &arguments.masters;
    match masters.iter().position(|url| url.parse::<Endpoint>().is_err()) {
        Some(place) if matches!(error, ConfigError::Endpoint(_)) => {
            format!("master {} of {}: {error}", place + 1, masters.len())
        }
        _ => error.to_string(),
    }
}

impl Lock for Acquisition {
    type Hold = Held;

    fn poll(&mut self) -> Poll<Result<Held, Refusal>> {
        let waker = self.waker.clone();
        let outcome = Pin::new(&mut self.future).poll(&mut Context::from_waker(&waker));
        outcome.map(|outcome| outcome.map(|guard| Held { guard, waker }).map_err(|error| refusal(&error)))
    }

    fn cancel(self) {
        // Dropping the future sends the release to every master that may have granted it.
        drop(self);
        // The process ends next. A socket that is closed with an answer unread is reset, and a master that has not read
        // the release by then never does; so the answers are given time to come.
        thread::sleep(LINGER);
    }
}

fn refusal(error: &AcquireError) -> Refusal {
    let sentence = error.to_string();
    match error {
        AcquireError::HeldByAnother(_) => Refusal::HeldByAnother(sentence),
        AcquireError::Misconfigured(_) | AcquireError::Request(_) => Refusal::Configuration(sentence),
        _ => Refusal::NoQuorum(sentence),
    }
}

/// A lock that is held.
#[derive(Debug)]
pub(crate) struct Held {
    guard: Guard,
    waker: Waker,
}

impl Hold for Held {
    fn token(&self) -> String {
        self.guard.token().expose()
    }

    fn standing(&self) -> Standing {
        let mut lost = self.guard.lost();
        let lost = match Pin::new(&mut lost).poll(&mut Context::from_waker(&self.waker)) {
            Poll::Ready(cause) => cause != LossCause::Expired,
            Poll::Pending => false,
        };
        Standing { lost, remaining: self.guard.remaining() }
    }

    fn stop_renewal(&self) {
        self.guard.stop_renewal();
    }

    fn release(self) -> Released {
        match self.guard.release().wait() {
            Ok(()) => Released::Ours,
            Err(error @ ReleaseError::NotOurs(_)) => Released::NotOurs(error.to_string()),
            Err(error) => Released::Unknown(error.to_string()),
        }
    }
}

/// Tells the deciding thread to look again.
struct Tell(Mutex<Notifier<Changed>>);

impl Wake for Tell {
    fn wake(self: Arc<Self>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).send(Changed);
    }
}
