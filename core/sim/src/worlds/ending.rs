//! What every client must get at the end of a plan, after all faults have ended.

use std::time::Duration;

use quorlock_core::front::{Granted, Request};
use quorlock_core::{AcquireError, Instant};

use super::access::{Access, RESOURCES, permits, targets};
use super::client::Client;
use super::locked::Held;
use super::program::{semaphore, wanted_targets};
use super::timing::unless;
use super::violation::Violation;

/// Makes this request, which must be granted within this time. Then acquires another lock, which no
/// other client wants, and which must be renewed, extended and released as promised.
pub(super) async fn must_get(
    client: Client,
    accesses: [Access; RESOURCES],
    ttl: Duration,
    timeout: Duration,
) {
    let until = client.now() + timeout;
    let waiting = wanted_targets(&client, accesses).map(|targets| client.waits(targets));
    if let Err(error) = live(&client, accesses, ttl, until, waiting).await {
        client.find(Violation::NoProgress { client: client.number(), error });
    }
}

async fn live(
    client: &Client,
    accesses: [Access; RESOURCES],
    ttl: Duration,
    until: Instant,
    waiting: Option<u64>,
) -> Result<(), String> {
    let wanted = permits(accesses).and_then(|(number, of, _)| semaphore(client, number, of));
    let guard = if let Some(permits) = wanted {
        keep_asking(client, || permits.acquire(), ttl, until).await?
    } else {
        keep_asking(client, || client.locker().lock_all(targets(accesses)), ttl, until).await?
    };
    waiting.into_iter().for_each(|waiting| client.waits_no_more(waiting));
    client.sleep(Duration::from_millis(3)).await;
    // If one of the masters that granted was just restarting, the client cannot be sure to reach a
    // quorum again.
    drop(guard);
    let own = format!("own{}", client.number());
    let guard = keep_asking(client, || client.locker().lock(&own), ttl, until + ttl * 2).await?;
    if let Some(cause) = unless(client, Some(ttl * 3), guard.lost()).await {
        return Err(format!("its lock was not renewed: {cause}"));
    }
    guard.extend(ttl).await.map_err(|error| error.to_string())?;
    guard.release().await.map(drop).map_err(|error| error.to_string())
}

async fn keep_asking<G: Granted + Into<Held>>(
    client: &Client,
    request: impl Fn() -> Request<G>,
    ttl: Duration,
    until: Instant,
) -> Result<Held, String> {
    loop {
        let left = until.since(client.now());
        let request = request().ttl(ttl).renew().timeout(left);
        let request = if client.number() % 2 == 0 { request } else { request.fenced().heal() };
        match request.await {
            Ok(guard) => return Ok(guard.into()),
            // A wrong configuration is reported at once: a password that was refused counts as
            // wrong until the next attempt to connect, after the backoff.
            Err(AcquireError::Misconfigured(_)) if client.now() < until => {
                client.sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}
