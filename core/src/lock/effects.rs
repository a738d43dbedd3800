//! What a lock is given, and what it gives out.

use std::collections::VecDeque;

use crate::jitter::Jitter;
use crate::protocol::{
    Config, Entropy, EntropyFailed, Event, MasterId, MasterSet, QueuePlace, Request, Resource, Targets,
    Token, Wish,
};
use crate::time::Instant;

/// One request for a set of masters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Order {
    /// The masters.
    pub to: MasterSet,
    /// What each of them is asked.
    pub request: Request,
}

/// What a lock may use and bring about while it handles one input.
pub(crate) struct Effects<'a> {
    pub(crate) now: Instant,
    pub(crate) config: &'a Config,
    pub(crate) entropy: &'a mut dyn Entropy,
    pub(crate) jitter: &'a mut Jitter,
    pub(crate) orders: &'a mut VecDeque<Order>,
    pub(crate) events: &'a mut VecDeque<Event>,
    /// Of each connected master a rank that is the same for all clients.
    pub(crate) ranks: &'a [Option<u64>],
}

impl Effects<'_> {
    pub(crate) fn order(&mut self, to: MasterSet, request: Request) {
        if !to.is_empty() {
            self.orders.push_back(Order { to, request });
        }
    }

    /// The connected master that all clients ask first for these targets, where they ask one before
    /// the others.
    pub(crate) fn first_master(&self, targets: &Targets) -> Option<MasterId> {
        self.ranked(targets).max().map(|(_, first)| first)
    }

    /// All connected masters in that order.
    pub(super) fn first_masters(&self, targets: &Targets) -> impl Iterator<Item = MasterId> + use<> {
        let mut ranked: Vec<_> = self.ranked(targets).collect();
        ranked.sort_unstable_by(|one, other| other.cmp(one));
        ranked.into_iter().map(|(_, master)| master)
    }

    fn ranked(&self, targets: &Targets) -> impl Iterator<Item = (u64, MasterId)> {
        // Locks of several targets may meet with different first ones, so all of them ask the same
        // master first.
        let seed = targets.only().map_or(0, |(resource, _)| digest(resource));
        let ranked = MasterId::all(self.ranks.len()).zip(self.ranks);
        let connected = ranked.filter_map(|(master, rank)| Some((master, (*rank)?)));
        connected.map(move |(master, rank)| (Jitter::new(seed ^ rank).next(), master))
    }

    pub(super) fn fresh_wish(&mut self) -> Result<Wish, EntropyFailed> {
        let mut bytes = [0; Wish::BYTES];
        self.entropy.fill(&mut bytes)?;
        Ok(Wish::from_bytes(bytes))
    }

    pub(super) fn fresh_place(&mut self) -> Result<QueuePlace, EntropyFailed> {
        let mut bytes = [0; QueuePlace::BYTES];
        self.entropy.fill(&mut bytes)?;
        Ok(QueuePlace::from_bytes(bytes))
    }

    pub(super) fn fresh_token(&mut self) -> Result<Token, EntropyFailed> {
        let mut bytes = [0; Token::BYTES];
        self.entropy.fill(&mut bytes)?;
        Ok(Token::from_bytes(bytes))
    }
}

/// The same number in every process (FNV-1a, Fowler, Noll and Vo 1991).
fn digest(resource: &Resource) -> u64 {
    let bytes = resource.key().iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
