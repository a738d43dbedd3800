//! One lock's life: attempts, holding with extensions and renewal, release.
//!
//! ```text
//!           attempt             quorum                      release
//!  Queued ──────────▶ Trying ──────────────▶ Held ─────────────────────▶ Releasing ──▶ Told
//!    │                 ▲   │ round lost       │  │
//!    │ read    attempt │   ▼                  │  │ validity over, or not ours    release
//!    └──────────────▶ Clearing ◀──────────────┘  └─────────────────────────▶ Gone ──▶ Told
//!                      │   ended before it
//!                      ▼ end  was taken            Resuming ──▶ Held, or Told
//!                     Told
//! ```
//!
//! Each phase has its own type, with its own answers and deadlines. It returns what comes next, and
//! [`Lock::go_on`] changes the phase: the only place where an answer or the time does so. The
//! caller's commands (release, cancel, hand over) are in `commands.rs`, and the commands for a lock
//! that is sought (attempt, read, end) in `seeking.rs`. A cancelled lock is over at once, unless
//! its end was already reported: then the machine drops it with its last event.
//!
//! Rules of this room: a lock knows votes, instants and its own token. It does not know connections
//! or other locks, nor when to ask again: it makes an attempt on command, and reports how that was
//! lost. It returns orders for masters, events for its caller, and its next deadline.

mod acquiring;
mod clearing;
mod commands;
mod context;
mod extending;
mod fencing;
mod healing;
mod holding;
mod queueing;
mod releasing;
mod resuming;
mod seating;
mod seeking;
#[cfg(test)]
mod tests;

use std::time::Duration;

use self::acquiring::Trying;
pub(crate) use self::acquiring::{Assigner, Attempt, HEAD_START};
use self::clearing::Clearing;
pub(crate) use self::clearing::{LostRound, Refused};
pub use self::context::Order;
use self::context::{Base, Context, Keys};
pub(crate) use self::context::{Effects, Grant};
use self::holding::Held;
pub(crate) use self::queueing::Queueing;
use self::releasing::Releasing;
use self::resuming::Resuming;
use crate::protocol::{
    Acquire, AcquireError, Answer, Event, LockId, MasterId, MasterSet, ReleaseOutcome, Resumption, Seats,
    Targets, Token, Ttl,
};
use crate::time::Instant;

/// How long before the end of validity a loss is reported. Timers of the operating system and of
/// async runtimes fire up to a millisecond or two late, and the holder must not learn of the loss
/// after the fact. Larger: every grant loses that much. Smaller: a late timer reports too late.
const NOTICE: Duration = Duration::from_millis(2);

/// One lock, from the request for it to its end.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Lock {
    base: Base,
    stage: Stage,
}

// Nearly every lock is in the large variant `Asked`: a smaller enum would save nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    /// No master has been asked, so there is no token.
    Queued,
    /// Masters have been asked, with the token of the present attempt.
    Asked(Keys, Phase),
    /// Nothing is left to do, but the final event has yet to be taken.
    Told,
    Over,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Trying(Trying),
    Clearing(Clearing),
    Resuming(Resuming),
    Held(Held),
    /// The holder has been notified that the lock is lost.
    Gone,
    Releasing(Releasing),
}

/// The state of a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum State {
    /// The lock has asked no master yet.
    Queued,
    Sought,
    Held,
    /// The lock is no longer sought or held.
    LetGo,
    /// Nothing refers to it, and its number may be reused. A lock whose last event has yet to be
    /// taken is still `LetGo`: so a table by number can distinguish the event's receiver from the
    /// next lock.
    Over,
}

/// What follows from an input.
enum Next {
    /// The phase continues, and its deadline comes no nearer.
    Stay,
    /// The phase continues, maybe with a nearer deadline.
    GoOn,
    Held(Held),
    /// The holder has been notified that its lock is lost.
    Gone,
    NotAcquired(AcquireError),
    Released(ReleaseOutcome),
    // For the bid: the variants of `Report` with these names.
    RoundLost(LostRound),
    Refused(Refused),
    Named(MasterId, Answer),
    Late(MasterId, Answer),
    Read(MasterId, Answer),
}

/// What matters to the bid, which decides whether and when the lock asks again.
#[must_use]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Report {
    Nothing,
    /// Nothing to report, and nothing changed for others: the lock's state is the same, and its
    /// deadline is no nearer.
    Unchanged,
    /// A round was lost: [`Lock::undo`] or [`Lock::give_back`] comes next.
    RoundLost(LostRound),
    /// One master was asked before the others and refused.
    Refused(Refused),
    /// In an open round, a master has named the holder.
    Named(MasterId, Answer),
    /// A vote that came after its round was lost.
    Late(MasterId, Answer),
    /// A master's answer about the key, after a lost round or before the first attempt.
    Read(MasterId, Answer),
    /// Time has passed while the lock has no request under way.
    Idle,
}

impl Lock {
    /// A lock that waits for its first [`Lock::attempt`].
    pub(crate) fn queued(id: LockId, wanted: &Acquire, now: Instant) -> Self {
        Self { base: Base::new(id, wanted, now), stage: Stage::Queued }
    }

    /// Resumes a lock that was handed over.
    pub(crate) fn resumed(
        id: LockId,
        wanted: &Acquire,
        resumption: Resumption,
        effects: &mut Effects<'_>,
    ) -> Self {
        let now = effects.now;
        let mut base = Base::new(id, wanted, now);
        base.targets = base.targets.at_seats(resumption.seats);
        base.longest_ttl = effects.config.longest_ttl();
        (base.attempts, base.attempts_allowed) = (1, Some(1));
        let all = MasterSet::all(effects.config.masters.len());
        let mut keys = Keys::new(&base, resumption.token, all);
        (keys.forsaken, keys.unproven) = (resumption.uncounted, resumption.unproven);
        (keys.fence, keys.is_copied) = (resumption.fencing_token, true);
        let resuming = Resuming::begin(&mut Context { base: &mut base, keys: &mut keys, effects });
        Self { base, stage: Stage::Asked(keys, Phase::Resuming(resuming)) }
    }

    /// Releases a lock that was granted to another locker. With `life` its keys stay for that long.
    /// It is unknown whether the token holds a single resource alone or shares it: an immediate
    /// release handles both.
    pub(crate) fn released(
        id: LockId,
        targets: &Targets,
        token: Token,
        life: Option<Ttl>,
        effects: &mut Effects<'_>,
    ) -> Self {
        // Its keys may have any TTL.
        let wanted = Acquire::new(targets.clone(), effects.config.longest_ttl());
        let mut base = Base::new(id, &wanted, effects.now);
        let mut keys = Keys::new(&base, token, MasterSet::all(effects.config.masters.len()));
        if life.is_none() {
            keys.be_of_any_kind(targets);
        }
        let mut cx = Context { base: &mut base, keys: &mut keys, effects };
        let releasing = match life {
            Some(life) => Releasing::keeping(life, Vec::new(), &mut cx),
            None => Releasing::begin(Vec::new(), &mut cx),
        };
        Self { base, stage: Stage::Asked(keys, Phase::Releasing(releasing)) }
    }

    // Getters.

    /// Its seats of a semaphore, once they are chosen.
    pub(crate) fn seats(&self) -> Option<Seats> {
        match &self.stage {
            Stage::Asked(keys, _) => keys.seating.as_ref()?.chosen(),
            Stage::Queued | Stage::Told | Stage::Over => None,
        }
    }

    /// The first of its seats.
    pub(crate) fn seat(&self) -> Option<u16> {
        self.seats()?.numbers().next()
    }

    pub(crate) fn targets(&self) -> &Targets {
        &self.base.targets
    }

    /// The state of the lock, as far as others need to know.
    pub(crate) fn state(&self) -> State {
        match &self.stage {
            Stage::Queued => State::Queued,
            Stage::Asked(_, phase) => match phase {
                Phase::Trying(_) | Phase::Clearing(_) | Phase::Resuming(_) => State::Sought,
                Phase::Held(_) => State::Held,
                Phase::Gone | Phase::Releasing(_) => State::LetGo,
            },
            Stage::Told => State::LetGo,
            Stage::Over => State::Over,
        }
    }

    /// Whether its caller has it. A grant that ends before the caller takes it is sought again.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(&self.stage, Stage::Asked(_, Phase::Held(held)) if held.taken)
    }

    pub(crate) fn token(&self) -> Option<Token> {
        match &self.stage {
            Stage::Asked(keys, _) => Some(keys.token),
            Stage::Queued | Stage::Told | Stage::Over => None,
        }
    }

    /// As [`Self::resumption`], for another locker while this one goes on.
    pub(crate) fn copied_resumption(&mut self, masters: usize) -> Option<Resumption> {
        if let Stage::Asked(keys, _) = &mut self.stage {
            keys.is_copied = true;
        }
        self.resumption(masters)
    }

    /// What another locker needs to resume it, of this many masters.
    pub(crate) fn resumption(&self, masters: usize) -> Option<Resumption> {
        let Stage::Asked(keys, phase) = &self.stage else { return None };
        let unsettled = if let Phase::Held(held) = phase { held.unsettled } else { MasterSet::EMPTY };
        let uncounted = keys.forsaken.with(unsettled);
        let not_reached = MasterSet::all(masters).without(keys.reached);
        Some(Resumption {
            token: keys.token,
            fencing_token: keys.fence,
            uncounted,
            unproven: keys.unproven.with(not_reached).without(uncounted),
            of: self.base.targets.digest(),
            seats: self.seats().unwrap_or(Seats::NONE),
        })
    }

    pub(crate) fn attempts(&self) -> u32 {
        self.base.attempts
    }

    /// Whether its caller allows a further attempt.
    pub(crate) fn may_try_again(&self) -> bool {
        self.base.may_try_again()
    }

    /// Whether an attempt from now on lasts until its caller's time is over, or may do so.
    pub(crate) fn is_last_in_time(&self, effects: &Effects<'_>) -> bool {
        self.base.is_last_in_time(effects)
    }

    /// When its caller stops waiting for it.
    pub(crate) fn give_up_at(&self) -> Option<Instant> {
        self.base.give_up_at
    }

    /// Its last grant, if there was one.
    pub(crate) fn grant(&self) -> Option<Grant> {
        self.base.grant
    }

    /// Forgets when it was granted, which only other locks of the process use.
    #[cfg(feature = "internals")]
    pub(crate) fn forget_its_grant(&mut self) {
        self.base.grant = None;
    }

    /// The votes for the grant so far, while the lock is held.
    #[cfg(feature = "tracing")]
    pub(crate) fn votes_granted(&self) -> usize {
        match &self.stage {
            Stage::Asked(_, Phase::Held(held)) => crate::protocol::Tally::of(&held.votes).granted(),
            _ => 0,
        }
    }

    /// The instant at which [`Lock::time_passed`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let give_up_at = self.base.give_up_at;
        match &self.stage {
            Stage::Queued => give_up_at,
            Stage::Asked(_, phase) => match phase {
                Phase::Trying(trying) => Instant::first_of(trying.deadline(), give_up_at),
                Phase::Resuming(_) | Phase::Clearing(_) => give_up_at,
                Phase::Held(held) => Some(held.deadline()),
                Phase::Gone | Phase::Releasing(_) => None,
            },
            Stage::Told | Stage::Over => None,
        }
    }

    // Inputs.

    /// A master answered in one of this lock's rounds; answers of ended rounds are ignored.
    #[inline]
    pub(crate) fn answer(
        &mut self,
        master: MasterId,
        round: u32,
        answer: Answer,
        effects: &mut Effects<'_>,
    ) -> Report {
        let Stage::Asked(keys, phase) = &mut self.stage else { return Report::Unchanged };
        if let Some(queueing) = &mut self.base.queueing {
            let is_asked = match phase {
                Phase::Trying(trying) => trying.round == round,
                Phase::Clearing(clearing) => clearing.is_about_place(round, answer),
                _ => false,
            };
            if is_asked {
                queueing.note(master, round, answer, effects);
            }
        }
        let cx = &mut Context { base: &mut self.base, keys, effects };
        let next = match phase {
            Phase::Trying(trying) if trying.round == round => trying.answer(master, answer, cx),
            Phase::Clearing(clearing) => clearing.answer(master, round, answer),
            Phase::Resuming(resuming) => resuming.answer(master, answer, cx),
            Phase::Held(held) => held.answer(master, round, answer, cx),
            Phase::Releasing(releasing) if releasing.round == round => releasing.answer(master, answer, cx),
            Phase::Trying(_) | Phase::Gone | Phase::Releasing(_) => Next::Stay,
        };
        // Most answers change nothing, and must then cost nothing.
        if matches!(next, Next::Stay) { Report::Unchanged } else { self.go_on(next, effects) }
    }

    /// The deadline of the lock or of its bid has come. The bid has none while the lock asks or is
    /// held.
    pub(crate) fn time_passed(&mut self, effects: &mut Effects<'_>) -> Report {
        let (keys, phase) = match &mut self.stage {
            Stage::Asked(keys, phase) => (keys, phase),
            Stage::Queued => return Report::Idle,
            Stage::Told | Stage::Over => return Report::Nothing,
        };
        let cx = &mut Context { base: &mut self.base, keys, effects };
        let next = match phase {
            Phase::Clearing(_) => return Report::Idle,
            Phase::Trying(trying) => trying.time_passed(cx),
            Phase::Resuming(resuming) => resuming.time_passed(cx),
            Phase::Held(held) => held.time_passed(cx),
            Phase::Gone | Phase::Releasing(_) => Next::Stay,
        };
        self.go_on(next, effects)
    }

    /// The only place where an answer or the time changes the phase.
    fn go_on(&mut self, next: Next, effects: &mut Effects<'_>) -> Report {
        let lock = self.base.id;
        let Stage::Asked(keys, phase) = &mut self.stage else {
            debug_assert!(matches!(next, Next::Stay), "only a lock that has asked masters changes its phase");
            return Report::Nothing;
        };
        match next {
            Next::Stay | Next::GoOn => {}
            Next::Held(held) => {
                let valid_until = held.valid_until;
                *phase = Phase::Held(held);
                effects.events.push_back(Event::Granted { lock, valid_until });
            }
            Next::Gone => *phase = Phase::Gone,
            Next::NotAcquired(error) => self.fail(error, effects),
            Next::Released(outcome) => {
                self.stage = Stage::Told;
                effects.events.push_back(Event::Released { lock, outcome });
            }
            Next::RoundLost(lost) => {
                *phase = Phase::Clearing(Clearing::behind(lost.round, &mut self.base));
                return Report::RoundLost(lost);
            }
            Next::Refused(refused) => {
                *phase = Phase::Clearing(Clearing::behind(refused.round, &mut self.base));
                keys.reached = MasterSet::EMPTY;
                return Report::Refused(refused);
            }
            Next::Named(master, answer) => return Report::Named(master, answer),
            Next::Late(master, answer) => return Report::Late(master, answer),
            Next::Read(master, answer) => return Report::Read(master, answer),
        }
        Report::Nothing
    }
}
