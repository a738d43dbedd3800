//! The record of a run, for people to read.

mod drawing;
mod faults;
mod happening;
mod mermaid;

use std::fmt;

use quorlock_core::Resource;

pub(super) use self::happening::Happening;
use super::clock::TrueTime;
use crate::picture::Picture;

/// The actor of an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Actor {
    Client(usize),
    Master(usize),
    Store,
    /// Faults and verdicts.
    World,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(number) => write!(f, "client{number}"),
            Self::Master(number) => write!(f, "master{number}"),
            Self::Store => f.write_str("store"),
            Self::World => f.write_str("world"),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Entry {
    at: TrueTime,
    what: Happening,
}

/// The events of a run, in true time.
///
/// [`Display`](fmt::Display) writes one line for each event; [`Timeline::to_mermaid`] and
/// [`Timeline::picture`] draw them. Tokens are shown as numbers, in the order of their first use.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Timeline {
    entries: Vec<Entry>,
    /// The keys that masters have and had, for the picture.
    keys: Vec<Key>,
    /// The indices of keys that have not ended, so that a long run is not searched repeatedly.
    present: Vec<usize>,
    is_kept: bool,
}

/// A key that a master keeps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    pub(super) master: usize,
    /// Its owner, and the names of the key and its token.
    pub(super) client: usize,
    pub(super) resource: Resource,
    pub(super) token: usize,
    /// Since when the master has the key.
    pub(super) from: TrueTime,
    /// When the key expires, if it is not changed.
    pub(super) until: TrueTime,
}

impl Timeline {
    pub(super) fn new(is_kept: bool) -> Self {
        Self { is_kept, ..Self::default() }
    }

    /// Records an event, if events are recorded, and returns its index. A proof that runs millions
    /// of worlds records only the failed one.
    pub(super) fn note(&mut self, at: TrueTime, what: impl FnOnce() -> Happening) -> Option<usize> {
        if !self.is_kept {
            return None;
        }
        self.entries.push(Entry { at, what: what() });
        Some(self.entries.len() - 1)
    }

    /// Marks a sent command as executed, and returns when it was sent.
    pub(super) fn executed(&mut self, place: usize) -> Option<TrueTime> {
        let entry = self.entries.get_mut(place)?;
        if let Happening::Sent { is_executed, .. } = &mut entry.what {
            *is_executed = true;
        }
        Some(entry.at)
    }

    /// The answer to an executed command has arrived.
    pub(super) fn heard(&mut self, place: usize, at: TrueTime) {
        if let Some(Entry { what: Happening::Executed { heard, .. }, .. }) = self.entries.get_mut(place) {
            *heard = Some(at);
        }
    }

    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// A master has these keys now. Its other keys are gone.
    pub(super) fn keys_are(&mut self, master: usize, now: TrueTime, present: Vec<Key>) {
        let Self { keys, present: places, .. } = self;
        let mut known = Vec::new();
        places.retain(|place| {
            let Some(key) = keys.get_mut(*place).filter(|key| now < key.until) else { return false };
            if key.master != master {
                return true;
            }
            let same = |other: &&Key| (&other.resource, other.token) == (&key.resource, key.token);
            match present.iter().find(same) {
                Some(other) => {
                    key.until = other.until;
                    known.push((key.resource.clone(), key.token));
                }
                None => key.until = now,
            }
            now < key.until
        });
        for key in present {
            if !known.iter().any(|(resource, token)| (resource, *token) == (&key.resource, key.token)) {
                places.push(keys.len());
                keys.push(key);
            }
        }
    }

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether no event was recorded.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps the last `count` events only.
    #[must_use]
    pub fn last(&self, count: usize) -> Self {
        let skipped = self.entries.len().saturating_sub(count);
        let entries: Vec<_> = self.entries.iter().skip(skipped).cloned().collect();
        let first = entries.first().map_or(TrueTime::MAX, |entry| entry.at);
        let keys = self.keys.iter().filter(|key| key.until > first);
        let keys = keys.map(|key| Key { from: key.from.max(first), ..key.clone() }).collect();
        Self { entries, keys, present: Vec::new(), is_kept: self.is_kept }
    }

    /// Keeps the events of locks only: no handshakes, reads or pushes.
    #[must_use]
    pub fn about_locks(&self) -> Self {
        let is_about_locks = |entry: &&Entry| match &entry.what {
            Happening::Sent { command, .. } | Happening::Executed { command, .. } => {
                drawing::word(command.kind).is_some()
            }
            Happening::Pushed { .. } => false,
            _ => true,
        };
        Self { entries: self.entries.iter().filter(is_about_locks).cloned().collect(), ..self.clone() }
    }

    /// Returns the events as a [Mermaid sequence
    /// diagram](https://mermaid.js.org/syntax/sequenceDiagram.html).
    pub fn to_mermaid(&self) -> String {
        mermaid::draw(&self.entries)
    }

    /// Returns the events as a picture with this title, without handshakes, reads and pushes.
    pub fn picture(&self, title: impl Into<String>) -> Picture {
        drawing::picture(self, title.into())
    }

    /// All participants, clients first.
    fn actors(entries: &[Entry]) -> Vec<Actor> {
        let mut actors: Vec<Actor> = entries
            .iter()
            .map(|entry| entry.what.actors())
            .flat_map(|(from, to)| [Some(from), to])
            .flatten()
            .filter(|actor| *actor != Actor::World)
            .collect();
        actors.sort_unstable();
        actors.dedup();
        actors
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Entry { at, what } in &self.entries {
            let (millis, nanos) = (at / 1_000_000, at % 1_000_000);
            let actors = match what.actors() {
                (from, Some(to)) => format!("{from} → {to}"),
                (from, None) => from.to_string(),
            };
            writeln!(f, "{millis:>8}.{nanos:06} ms  {actors:<18}  {what}")?;
        }
        Ok(())
    }
}
