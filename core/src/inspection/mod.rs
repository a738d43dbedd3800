//! What masters say of a lock: asking them, and having its keys deleted, whoever holds it.
//!
//! Rules of this room: its tasks know answers and orders, like a lock, and no connections. Each
//! asks all masters and waits for all of them, for as long as the connections give each request;
//! what a master says late, while others are awaited, replaces its silence. They never learn a
//! token: masters compare, and tell fingerprints.

mod clearing;
mod verdict;

use std::sync::Arc;

pub(crate) use self::clearing::Clearance;
use crate::lock::Effects;
use crate::protocol::{
    Action, Answer, Cause, Claim, Event, Inspection, LockId, MasterId, MasterSet, Request, Resource, Said,
    Ticket, Token,
};

/// Asks all masters what they have at a lock's key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Inquiry {
    id: LockId,
    resource: Resource,
    claim: Claim,
    /// What each master said, or why it said nothing; empty once that has been told.
    heard: Vec<Option<Result<Box<Said>, Cause>>>,
    /// Masters that have been asked once more, because their connections had been quiet for long.
    repeated: MasterSet,
}

/// There is one round, and a second one for connections that had been quiet.
const ROUND: u32 = 0;

impl Inquiry {
    /// `tokens` are ours.
    pub(crate) fn new(id: LockId, resource: &Resource, tokens: &[Token], effects: &mut Effects<'_>) -> Self {
        let masters = effects.config.masters.len();
        let tokens: Vec<_> = tokens.iter().map(|token| token.to_hex()).collect();
        let claim = Claim::asking(resource, &tokens.join(&b' '));
        let inquiry = Self {
            id,
            resource: resource.clone(),
            claim,
            heard: vec![None; masters],
            repeated: MasterSet::EMPTY,
        };
        inquiry.ask(MasterSet::all(masters), effects);
        inquiry
    }

    fn ask(&self, masters: MasterSet, effects: &mut Effects<'_>) {
        let ticket = Some(Ticket { lock: self.id, round: ROUND });
        let (claim, ttl) = (self.claim.clone(), effects.config.ttl);
        effects.order(
            masters,
            Request {
                ticket,
                action: Action::Inspect,
                claim,
                ttl,
                fence: None,
                watch: false,
                insists: false,
            },
        );
    }

    /// A master has said what it has.
    pub(crate) fn told(&mut self, master: MasterId, said: Box<Said>, effects: &mut Effects<'_>) {
        self.hear(master, Ok(said), effects);
    }

    /// A master has said nothing, or that it does not tell.
    pub(crate) fn answer(&mut self, master: MasterId, answer: Answer, effects: &mut Effects<'_>) {
        let Answer::Failed { cause, stale, .. } = answer else {
            debug_assert!(false, "a master that is asked about a lock tells, or fails");
            return;
        };
        if stale && !self.repeated.contains(master) {
            // A middlebox may have dropped the connection, which says nothing of the master.
            self.repeated.insert(master);
            return self.ask(MasterSet::only(master), effects);
        }
        self.hear(master, Err(cause), effects);
    }

    fn hear(&mut self, master: MasterId, heard: Result<Box<Said>, Cause>, effects: &mut Effects<'_>) {
        // Nothing is heard any more once the outcome has been told.
        let Some(place) = self.heard.get_mut(master.index()) else { return };
        *place = Some(heard);
        if self.heard.contains(&None) {
            return;
        }
        let heard = std::mem::take(&mut self.heard).into_iter().flatten();
        let mut answers = verdict::answers(heard.map(|heard| heard.map(|said| *said)));
        verdict::look_for_lost_markers(&mut answers);
        let quorum = effects.config.quorum;
        let inspection = Inspection {
            resource: self.resource.clone(),
            masters: Arc::clone(&effects.config.masters),
            quorum,
            verdict: verdict::of(&answers, quorum),
            answers,
        };
        effects.events.push_back(Event::Inspected { lock: self.id, inspection: Box::new(inspection) });
    }
}
