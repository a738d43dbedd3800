//! Release: delete the token everywhere, and find out whether the lock was ours until now.

use super::Next;
use super::shared::Context;
use crate::protocol::{Action, Answer, MasterId, MasterSet, ReleaseOutcome, Ttl, Vote, Votes};

/// A round of releases whose answers the caller waits for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Releasing {
    pub(super) round: u32,
    votes: Votes,
}

impl Releasing {
    /// `buffer` is only used for its room.
    pub(super) fn begin(buffer: Vec<Vote>, cx: &mut Context<'_, '_>) -> Self {
        let round = cx.base.next_round();
        let votes = Votes::outstanding_from(cx.keys.reached, cx.effects.config.masters.len(), buffer);
        // The first master last: others that wait hear of it there, and ask the others then.
        let (reached, life) = (cx.keys.reached, cx.base.longest_ttl);
        let first = cx.effects.first_master(&cx.base.targets).map_or(MasterSet::EMPTY, MasterSet::only);
        for part in [reached.bits() & first.bits(), reached.bits() & !first.bits()] {
            cx.order_back(MasterSet::from_bits(part), cx.request(Some(round), Action::Release, life));
        }
        Self { round, votes }
    }

    /// Lets go of the keys, which live on for this long.
    pub(super) fn keeping(life: Ttl, buffer: Vec<Vote>, cx: &mut Context<'_, '_>) -> Self {
        let round = cx.base.next_round();
        let votes = Votes::outstanding_from(cx.keys.reached, cx.effects.config.masters.len(), buffer);
        cx.order_back(cx.keys.reached, cx.request(Some(round), Action::Keep, life));
        Self { round, votes }
    }

    pub(super) fn answer(&mut self, master: MasterId, answer: Answer, cx: &mut Context<'_, '_>) -> Next {
        self.votes.record(master, answer.holder_vote(cx.keys.is_discounted(master)));
        let quorum = cx.quorum();
        let tally = self.votes.tally();
        let impossible = quorum.masters() - quorum.needed();
        if tally.granted >= quorum.needed() {
            Next::Released(ReleaseOutcome::StillOurs)
        } else if tally.not_held > impossible {
            Next::Released(ReleaseOutcome::NotOurs)
        } else if tally.granted + tally.outstanding < quorum.needed()
            && tally.not_held + tally.outstanding <= impossible
        {
            Next::Released(ReleaseOutcome::Unknown(Box::new(cx.ballot(self.votes.take()))))
        } else {
            Next::Stay
        }
    }
}
