//! What a client does, as a value, and the task that does it.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::client::Client;
use super::violation::Violation;
use crate::front::Guard;
use crate::protocol::AcquireError;
use crate::time::Instant;

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
const GRACE: Duration = ms(15);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The resource with this number.
pub(super) fn resource(number: u8) -> String {
    format!("resource{number}")
}

/// Carries out these steps, one after the other, and reports commands that end late.
pub(super) async fn run(client: Client, steps: Vec<Step>, answer_limit: Duration) {
    let mut guard: Option<Guard> = None;
    // Whether the end of its validity may move without being asked.
    let mut is_renewed = false;
    for step in steps {
        match step {
            Step::Lock { resource: number, ttl, within, renewed, dropped_after } => {
                drop(guard.take());
                is_renewed = renewed;
                let request = client.locker().lock(resource(number)).ttl(ttl).within(within);
                let request = if renewed { request.renew() } else { request };
                let timed = Timed::begin(&client, "lock", within, false);
                if let Some(Ok(granted)) = unless(&client, dropped_after, request.into_future()).await {
                    if !granted.is_valid() {
                        client.find(Violation::WornOut { client: client.number() });
                    }
                    guard = Some(granted);
                }
                timed.end();
            }
            Step::Hold(span) => match &guard {
                Some(held) => {
                    let (end, leapt) = (client.now() + held.remaining(), client.leapt());
                    let lost = unless(&client, Some(span), held.lost()).await;
                    // Timers stand still in a leap; a driver looks at the clock once a second while it holds a lock.
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
                    let timed = Timed::begin(&client, "release", answer_limit, true);
                    let _ = held.release().await;
                    timed.end();
                }
            }
            Step::Drop => drop(guard.take()),
            Step::Rest(span) => client.sleep(span).await,
        }
    }
}

/// Seeks a lock when all is well, which must come to something within this time; and then one of its own, which must be renewed,
/// extended and released as promised.
pub(super) async fn must_get(client: Client, number: u8, ttl: Duration, within: Duration) {
    let until = client.now() + within;
    if let Err(error) = live(&client, number, ttl, until).await {
        client.find(Violation::NoProgress { client: client.number(), error });
    }
}

async fn live(client: &Client, number: u8, ttl: Duration, until: Instant) -> Result<(), String> {
    let guard = keep_asking(client, resource(number), ttl, until).await?;
    client.sleep(Duration::from_millis(3)).await;
    // Who came in through masters of which one was just coming back cannot be sure to hear a quorum once more.
    drop(guard);
    let own = format!("own{}", client.number());
    let guard = keep_asking(client, own, ttl, until + ttl * 2).await?;
    if let Some(cause) = unless(client, Some(ttl * 3), guard.lost()).await {
        return Err(format!("its lock was not renewed: {cause}"));
    }
    guard.extend(ttl).await.map_err(|error| error.to_string())?;
    guard.release().await.map_err(|error| error.to_string())
}

async fn keep_asking(client: &Client, name: String, ttl: Duration, until: Instant) -> Result<Guard, String> {
    loop {
        let left = until.since(client.now());
        match client.locker().lock(&name).ttl(ttl).renew().within(left).await {
            Ok(guard) => return Ok(guard),
            // Told at once where a configuration seems to be wrong: a password that was set is known as such until the next attempt to
            // connect, which comes with the back-off.
            Err(AcquireError::Misconfigured(_)) if client.now() < until => {
                client.sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// How long a command takes on its client's clock; while the process stands still it cannot end.
struct Timed<'a> {
    client: &'a Client,
    command: &'static str,
    limit: Duration,
    began: Instant,
    /// Whether the time counts anew when the process goes on: an answer is waited for from when its request was sent.
    starts_again: bool,
}

impl<'a> Timed<'a> {
    fn begin(client: &'a Client, command: &'static str, limit: Duration, starts_again: bool) -> Self {
        Self { client, command, limit, began: client.now(), starts_again }
    }

    fn end(self) {
        // Timers that were set before a leap fire so much later, and the driver sets none for what comes behind them.
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
