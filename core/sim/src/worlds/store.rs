//! The data that a lock protects: a number that several clients change, without losing a change.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use quorlock_core::FencingToken;

use super::client::Client;
use super::violation::Violation;

/// A number that clients read and write under a lock. Cheap to clone.
///
/// A client that writes on the basis of an outdated reading undoes the change of another client:
/// that is a [`Violation::LostUpdate`], and ends the run. If clients pass fencing tokens, the store
/// remembers the largest one and refuses requests with a smaller one.
#[derive(Clone, Default)]
pub struct Store(Rc<RefCell<Shelf>>);

#[derive(Default)]
struct Shelf {
    value: u64,
    /// How often it has been written, and its last writer.
    version: u64,
    writer: usize,
    largest: Option<FencingToken>,
}

/// An error: the store has seen a larger fencing token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outdated;

impl fmt::Display for Outdated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store has seen a larger fencing token")
    }
}

impl std::error::Error for Outdated {}

/// A reading of a [`Store`], on the basis of which a client can write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a write needs what was read before"]
pub struct Reading {
    value: u64,
    version: u64,
}

impl Reading {
    /// Returns the number.
    pub fn value(self) -> u64 {
        self.value
    }
}

impl Store {
    /// Creates a store that holds 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the present number.
    pub fn value(&self) -> u64 {
        self.0.borrow().value
    }

    /// Reads the number, with the fencing token of the lock if there is one.
    ///
    /// # Errors
    /// Returns [`Outdated`] if the store has seen a larger fencing token.
    pub fn read(&self, client: &Client, fence: Option<FencingToken>) -> Result<Reading, Outdated> {
        let shelf = &mut *self.0.borrow_mut();
        let is_taken = shelf.admits(fence);
        client.stored(format!("reads {}{}", shelf.value, by(fence)), is_taken);
        if is_taken { Ok(Reading { value: shelf.value, version: shelf.version }) } else { Err(Outdated) }
    }

    /// Writes a number that is based on a reading.
    ///
    /// # Errors
    /// Returns [`Outdated`] if the store has seen a larger fencing token.
    pub fn write(
        &self,
        client: &Client,
        reading: Reading,
        value: u64,
        fence: Option<FencingToken>,
    ) -> Result<(), Outdated> {
        let shelf = &mut *self.0.borrow_mut();
        let is_taken = shelf.admits(fence);
        client.stored(format!("writes {value}{}", by(fence)), is_taken);
        if !is_taken {
            return Err(Outdated);
        }
        if shelf.version != reading.version {
            client.find(Violation::LostUpdate { client: client.number(), of: shelf.writer });
        }
        (shelf.value, shelf.version, shelf.writer) = (value, shelf.version + 1, client.number());
        Ok(())
    }
}

impl Shelf {
    fn admits(&mut self, fence: Option<FencingToken>) -> bool {
        let Some(fence) = fence else { return true };
        let is_admitted = self.largest.is_none_or(|largest| fence >= largest);
        if is_admitted {
            self.largest = Some(fence);
        }
        is_admitted
    }
}

fn by(fence: Option<FencingToken>) -> String {
    fence.map(|fence| format!(", number {fence}")).unwrap_or_default()
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
