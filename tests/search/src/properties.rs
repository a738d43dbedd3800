//! The properties that are checked after every step.

use std::fmt;

use quorlock_core::internals::Action;

use super::book::Book;
use super::client::Client;
use super::input::Told;
use super::item::Item;
use super::places::{Key, Place, Places};
use super::scenario::{Scenario, seat_aims};
use super::state::{Link, MASTERS, Master, State};

/// A property that does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Violation {
    /// Two guards that exclude each other are valid by their clients' own clocks.
    TwoHolders,
    /// More guards of a semaphore are valid than it has permits.
    TooManyHolders,
    /// A guard is valid, but fewer than a quorum of masters hold its token for all of its
    /// resources.
    GuardWithoutKeys,
    /// A guard is valid after the latest of these instants, one for each of its rounds: the first
    /// send, plus the TTL, minus the drift.
    ValidForTooLong,
    /// A grant was reported or handed out after its validity had ended.
    GrantedTooLate,
    /// An extension made a guard valid that was no longer valid.
    Revived,
    /// An extension shortened validity.
    Shortened,
    /// A request touched a key with another token than its own, or set a key where it must not.
    TouchedForeignKey,
    /// Two grants have the same number.
    NumberTwice,
    /// A grant's number is not larger than one that was granted before its attempt began; or a
    /// reader's is smaller than a writer's before it.
    NumberTooSmall,
    /// A token that is no longer needed is on a master that answers, and no request will remove it.
    KeyLeft,
    /// A lock waits, although nothing can happen that it could wait for.
    Stuck,
    /// Both clients were told that another holds the lock, and neither was granted it.
    NobodyHasIt,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TwoHolders => "two guards are valid at once",
            Self::TooManyHolders => "more guards are valid than there are permits",
            Self::GuardWithoutKeys => "a guard is valid without a quorum of keys",
            Self::ValidForTooLong => "a guard is valid for longer than first send + TTL - drift",
            Self::GrantedTooLate => "a grant was told when its validity had ended",
            Self::Revived => "an extension revived a guard whose validity had ended",
            Self::Shortened => "an extension shortened a guard's validity",
            Self::TouchedForeignKey => "a request touched a key that is not its own",
            Self::NumberTwice => "two grants have the same number",
            Self::NumberTooSmall => "a grant's number is not larger than one granted before its first send",
            Self::KeyLeft => "a key stays on a master that answers, and nothing will release it",
            Self::Stuck => "a lock waits for nothing",
            Self::NobodyHasIt => {
                "both clients were told that another holds the lock, and none was granted it"
            }
        })
    }
}

impl std::error::Error for Violation {}

/// Checks a state.
pub(super) fn check(state: &State, scenario: &Scenario, book: &Book) -> Result<(), Violation> {
    if scenario.asynchronous {
        return Ok(());
    }
    let clients = 0..state.shape.clients;
    let is_valid = |client: &usize| state.client(*client).has_valid_guard();
    let form = |client: usize| (client, state.client(client).shares);
    let seat = |client: usize| book.seat(state.client(client).lock);
    for client in clients.clone().filter(is_valid) {
        let mut others = clients.clone().take(client).filter(is_valid);
        let conflicts = |other| match scenario.permits {
            true => seat(client) == seat(other),
            false => scenario.conflict(form(client), form(other)),
        };
        if others.any(conflicts) {
            return Err(Violation::TwoHolders);
        }
    }
    if scenario.permits && clients.filter(is_valid).count() > scenario.resources() {
        return Err(Violation::TooManyHolders);
    }
    if scenario.one_wins && state.clients().iter().all(|client| client.was_refused) {
        return Err(Violation::NobodyHasIt);
    }
    for (client, it) in state.clients().iter().enumerate() {
        let attempt = it.is_alive().then(|| book.attempt(it.lock));
        let is_own = |key: Key| usize::from(key.client) == client && Some(key.attempt) == attempt;
        // A master in quarantine votes for nobody, but what it has lost may have been a vote.
        let has = |master: &&Master| {
            let aims = if scenario.permits { seat_aims(seat(client)) } else { scenario.aims_of(client) };
            let has_all = || aims.iter().all(|aim| master.place(aim.resource()).keys().any(is_own));
            if master.quarantine > 0 { !master.lost_a_vote } else { has_all() }
        };
        // The quorum is counted here, and not by the code under test.
        let is_quorum = 2 * state.masters.iter().filter(has).count() > MASTERS;
        if scenario.guards_have_keys && it.has_valid_guard() && !is_quorum {
            return Err(Violation::GuardWithoutKeys);
        }
        for master in &state.masters {
            let link = master.link(client);
            let keys = master.places.iter().flat_map(Place::keys);
            let mut stand = keys.filter(|key| usize::from(key.client) == client && !key.is_late);
            // A master whose clock is slow may keep a key for a little longer than its release is
            // owed.
            let is_left = |key: Key| Some(key.attempt) != attempt && key.life > scenario.late;
            if stand.any(|key| is_left(key) && !will_be_released(link, key.attempt)) {
                return Err(Violation::KeyLeft);
            }
        }
        if it.is_alive() && book.deadline(it.lock).is_none() && !is_awaited(state, client) {
            return Err(Violation::Stuck);
        }
    }
    Ok(())
}

/// Whether a release of this attempt's token is on its way, waits, or is owed.
fn will_be_released(link: &Link, attempt: u8) -> bool {
    let clears = |item: Item| item.action().clears() && item.attempt() == attempt;
    link.flight.iter().chain(link.queued.iter()).any(clears)
        || link.debts.iter().any(|debt| debt.attempt == attempt)
}

/// Whether an answer can come to one of the client's rounds.
fn is_awaited(state: &State, client: usize) -> bool {
    let asks = |link: &Link| {
        let unreported = link.flight.iter().skip(usize::from(link.reported));
        unreported.chain(link.queued.iter()).any(|item| item.round() > 0)
    };
    state.masters.iter().any(|master| asks(master.link(client)))
}

/// Checks a request with the token of `own` that a master has executed. It may touch only keys with
/// that token, and only an acquisition may create one. This is why a client that will never hold
/// the lock again can be examined separately.
pub(super) fn executed(before: &Places, after: &Places, action: Action, own: Key) -> Result<(), Violation> {
    let is_foreign = |key: &Key| !key.is_of(own);
    let is_fine = |(was, now): (&Place, &Place)| {
        let is_kept = was.keys().filter(is_foreign).eq(now.keys().filter(is_foreign));
        is_kept && (action.creates() || was.of(own).is_some() || now.of(own).is_none())
    };
    if before.iter().zip(after).all(is_fine) { Ok(()) } else { Err(Violation::TouchedForeignKey) }
}

/// A guard was handed over.
pub(super) fn granted(client: &Client, until: u8) -> Option<Violation> {
    if until > client.bound {
        Some(Violation::ValidForTooLong)
    } else if until <= client.now {
        Some(Violation::GrantedTooLate)
    } else {
        None
    }
}

/// Checks the number of a grant. `granted` are the numbers of writers before it, and `floor` is the
/// largest number with which it is compared, from when its attempt began. A writer's number must be
/// larger than all before it, and a reader's at least as large as those of all writers before it.
pub(super) fn numbered(number: u8, floor: u8, granted: u16, is_reader: bool) -> Option<Violation> {
    if is_reader {
        (number < floor).then_some(Violation::NumberTooSmall)
    } else if granted >> number & 1 == 1 {
        Some(Violation::NumberTwice)
    } else {
        (number <= floor).then_some(Violation::NumberTooSmall)
    }
}

/// Records a report to the client.
pub(super) fn told(client: &Client, told: Told) -> Option<Violation> {
    match told {
        Told::Granted { until, .. } => granted(client, until),
        Told::Extended { until: Some(until) } => {
            if until > client.bound {
                Some(Violation::ValidForTooLong)
            } else if client.guard == 0 {
                None
            } else if client.now >= client.guard {
                Some(Violation::Revived)
            } else {
                (until < client.guard).then_some(Violation::Shortened)
            }
        }
        Told::Extended { until: None }
        | Told::NotAcquired
        | Told::HeldByAnother
        | Told::Settles
        | Told::Lost
        | Told::Released => None,
    }
}
