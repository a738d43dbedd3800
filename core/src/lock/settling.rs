//! Settling a split: clients with a single attempt each that ask at the same instant may take one another's votes, and then all are refused.
//!
//! "Held by another" is told only if one other token has a quorum, or may have one by reads that failed. Behind a lost last attempt the key is
//! read wherever it was refused, and the reads name the holders. If no other token can have a quorum, the attempt is made again after a short random pause, with
//! one master asked first (`waiting.rs`). A client that is refused there takes no vote away: it reads the key on the masters and so sees whether the
//! client that came first has its quorum by now.
//!
//! It is bounded in time and rounds. A foreign key on half of the masters is a split that no pause cures; its caller is told that another holds the lock
//! when the time is over.

use std::time::Duration;

use super::acquiring::Clearing;
use super::wait::{Settling, Stand};
use super::{Effects, Lock, Phase};
use crate::protocol::{Action, MasterId, MasterSet, Tally, Vote};
use crate::time::Instant;

/// Rounds in which a split is settled. Two are usual; each leaves about one client that is not refused by the first master. More would only matter
/// where every round is lost to a new client, fewer would tell "held by another" where nobody holds the lock.
const SETTLING_ROUNDS: u8 = 16;

/// The least pause before a round that settles a split: about what timers can tell apart.
const LEAST_PAUSE: Duration = Duration::from_millis(1);

/// The longest pause, as a multiple of the duration of the round that was lost: a wide spread, so that clients rarely ask the first master within one round trip.
const SPREAD: u32 = 4;

impl Lock {
    /// Whether the votes of its last attempt were split, and it goes on.
    pub(crate) fn is_settling(&self) -> bool {
        self.wait.settling.is_some()
    }

    /// Behind the last attempt: once the answers are there, it ends, or is made again because the votes were split.
    pub(super) fn conclude(&mut self, now: Instant, effects: &mut Effects<'_>) {
        let Phase::Clearing(clearing) = &self.phase else { return };
        if clearing.retry_at.is_some() {
            return;
        }
        let quorum = effects.config.quorum.needed();
        let is_known = self.is_settling() && self.most_votes_of_another(&[]) >= quorum;
        if !is_known && !clearing.awaited.is_empty() {
            return;
        }
        let tally = Tally::of(&clearing.votes);
        let is_split = tally.is_held_by_another(effects.config.quorum)
            && tally.granted < quorum
            && tally.other_fleet == 0
            && self.most_votes_of_another(&clearing.votes) < quorum;
        if is_split && effects.config.settles_splits && self.has_time_to_settle(now, effects) {
            self.settle(now);
        } else {
            self.finish(effects);
        }
    }

    /// The most masters that one other token may have, by what was read last. A master in `votes` that refused and could not be read may be
    /// anybody's.
    fn most_votes_of_another(&self, votes: &[Vote]) -> usize {
        let stands = &self.wait.stands;
        let holder = |stand: &Stand| match stand {
            Stand::Held { by, .. } => Some(*by),
            Stand::Open | Stand::Unknown => None,
        };
        let holders = stands.iter().filter_map(holder);
        let votes_of = |by| stands.iter().filter(|stand| holder(stand) == Some(by)).count();
        let unnamed =
            votes.iter().zip(stands).filter(|(vote, stand)| vote.is_refusal() && **stand == Stand::Unknown);
        holders.map(votes_of).max().unwrap_or(0) + unnamed.count()
    }

    fn has_time_to_settle(&mut self, now: Instant, effects: &Effects<'_>) -> bool {
        let settling = self.wait.settling.get_or_insert(Settling {
            until: now + *effects.config.retry_delay.end(),
            rounds_left: SETTLING_ROUNDS,
        });
        if now >= settling.until || settling.rounds_left == 0 {
            return false;
        }
        settling.rounds_left -= 1;
        true
    }

    fn settle(&mut self, now: Instant) {
        if let Phase::Clearing(clearing) = &mut self.phase {
            clearing.retry_at = Some(clearing.poll_at.max(now));
        }
    }

    /// The first master refused while a split is settled: all masters are asked who holds the key, and none is asked for a vote.
    pub(super) fn look_around(&mut self, now: Instant, effects: &mut Effects<'_>) {
        let Phase::Trying(trying) = &mut self.phase else { return };
        let (acquire_round, since, said) = (trying.round, trying.since, trying.votes.take());
        let votes = self.wait.last_votes.clone().unwrap_or(said);
        let undo_round = self.next_round();
        self.reached = MasterSet::EMPTY;
        self.wait.stands = vec![Stand::Unknown; votes.len()];
        let mut awaited = MasterSet::EMPTY;
        let connected = MasterId::all(votes.len()).zip(effects.standing).filter(|(_, rank)| rank.is_some());
        connected.for_each(|(master, _)| awaited.insert(master));
        effects.order(awaited, self.request(Some(undo_round), Action::Undo, self.longest_ttl, 0));
        let poll_at = now + settling_pause(now.since(since), effects);
        self.phase = Phase::Clearing(Clearing {
            acquire_round,
            undo_round,
            votes,
            awaited,
            retry_at: None,
            poll_at,
            refused_first: None,
            listens: false,
        });
    }
}

/// Returns the random pause after a round that was lost; `took` is how long the round lasted.
pub(super) fn settling_pause(took: Duration, effects: &mut Effects<'_>) -> Duration {
    // A master that is silent makes a round long and says nothing about the others.
    let longest = (*effects.config.retry_delay.start() / SPREAD).max(LEAST_PAUSE);
    let shortest = took.clamp(LEAST_PAUSE, longest);
    effects.jitter.within(&(shortest..=SPREAD * shortest))
}
