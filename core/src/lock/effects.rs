//! What a lock is given, and what it gives out.

use std::collections::VecDeque;

use crate::connection::Request;
use crate::jitter::Jitter;
use crate::machine::{Entropy, Event};
use crate::protocol::{Config, MasterSet, RequestError, Token};

/// One request for a set of masters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Order {
    /// The masters.
    pub to: MasterSet,
    /// What each of them is asked.
    pub request: Request,
}

/// What a lock may use and bring about while it handles one input.
// It shows nothing: what it borrows is shown by its owner.
#[allow(missing_debug_implementations)]
pub struct Effects<'a> {
    /// The settings of all locks.
    pub config: &'a Config,
    /// Where tokens come from.
    pub entropy: &'a mut dyn Entropy,
    /// Where the spread of pauses comes from.
    pub jitter: &'a mut Jitter,
    /// For the masters, in this order.
    pub orders: &'a mut VecDeque<Order>,
    /// For the caller, in this order.
    pub events: &'a mut VecDeque<Event>,
    /// Of each master whose connection stands a number that is the same for all clients.
    pub standing: &'a [Option<u64>],
}

impl Effects<'_> {
    pub(crate) fn order(&mut self, to: MasterSet, request: Request) {
        if !to.is_empty() {
            self.orders.push_back(Order { to, request });
        }
    }

    pub(super) fn fresh_token(&mut self) -> Result<Token, RequestError> {
        let mut bytes = [0; Token::BYTES];
        self.entropy.fill(&mut bytes).map_err(|_| RequestError::NoEntropy)?;
        Ok(Token::from_bytes(bytes))
    }
}
