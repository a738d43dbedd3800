//! What a client does, as a value, and the task that does it.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::client::Client;
use super::violation::Violation;
use crate::front::Guard;
use crate::protocol::AcquireError;

/// One thing that a client does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Step {
    /// Seeks a lock. One that it still has is dropped first.
    Lock {
        /// Which resource, by number.
        resource: u8,
        /// The life of its keys.
        ttl: Duration,
        /// How long to seek it.
        within: Duration,
        /// Whether it is renewed in the background.
        renewed: bool,
        /// After so long the request is dropped.
        dropped_after: Option<Duration>,
    },
    /// Waits until the lock is lost, but no longer than this.
    Hold(Duration),
    /// Extends the lock that it has.
    Extend {
        /// For how long from now on.
        ttl: Duration,
        /// After so long the future is dropped.
        dropped_after: Option<Duration>,
    },
    /// Ends the renewal of the lock that it has.
    StopRenewal,
    /// Releases the lock that it has, and waits for the outcome.
    Release,
    /// Drops the lock that it has.
    Drop,
    /// Waits.
    Rest(Duration),
}

/// What commands may take beyond what is promised, because a process runs a little after it has been woken.
const GRACE: Duration = Duration::from_millis(15);

/// The resource with this number.
pub(super) fn resource(number: u8) -> String {
    format!("resource{number}")
}

/// Carries out these steps, one after the other, and reports commands that end late.
pub(super) async fn run(client: Client, steps: Vec<Step>, answer_limit: Duration) {
    let mut guard: Option<Guard> = None;
    for step in steps {
        match step {
            Step::Lock { resource: number, ttl, within, renewed, dropped_after } => {
                drop(guard.take());
                let request = client.locker().lock(resource(number)).ttl(ttl).within(within);
                let request = if renewed { request.renew() } else { request };
                let timed = Timed::begin(&client, "lock", within);
                if let Some(Ok(granted)) = unless(&client, dropped_after, request.into_future()).await {
                    if !granted.is_valid() {
                        client.find(Violation::WornOut { client: client.number() });
                    }
                    guard = Some(granted);
                }
                timed.end();
            }
            Step::Hold(span) => match &guard {
                Some(held) => drop(unless(&client, Some(span), held.lost()).await),
                None => client.sleep(span).await,
            },
            Step::Extend { ttl, dropped_after } => {
                if let Some(held) = &guard {
                    let timed = Timed::begin(&client, "extension", answer_limit);
                    // Whatever it says: the observer looks at the guard itself.
                    let _ = unless(&client, dropped_after, held.extend(ttl)).await;
                    timed.end();
                }
            }
            Step::StopRenewal => {
                if let Some(held) = &guard {
                    held.stop_renewal();
                }
            }
            Step::Release => {
                if let Some(held) = guard.take() {
                    let timed = Timed::begin(&client, "release", answer_limit);
                    let _ = held.release().await;
                    timed.end();
                }
            }
            Step::Drop => drop(guard.take()),
            Step::Rest(span) => client.sleep(span).await,
        }
    }
}

/// Seeks a lock when all is well, which must come to something within this time.
pub(super) async fn must_get(client: Client, number: u8, ttl: Duration, within: Duration) {
    let until = client.now() + within;
    loop {
        let left = until.since(client.now());
        match client.locker().lock(resource(number)).ttl(ttl).within(left).await {
            Ok(guard) => {
                client.sleep(Duration::from_millis(3)).await;
                let _ = guard.release().await;
                return;
            }
            // Told at once where a configuration seems to be wrong: a password that was set is known as such until the next attempt to
            // connect, which comes with the back-off.
            Err(AcquireError::Misconfigured(_)) if client.now() < until => {
                client.sleep(Duration::from_millis(50)).await;
            }
            Err(error) => {
                let error = error.to_string();
                return client.find(Violation::NoProgress { client: client.number(), error });
            }
        }
    }
}

/// How long a command takes on its client's clock, without the time for which the process stood still.
struct Timed<'a> {
    client: &'a Client,
    command: &'static str,
    limit: Duration,
    began: crate::time::Instant,
    paused_for: Duration,
}

impl<'a> Timed<'a> {
    fn begin(client: &'a Client, command: &'static str, limit: Duration) -> Self {
        Self { client, command, limit, began: client.now(), paused_for: client.paused_for() }
    }

    fn end(self) {
        let paused = self.client.paused_for() - self.paused_for;
        let took = self.client.now().since(self.began);
        // A clock that is fast sees more of a pause than there was.
        let limit = self.limit + GRACE + paused + paused / 20;
        if took > limit {
            let (client, command) = (self.client.number(), self.command);
            self.client.find(Violation::Late { client, command, took, limit });
        }
    }
}

/// What the future gives, unless it has not come to an end after so long; it is dropped then.
async fn unless<F: Future>(client: &Client, limit: Option<Duration>, future: F) -> Option<F::Output> {
    let Some(limit) = limit else { return Some(future.await) };
    let (mut future, mut over) = (pin!(future), pin!(client.sleep(limit)));
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => over.as_mut().poll(cx).map(|()| None),
    })
    .await
}
