//! Whether the present connection keeps places in queues. Where an ACL denies what the queues need,
//! or the server lacks a command of theirs, requests are sent without their place.

use super::tracking::News;
use super::{Answers, Connection, Warning};
use crate::protocol::{Action, Cause, Claim, Request};
use crate::time::Instant;
use crate::wire::ServerError;

#[derive(Clone, Debug, Default)]
pub(super) enum Queues {
    #[default]
    Kept,
    /// A request was refused for this cause. Whether that was because of its place shows the answer
    /// to the same request without it, which has this claim.
    InDoubt(Claim, Cause),
    /// Only another connection may keep places again.
    Denied(Cause),
}

fn lacks_something(error: ServerError) -> bool {
    matches!(error, ServerError::NoPerm | ServerError::UnknownCommand)
}

impl Connection {
    /// A request was refused. If that may be because of its place, it is repeated without it;
    /// returns whether it is. A place that was stored nevertheless ends soon. The wait for the
    /// answer counts from `since`.
    #[cold]
    pub(super) fn asks_without_place(
        &mut self,
        request: &Request,
        error: ServerError,
        since: Instant,
    ) -> bool {
        let has_place = request.claim.as_queued().is_some();
        let is_about_lock = matches!(request.action, Action::Acquire | Action::Release | Action::Keep);
        // An acquisition must not come after its release.
        let may_follow = !(request.action.creates() && self.flight.clears(&request.claim));
        if !(has_place && is_about_lock && may_follow && lacks_something(error)) {
            return false;
        }
        let plain = request.clone().without_place();
        if request.action == Action::Acquire && matches!(self.queues, Queues::Kept) {
            self.queues = Queues::InDoubt(plain.claim.clone(), Cause::Server(error));
        }
        self.repeat(&plain, since);
        true
    }

    /// An answer has come while it is in doubt what was refused.
    #[cold]
    pub(super) fn settle_queues(
        &mut self,
        request: &Request,
        error: Option<ServerError>,
        answers: &mut Answers,
    ) {
        let Queues::InDoubt(claim, cause) = &self.queues else { return };
        if request.action != Action::Acquire || !request.claim.is_of_same(claim) {
            return;
        }
        self.queues = match error {
            None => {
                self.warnings.push(Warning::QueueDenied);
                answers.tell(self.id, News::QueuesDenied);
                Queues::Denied(*cause)
            }
            // The lock itself is refused.
            Some(_) => Queues::Kept,
        };
    }

    /// Why places are not kept.
    pub(super) fn denies_queues(&self) -> Option<Cause> {
        match self.queues {
            Queues::Denied(cause) => Some(cause),
            Queues::Kept | Queues::InDoubt(..) => None,
        }
    }
}
