//! What is known about one resource's key on each master.
//!
//! After a read, a master notifies when the key changes (`connection/tracking.rs`). That means only
//! "changed": renewals are notified, too.

use std::time::Duration;

use crate::protocol::{Ahead, Answer, MasterId, MasterSet, Quorum, Vote};
use crate::time::Instant;

/// Masters report remaining lives in whole milliseconds, rounded down: this is the minimum.
/// Smaller: asks before the key has expired. Larger: leaves a free lock idle.
const WHOLE: Duration = Duration::from_millis(1);

/// The key on one master.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Key {
    /// Nothing is known, and no notification will come.
    Unknown,
    /// The key is free, or has changed since it was read.
    Free,
    /// Another held it when it was read: `by` is the fingerprint of its token. It expires at
    /// `until`, unless renewed; a notification comes if it is `watched`.
    Held { by: u64, until: Option<Instant>, watched: bool },
}

/// The key on all masters; empty before the first refusal.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(super) struct Masters(Vec<Key>);

impl Masters {
    pub(super) fn unknown(masters: usize) -> Self {
        Self(vec![Key::Unknown; masters])
    }

    /// Whether other masters' keys are known, but not this one's.
    pub(super) fn is_unheard(&self, master: MasterId) -> bool {
        self.0.get(master.index()) == Some(&Key::Unknown)
    }

    /// Whether this master's key is held, as far as is known.
    pub(super) fn is_held(&self, master: MasterId, now: Instant) -> bool {
        match self.0.get(master.index()) {
            Some(Key::Held { until, .. }) => until.is_none_or(|until| now < until),
            _ => false,
        }
    }

    pub(super) fn count(&self, wanted: Key) -> usize {
        self.0.iter().filter(|key| **key == wanted).count()
    }

    /// Masters whose keys are free, or have changed since they were read.
    pub(super) fn free(&self) -> MasterSet {
        let mut free = MasterSet::EMPTY;
        let masters = MasterId::all(self.0.len()).zip(&self.0);
        masters.filter(|(_, key)| **key == Key::Free).for_each(|(master, _)| free.insert(master));
        free
    }

    /// How many masters notify when another holder's key changes.
    pub(super) fn watched(&self) -> usize {
        self.0.iter().filter(|key| matches!(key, Key::Held { watched: true, .. })).count()
    }

    /// How many masters do not notify, and have not said that the key is free.
    pub(super) fn silent(&self) -> usize {
        let is_silent = |key: &&Key| matches!(key, Key::Unknown | Key::Held { watched: false, .. });
        self.0.iter().filter(is_silent).count()
    }

    /// Notes what an answer says about the key; `is_read` if it follows an attempt that was taken
    /// back.
    pub(super) fn note(&mut self, master: MasterId, answer: Answer, is_read: bool, of: usize, now: Instant) {
        let key = match answer {
            Answer::Holder { holder, remaining, watched } => {
                let until = remaining.map(|left| now + left.max(WHOLE));
                Key::Held { by: holder, until, watched }
            }
            Answer::Queued { ahead: Some(Ahead { holder, remaining }), watched, .. } => {
                let until = remaining.map(|left| now + left.max(WHOLE));
                Key::Held { by: holder, until, watched }
            }
            Answer::Queued { ahead: None, .. } => Key::Free,
            Answer::Yes | Answer::Counted(_) | Answer::No if is_read => Key::Free,
            _ => Key::Unknown,
        };
        self.0.resize(of, Key::Unknown);
        self.set(master, key);
    }

    /// The key has changed, or may have. Returns whether another held it, as far as was known.
    pub(super) fn changed(&mut self, master: MasterId) -> bool {
        let was_held = self.was_held(master);
        self.set(master, Key::Free);
        was_held
    }

    /// A master no longer notifies of watched keys. Returns `false` if none was watched.
    pub(super) fn unwatched(&mut self, master: MasterId) -> bool {
        let was_held = self.was_held(master);
        if was_held {
            self.set(master, Key::Unknown);
        }
        was_held
    }

    fn was_held(&self, master: MasterId) -> bool {
        matches!(self.0.get(master.index()), Some(Key::Held { .. }))
    }

    fn set(&mut self, master: MasterId, to: Key) {
        if let Some(key) = self.0.get_mut(master.index()) {
            *key = to;
        }
    }

    /// After a round that was lost with these votes.
    pub(super) fn undone(&mut self, votes: &[Vote]) {
        self.0.resize(votes.len(), Key::Unknown);
        for (key, vote) in self.0.iter_mut().zip(votes) {
            *key = match vote {
                // The undo is executed there before anything that is asked later.
                Vote::Granted => Key::Free,
                // The master has already answered in more detail, and may have notified of a change
                // since.
                Vote::HeldByAnother { holder: Some(_), .. } => *key,
                _ => Key::Unknown,
            };
        }
    }

    /// Forgets what is known about the other masters.
    pub(super) fn forget_all_but(&mut self, master: MasterId) {
        for (other, key) in MasterId::all(self.0.len()).zip(&mut self.0) {
            if other != master {
                *key = Key::Unknown;
            }
        }
    }

    /// Whether a master that refused has become free since.
    pub(super) fn has_freed_a_refusal(&self, votes: &[Vote]) -> bool {
        votes.iter().zip(&self.0).any(|(vote, key)| vote.is_refusal() && *key == Key::Free)
    }

    /// When a quorum of keys may be free, if those without notifications may be at `poll_at`.
    pub(super) fn quorum_free_at(&self, quorum: Quorum, poll_at: Instant, now: Instant) -> Instant {
        let free_at = |key: &Key| match key {
            Key::Free => now,
            Key::Held { until: Some(until), watched: true, .. } => *until,
            Key::Held { until: Some(until), watched: false, .. } => poll_at.min(*until),
            Key::Held { until: None, .. } | Key::Unknown => poll_at,
        };
        let mut ends: Vec<Instant> = self.0.iter().map(free_at).collect();
        ends.sort_unstable();
        ends.get(quorum.needed() - 1).copied().unwrap_or(poll_at)
    }

    /// The maximum number of masters that one other token may have, according to the last reads. A
    /// master in `votes` that refused and could not be read may have any token.
    pub(super) fn most_of_another(&self, votes: &[Vote]) -> usize {
        let holder = |key: &Key| match key {
            Key::Held { by, .. } => Some(*by),
            Key::Free | Key::Unknown => None,
        };
        let held_by = |by| self.0.iter().filter(|key| holder(key) == Some(by)).count();
        let unnamed =
            votes.iter().zip(&self.0).filter(|(vote, key)| vote.is_refusal() && **key == Key::Unknown);
        self.0.iter().filter_map(holder).map(held_by).max().unwrap_or(0) + unnamed.count()
    }
}
