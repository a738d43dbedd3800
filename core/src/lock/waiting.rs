//! Waiting: what a refused lock knows of each master, and when it asks again.
//!
//! Whoever has read who holds the key is told when that changes (`connection/tracking.rs`). The next attempt comes with news from enough masters to
//! make a quorum possible, and without any no later than the quorum-th of them is free by what is known: a key that somebody
//! holds ends by itself, and of a master that says nothing nothing is known for longer than the pause between attempts.
//!
//! Many are told at the same time. So a further attempt asks one master first, the same one for all clients of the resource: the one who is
//! granted there goes on to the others, and nobody who is refused has taken a vote away. It is a head start and not a condition: a
//! master that does not answer soon, or is known to be held by somebody, is not waited for.

use std::time::Duration;

use super::acquiring::{Clearing, record};
#[cfg(feature = "sim")]
use super::wait::Way;
use super::wait::{Knowledge, Stand, Turn};
use super::{Effects, Lock, Phase};
use crate::jitter::Jitter;
use crate::protocol::{AcquireError, Answer, MasterId, MasterSet, Resource, Vote};
use crate::time::Instant;

/// Lives are told in whole milliseconds.
const WHOLE: Duration = Duration::from_millis(1);
/// Behind the end of a life that a master told, since it tells whole milliseconds; and many may wait for it.
const BEHIND_THE_END: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_millis(5);

impl Lock {
    /// Before a lock ends: what it knows, if it waits for others to release.
    pub(super) fn keep_knowledge(&mut self) {
        if let (Phase::Clearing(Clearing { retry_at: Some(_), poll_at, refused_first, votes, .. }), true) =
            (&self.phase, self.wait.met_others.is_some())
        {
            let (poll_at, refused_first) = (*poll_at, *refused_first);
            let (votes, stands) = (votes.clone(), self.wait.take_stands());
            self.wait.knowledge = Some(Box::new(Knowledge { votes, stands, poll_at, refused_first }));
        }
    }

    pub(crate) fn take_knowledge(&mut self) -> Option<Box<Knowledge>> {
        self.wait.take_knowledge()
    }

    /// Comes to the front and goes on waiting where another has left.
    pub(crate) fn inherit(
        &mut self,
        knowledge: Knowledge,
        turn: Turn,
        now: Instant,
        effects: &mut Effects<'_>,
    ) {
        if !self.is_queued() {
            return;
        }
        self.come_to_the_front(turn, now);
        let Knowledge { votes, stands, poll_at, refused_first } = knowledge;
        (self.way.is_wary, self.wait.stands, self.wait.patient_until) = (true, stands, now);
        self.wait.met_others = Some(now);
        self.wait.last_votes = Some(votes.clone());
        let [acquire_round, undo_round] = [self.next_round(), self.next_round()];
        self.phase = Phase::Clearing(Clearing {
            acquire_round,
            undo_round,
            votes,
            awaited: MasterSet::EMPTY,
            retry_at: Some(poll_at),
            poll_at,
            refused_first,
            listens: false,
        });
        self.plan_next_attempt(now, effects);
    }

    /// Has a lock that stands in line ask, at once or after a pause.
    pub(crate) fn begin(&mut self, turn: Turn, now: Instant, effects: &mut Effects<'_>) {
        if !self.is_queued() {
            return;
        }
        self.come_to_the_front(turn, now);
        let limit = self.give_up_at.map(|limit| limit - effects.config.request_timeout);
        let at = turn.pause.map(|pause| now + pause);
        let Some(at) = at.filter(|at| limit.is_none_or(|limit| *at < limit)) else {
            return self.attempt_again(now, effects);
        };
        match if turn.listens { self.listen(at, now, effects) } else { Ok(false) } {
            Ok(true) => {}
            Ok(false) => self.phase = Phase::Queued { begins: Some(at) },
            Err(error) => self.fail(AcquireError::Request(error), effects),
        }
    }

    pub(super) fn come_to_the_front(&mut self, turn: Turn, now: Instant) {
        (self.way.is_wary, self.way.lets_pass, self.way.came_at) = (turn.is_wary, turn.lets_pass, now);
        self.way.listens = turn.listens;
        if !turn.patience.is_zero() {
            self.wait.patient_until = now + turn.patience;
        }
    }

    pub(crate) fn is_queued(&self) -> bool {
        matches!(self.phase, Phase::Queued { .. })
    }

    /// When another was last found to hold it.
    pub(crate) fn met_others(&self) -> Option<Instant> {
        self.wait.met_others
    }

    /// How long the round took that granted it.
    pub(crate) fn took(&self) -> Duration {
        self.way.granted_at.since(self.way.asked_at)
    }

    pub(crate) fn granted_at(&self) -> Instant {
        self.way.granted_at
    }

    /// How many others were met before that.
    pub(crate) fn passed_over(&self) -> u32 {
        self.wait.passed_over
    }

    /// How long it was in front before the round that granted it.
    pub(crate) fn waited(&self) -> Duration {
        self.way.asked_at.since(self.way.came_at)
    }

    /// Forgets what only others in its line are told of, so that locks which do the same from now on are equal.
    #[cfg(feature = "sim")]
    pub(crate) fn forget_its_line(&mut self) {
        self.wait.forget_its_line();
        self.way = Way { is_wary: self.way.is_wary, ..Way::default() };
    }

    /// Whether it is neither sought nor held any more.
    pub(crate) fn has_let_go(&self) -> bool {
        matches!(self.phase, Phase::Lost(_) | Phase::Releasing(_) | Phase::Told | Phase::Over)
    }

    /// What the masters said last, if they were asked.
    pub(crate) fn last_votes(&self) -> Option<&[Vote]> {
        self.wait.last_votes.as_deref()
    }

    /// Whether a lock that stands in line has waited for as long as its caller wants.
    pub(crate) fn gives_up_in_line(&self, now: Instant) -> bool {
        let begins = matches!(self.phase, Phase::Queued { begins: Some(at) } if at <= now);
        self.is_queued() && !begins && self.give_up_at.is_some_and(|limit| limit <= now)
    }

    /// The master that is asked before all others, if one is.
    pub(super) fn first_to_ask(&self, now: Instant, effects: &Effects<'_>) -> Option<MasterId> {
        let is_last = self.give_up_at.is_some_and(|limit| now + effects.config.request_timeout >= limit);
        if !self.way.is_wary
            || self.insists()
            || is_last
            || !effects.config.first_alone
            || effects.config.masters.len() == 1
        {
            return None;
        }
        let seed = digest(&self.resource);
        let ranked = MasterId::all(effects.standing.len()).zip(effects.standing);
        let standing = ranked.filter_map(|(master, rank)| Some((master, (*rank)?)));
        let (first, _) = standing.max_by_key(|(_, rank)| Jitter::new(seed ^ rank).next())?;
        let is_held = match self.wait.stands.get(first.index()) {
            Some(Stand::Held { until, .. }) => until.is_none_or(|until| now < until),
            _ => false,
        };
        // Who settles a split wants to know who came first there, and takes nothing from it.
        (!is_held || self.is_settling()).then_some(first)
    }

    /// Those who wait are told at the same time, one after the other, always in the same order. Who comes late each time would be passed over
    /// for ever; so after a while he asks all masters at once, and has a quorum of them while the one who came first still asks alone.
    fn insists(&self) -> bool {
        self.wait.passed_over >= self.way.lets_pass
    }

    pub(super) fn ask_the_rest(&mut self, effects: &mut Effects<'_>) {
        let Phase::Trying(trying) = &mut self.phase else { return };
        trying.rest_at = None;
        let round = trying.round;
        let outstanding = MasterId::all(trying.votes.len()).zip(trying.votes.iter());
        let mut rest = MasterSet::EMPTY;
        for (master, _) in outstanding.filter(|(_, vote)| **vote == Vote::Outstanding) {
            if !self.reached.contains(master) {
                rest.insert(master);
            }
        }
        rest.iter().for_each(|master| self.reached.insert(master));
        self.ask(rest, round, effects);
    }

    /// The one master that was asked refused. Nothing is to be undone, and of the others nothing new is known: they are
    /// taken to follow this one, unless it may have been held since before they became free.
    pub(super) fn turned_away(&mut self, first: MasterId, now: Instant, effects: &mut Effects<'_>) {
        let Phase::Trying(trying) = &mut self.phase else { return };
        let (acquire_round, first_leads) = (trying.round, trying.first_leads);
        let said = trying.votes.take();
        let vote = said.get(first.index()).copied().unwrap_or(Vote::Outstanding);
        self.wait.met(vote);
        let mut votes = self.wait.last_votes.take().unwrap_or(said);
        record(&mut votes, first, vote);
        self.wait.last_votes = Some(votes.clone());
        self.reached = MasterSet::EMPTY;
        self.wait.met_others = Some(now);
        let undo_round = self.next_round();
        let pause = effects.jitter.within(&effects.config.retry_delay);
        let poll_at = *self.wait.all_at.get_or_insert(now + pause);
        for (master, stand) in MasterId::all(votes.len()).zip(&mut self.wait.stands) {
            if master != first && first_leads {
                *stand = Stand::Unknown;
            }
        }
        self.phase = Phase::Clearing(Clearing {
            acquire_round,
            undo_round,
            votes,
            awaited: MasterSet::EMPTY,
            retry_at: Some(poll_at),
            poll_at,
            refused_first: Some(first),
            listens: false,
        });
        self.plan_next_attempt(now, effects);
    }

    /// What an answer says about the key on the master; `is_undone` if it is about an attempt that was taken back.
    pub(super) fn note_stand(&mut self, master: MasterId, answer: Answer, is_undone: bool, now: Instant) {
        let stand = match answer {
            Answer::Holder { holder, remaining, watched } => {
                let until = remaining.map(|left| now + left.max(WHOLE));
                Stand::Held { by: holder, until, watched }
            }
            Answer::Yes | Answer::Counted(_) | Answer::No if is_undone => Stand::Open,
            _ => Stand::Unknown,
        };
        let masters = match &self.phase {
            Phase::Trying(trying) => trying.votes.len(),
            Phase::Clearing(clearing) => clearing.votes.len(),
            _ => 0,
        };
        if self.wait.stands.len() < masters {
            self.wait.stands.resize(masters, Stand::Unknown);
        }
        if let Some(place) = self.wait.stand_mut(master) {
            *place = stand;
        }
    }

    /// A round was lost with these votes. Another follows if it `goes_on`, or may follow if they turn out to be split.
    pub(super) fn note_votes(&mut self, votes: &[Vote], goes_on: bool, may_settle: bool, now: Instant) {
        if votes.iter().any(|vote| vote.is_refusal()) {
            self.wait.met_others = Some(now);
            self.way.is_wary = true;
        }
        if let Some(vote) =
            votes.iter().find(|vote| matches!(vote, Vote::HeldByAnother { holder: Some(_), .. }))
        {
            self.wait.met(*vote);
        }
        if !goes_on && !may_settle {
            return;
        }
        self.wait.all_at = None;
        self.wait.stands.resize(votes.len(), Stand::Unknown);
        for (stand, vote) in self.wait.stands.iter_mut().zip(votes) {
            *stand = match vote {
                // Undone, in order, before anything else is asked there.
                Vote::Granted => Stand::Open,
                // It has said more, and may have told a change since.
                Vote::HeldByAnother { holder: Some(_), .. } => *stand,
                _ => Stand::Unknown,
            };
        }
    }

    /// A key of this name has changed on a master, or may have.
    pub(crate) fn changed(&mut self, master: MasterId, now: Instant, effects: &mut Effects<'_>) {
        if self.is_to_hear_from(master) {
            return;
        }
        if let Some(stand) = self.wait.stand_mut(master) {
            *stand = Stand::Open;
        }
        let open = self.wait.stands.iter().filter(|stand| **stand == Stand::Open).count();
        let Phase::Clearing(clearing) = &mut self.phase else { return };
        let is_enough = open >= effects.config.quorum.needed() || clearing.refused_first == Some(master);
        if clearing.retry_at.is_none() {
            return;
        }
        if !is_enough {
            // With masters of which nothing will be heard it may be, and so it is asked for as often as without news.
            let unknown = self.wait.stands.iter().filter(|stand| **stand == Stand::Unknown).count();
            if open + unknown >= effects.config.quorum.needed() {
                clearing.put_off(now, effects);
                self.plan_next_attempt(now, effects);
            }
            return;
        }
        if now < self.wait.patient_until {
            // Enough for those who have waited for longer to come first; if there is nobody, the lock is not idle for long.
            let a_while = self.wait.patient_until.since(now) / 4;
            clearing.poll_at = clearing.poll_at.min(now + a_while);
            if self.way.listens {
                self.listen_again(effects);
            }
            return self.plan_next_attempt(now, effects);
        }
        self.attempt_again(now, effects);
    }

    /// Nothing will be told any more of what was watched on a master.
    pub(crate) fn deaf(&mut self, master: MasterId, now: Instant, effects: &mut Effects<'_>) {
        if let Some(stand @ Stand::Held { .. }) = self.wait.stand_mut(master) {
            *stand = Stand::Unknown;
            if let Phase::Clearing(clearing) = &mut self.phase {
                clearing.put_off(now, effects);
            }
            self.plan_next_attempt(now, effects);
        }
    }

    /// When to ask again if no news comes: with the quorum-th of the masters that may be free, but in time for the last answers.
    pub(super) fn plan_next_attempt(&mut self, now: Instant, effects: &mut Effects<'_>) {
        let Phase::Clearing(clearing) = &mut self.phase else { return };
        if clearing.retry_at.is_none() {
            return;
        }
        let poll_at = clearing.poll_at;
        let mut ends: Vec<Instant> = self
            .wait
            .stands
            .iter()
            .map(|stand| match stand {
                Stand::Open => now,
                Stand::Held { until: Some(until), watched: true, .. } => *until,
                Stand::Held { until: Some(until), watched: false, .. } => poll_at.min(*until),
                Stand::Held { until: None, .. } | Stand::Unknown => poll_at,
            })
            .collect();
        ends.sort_unstable();
        let quorum_th = ends.get(effects.config.quorum.needed() - 1).copied().unwrap_or(poll_at);
        // Who refused may have let go before it was asked by whom, or while others were still awaited. That is news too, but
        // a master that says so every time must not make it spin.
        let mut refusals = clearing.votes.iter().zip(&self.wait.stands).filter(|(vote, _)| vote.is_refusal());
        let has_news = refusals.any(|(_, stand)| *stand == Stand::Open);
        let at = if quorum_th <= now && has_news {
            poll_at.min(self.wait.patient_until.max(now + effects.jitter.within(&BEHIND_THE_END)))
        } else if quorum_th <= now || quorum_th == poll_at {
            // Where a quorum is free already, the round was lost for another reason, and a pause is in place.
            poll_at
        } else {
            quorum_th + effects.jitter.within(&BEHIND_THE_END)
        };
        clearing.retry_at = Some(match self.give_up_at {
            // Who has asked one master only does not know enough to tell the caller.
            Some(give_up_at) if clearing.refused_first.is_some() => {
                last_in_time(at, give_up_at, now, effects).min(last_of_all(give_up_at, now, effects))
            }
            Some(give_up_at) => last_in_time(at, give_up_at, now, effects),
            None => at,
        });
    }
}

/// The last attempt comes while there is still time for its answers.
fn last_in_time(at: Instant, give_up_at: Instant, now: Instant, effects: &Effects<'_>) -> Instant {
    // A long time-out must not use up a short wait: masters that answer take far less.
    let pause = at.since(now).min(*effects.config.retry_delay.end());
    let last = give_up_at - effects.config.request_timeout.min(pause);
    if at <= last {
        at
    } else if now + *effects.config.retry_delay.start() <= last {
        last
    } else {
        give_up_at
    }
}

/// When there is time for one more attempt.
fn last_of_all(give_up_at: Instant, now: Instant, effects: &Effects<'_>) -> Instant {
    now.max(give_up_at - effects.config.request_timeout.min(*effects.config.retry_delay.end()))
}

/// The same number in every process (FNV-1a, Fowler, Noll and Vo 1991).
fn digest(resource: &Resource) -> u64 {
    let bytes = resource.as_bytes().iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
