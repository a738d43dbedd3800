//! Who held what, in the words of lockers in this process: a history for the checker of chaos.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quorlock_core::front::{Guard, Request};
use quorlock_core::{AcquireError, FencingToken};

use crate::chaos::checker::{self, Violation};
use crate::chaos::history::{Event, Seeker, What, now};
use crate::chaos::sought::{How, Sought};

/// A history in memory.
#[derive(Debug, Default)]
pub struct Account(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    events: Vec<Event>,
    attempts: u64,
}

/// A guard whose holder writes down when it was valid.
#[derive(Debug)]
pub struct Holding<'a> {
    account: &'a Account,
    by: Seeker,
    guard: Guard,
}

impl Account {
    /// Seeks one lock, exclusively. The request is the caller's, with this TTL.
    ///
    /// # Errors
    /// As the request has them.
    pub fn seek(
        &self,
        client: &str,
        resource: &str,
        ttl: Duration,
        request: Request<Guard>,
    ) -> Result<Holding<'_>, AcquireError> {
        let by = {
            let mut book = self.book();
            book.attempts += 1;
            Seeker { client: client.to_owned(), attempt: book.attempts }
        };
        self.note(now(), What::Seeks { by: by.clone(), sought: Sought::one(resource, How::Write) });
        let guard = request.ttl(ttl).wait()?;
        let token = guard.fencing_token().map(FencingToken::get);
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        // The checker need not know which of them are renewed: none outlives a pause of its process here.
        self.note(now(), What::Granted { by: by.clone(), token, ttl, renewed: true, permit: None });
        let holding = Holding { account: self, by, guard };
        holding.look();
        Ok(holding)
    }

    /// What the checker finds in it.
    pub fn violations(&self) -> Vec<Violation> {
        checker::check(&self.book().events)
    }

    fn note(&self, at: u64, what: What) {
        self.book().events.push(Event { at, what });
    }

    fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holding<'_> {
    /// Whether it is valid. The clock is read before the guard: what it says is true of that instant too.
    pub fn look(&self) -> bool {
        let at = now();
        let is_valid = self.guard.is_valid();
        if is_valid {
            self.account.note(at, What::Valid { by: self.by.clone() });
        }
        is_valid
    }

    /// The guard itself.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }
}
