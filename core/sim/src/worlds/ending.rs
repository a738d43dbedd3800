//! What every client must get at the end of a plan, when all is well.

use std::time::Duration;

use quorlock_core::front::{Granted, Request};
use quorlock_core::{AcquireError, Instant};

use super::access::{Access, RESOURCES, permit, targets};
use super::client::Client;
use super::locked::Held;
use super::program::{semaphore, unless};
use super::violation::Violation;

/// Requests what this names, which must come to something within this time; and then a lock of its
/// own, which must be renewed, extended and released as promised.
pub(super) async fn must_get(
    client: Client,
    accesses: [Access; RESOURCES],
    ttl: Duration,
    timeout: Duration,
) {
    let until = client.now() + timeout;
    if let Err(error) = live(&client, accesses, ttl, until).await {
        client.find(Violation::NoProgress { client: client.number(), error });
    }
}

async fn live(
    client: &Client,
    accesses: [Access; RESOURCES],
    ttl: Duration,
    until: Instant,
) -> Result<(), String> {
    let guard = if let Some(permits) = permit(accesses).and_then(|of| semaphore(client, of)) {
        keep_asking(client, || permits.acquire(), ttl, until).await?
    } else {
        keep_asking(client, || client.locker().lock_all(targets(accesses)), ttl, until).await?
    };
    client.sleep(Duration::from_millis(3)).await;
    // Who came in through masters of which one was just coming back cannot be sure to hear a quorum
    // once more.
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
            // Told at once where a configuration seems to be wrong: a password that was set is
            // known as such until the next attempt to connect, which comes with the backoff.
            Err(AcquireError::Misconfigured(_)) if client.now() < until => {
                client.sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}
