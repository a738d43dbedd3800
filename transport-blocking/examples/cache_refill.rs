//! Problem: an entry of a shared cache has become old, and all requests of all machines notice it
//! at once. Only one of them should compute the new entry, and no request should read an entry that
//! is half old and half new.
//!
//! Requests read the entry under a reader's lock, many at a time. A request that finds it old takes
//! the writer's lock and looks again, because another request may have been faster. The writer that
//! has refilled the entry becomes a reader (`downgrade`), so that it reads what it has written.
//!
//! Run: `cargo run -p quorlock-blocking --example cache_refill`, on embedded masters, or on those
//! that `QUORLOCK_MASTERS` names.
//!
//! Watch: twelve threads on three machines read each edition, and one of them refills it. A writer
//! waits for the slowest reader, and new readers wait behind it: hold the reader's lock for the
//! reading alone, never while the page is sent.
#![allow(clippy::print_stdout)]

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use quorlock_blocking::{Config, Locker};
use quorlock_embedded::Masters;

const EDITIONS: u64 = 3;
const MACHINES: [&str; 3] = ["ariel", "belinda", "cordelia"];
const THREADS: usize = 4;

/// A cache whose entry has two parts. It knows no transactions: a reader may see a new title above
/// an old text.
#[derive(Default)]
struct Cache {
    title: AtomicU64,
    text: AtomicU64,
    refills: AtomicU64,
    served: Mutex<Vec<u64>>,
}

impl Cache {
    /// The edition of the entry. The caller holds a lock.
    fn read(&self) -> Result<u64, String> {
        let title = self.title.load(Ordering::SeqCst);
        thread::sleep(Duration::from_millis(2));
        let text = self.text.load(Ordering::SeqCst);
        if title == text { Ok(title) } else { Err(format!("the title of {title} above the text of {text}")) }
    }

    /// Computes the entry. The caller is the only one that holds a lock.
    fn refill(&self, edition: u64) {
        self.title.store(edition, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(30));
        self.text.store(edition, Ordering::SeqCst);
        self.refills.fetch_add(1, Ordering::SeqCst);
    }
}

/// Returns the front page, which must be of this edition at least.
fn front_page(
    machine: &str,
    locker: &Locker,
    cache: &Cache,
    edition: u64,
) -> Result<u64, Box<dyn Error + Send + Sync>> {
    let reader = locker.read("cache/front-page").wait()?;
    let found = cache.read()?;
    reader.release().wait()?;
    if found >= edition {
        return Ok(found);
    }
    // A reader never becomes a writer, so another request may come between.
    let writer = locker.write("cache/front-page").renew().wait()?;
    if cache.read()? < edition {
        println!("{machine}: refills edition {edition}");
        writer.check()?;
        cache.refill(edition);
    }
    let reader = writer.downgrade().map_err(|_| "the lock was lost while the entry was refilled")?;
    let found = cache.read()?;
    reader.release().wait()?;
    Ok(found)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let embedded = Masters::start(3)?;
    let cache = Cache::default();
    let mut lockers = Vec::new();
    for name in MACHINES {
        let config = match env::var_os(Config::MASTERS_VARIABLE) {
            Some(_) => Config::from_env(env::var_os)?,
            None => embedded.config()?,
        };
        lockers.push((name, quorlock_blocking::open(config)?));
    }
    for edition in 1..=EDITIONS {
        let request = |(machine, locker): &(&str, Locker)| {
            let page = front_page(machine, locker, &cache, edition).map_err(|error| error.to_string())?;
            cache.served.lock().unwrap_or_else(PoisonError::into_inner).push(page);
            Ok::<_, String>(())
        };
        thread::scope(|scope| {
            let all = lockers.iter().cycle().take(MACHINES.len() * THREADS);
            let requests: Vec<_> = all.map(|machine| scope.spawn(|| request(machine))).collect();
            requests.into_iter().try_for_each(|it| it.join().map_err(|_| "a request has panicked")?)
        })?;
    }
    let refills = cache.refills.load(Ordering::SeqCst);
    let served = cache.served.lock().unwrap_or_else(PoisonError::into_inner).len();
    println!("{served} requests served, the entry computed {refills} times");
    Ok(if refills == EDITIONS { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
