//! Settling a split: clients with a single attempt each may take one another's votes if they ask at
//! the same instant. Then all of them are refused.
//!
//! "Held by another" is reported only if one other token has a quorum, or may have one because
//! reads failed. After a lost last attempt the key is read on all masters that refused, and the
//! reads name the holders. If no other token can have a quorum, the attempt is repeated after a
//! short random pause, with one master asked first (`plan.rs`). A client that is refused there
//! takes no vote away: it reads the key on the masters and so learns whether the first client now
//! has its quorum.
//!
//! A permit may be free although the seat that one master assigned was refused. Then the attempt is
//! repeated, and another master is asked first, until each of them has been.
//!
//! Settling is bounded in time and rounds. A foreign key on half of the masters is a split that no
//! pause resolves; the caller gets "held by another" when the time is over.

use std::time::Duration;

use super::bid::{Bid, Plan, Waiting};
use super::masters::Masters;
use crate::lock::{Assigner, Effects, Lock, Refused};
use crate::protocol::{MasterId, MasterSet, Tally};
use crate::time::Instant;

/// The maximum number of rounds to settle a split. Two are usual; in each, the first master refuses
/// all clients but about one. Larger: matters only if every round is lost to a new client. Smaller:
/// reports "held by another" although the lock is free.
const SETTLING_ROUNDS: u8 = 16;

/// The shortest pause before a round that settles a split: about the resolution of timers. Smaller:
/// clients ask in step again. Larger: the caller of a single try waits longer.
const LEAST_PAUSE: Duration = Duration::from_millis(1);

/// The longest pause is this many times the shortest one. The shortest lasts as long as the lost
/// round did, but at most `retry_delay` divided by this number. Larger: clients ask the first
/// master less often within one round trip of each other. Smaller: callers wait less.
const SPREAD: u32 = 4;

/// The limits of settling a split.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Settling {
    until: Instant,
    rounds_left: u8,
}

impl Bid {
    /// Whether the votes of its last attempt were split, and it continues.
    pub(crate) fn is_settling(&self) -> bool {
        self.settling.is_some()
    }

    /// Ends the request after a lost last attempt, or plans to repeat that attempt if the votes
    /// were split. Does nothing if a further attempt is planned, or while answers that matter are
    /// outstanding.
    pub(super) fn conclude(&mut self, lock: &mut Lock, effects: &mut Effects<'_>) {
        let now = effects.now;
        let Plan::Waiting(waiting) = &self.plan else { return };
        if waiting.retry_at.is_some() {
            return;
        }
        let quorum = effects.config.quorum.needed();
        let is_known = self.is_settling() && self.masters.most_of_another(&[]) >= quorum;
        if !is_known && !waiting.awaited.is_empty() {
            return;
        }
        let tally = Tally::of(&waiting.votes);
        let no_other_has_it = self.masters.most_of_another(&waiting.votes) < quorum;
        let is_split = tally.is_held_by_another(effects.config.quorum)
            && tally.granted() < quorum
            && tally.other_fleet() == 0
            && self.may_have_other_seats(lock).unwrap_or(no_other_has_it);
        if is_split && effects.config.settles_splits && self.has_time_to_settle(effects) {
            if let Some(waiting) = self.waiting() {
                waiting.retry_at = Some(waiting.poll_at.max(now));
            }
        } else {
            self.finish(lock, effects);
        }
    }

    /// For permits: whether a majority may have other seats than those that were refused. It has
    /// none if no master assigned any. `None` if the names of the holders decide.
    fn may_have_other_seats(&self, lock: &Lock) -> Option<bool> {
        let (_, of, take) = lock.targets().as_permit()?;
        (take < of && self.assigner != Assigner::Common).then(|| lock.seat().is_some())
    }

    fn has_time_to_settle(&mut self, effects: &Effects<'_>) -> bool {
        let now = effects.now;
        let settling = self.settling.get_or_insert(Settling {
            until: now + *effects.config.retry_delay.end(),
            rounds_left: SETTLING_ROUNDS,
        });
        if now >= settling.until || settling.rounds_left == 0 {
            return false;
        }
        settling.rounds_left -= 1;
        true
    }

    /// The first master refused while a split is settled: asks all connected masters who holds the
    /// key, without asking for a vote. If none can be asked, the present knowledge decides.
    pub(super) fn look_around(&mut self, refused: Refused, lock: &mut Lock, effects: &mut Effects<'_>) {
        let now = effects.now;
        let votes = self.last_votes.clone().unwrap_or_else(|| refused.votes.into());
        self.masters = Masters::unknown(votes.len());
        let mut awaited = MasterSet::EMPTY;
        // There is no read for permits: a request for one also asks who holds them.
        if lock.targets().as_permit().is_none() {
            let connected = MasterId::all(votes.len()).zip(effects.ranks).filter(|(_, rank)| rank.is_some());
            connected.for_each(|(master, _)| awaited.insert(master));
        }
        let read = lock.read(awaited, false, effects);
        debug_assert_eq!(read, Ok(()), "a lock that was refused has a token");
        let poll_at = now + pause(now.since(refused.since), effects);
        self.plan = Plan::Waiting(Waiting {
            votes,
            awaited,
            retry_at: None,
            poll_at,
            refused_first: None,
            listens: false,
        });
        if awaited.is_empty() {
            self.conclude(lock, effects);
        }
    }
}

/// Returns the random pause after a lost round; `took` is how long the round lasted.
pub(super) fn pause(took: Duration, effects: &mut Effects<'_>) -> Duration {
    // A silent master makes a round long, but says nothing about the others.
    let longest = (*effects.config.retry_delay.start() / SPREAD).max(LEAST_PAUSE);
    let shortest = took.clamp(LEAST_PAUSE, longest);
    effects.jitter.within(&(shortest..=SPREAD * shortest))
}
