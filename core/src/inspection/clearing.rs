//! Deleting a lock's keys without holding it.

use std::sync::Arc;

use crate::lock::Effects;
use crate::protocol::{
    Action, Answer, Cause, Claim, Deletion, Event, ForceReleased, LockId, MasterId, MasterSet, Request,
    Resource, Ticket,
};
use crate::wire::ServerError;

/// How often a master is asked again to delete a key because another holder had taken it in the
/// meantime. Each try is for a lock that changed hands within a round trip. Smaller: it gives up on
/// a merely busy lock. Larger: it keeps trying while clients take the lock all the time.
const TRIES: u8 = 8;

/// Makes all masters delete a lock's key.
///
/// Each master is asked twice: first to name the holder's fingerprint, then to delete that holder's
/// key.
/// So a request that a stopped server executes late does not affect a later holder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Clearance {
    id: LockId,
    resource: Resource,
    /// Empty once the outcome has been reported.
    masters: Vec<Progress>,
}

/// The progress of one master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Progress {
    tries: u8,
    outcome: Option<Result<Deletion, Cause>>,
}

impl Clearance {
    pub(crate) fn new(id: LockId, resource: &Resource, effects: &mut Effects<'_>) -> Self {
        let masters = effects.config.masters.len();
        let begun = Progress { tries: 0, outcome: None };
        let clearance = Self { id, resource: resource.clone(), masters: vec![begun; masters] };
        clearance.ask(MasterSet::all(masters), None, effects);
        clearance
    }

    /// Asks these masters to delete the key of the holder with this fingerprint, or only to name
    /// it.
    fn ask(&self, masters: MasterSet, fingerprint: Option<u64>, effects: &mut Effects<'_>) {
        let digits = fingerprint.map(|fingerprint| format!("{fingerprint:016x}")).unwrap_or_default();
        let claim = Claim::asking(std::slice::from_ref(&self.resource), digits.as_bytes(), &[]);
        // Each answer belongs to one request: the next is sent when it has come.
        let ticket = Some(Ticket { lock: self.id, round: 0 });
        let ttl = effects.config.ttl;
        effects.order(masters, Request::new(ticket, Action::ForceRelease, claim, ttl));
    }

    pub(crate) fn answer(&mut self, master: MasterId, answer: Answer, effects: &mut Effects<'_>) {
        let alone = MasterSet::only(master);
        let Some(progress) = self.masters.get_mut(master.index()) else { return };
        let outcome = match answer {
            Answer::Yes => Ok(Deletion::Deleted),
            Answer::No => Ok(Deletion::Absent),
            Answer::Holder { holder, .. } if progress.tries < TRIES => {
                progress.tries += 1;
                progress.outcome = None;
                return self.ask(alone, Some(holder), effects);
            }
            Answer::Holder { .. }
            | Answer::OursInQuarantine { .. }
            | Answer::Counted(_)
            | Answer::Seats { .. }
            | Answer::Queued { .. } => Ok(Deletion::Contended),
            Answer::Failed { cause: Cause::Server(ServerError::WrongType), .. } => Ok(Deletion::OtherType),
            Answer::Failed { cause, .. } => Err(cause),
        };
        progress.outcome = Some(outcome);
        let outcomes: Option<Vec<_>> = self.masters.iter().map(|progress| progress.outcome).collect();
        let Some(deletions) = outcomes else { return };
        self.masters = Vec::new();
        let outcome = ForceReleased {
            resource: self.resource.clone(),
            masters: Arc::clone(&effects.config.masters),
            quorum: effects.config.quorum,
            deletions,
        };
        effects.events.push_back(Event::ForceReleased { lock: self.id, outcome: Box::new(outcome) });
    }
}
