//! Other crates that implement Redlock, in this process.

use std::time::Duration;

use redlock::RedLock;
use redsync::{RedisInstance, Redsync, RedsyncBuilder};
use rslock::LockManager;
use tokio::runtime::Runtime;

use crate::client::Foreign;

/// All crates, with one attempt for each request, like `try_lock`, and with their other defaults.
pub(crate) fn all(urls: &[String]) -> Result<Vec<Box<dyn Foreign>>, String> {
    let pause = Duration::from_millis(1);
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let mut manager = LockManager::new(urls.to_vec());
    manager.set_retry(1, pause);
    let mut redlock = RedLock::new(urls.to_vec());
    redlock.set_retry(1, 1);
    let instances = urls.iter().map(|url| RedisInstance::new(url.as_str()));
    let instances: Vec<_> = instances.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let redsync = RedsyncBuilder::new(instances).retry_count(1).build();
    Ok(vec![
        Box::new(Rslock { runtime, manager, held: None }),
        Box::new(Redlock { redlock, held: None }),
        Box::new(RedsyncCrate { redsync, held: None }),
    ])
}

struct Rslock {
    runtime: Runtime,
    manager: LockManager,
    held: Option<rslock::Lock>,
}

impl Foreign for Rslock {
    fn name(&self) -> &str {
        "rslock 0.10"
    }

    fn lock(&mut self, resource: &str, ttl: Duration) -> Result<Result<String, String>, String> {
        let lock = self.runtime.block_on(self.manager.lock(resource, ttl)).map_err(|error| error.to_string());
        Ok(lock.map(|lock| {
            let value = lock.val.clone();
            self.held = Some(lock);
            shown(&value)
        }))
    }

    fn unlock(&mut self) -> Result<bool, String> {
        if let Some(lock) = self.held.take() {
            self.runtime.block_on(lock.release());
        }
        Ok(true)
    }
}

struct Redlock {
    redlock: RedLock,
    held: Option<(Vec<u8>, Vec<u8>)>,
}

impl Foreign for Redlock {
    fn name(&self) -> &str {
        "redlock 2.0"
    }

    fn lock(&mut self, resource: &str, ttl: Duration) -> Result<Result<String, String>, String> {
        let millis = usize::try_from(ttl.as_millis()).map_err(|error| error.to_string())?;
        let lock = self.redlock.lock(resource.as_bytes(), millis).map_err(|error| error.to_string())?;
        let Some(lock) = lock else { return Ok(Err("without a reason".into())) };
        let value = shown(&lock.val);
        self.held = Some((lock.resource, lock.val));
        Ok(Ok(value))
    }

    fn unlock(&mut self) -> Result<bool, String> {
        if let Some((resource, val)) = self.held.take() {
            self.redlock.unlock(&redlock::Lock {
                resource,
                val,
                validity_time: 0,
                lock_manager: &self.redlock,
            });
        }
        Ok(true)
    }
}

struct RedsyncCrate {
    redsync: Redsync<RedisInstance>,
    held: Option<redsync::Lock>,
}

impl Foreign for RedsyncCrate {
    fn name(&self) -> &str {
        "redsync 1.0 (the crate)"
    }

    fn lock(&mut self, resource: &str, ttl: Duration) -> Result<Result<String, String>, String> {
        let lock = self.redsync.lock(resource, ttl).map_err(|error| error.to_string());
        Ok(lock.map(|lock| {
            let value = lock.value.clone();
            self.held = Some(lock);
            value
        }))
    }

    fn unlock(&mut self) -> Result<bool, String> {
        Ok(self.held.take().is_some_and(|lock| self.redsync.unlock(&lock).is_ok()))
    }
}

/// A key's value in the form in which the harness shows it.
fn shown(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}
