//! The holders of locks, as the lockers of this process report them: a history for the checker of
//! [`chaos`](crate::chaos).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorlock_core::front::{Guard, Request};
use quorlock_core::{AcquireError, FencingToken};

use crate::chaos::checker::{self, Violation};
use crate::chaos::history::{self, Seeker, What, Writer, now};
use crate::chaos::sought::{How, Sought};

/// A history that lockers of this process write, maybe together with other processes.
#[derive(Debug)]
pub struct Account {
    path: PathBuf,
    history: Writer,
    attempts: AtomicU64,
}

/// A guard whose holder records when it was valid.
#[derive(Debug)]
pub struct Holding<'a> {
    account: &'a Account,
    by: Seeker,
    guard: Guard,
}

impl Account {
    /// Continues the history in this file, or begins it.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), history: Writer::open(path)?, attempts: AtomicU64::new(0) })
    }

    /// Makes the caller's `request` for one exclusive lock with this TTL, and records the outcome.
    ///
    /// # Errors
    /// Those of the request.
    pub fn seek(
        &self,
        client: &str,
        resource: &str,
        ttl: Duration,
        request: Request<Guard>,
    ) -> Result<Holding<'_>, AcquireError> {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let by = Seeker { client: client.to_owned(), attempt };
        self.note(now(), What::Seeks { by: by.clone(), sought: Sought::one(resource, How::Write) });
        let guard = match request.ttl(ttl).wait() {
            Ok(guard) => guard,
            Err(error) => {
                self.note(now(), What::Refused { by, why: error.to_string() });
                return Err(error);
            }
        };
        let token = guard.fencing_token().map(FencingToken::get);
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        // The checker need not know which of them are renewed: none outlives a pause of its process
        // here.
        self.note(now(), What::Granted { by: by.clone(), token, ttl, renewed: true, permit: None });
        let holding = Holding { account: self, by, guard };
        holding.look();
        Ok(holding)
    }

    /// Every promise that the history breaks.
    ///
    /// # Errors
    /// When the file cannot be read, or has been changed by others.
    pub fn violations(&self) -> io::Result<Vec<Violation>> {
        history::read(&self.path).map(|events| checker::check(&events))
    }

    fn note(&self, at: u64, what: What) {
        self.history.add(at, what);
    }
}

impl Holding<'_> {
    /// Checks whether the guard is valid, and records that. The clock is read before the guard is
    /// checked, so a guard that is valid was valid at the recorded instant too.
    pub fn look(&self) -> bool {
        let at = now();
        let is_valid = self.guard.is_valid();
        if is_valid {
            self.account.note(at, What::Valid { by: self.by.clone() });
        }
        is_valid
    }
}
