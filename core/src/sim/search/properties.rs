//! What must be true, checked after every step.

use std::fmt;

use super::book::Book;
use super::input::Told;
use super::item::Item;
use super::scenario::Scenario;
use super::state::{Client, Key, Link, MASTERS, Master, State};
use crate::protocol::Action;

/// A property that does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Violation {
    /// Both clients' own clocks call their guards valid.
    TwoHolders,
    /// A guard is valid, and fewer than a quorum of masters hold its token.
    GuardWithoutKeys,
    /// A guard is valid for longer than the first send of any of its rounds, plus the TTL, less the drift, allows.
    ValidForTooLong,
    /// A grant was told or handed over when its validity had ended already.
    GrantedTooLate,
    /// An extension made a guard valid that was not any more.
    Revived,
    /// An extension took validity away.
    Shortened,
    /// A request touched a key with another token than its own, or put one where it must not.
    TouchedForeignKey,
    /// Two grants have the same number.
    NumberTwice,
    /// A grant's number is not larger than one that was granted before its attempt began.
    NumberTooSmall,
    /// A token that is done with stands on a master that answers, and no request will take it away.
    KeyLeft,
    /// A lock waits, and there is nothing that it could wait for.
    Stuck,
    /// Both clients were told that another holds the lock, and neither was granted it.
    NobodyHasIt,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TwoHolders => "two guards are valid at once",
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
                "both clients were told that another holds the lock, and nobody was granted it"
            }
        })
    }
}

impl std::error::Error for Violation {}

/// Looks at a state.
pub(super) fn check(state: &State, scenario: &Scenario, book: &Book) -> Result<(), Violation> {
    if scenario.asynchronous {
        return Ok(());
    }
    if state.clients.iter().all(Client::has_valid_guard) {
        return Err(Violation::TwoHolders);
    }
    if scenario.one_wins && state.clients.iter().all(|client| client.was_refused) {
        return Err(Violation::NobodyHasIt);
    }
    for (client, it) in state.clients.iter().enumerate() {
        let attempt = it.is_alive().then(|| book.attempt(it.lock));
        let is_own = |key: Key| usize::from(key.client) == client && Some(key.attempt) == attempt;
        // A master in quarantine has no vote either.
        let has = |master: &&Master| master.quarantine > 0 || master.key.is_some_and(is_own);
        // Counted here and not by the code that is searched.
        let is_quorum = 2 * state.masters.iter().filter(has).count() > MASTERS;
        if scenario.guards_have_keys && it.has_valid_guard() && !is_quorum {
            return Err(Violation::GuardWithoutKeys);
        }
        for master in &state.masters {
            let link = master.link(client);
            let stands = master.key.filter(|key| usize::from(key.client) == client && !key.is_late);
            // A master whose clock is slow may keep a key for a little longer than its release is owed.
            let left = stands.filter(|key| Some(key.attempt) != attempt && key.life > scenario.late);
            if left.is_some_and(|key| !will_be_released(link, key.attempt)) {
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

/// A master executed a request with the token of `own`. It touches a key with that token only, and only an acquisition
/// makes one: that is what allows a client that will never hold the lock again to be looked at apart.
pub(super) fn executed(
    before: Option<Key>,
    after: Option<Key>,
    action: Action,
    own: Key,
) -> Result<(), Violation> {
    let is_fine = match (before, after) {
        (None, None) => true,
        (None, Some(made)) => action.creates() && made.is_of(own),
        (Some(was), now) => was.is_of(own) || now == Some(was),
    };
    if is_fine { Ok(()) } else { Err(Violation::TouchedForeignKey) }
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

/// A lock was granted with this number, and others with these before, the largest of them `floor` when its attempt began.
pub(super) fn numbered(number: u8, floor: u8, granted: u16) -> Option<Violation> {
    if granted >> number & 1 == 1 {
        Some(Violation::NumberTwice)
    } else {
        (number <= floor).then_some(Violation::NumberTooSmall)
    }
}

/// The client was told something.
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
