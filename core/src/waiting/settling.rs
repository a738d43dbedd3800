//! Settling a split: clients with a single attempt each that ask at the same instant may take one
//! another's votes, and then all are refused.
//!
//! "Held by another" is told only if one other token has a quorum, or may have one by reads that
//! failed. Behind a lost last attempt the key is read wherever it was refused, and the reads name
//! the holders. If no other token can have a quorum, the attempt is made again after a short random
//! pause, with one master asked first (`plan.rs`). A client that is refused there takes no vote
//! away: it reads the key on the masters and so sees whether the client that came first has its
//! quorum by now.
//!
//! It is bounded in time and rounds. A foreign key on half of the masters is a split that no pause
//! cures; its caller is told that another holds the lock when the time is over.

use std::time::Duration;

use super::bid::{Bid, Plan, Waiting};
use super::masters::Masters;
use crate::lock::{Effects, Lock, Refused};
use crate::protocol::{MasterId, MasterSet, Tally};
use crate::time::Instant;

/// Rounds in which a split is settled. Two are usual; each leaves about one client that is not
/// refused by the first master. More would only matter where every round is lost to a new client,
/// fewer would tell "held by another" where nobody holds the lock.
const SETTLING_ROUNDS: u8 = 16;

/// The least pause before a round that settles a split: about what timers can tell apart. Shorter
/// would let clients ask in step again, longer keeps the caller of a single try waiting.
const LEAST_PAUSE: Duration = Duration::from_millis(1);

/// The longest pause, as a multiple of the shortest, which is the duration of the round that was
/// lost, but at most `retry_delay` divided by this. A wider spread makes it rarer that clients ask
/// the first master within one round trip; a narrower one keeps callers waiting for less.
const SPREAD: u32 = 4;

/// How long a split may be settled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Settling {
    until: Instant,
    rounds_left: u8,
}

impl Bid {
    /// Whether the votes of its last attempt were split, and it goes on.
    pub(crate) fn is_settling(&self) -> bool {
        self.settling.is_some()
    }

    /// Behind the last attempt: once the answers are there, it ends, or is made again because the
    /// votes were split.
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
        let is_split = tally.is_held_by_another(effects.config.quorum)
            && tally.granted() < quorum
            && tally.other_fleet() == 0
            && self.masters.most_of_another(&waiting.votes) < quorum;
        if is_split && effects.config.settles_splits && self.has_time_to_settle(effects) {
            if let Some(waiting) = self.waiting() {
                waiting.retry_at = Some(waiting.poll_at.max(now));
            }
        } else {
            self.finish(lock, effects);
        }
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

    /// The first master refused while a split is settled: all connected masters are asked who holds
    /// the key, and none is asked for a vote. Where none can be asked, what is known decides.
    pub(super) fn look_around(&mut self, refused: Refused, lock: &mut Lock, effects: &mut Effects<'_>) {
        let now = effects.now;
        let votes = self.last_votes.clone().unwrap_or_else(|| refused.votes.into());
        self.masters = Masters::unknown(votes.len());
        let mut awaited = MasterSet::EMPTY;
        // Who holds a permit is not asked without asking for one.
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

/// Returns the random pause after a round that was lost; `took` is how long the round lasted.
pub(super) fn pause(took: Duration, effects: &mut Effects<'_>) -> Duration {
    // A master that is silent makes a round long and says nothing about the others.
    let longest = (*effects.config.retry_delay.start() / SPREAD).max(LEAST_PAUSE);
    let shortest = took.clamp(LEAST_PAUSE, longest);
    effects.jitter.within(&(shortest..=SPREAD * shortest))
}
