//! After a lost round: the token is taken back, and reads show who holds the key. A lock that
//! listens reads before its first attempt, with a token that no master has. `waiting` decides
//! whether and when to make the next attempt.

use super::Next;
use super::context::{Base, Context};
use crate::protocol::{Answer, Cause, Decision, MasterId, MasterSet, Tally, Vote};
use crate::time::Instant;

/// Between attempts, or before the first one. Answers still come: late votes of the lost round, and
/// reads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Clearing {
    lost_round: u32,
    pub(super) read_round: u32,
}

impl Clearing {
    pub(super) fn behind(lost_round: u32, base: &mut Base) -> Self {
        Self { lost_round, read_round: base.next_round() }
    }

    /// Whether this answer may tell of the lock's place. That of an undo does not.
    pub(super) fn is_about_place(&self, round: u32, answer: Answer) -> bool {
        let is_renewal = matches!(answer, Answer::Queued { .. } | Answer::Failed { .. });
        round == self.lost_round || round == self.read_round && is_renewal
    }

    pub(super) fn answer(&self, master: MasterId, round: u32, answer: Answer) -> Next {
        if round == self.read_round {
            Next::Read(master, answer)
        } else if round == self.lost_round {
            Next::Late(master, answer)
        } else {
            Next::Stay
        }
    }
}

/// A round that was lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LostRound {
    pub(super) round: u32,
    /// The instant before its first send.
    pub(crate) since: Instant,
    pub(crate) votes: Vec<Vote>,
    /// The answer that decided it, if one did.
    pub(crate) last: Option<(MasterId, Answer)>,
    /// Masters whose connection had been quiet for long and was found dead: they were not really
    /// asked.
    pub(crate) stale: MasterSet,
    /// For permits: masters that assigned the chosen seats, of this round and of those just before
    /// it. All of them once one did so twice: then the others had none.
    pub(crate) assigners: MasterSet,
    /// Masters that refused and have not yet named the holder, and those whose vote can still
    /// decide between "held by another" and "no quorum of answers".
    pub(crate) awaited: MasterSet,
    /// Whether masters could still have granted it when time ran out.
    pub(crate) is_undecided: bool,
    /// Whether it had been won, but the caller did not take the lock in time.
    pub(crate) was_granted: bool,
    /// Whether the caller's time is over.
    pub(crate) is_last: bool,
}

impl LostRound {
    pub(super) fn new(round: u32, since: Instant, mut votes: Vec<Vote>, cx: &Context<'_, '_>) -> Self {
        let now = cx.effects.now;
        let quorum = cx.quorum();
        let tally = Tally::of(&votes);
        let is_undecided =
            tally.other_fleet() == 0 && quorum.decide(tally.granted(), tally.outstanding()) == Decision::Open;
        let may_turn_out_held = !tally.is_held_by_another(quorum)
            && tally.granted() + tally.held() + tally.outstanding() >= quorum.needed();
        let mut awaited = MasterSet::EMPTY;
        for (master, vote) in MasterId::all(votes.len()).zip(&mut votes) {
            // If the round was won without a master that refused, that master is not asked again,
            // so no answer of it is awaited.
            let answers = cx.keys.reached.contains(master);
            match vote {
                Vote::HeldByAnother { holder: None, .. } if answers => awaited.insert(master),
                Vote::Outstanding if is_undecided && answers => {
                    *vote = Vote::Failed(Cause::NoAnswer { waited: now.since(since) });
                }
                Vote::Outstanding if answers && may_turn_out_held => awaited.insert(master),
                _ => {}
            }
        }
        Self {
            round,
            since,
            votes,
            last: None,
            stale: MasterSet::EMPTY,
            assigners: MasterSet::EMPTY,
            awaited,
            is_undecided,
            was_granted: false,
            is_last: false,
        }
    }
}

/// One master was asked before the others and refused. No other one was asked, so nothing must be
/// taken back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refused {
    pub(super) round: u32,
    /// The instant before the send.
    pub(crate) since: Instant,
    pub(crate) votes: Vec<Vote>,
    pub(crate) first: MasterId,
    pub(crate) answer: Answer,
}
