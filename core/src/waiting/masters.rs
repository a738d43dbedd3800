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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Cause, Fate, FencingToken};

    const NOW: Instant = Instant::ORIGIN;
    const HOLDER: Answer = Answer::Holder { holder: 7, remaining: None, watched: true };

    fn first() -> MasterId {
        MasterId::all(3).next().unwrap()
    }

    /// What is known after this answer of the first of three masters.
    fn after(answer: Answer, is_read: bool) -> Masters {
        let mut masters = Masters::default();
        masters.note(first(), answer, is_read, 3, NOW);
        masters
    }

    /// How many keys are free, held with a notification of their end, and unknown.
    fn counts(masters: &Masters) -> [usize; 3] {
        [masters.count(Key::Free), masters.watched(), masters.count(Key::Unknown)]
    }

    #[test]
    fn an_answer_says_whether_the_key_is_free_or_held() {
        let number = FencingToken::new(1).unwrap();
        let queued = |ahead| Answer::Queued { number, ahead, is_first: true, watched: true };
        let ahead = Ahead { holder: 7, remaining: None };
        let failed = Answer::Failed { cause: Cause::Closed, fate: Fate::Unknown, stale: false };
        let (free, held, unknown) = ([1, 0, 2], [0, 1, 2], [0, 0, 3]);
        for (answer, at_a_read, at_an_attempt) in [
            (HOLDER, held, held),
            (queued(Some(ahead)), held, held),
            (queued(None), free, free),
            (Answer::Yes, free, unknown),
            (Answer::Counted(number), free, unknown),
            (Answer::No, free, unknown),
            (failed, unknown, unknown),
        ] {
            assert_eq!(counts(&after(answer, true)), at_a_read, "{answer:?}");
            assert_eq!(counts(&after(answer, false)), at_an_attempt, "{answer:?}");
        }
        assert_eq!(Masters::unknown(3), after(failed, true));
    }

    #[test]
    fn a_master_is_silent_and_unheard_until_it_has_said_something_about_the_key() {
        for (masters, silent, is_unheard) in [
            (Masters::default(), 0, false),
            (Masters::unknown(3), 3, true),
            (after(HOLDER, true), 2, false),
            (after(Answer::Yes, true), 2, false),
        ] {
            assert_eq!((masters.silent(), masters.is_unheard(first())), (silent, is_unheard), "{masters:?}");
        }
    }

    #[test]
    fn a_notification_and_its_end_are_news_only_about_a_key_that_was_held() {
        for (answer, is_news, left) in [(HOLDER, true, [0, 0, 3]), (Answer::Yes, false, [1, 0, 2])] {
            let mut masters = after(answer, true);
            assert_eq!(masters.unwatched(first()), is_news, "{answer:?}");
            assert_eq!(counts(&masters), left, "{answer:?}");
            let mut masters = after(answer, true);
            assert_eq!(masters.changed(first()), is_news, "{answer:?}");
            assert_eq!(counts(&masters), [1, 0, 2], "{answer:?}");
        }
    }

    #[test]
    fn a_lost_round_frees_the_masters_that_granted_it_and_keeps_what_others_have_named() {
        let refused = |holder| Vote::HeldByAnother { remaining: None, holder };
        for (votes, known) in [
            ([Vote::Granted, Vote::Outstanding, refused(None)], [1, 0, 2]),
            ([refused(Some(7)), Vote::Granted, Vote::Failed(Cause::Closed)], [1, 1, 1]),
        ] {
            let mut masters = after(HOLDER, true);
            masters.undone(&votes);
            assert_eq!(counts(&masters), known, "{votes:?}");
        }
    }

    #[test]
    fn only_a_master_that_refused_can_free_a_refusal() {
        let refused = Vote::HeldByAnother { remaining: None, holder: None };
        for (vote, answer, has_freed) in [
            (refused, Answer::Yes, true),
            (refused, HOLDER, false),
            (Vote::Granted, Answer::Yes, false),
            (Vote::Granted, HOLDER, false),
        ] {
            let masters = after(answer, true);
            assert_eq!(masters.has_freed_a_refusal(&[vote; 3]), has_freed, "{vote:?} {answer:?}");
        }
    }
}
