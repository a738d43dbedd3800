//! Going on with a lock that somebody else was granted: an extension by its token, and then it is held like any other.

use super::holding::{Held, holder_vote};
use super::{Effects, Lock, NOTICE, Phase};
use crate::protocol::{AcquireError, Action, Answer, Cause, Event, MasterId, MasterSet, Tally, Vote, Votes};
use crate::time::Instant;

/// A round of extensions that decides whether the lock is taken over.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Resuming {
    pub(super) round: u32,
    since: Instant,
    votes: Votes,
}

impl Lock {
    /// Asks all masters that may be counted: any of them may hold the token.
    pub(super) fn resume(&mut self, now: Instant, effects: &mut Effects<'_>) {
        let masters = effects.config.masters.len();
        let asked = MasterSet::all(masters).without(self.forsaken);
        let round = self.next_round();
        self.attempts = 1;
        self.reached = MasterSet::all(masters);
        self.phase = Phase::Resuming(Resuming {
            round,
            since: now,
            votes: Votes::outstanding_from(asked, masters, Vec::new()),
        });
        effects.order(asked, self.request(Some(round), Action::Extend, self.ttl, self.fence));
    }

    pub(super) fn resume_answered(
        &mut self,
        master: MasterId,
        answer: Answer,
        now: Instant,
        effects: &mut Effects<'_>,
    ) {
        let Phase::Resuming(resuming) = &mut self.phase else { return };
        resuming.votes.record(master, holder_vote(answer, false));
        let quorum = effects.config.quorum;
        let tally = resuming.votes.tally();
        let valid_until = self.ttl.valid_until(resuming.since);
        if tally.granted >= quorum.needed() && now + NOTICE < valid_until {
            let (round, since) = (resuming.round, resuming.since);
            let votes = resuming.votes.take();
            self.become_held(round, since, votes, valid_until, effects);
        } else if tally.granted >= quorum.needed()
            || tally.not_held > quorum.masters() - quorum.needed()
            || tally.granted + tally.outstanding < quorum.needed()
        {
            self.not_resumed(effects);
        }
    }

    /// The caller's time is over.
    pub(super) fn resuming_ran_out_of_time(&mut self, now: Instant, effects: &mut Effects<'_>) {
        let Phase::Resuming(resuming) = &mut self.phase else { return };
        let waited = now.since(resuming.since);
        for master in MasterId::all(resuming.votes.len()) {
            if resuming.votes.get(master.index()) == Some(&Vote::Outstanding) {
                resuming.votes.record(master, Vote::Failed(Cause::NoAnswer { waited }));
            }
        }
        self.not_resumed(effects);
    }

    /// Nothing is released: the lock may still be that of whoever handed it on.
    fn not_resumed(&mut self, effects: &mut Effects<'_>) {
        let Phase::Resuming(resuming) = &mut self.phase else { return };
        let votes = resuming.votes.take();
        self.fail_to_resume(votes, effects);
    }

    pub(super) fn fail_to_resume(&mut self, votes: Vec<Vote>, effects: &mut Effects<'_>) {
        let quorum = effects.config.quorum;
        let gone = Tally::of(&votes).not_held > quorum.masters() - quorum.needed();
        let ballot = self.ballot(votes, effects);
        let error = if gone {
            AcquireError::NotHeld(Box::new(ballot))
        } else {
            AcquireError::from_ballot(ballot, quorum)
        };
        self.fail(error, effects);
    }

    pub(super) fn become_held(
        &mut self,
        round: u32,
        since: Instant,
        votes: Vec<Vote>,
        valid_until: Instant,
        effects: &mut Effects<'_>,
    ) {
        let healing_round = if self.healing { self.next_round() } else { round };
        let rounds = (round, healing_round);
        let held = Held::new(rounds, since, votes, valid_until, self.ttl, self.renew_for, effects.jitter);
        self.phase = Phase::Held(held);
        effects.events.push_back(Event::Granted { lock: self.id, valid_until });
    }
}
