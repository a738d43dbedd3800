//! Resuming a lock that was granted to another locker: an extension by its token, after which it is
//! held like any other.

use std::sync::Arc;

use super::context::Context;
use super::holding::Held;
use super::{NOTICE, Next};
use crate::protocol::{AcquireError, Action, Answer, Cause, MasterId, MasterSet, Tally, Vote, Votes};
use crate::time::Instant;

/// A round of extensions that decides whether the lock is resumed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Resuming {
    round: u32,
    since: Instant,
    votes: Votes,
}

impl Resuming {
    /// Asks all masters that count: any of them may hold the token.
    pub(super) fn begin(cx: &mut Context<'_, '_>) -> Self {
        let now = cx.effects.now;
        let masters = cx.effects.config.masters.len();
        let asked = MasterSet::all(masters).without(cx.keys.forsaken).without(cx.keys.unproven);
        let round = cx.base.next_round();
        cx.order_numbered(asked, round, Action::Extend, cx.base.ttl, cx.keys.fence);
        Self { round, since: now, votes: Votes::outstanding_from(asked, masters, Vec::new()) }
    }

    pub(super) fn answer(&mut self, master: MasterId, answer: Answer, cx: &mut Context<'_, '_>) -> Next {
        let now = cx.effects.now;
        self.votes.record(master, answer.holder_vote(false));
        let quorum = cx.quorum();
        let tally = self.votes.tally();
        let valid_until = cx.base.ttl.valid_until(self.since);
        if tally.granted() >= quorum.needed() && now + NOTICE < valid_until {
            let mut held = Held::new(self.round, self.since, self.votes.take(), valid_until, cx);
            held.was_resumed = true;
            Next::Held(held)
        } else if tally.granted() >= quorum.needed()
            || tally.granted() + tally.outstanding() < quorum.needed()
        {
            not_resumed(self.votes.take(), cx)
        } else {
            Next::Stay
        }
    }

    /// The caller's time is over.
    pub(super) fn time_passed(&mut self, cx: &mut Context<'_, '_>) -> Next {
        let now = cx.effects.now;
        let waited = now.since(self.since);
        for master in MasterId::all(self.votes.len()) {
            if self.votes.get(master.index()) == Some(&Vote::Outstanding) {
                self.votes.record(master, Vote::Failed(Cause::NoAnswer { waited }));
            }
        }
        not_resumed(self.votes.take(), cx)
    }
}

/// Nothing is released: the lock may still belong to the process that handed it over. So a
/// quarantine is a lack of votes like others here: its own error tells about masters that have
/// never granted a lock, and these may have granted this one.
pub(super) fn not_resumed(votes: Vec<Vote>, cx: &Context<'_, '_>) -> Next {
    let quorum = cx.quorum();
    let is_gone = Tally::of(&votes).not_held() > quorum.masters() - quorum.needed();
    let ballot = Arc::new(cx.ballot(votes));
    Next::NotAcquired(if is_gone {
        AcquireError::NotHeld(ballot)
    } else {
        match AcquireError::from_ballot(ballot, quorum) {
            AcquireError::Quarantined(ballot) => AcquireError::NoQuorum(ballot),
            error => error,
        }
    })
}
