//! Release: delete the token everywhere, and find out whether the lock was ours until now.

use std::sync::Arc;

use super::Next;
use super::context::Context;
use crate::protocol::{Action, Answer, MasterId, MasterSet, ReleaseOutcome, Ttl, Vote, Votes};

/// A round of releases whose answers the caller waits for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Releasing {
    pub(super) round: u32,
    votes: Votes,
}

impl Releasing {
    /// `buffer` is only reused for its capacity.
    pub(super) fn begin(buffer: Vec<Vote>, cx: &mut Context<'_, '_>) -> Self {
        let round = cx.base.next_round();
        let votes = Votes::outstanding_from(cx.keys.reached, cx.effects.config.masters.len(), buffer);
        let request = cx.request(Some(round), Action::Release, cx.base.longest_ttl);
        // The first master's release is ordered first. The outbox writes to the newest master
        // first, so to the first master last: other waiters learn of the release there, and then
        // ask the others, where the lock is free already.
        let is_contended = cx.base.is_contended;
        let first = is_contended.then(|| cx.effects.first_master(&cx.base.targets)).flatten();
        let reached = cx.keys.reached;
        match first.filter(|first| reached.contains(*first)) {
            None => cx.order_back(reached, request),
            Some(first) => {
                cx.order_back(MasterSet::only(first), request.clone());
                cx.order_back(reached.without(MasterSet::only(first)), request);
            }
        }
        cx.leave_other_places();
        Self { round, votes }
    }

    /// Releases the keys, which stay for this long.
    pub(super) fn keeping(life: Ttl, buffer: Vec<Vote>, cx: &mut Context<'_, '_>) -> Self {
        let round = cx.base.next_round();
        let votes = Votes::outstanding_from(cx.keys.reached, cx.effects.config.masters.len(), buffer);
        cx.order_back(cx.keys.reached, cx.request(Some(round), Action::Keep, life));
        cx.leave_other_places();
        Self { round, votes }
    }

    pub(super) fn answer(&mut self, master: MasterId, answer: Answer, cx: &mut Context<'_, '_>) -> Next {
        self.votes.record(master, cx.holder_vote(master, answer));
        let quorum = cx.quorum();
        let tally = self.votes.tally();
        let impossible = quorum.masters() - quorum.needed();
        if tally.granted() >= quorum.needed() {
            Next::Released(ReleaseOutcome::StillOurs)
        } else if tally.not_held() > impossible {
            Next::Released(ReleaseOutcome::NotOurs)
        } else if tally.granted() + tally.outstanding() < quorum.needed()
            && tally.not_held() + tally.outstanding() <= impossible
        {
            Next::Released(ReleaseOutcome::Unknown(Arc::new(cx.ballot(self.votes.take()))))
        } else {
            Next::Stay
        }
    }
}
