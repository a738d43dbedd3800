//! Numbers for grants: what the masters' counters say in one attempt, and the number that they agree on.
//!
//! A fencing token is V where a majority of the masters have had the event "the counter is V while the lock is ours". Any two
//! majorities share a master, and there the later of two grants was counted after the earlier one's event, so its number is larger. That
//! needs no assumption about time. The largest number of one round is not enough, nor is a counter that is larger than V.

use super::{Effects, Lock, Phase};
use crate::protocol::{Action, MasterId, MasterSet, Vote};

/// What the masters' counters say in one attempt; nothing where the lock is not fenced.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Numbers(Option<Box<Counters>>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Counters {
    /// Of each master the counter while the lock is ours there; zero before that.
    counted: Vec<u64>,
    highest: u64,
    /// What each master is being asked to raise its counter to; zero where no answer is awaited.
    asked: Vec<u64>,
    /// How often the highest has grown. Each master numbers a grant once, so that it ends.
    grown: usize,
}

impl Numbers {
    pub(super) fn new(fenced: bool, masters: usize) -> Self {
        let zeros = || vec![0; masters];
        let counters = || Counters { counted: zeros(), highest: 0, asked: zeros(), grown: 0 };
        Self(fenced.then(|| Box::new(counters())))
    }

    /// The number of the grant, once enough masters agree on it.
    pub(super) fn highest(&self) -> u64 {
        self.0.as_ref().map_or(0, |counters| counters.highest)
    }

    /// A master has counted: `false` if that is no number that its counter can have.
    pub(super) fn note(&mut self, master: MasterId, number: u64) -> bool {
        self.0.as_mut().is_some_and(|counters| counters.note(master, number))
    }

    /// Whether this master has counted the grant already, so that what it says now is about raising its counter.
    pub(super) fn has_counted(&self, master: MasterId) -> bool {
        let counted = self.0.as_ref().and_then(|counters| counters.counted.get(master.index()));
        counted.is_some_and(|counted| *counted > 0)
    }

    /// How many of the masters that granted the lock have the highest number.
    pub(super) fn agreed(&self, votes: &[Vote]) -> usize {
        self.0.as_ref().map_or(0, |counters| counters.agreed(votes))
    }
}

impl Counters {
    fn note(&mut self, master: MasterId, number: u64) -> bool {
        let masters = self.counted.len();
        let asked = self.asked.get_mut(master.index()).map(std::mem::take);
        if asked.is_none_or(|asked| number < asked) {
            return false;
        }
        let Some(counted) = self.counted.get_mut(master.index()) else { return false };
        if number > self.highest {
            if self.grown >= masters {
                return false;
            }
            self.grown += 1;
            self.highest = number;
        }
        *counted = number;
        true
    }

    fn agreed(&self, votes: &[Vote]) -> usize {
        let both = self.counted.iter().zip(votes);
        both.filter(|(counted, vote)| **vote == Vote::Granted && **counted == self.highest).count()
    }

    /// The masters that granted the lock with a smaller number and are not being asked to raise it; they are from here on.
    fn ask_those_behind(&mut self, votes: &[Vote]) -> MasterSet {
        let mut behind = MasterSet::EMPTY;
        let both = self.counted.iter().zip(&mut self.asked);
        for ((master, (counted, asked)), vote) in MasterId::all(votes.len()).zip(both).zip(votes) {
            if *vote == Vote::Granted && *counted < self.highest && *asked == 0 {
                *asked = self.highest;
                behind.insert(master);
            }
        }
        behind
    }
}

impl Lock {
    /// A quorum granted the lock with different numbers: the smaller ones are raised, where the lock is still ours.
    pub(super) fn raise_numbers(&mut self, effects: &mut Effects<'_>) {
        let Phase::Trying(trying) = &mut self.phase else { return };
        let Some(counters) = &mut trying.numbers.0 else { return };
        let behind = counters.ask_those_behind(&trying.votes);
        let (round, highest) = (trying.round, counters.highest);
        effects.order(behind, self.request(Some(round), Action::Raise, self.ttl, highest));
    }
}
