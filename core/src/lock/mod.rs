//! One lock's life: attempts, the pauses between them, holding with extensions and renewal, release.
//!
//! ```text
//!  Queued (behind others of its line)
//!    ▼       quorum                                  release
//!  Trying ──────────────────▶ Held ─────────────────────────────▶ Releasing ──▶ Over
//!    ▲ │ lost                  │ validity over, or not ours any more               ▲
//!    │ ▼                       ▼                     release                       │
//!  Clearing ──▶ Over          Lost ────────────────────────────────────────────────┘
//!                             ▲
//!             Resuming ───────┘ a lock that was handed on
//! ```
//!
//! Rules of this room: a lock knows votes, instants and its own token. It does not know connections or other
//! locks; what it leaves to the one behind it is a value (`Knowledge`). It gives orders for masters and events for its caller, and
//! tells its next deadline.

mod acquiring;
mod effects;
mod ending;
mod fencing;
mod healing;
mod holding;
mod listening;
mod releasing;
mod resuming;
mod settling;
mod wait;
mod waiting;

use std::time::Duration;

use self::acquiring::{Clearing, Trying};
pub(crate) use self::effects::{Effects, Order};
use self::holding::Held;
use self::releasing::Releasing;
use self::resuming::Resuming;
pub(crate) use self::wait::{Knowledge, Turn};
use self::wait::{Wait, Way};
use crate::protocol::{
    Acquire, Action, Answer, Claim, Event, ExtensionId, FencingToken, LockId, LossCause, MasterId, MasterSet,
    ReleaseOutcome, Request, RequestError, Resource, Resumption, Ticket, Token, Ttl,
};
use crate::time::Instant;

/// A loss is told so long before validity ends, because timers of the operating system and of async runtimes fire
/// up to a millisecond or two late, and the holder must not learn of it after the fact.
const NOTICE: Duration = Duration::from_millis(2);

/// No master is asked with this one.
const NO_TOKEN: Token = Token::from_bytes([0; Token::BYTES]);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// It has asked nobody yet. At that instant it does; until it is told one it stands behind others.
    Queued {
        begins: Option<Instant>,
    },
    Trying(Trying),
    Resuming(Resuming),
    Clearing(Clearing),
    Held(Held),
    Lost(LossCause),
    Releasing(Releasing),
    /// Nothing is left to do, but the event that says so has yet to be taken.
    Told,
    Over,
}

/// One lock, from the request for it to its end.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Lock {
    id: LockId,
    resource: Resource,
    ttl: Ttl,
    /// The longest life that any of its keys may have been given: so long a release that could not be sent is owed.
    longest_ttl: Ttl,
    /// When its caller stops waiting for it.
    give_up_at: Option<Instant>,
    attempts_allowed: Option<u32>,
    renew_for: Option<Duration>,
    token: Token,
    claim: Claim,
    rounds: u32,
    attempts: u32,
    /// Masters that may hold the token, now or later.
    reached: MasterSet,
    /// Masters on which a release may follow the token at any time: they never count as holders.
    forsaken: MasterSet,
    /// Masters that did not take the token at first and have not said that it was put back there: they do not count as holders.
    unproven: MasterSet,
    healing: bool,
    /// Whether it was handed on to us. Until it is taken it is not ours to release.
    resumed: bool,
    /// The number of the grant; zero before that, and where it is not fenced.
    fence: u64,
    wait: Wait,
    way: Way,
    phase: Phase,
}

impl Lock {
    /// Begins with the first attempt, or goes on with a lock that was handed on.
    pub(crate) fn new(
        id: LockId,
        wanted: &Acquire,
        turn: Turn,
        now: Instant,
        effects: &mut Effects<'_>,
    ) -> Result<Self, RequestError> {
        let mut lock = Self::queued(id, wanted, now);
        lock.come_to_the_front(turn, now);
        if let Some(resumption) = wanted.resumption {
            lock.renew_token(resumption.token);
            lock.attempts_allowed = Some(1);
            lock.resumed = true;
            lock.forsaken = resumption.uncounted;
            lock.longest_ttl = effects.config.longest_ttl();
            lock.fence = resumption.fencing_token.map_or(0, FencingToken::get);
            lock.resume(now, effects);
        } else {
            lock.renew_token(effects.fresh_token()?);
            lock.attempt(now, effects);
        }
        Ok(lock)
    }

    /// Stands behind others until [`Lock::begin`].
    pub(crate) fn queued(id: LockId, wanted: &Acquire, now: Instant) -> Self {
        let is_fenced =
            wanted.resumption.map_or(wanted.fenced, |resumption| resumption.fencing_token.is_some());
        let mut lock = Self::unasked(id, &wanted.resource, NO_TOKEN, Claim::none(is_fenced), wanted.ttl);
        let (within, attempts) = wanted.limits();
        lock.give_up_at = within.map(|limit| now + limit);
        lock.attempts_allowed = attempts;
        lock.renew_for = wanted.renew_for;
        lock.healing = wanted.healing;
        lock.phase = Phase::Queued { begins: None };
        lock
    }

    /// Releases a lock that somebody else was granted.
    pub(crate) fn released(id: LockId, resource: &Resource, token: Token, effects: &mut Effects<'_>) -> Self {
        // Its keys may have been given any life.
        let claim = Claim::new(resource, token, false);
        let mut lock = Self::unasked(id, resource, token, claim, effects.config.longest_ttl());
        lock.reached = MasterSet::all(effects.config.masters.len());
        lock.start_release(effects);
        lock
    }

    fn unasked(id: LockId, resource: &Resource, token: Token, claim: Claim, ttl: Ttl) -> Self {
        Self {
            id,
            resource: resource.clone(),
            ttl,
            longest_ttl: ttl,
            give_up_at: None,
            attempts_allowed: None,
            renew_for: None,
            token,
            claim,
            rounds: 0,
            attempts: 0,
            reached: MasterSet::EMPTY,
            forsaken: MasterSet::EMPTY,
            unproven: MasterSet::EMPTY,
            healing: false,
            resumed: false,
            fence: 0,
            wait: Wait::default(),
            way: Way::default(),
            phase: Phase::Over,
        }
    }

    // Getters.

    /// Whether nothing refers to the lock any more. While its last event waits to be taken it keeps its number, so that
    /// whoever keeps a table by number can tell the event's receiver from the next lock.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    pub(crate) fn is_held(&self) -> bool {
        matches!(self.phase, Phase::Held(_))
    }

    pub(crate) fn has_token(&self) -> bool {
        !self.is_queued() && self.token != NO_TOKEN
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    pub(crate) fn resumption(&self) -> Resumption {
        let mut uncounted = self.forsaken;
        if let Phase::Held(held) = &self.phase {
            held.unsettled.iter().for_each(|master| uncounted.insert(master));
        }
        Resumption { token: self.token, fencing_token: FencingToken::new(self.fence), uncounted }
    }

    pub(crate) fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The instant at which [`Lock::time_passed`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Queued { begins } => begins.iter().copied().chain(self.give_up_at).min(),
            Phase::Trying(trying) => trying.rest_at.into_iter().chain(self.give_up_at).min(),
            Phase::Resuming(_) => self.give_up_at,
            Phase::Clearing(clearing) => clearing.retry_at.into_iter().chain(self.give_up_at).min(),
            Phase::Held(held) => Some(held.deadline()),
            Phase::Lost(_) | Phase::Releasing(_) | Phase::Told | Phase::Over => None,
        }
    }

    // Commands.

    /// Whether the grant is still valid when its caller takes it; if not, the lock is sought further.
    pub(crate) fn hand_over(&mut self, now: Instant, effects: &mut Effects<'_>) -> Option<Instant> {
        let Phase::Held(held) = &mut self.phase else { return None };
        if now + NOTICE < held.valid_until {
            held.taken = true;
            return Some(held.valid_until);
        }
        self.grant_came_to_nothing(now, effects);
        None
    }

    /// Asks for more time.
    pub(crate) fn extend(
        &mut self,
        id: ExtensionId,
        ttl: Ttl,
        now: Instant,
        effects: &mut Effects<'_>,
    ) -> Result<(), RequestError> {
        match &self.phase {
            Phase::Held(held) if held.has_room() => {
                self.start_extension(Some(id), ttl, now, effects);
                Ok(())
            }
            Phase::Held(_) => Err(RequestError::TooManyExtensions),
            _ => Err(RequestError::UnknownLock),
        }
    }

    /// Renews no more. An extension that is under way counts all the same.
    pub(crate) fn stop_renewal(&mut self) {
        if let Phase::Held(held) = &mut self.phase {
            held.stop_renewal();
        }
    }

    /// Before a command: a lock whose time has run out is lost, whether or not a timer has fired.
    pub(crate) fn look_at_clock(&mut self, now: Instant, effects: &mut Effects<'_>) {
        if let Phase::Held(held) = &self.phase {
            if held.taken && now + NOTICE >= held.valid_until {
                self.holding_goes_on(now, effects);
            }
        }
    }

    /// Leaves the lock to whoever has its token: it ends here, and its keys stay. `false` if it is not held any more.
    pub(crate) fn hand_on(&mut self, effects: &mut Effects<'_>) -> bool {
        if !self.is_held() {
            return false;
        }
        if let Phase::Held(held) = std::mem::replace(&mut self.phase, Phase::Over) {
            self.end_extensions(&held, LossCause::HandedOn, effects);
        }
        true
    }

    /// Gives the lock up and tells whether it was still ours.
    pub(crate) fn release(&mut self, effects: &mut Effects<'_>) {
        match &self.phase {
            Phase::Held(_) => self.start_release(effects),
            Phase::Lost(_) => {
                self.phase = Phase::Told;
                effects.events.push_back(Event::Released { lock: self.id, outcome: ReleaseOutcome::NotOurs });
            }
            Phase::Releasing(_) | Phase::Told => {}
            Phase::Queued { .. }
            | Phase::Trying(_)
            | Phase::Resuming(_)
            | Phase::Clearing(_)
            | Phase::Over => self.cancel(effects),
        }
    }

    /// Gives the lock up, whatever has become of it, and tells nobody; an event that says its end already still comes.
    pub(crate) fn cancel(&mut self, effects: &mut Effects<'_>) {
        self.keep_knowledge();
        match &self.phase {
            // Handed on, and not taken by the one to whom it was.
            Phase::Held(held) if self.resumed && !held.taken => {}
            Phase::Trying(_) | Phase::Held(_) => self.clear_all(effects),
            Phase::Queued { .. }
            | Phase::Resuming(_)
            | Phase::Clearing(_)
            | Phase::Lost(_)
            | Phase::Releasing(_)
            | Phase::Over => {}
            Phase::Told => return,
        }
        self.phase = Phase::Over;
    }

    // Inputs.

    /// A master answered in one of this lock's rounds; rounds that are over are not listened to.
    pub(crate) fn answer(
        &mut self,
        master: MasterId,
        round: u32,
        answer: Answer,
        now: Instant,
        effects: &mut Effects<'_>,
    ) {
        match &mut self.phase {
            Phase::Trying(trying) if trying.round == round => {
                self.attempt_answered(master, answer, now, effects);
            }
            Phase::Resuming(resuming) if resuming.round == round => {
                self.resume_answered(master, answer, now, effects);
            }
            Phase::Clearing(_) => self.clearing_answered(master, round, answer, now, effects),
            Phase::Held(held) if held.round == round => self.late_vote(master, answer),
            Phase::Held(held) if held.healing_round == round => self.heal_answered(master, answer),
            Phase::Held(_) => self.extension_answered(master, round, answer, now, effects),
            Phase::Releasing(releasing) if releasing.round == round => {
                self.release_answered(master, answer, effects);
            }
            _ => {}
        }
    }

    /// The time is `now`.
    pub(crate) fn time_passed(&mut self, now: Instant, effects: &mut Effects<'_>) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match &self.phase {
            Phase::Queued { begins: Some(at) } if *at <= now => self.attempt_again(now, effects),
            Phase::Trying(_) => self.trying_goes_on(now, effects),
            Phase::Resuming(_) => self.resuming_ran_out_of_time(now, effects),
            Phase::Clearing(clearing) => match clearing.retry_at {
                Some(at) if at <= now && self.give_up_at.is_none_or(|limit| now < limit) => {
                    self.attempt_again(now, effects);
                }
                _ => self.finish(effects),
            },
            Phase::Held(_) => self.holding_goes_on(now, effects),
            Phase::Queued { .. } | Phase::Lost(_) | Phase::Releasing(_) | Phase::Told | Phase::Over => {}
        }
    }

    // Shared by the phases.

    fn next_round(&mut self) -> u32 {
        self.rounds = self.rounds.wrapping_add(1);
        self.rounds
    }

    /// Whether a master must not be counted as a holder even if it says that it is one: a release may follow the token
    /// there, or it refused the token and can have it only as another master's (one server behind two addresses).
    fn is_discounted(&self, master: MasterId) -> bool {
        self.forsaken.contains(master) || self.unproven.contains(master) || !self.reached.contains(master)
    }

    /// A request in this round; `None` for one whose answer nobody waits for.
    fn request(&self, round: Option<u32>, action: Action, ttl: Ttl, fence: u64) -> Request {
        let ticket = round.map(|round| Ticket { lock: self.id, round });
        Request { ticket, action, claim: self.claim.clone(), ttl, fence, watch: false }
    }

    /// Releases the token everywhere, without waiting for what the masters say.
    fn clear_all(&self, effects: &mut Effects<'_>) {
        effects.order(self.reached, self.request(None, Action::Release, self.longest_ttl, 0));
    }
}
