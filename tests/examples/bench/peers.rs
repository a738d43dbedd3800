//! Other clients of several masters, with short pauses between attempts instead of their default
//! ones.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use redlock::RedLock;
use redsync::{RedisInstance, Redsync, RedsyncBuilder};
use rslock::LockManager;
use tokio::runtime::Runtime;

use crate::client::{Client, Limit, Sequence, TTL, Tally, resource};
use crate::ours::threads;
use crate::usage::Meter;

const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(20);

fn urls(addresses: &[SocketAddr]) -> impl Iterator<Item = String> {
    addresses.iter().map(|address| format!("redis://{address}"))
}

/// Futures on a runtime of one thread.
pub(crate) struct Rslock {
    runtime: Runtime,
    manager: LockManager,
}

impl Rslock {
    pub(crate) fn open(addresses: &[SocketAddr], runtime: Runtime) -> Self {
        let mut manager = LockManager::new(urls(addresses).collect());
        manager.set_retry(ATTEMPTS, PAUSE);
        Self { runtime, manager }
    }
}

impl Client for Rslock {
    fn sequential(&mut self, limit: Limit) -> Sequence {
        let (resource, mut sequence) = (resource(0), Sequence::with_capacity(limit));
        self.runtime.block_on(async {
            let begin = Instant::now();
            while sequence.attempts() < limit.pairs && begin.elapsed() < limit.span {
                let start = Instant::now();
                let lock = self.manager.lock(resource.as_str(), TTL).await;
                let granted = Instant::now();
                match lock {
                    Ok(lock) => {
                        lock.release().await;
                        sequence.add(start, Some(granted), true);
                    }
                    Err(_) => sequence.add(start, None, false),
                }
            }
        });
        sequence
    }

    fn in_flight(&mut self, workers: usize, span: Duration) -> Tally {
        let meter = Meter::start();
        let end = Instant::now() + span;
        let worker = |number| {
            let manager = self.manager.clone();
            let resource = resource(number);
            self.runtime.spawn(async move {
                let (mut pairs, mut errors) = (0, 0);
                while Instant::now() < end {
                    match manager.lock(resource.as_str(), TTL).await {
                        Ok(lock) => {
                            lock.release().await;
                            pairs += 1;
                        }
                        Err(_) => errors += 1,
                    }
                }
                (pairs, errors)
            })
        };
        let tasks: Vec<_> = (0..workers).map(worker).collect();
        let ended = self.runtime.block_on(async {
            let mut ended = Vec::new();
            for task in tasks {
                ended.push(task.await.expect("a worker ends well"));
            }
            ended
        });
        Tally::of(ended, meter.stop())
    }
}

/// A client that blocks the thread of its caller.
pub(crate) trait Waits: Sync {
    /// Acquires and releases a lock. Returns when it was granted, and whether the release
    /// succeeded.
    fn pair(&self, resource: &str) -> (Option<Instant>, bool);
}

pub(crate) struct Waiting<C>(C);

impl<C: Waits> Client for Waiting<C> {
    fn sequential(&mut self, limit: Limit) -> Sequence {
        let (resource, mut sequence) = (resource(0), Sequence::with_capacity(limit));
        let begin = Instant::now();
        while sequence.attempts() < limit.pairs && begin.elapsed() < limit.span {
            let start = Instant::now();
            let (granted, released) = self.0.pair(&resource);
            sequence.add(start, granted, released);
        }
        sequence
    }

    fn in_flight(&mut self, workers: usize, span: Duration) -> Tally {
        threads(workers, span, |number, end| {
            let resource = resource(number);
            let (mut pairs, mut errors) = (0, 0);
            while Instant::now() < end {
                let (granted, released) = self.0.pair(&resource);
                let done = granted.is_some() && released;
                pairs += usize::from(done);
                errors += usize::from(!done);
            }
            (pairs, errors)
        })
    }
}

impl Waits for RedLock {
    fn pair(&self, resource: &str) -> (Option<Instant>, bool) {
        let ttl = usize::try_from(TTL.as_millis()).expect("a short life");
        let Ok(Some(lock)) = self.lock(resource.as_bytes(), ttl) else { return (None, false) };
        let granted = Instant::now();
        self.unlock(&lock);
        (Some(granted), true)
    }
}

pub(crate) fn redlock(addresses: &[SocketAddr]) -> Waiting<RedLock> {
    let mut client = RedLock::new(urls(addresses).collect());
    client.set_retry(ATTEMPTS, u32::try_from(PAUSE.as_millis()).expect("a short pause"));
    Waiting(client)
}

impl Waits for Redsync<RedisInstance> {
    fn pair(&self, resource: &str) -> (Option<Instant>, bool) {
        let Ok(lock) = self.lock(resource, TTL) else { return (None, false) };
        let granted = Instant::now();
        (Some(granted), self.unlock(&lock).is_ok())
    }
}

pub(crate) fn redsync(addresses: &[SocketAddr]) -> Waiting<Redsync<RedisInstance>> {
    let masters = urls(addresses).map(|url| RedisInstance::new(url).expect("a URL of a master"));
    Waiting(RedsyncBuilder::new(masters.collect()).retry_count(ATTEMPTS).retry_delay(PAUSE).build())
}
