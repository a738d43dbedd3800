//! Which events a machine may emit about a lock, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorlock_core::{Event, ExtensionId, Instant, LockId};

/// The locks of a machine as their caller sees them.
#[derive(Default)]
pub(crate) struct Ledger {
    locks: BTreeMap<LockId, Entry>,
    extensions: BTreeSet<ExtensionId>,
}

struct Entry {
    state: State,
    /// The longest TTL that was requested.
    ttl: Duration,
    /// When the caller stops waiting.
    wanted_until: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Sought,
    /// The lock is granted, and the caller has not taken it yet.
    Granted,
    Held,
    Lost,
    Releasing,
}

impl Ledger {
    pub(crate) fn acquired(&mut self, lock: LockId, ttl: Duration, wanted_until: Option<Instant>) {
        let before = self.locks.insert(lock, Entry { state: State::Sought, ttl, wanted_until });
        assert!(before.is_none(), "{lock:?} is given out twice");
    }

    pub(crate) fn extended(&mut self, lock: LockId, extension: ExtensionId, ttl: Duration) {
        let entry = self.locks.get_mut(&lock).expect("an extension of a lock that is over");
        entry.ttl = entry.ttl.max(ttl);
        assert!(self.extensions.insert(extension), "{extension:?} is given out twice");
    }

    pub(crate) fn taken(&mut self, lock: LockId, valid_until: Option<Instant>, now: Instant) {
        let Some(entry) = self.locks.get_mut(&lock) else {
            assert_eq!(valid_until, None, "a lock that is over is handed over");
            return;
        };
        match (entry.state, valid_until) {
            (State::Granted | State::Held, Some(valid_until)) => {
                assert!(now < valid_until && valid_until <= now + entry.ttl);
                entry.state = State::Held;
            }
            (State::Granted | State::Held, None) => entry.state = State::Sought,
            (state, valid_until) => assert_eq!(valid_until, None, "handed over while {state:?}"),
        }
    }

    /// A lock that is still sought ends with its release, without an event.
    pub(crate) fn released(&mut self, lock: LockId) {
        let Some(entry) = self.locks.get_mut(&lock) else { return };
        if entry.state == State::Sought {
            self.locks.remove(&lock);
        } else {
            entry.state = State::Releasing;
        }
    }

    pub(crate) fn cancelled(&mut self, lock: LockId) {
        self.locks.remove(&lock);
    }

    pub(crate) fn happened(&mut self, event: &Event, now: Instant) {
        let (lock, next) = match event {
            Event::Granted { lock, .. } => (lock, State::Granted),
            Event::Renewed { lock, .. } => (lock, State::Held),
            Event::Lost { lock, .. } => (lock, State::Lost),
            Event::NotAcquired { lock, .. } | Event::Released { lock, .. } => {
                let entry = self.locks.remove(lock);
                let state = entry.map(|entry| entry.state);
                let is_in_order = match event {
                    Event::NotAcquired { .. } => matches!(state, Some(State::Sought | State::Granted)),
                    _ => state == Some(State::Releasing),
                };
                assert!(is_in_order, "{event:?} while {state:?}");
                return;
            }
            Event::WaitsForOwn { lock } => {
                let state = self.locks.get(lock).map(|entry| entry.state);
                assert_eq!(state, Some(State::Sought), "{event:?}");
                return;
            }
            Event::Bootstrapped { .. }
            | Event::Inspected { .. }
            | Event::SemaphoreInspected { .. }
            | Event::ForceReleased { .. } => {
                panic!("{event:?}, without a request")
            }
            Event::Extended { extension, .. } => {
                assert!(self.extensions.remove(extension), "{event:?} twice, or unasked");
                return;
            }
        };
        let entry = self.locks.get_mut(lock).unwrap_or_else(|| panic!("{event:?} of a lock that is over"));
        let is_in_order = match next {
            State::Granted => matches!(entry.state, State::Sought | State::Granted),
            State::Lost => entry.state == State::Held,
            _ => matches!(entry.state, State::Granted | State::Held),
        };
        assert!(is_in_order, "{event:?} while {:?}", entry.state);
        if let Event::Granted { valid_until, .. } | Event::Renewed { valid_until, .. } = event {
            assert!(*valid_until <= now + entry.ttl, "{event:?} at {now:?}, after a TTL of {:?}", entry.ttl);
        }
        if next != State::Held {
            entry.state = next;
        }
    }

    /// Checks that no lock is sought for longer than its caller waits, plus `patience` for the last
    /// answers.
    pub(crate) fn no_caller_waits_too_long(&self, now: Instant, patience: Duration) {
        for (lock, entry) in &self.locks {
            if let (State::Sought, Some(until)) = (entry.state, entry.wanted_until) {
                assert!(now <= until + patience, "{lock:?} is sought at {now:?}, until {until:?}");
            }
        }
    }

    /// The clock has jumped to `now`, so no caller could be notified before.
    pub(crate) fn leapt(&mut self, now: Instant) {
        for entry in self.locks.values_mut() {
            entry.wanted_until = entry.wanted_until.map(|until| until.max(now));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.locks.len()
    }
}
