//! The first use of a set of masters under the restart guard: it declares to all of them that
//! nothing can be locked yet.
//!
//! Rules of this room: it knows votes and orders, like a lock, but no connections. All masters must
//! answer, and either none or all of them must vote already; otherwise a lock may be held.

use std::sync::Arc;

use crate::lock::Effects;
use crate::protocol::{
    Action, Answer, Ballot, BootstrapError, Cause, Claim, Event, LockId, MasterId, MasterSet, Request,
    Resource, Ticket, Vote,
};

/// One bootstrap, from its beginning to its event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Bootstrap {
    id: LockId,
    claim: Claim,
    stage: Stage,
    votes: Vec<Vote>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Asking,
    Opening,
    Told,
}

/// Both questions share a round: the second is asked when each master has replied to the first.
const ROUND: u32 = 0;

impl Bootstrap {
    /// Asks every master whether it votes.
    pub(crate) fn new(id: LockId, effects: &mut Effects<'_>) -> Self {
        let mut bootstrap = Self { id, claim: Claim::marker(), stage: Stage::Asking, votes: Vec::new() };
        bootstrap.order(Action::Attend, effects);
        bootstrap
    }

    fn order(&mut self, action: Action, effects: &mut Effects<'_>) {
        let masters = effects.config.masters.len();
        self.votes = vec![Vote::Outstanding; masters];
        let ticket = Some(Ticket { lock: self.id, round: ROUND });
        let request = Request::new(ticket, action, self.claim.clone(), effects.config.ttl);
        effects.order(MasterSet::all(masters), request);
    }

    pub(crate) fn answer(&mut self, master: MasterId, answer: Answer, effects: &mut Effects<'_>) {
        if let Some(vote) = self.votes.get_mut(master.index()) {
            *vote = match answer {
                Answer::Failed { cause, .. } => Vote::Failed(cause),
                _ => Vote::Granted,
            };
        }
        if self.votes.contains(&Vote::Outstanding) {
            return;
        }
        match self.stage {
            Stage::Asking => self.asked(effects),
            Stage::Opening if self.votes.iter().all(|vote| *vote == Vote::Granted) => {
                self.end(Ok(()), effects);
            }
            Stage::Opening => self.unreached(effects),
            Stage::Told => {}
        }
    }

    fn asked(&mut self, effects: &mut Effects<'_>) {
        let is_fresh = |vote: &Vote| matches!(vote, Vote::Failed(Cause::Quarantined { .. }));
        let voting = self.votes.iter().filter(|vote| **vote == Vote::Granted).count();
        if voting == self.votes.len() {
            self.end(Ok(()), effects);
        } else if self.votes.iter().any(|vote| *vote != Vote::Granted && !is_fresh(vote)) {
            self.unreached(effects);
        } else if voting > 0 {
            let masters = effects.config.masters.iter().zip(&self.votes);
            let voting =
                masters.filter(|(_, vote)| **vote == Vote::Granted).map(|(master, _)| master.clone());
            self.end(Err(BootstrapError::InUse(voting.collect())), effects);
        } else {
            self.stage = Stage::Opening;
            self.order(Action::Open, effects);
        }
    }

    fn unreached(&mut self, effects: &mut Effects<'_>) {
        let ballot = Ballot {
            targets: Resource::marker().into(),
            masters: Arc::clone(&effects.config.masters),
            votes: Some(std::mem::take(&mut self.votes).into()),
            attempts: 1,
            callers_ahead: 0,
        };
        self.end(Err(BootstrapError::Unreached(Arc::new(ballot))), effects);
    }

    fn end(&mut self, result: Result<(), BootstrapError>, effects: &mut Effects<'_>) {
        self.stage = Stage::Told;
        effects.events.push_back(Event::Bootstrapped { lock: self.id, result });
    }
}
