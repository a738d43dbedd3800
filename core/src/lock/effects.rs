//! What a lock is given, and what it gives out.

use std::collections::VecDeque;

use crate::jitter::Jitter;
use crate::protocol::{Config, Entropy, EntropyFailed, Event, MasterSet, Request, Token, Wish};
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

    pub(super) fn fresh_wish(&mut self) -> Result<Wish, EntropyFailed> {
        let mut bytes = [0; Wish::BYTES];
        self.entropy.fill(&mut bytes)?;
        Ok(Wish::from_bytes(bytes))
    }

    pub(super) fn fresh_token(&mut self) -> Result<Token, EntropyFailed> {
        let mut bytes = [0; Token::BYTES];
        self.entropy.fill(&mut bytes)?;
        Ok(Token::from_bytes(bytes))
    }
}
