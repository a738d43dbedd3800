//! Holding: extensions on request, renewal in the background, and the end of validity.

use std::time::Duration;

use super::{Effects, Lock, NOTICE, Phase};
use crate::jitter::Jitter;
use crate::protocol::{
    Action, Answer, Event, ExtendError, ExtensionId, LossCause, MasterId, MasterSet, Ttl, Vote, Votes,
};
use crate::time::Instant;

/// Extensions that may be under way at once: renewal, and a few callers.
const MAX_EXTENSIONS: usize = 8;

/// A granted lock.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Held {
    /// The round that granted it.
    pub(super) round: u32,
    /// The round in which keys are put back.
    pub(super) healing_round: u32,
    pub(super) since: Instant,
    /// What the masters said in that round; nothing any more once it has been extended and nobody can ask for it.
    pub(super) votes: Vec<Vote>,
    /// Masters that have granted it, by what they said in that round.
    pub(super) granted: MasterSet,
    /// Masters that have not said what became of a request that sets the key: where the connection falls silent, a release is written
    /// behind it.
    pub(super) unsettled: MasterSet,
    pub(super) valid_until: Instant,
    /// Whether the caller has it; until then its end is no loss to anybody.
    pub(super) taken: bool,
    renewal: Option<Renewal>,
    extensions: Vec<Extension>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Renewal {
    next: Instant,
    /// No renewal begins after this.
    until: Instant,
}

/// One round of extensions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Extension {
    round: u32,
    since: Instant,
    ttl: Ttl,
    votes: Votes,
    /// Who waits for it; `None` is renewal.
    caller: Option<ExtensionId>,
    stage: Stage,
    /// Masters on which it has put the lock back.
    healed: MasterSet,
}

/// What has come of an extension.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Open,
    /// Listened to only for masters that do not hold the lock, to put it back there.
    Won,
    /// Listened to only for masters that no longer hold the lock.
    Failed,
}

impl Held {
    pub(super) fn new(
        (round, healing_round): (u32, u32),
        since: Instant,
        votes: Vec<Vote>,
        valid_until: Instant,
        ttl: Ttl,
        renew_for: Option<Duration>,
        jitter: &mut Jitter,
    ) -> Self {
        let renewal = renew_for
            .map(|longest| Renewal { next: since + renewal_pause(ttl, jitter), until: since + longest });
        let mut granted = MasterSet::EMPTY;
        let cast = MasterId::all(votes.len()).zip(&votes);
        cast.filter(|(_, vote)| **vote == Vote::Granted).for_each(|(master, _)| granted.insert(master));
        Self {
            round,
            healing_round,
            since,
            votes,
            granted,
            unsettled: MasterSet::EMPTY,
            valid_until,
            taken: false,
            renewal,
            extensions: Vec::new(),
        }
    }

    /// A lock that is held for long keeps no room for what comes now and then.
    fn forget_extension(&mut self, place: usize) {
        self.extensions.swap_remove(place);
        if self.extensions.is_empty() {
            self.extensions = Vec::new();
        }
        if self.taken {
            self.votes = Vec::new();
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.extensions.len() < MAX_EXTENSIONS
    }

    pub(super) fn stop_renewal(&mut self) {
        self.renewal = None;
    }

    pub(super) fn deadline(&self) -> Instant {
        let end = self.valid_until - NOTICE;
        self.next_renewal().map_or(end, |next| next.min(end))
    }

    /// When renewal begins again: not while one is under way, and not past the longest hold.
    fn next_renewal(&self) -> Option<Instant> {
        let renewal = self.renewal.as_ref().filter(|renewal| renewal.next <= renewal.until)?;
        let under_way = self.extensions.iter().any(|it| it.caller.is_none() && it.stage == Stage::Open);
        (!under_way && self.has_room()).then_some(renewal.next)
    }
}

impl Lock {
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Votes for the grant that have come, while the lock is held.
    #[cfg(feature = "tracing")]
    pub(crate) fn votes_granted(&self) -> usize {
        match &self.phase {
            Phase::Held(held) => crate::protocol::Tally::of(&held.votes).granted,
            _ => 0,
        }
    }

    pub(super) fn holding_goes_on(&mut self, now: Instant, effects: &mut Effects<'_>) {
        let Phase::Held(held) = &self.phase else { return };
        if now + NOTICE >= held.valid_until {
            if held.taken {
                self.lose(LossCause::Expired, effects);
            } else {
                self.grant_came_to_nothing(now, effects);
            }
        } else if held.next_renewal().is_some_and(|next| next <= now) {
            self.start_extension(None, self.ttl, now, effects);
        }
    }

    /// Asks every master that may hold the token. All N count: one that never had it, or must not be counted, has said
    /// "not held" before it is asked.
    pub(super) fn start_extension(
        &mut self,
        caller: Option<ExtensionId>,
        ttl: Ttl,
        now: Instant,
        effects: &mut Effects<'_>,
    ) {
        let round = self.next_round();
        let asked = self.reached.without(self.forsaken).without(self.unproven);
        let votes = Votes::outstanding_from(asked, effects.config.masters.len(), Vec::new());
        let Phase::Held(held) = &mut self.phase else { return };
        self.longest_ttl = self.longest_ttl.max(ttl);
        held.extensions.push(Extension {
            round,
            since: now,
            ttl,
            votes,
            caller,
            stage: Stage::Open,
            healed: MasterSet::EMPTY,
        });
        effects.order(asked, self.request(Some(round), Action::Extend, ttl, self.fence));
    }

    pub(super) fn extension_answered(
        &mut self,
        master: MasterId,
        round: u32,
        answer: Answer,
        now: Instant,
        effects: &mut Effects<'_>,
    ) {
        let discounted = self.is_discounted(master);
        let Phase::Held(held) = &mut self.phase else { return };
        let Some(place) = held.extensions.iter().position(|extension| extension.round == round) else {
            return;
        };
        let Some(extension) = held.extensions.get_mut(place) else { return };
        extension.votes.record(master, holder_vote(answer, discounted));
        if extension.stage == Stage::Won {
            return self.heal_behind(place, effects);
        }
        let quorum = effects.config.quorum;
        let tally = extension.votes.tally();
        if tally.not_held > quorum.masters() - quorum.needed() {
            if held.taken {
                return self.lose(LossCause::NotHeld, effects);
            }
            // Nobody has it, so nobody loses it.
            held.votes = extension.votes.take();
            return self.grant_came_to_nothing(now, effects);
        }
        if tally.granted >= quorum.needed() {
            // Decided after validity ended it revives nothing: the key may have gone to another and come back.
            if now + NOTICE >= held.valid_until {
                return self.holding_goes_on(now, effects);
            }
            // Whose caller has been told of a failure already hears of it as of a renewal.
            let caller = extension.caller.filter(|_| extension.stage == Stage::Open);
            // No extension shortens a key, so the earlier promise stands where it reaches further.
            held.valid_until = held.valid_until.max(extension.ttl.valid_until(extension.since));
            let valid_until = held.valid_until;
            if let (None, Some(renewal)) = (extension.caller, &mut held.renewal) {
                renewal.next = extension.since + renewal_pause(self.ttl, effects.jitter);
            }
            extension.stage = Stage::Won;
            effects.events.push_back(match caller {
                Some(extension) => Event::Extended { lock: self.id, extension, result: Ok(valid_until) },
                None => Event::Renewed { lock: self.id, valid_until },
            });
            self.heal_behind(place, effects);
        } else if tally.granted + tally.outstanding < quorum.needed() {
            self.extension_failed(place, now, effects);
        }
    }

    /// A quorum still holds the lock: it is put back on masters that do not, as they say so. Without that there is nothing more to
    /// listen for.
    fn heal_behind(&mut self, place: usize, effects: &mut Effects<'_>) {
        let Phase::Held(held) = &mut self.phase else { return };
        let Some(extension) = held.extensions.get_mut(place) else { return };
        let mut lost = MasterSet::EMPTY;
        for (master, vote) in MasterId::all(extension.votes.len()).zip(extension.votes.iter()) {
            if *vote == Vote::NotHeld && !extension.healed.contains(master) {
                lost.insert(master);
                extension.healed.insert(master);
            }
        }
        if !self.healing || !extension.votes.contains(&Vote::Outstanding) {
            held.forget_extension(place);
        }
        self.heal(lost, effects);
    }

    /// Too few masters answered: the lock is as valid as it was. Masters that are still to answer may say that they do not hold it.
    fn extension_failed(&mut self, place: usize, now: Instant, effects: &mut Effects<'_>) {
        let Phase::Held(held) = &mut self.phase else { return };
        let Some(extension) = held.extensions.get_mut(place) else { return };
        let first_time = std::mem::replace(&mut extension.stage, Stage::Failed) == Stage::Open;
        let (caller, votes) = (extension.caller, extension.votes.to_vec());
        if extension.votes.tally().outstanding == 0 {
            held.forget_extension(place);
        }
        if !first_time {
            return;
        }
        match caller {
            Some(extension) => {
                let error = ExtendError::NoQuorum(Box::new(self.ballot(votes, effects)));
                effects.events.push_back(Event::Extended { lock: self.id, extension, result: Err(error) });
            }
            None => {
                if let Some(renewal) = &mut held.renewal {
                    renewal.next = now + retry_pause(self.ttl.as_duration(), effects);
                }
            }
        }
    }

    /// The holder is told, and what is left of the lock is cleared away.
    fn lose(&mut self, cause: LossCause, effects: &mut Effects<'_>) {
        let Phase::Held(held) = std::mem::replace(&mut self.phase, Phase::Lost(cause)) else { return };
        effects.events.push_back(Event::Lost { lock: self.id, cause });
        self.end_extensions(&held, cause, effects);
        self.clear_all(effects);
    }

    /// Tells everybody who still waits for an extension that there is nothing left to extend.
    pub(super) fn end_extensions(&self, held: &Held, cause: LossCause, effects: &mut Effects<'_>) {
        let open = held.extensions.iter().filter(|extension| extension.stage == Stage::Open);
        for extension in open.filter_map(|extension| extension.caller) {
            let result = Err(ExtendError::Lost(cause));
            effects.events.push_back(Event::Extended { lock: self.id, extension, result });
        }
    }
}

/// The vote that an answer to an extension or a release is.
pub(super) fn holder_vote(answer: Answer, discounted: bool) -> Vote {
    match answer {
        Answer::Yes if !discounted => Vote::Granted,
        Answer::Yes | Answer::Counted(_) | Answer::No | Answer::Holder { .. } => Vote::NotHeld,
        Answer::Failed { cause, .. } => Vote::Failed(cause),
    }
}

/// Renewal begins at a third of the TTL, or up to a tenth of that earlier, so that two more tries fit before the end
/// and many locks taken together are not renewed together.
fn renewal_pause(ttl: Ttl, jitter: &mut Jitter) -> Duration {
    let third = ttl.as_duration() / 3;
    jitter.within(&(third - third / 10..=third))
}

/// A failed renewal is tried again soon, but never in a tight loop.
fn retry_pause(ttl: Duration, effects: &mut Effects<'_>) -> Duration {
    let shortest = (ttl / 20).clamp(Duration::from_millis(5), Duration::from_secs(1));
    effects.jitter.within(&(shortest..=shortest + shortest / 4))
}
