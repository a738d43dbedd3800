//! Release: delete the token everywhere, and find out whether the lock was ours until now.

use super::holding::holder_vote;
use super::{Effects, Lock, Phase};
use crate::protocol::{Action, Answer, Event, LossCause, MasterId, ReleaseOutcome, Votes};

/// A round of releases whose answers somebody waits for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Releasing {
    pub(super) round: u32,
    votes: Votes,
}

impl Lock {
    pub(super) fn start_release(&mut self, effects: &mut Effects<'_>) {
        let round = self.next_round();
        let buffer = match &mut self.phase {
            Phase::Held(held) => std::mem::take(&mut held.votes),
            _ => Vec::new(),
        };
        let votes = Votes::outstanding_from(self.reached, effects.config.masters.len(), buffer);
        let releasing = Phase::Releasing(Releasing { round, votes });
        if let Phase::Held(held) = std::mem::replace(&mut self.phase, releasing) {
            self.end_extensions(&held, LossCause::Released, effects);
        }
        effects.order(self.reached, self.request(Some(round), Action::Release, self.longest_ttl, 0));
    }

    pub(super) fn release_answered(&mut self, master: MasterId, answer: Answer, effects: &mut Effects<'_>) {
        let discounted = self.is_discounted(master);
        let Phase::Releasing(releasing) = &mut self.phase else { return };
        releasing.votes.record(master, holder_vote(answer, discounted));
        let quorum = effects.config.quorum;
        let tally = releasing.votes.tally();
        let impossible = quorum.masters() - quorum.needed();
        let outcome = if tally.granted >= quorum.needed() {
            ReleaseOutcome::StillOurs
        } else if tally.not_held > impossible {
            ReleaseOutcome::NotOurs
        } else if tally.granted + tally.outstanding < quorum.needed()
            && tally.not_held + tally.outstanding <= impossible
        {
            let votes = releasing.votes.take();
            ReleaseOutcome::Unknown(Box::new(self.ballot(votes, effects)))
        } else {
            return;
        };
        self.phase = Phase::Told;
        effects.events.push_back(Event::Released { lock: self.id, outcome });
    }
}
