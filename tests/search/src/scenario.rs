//! What may happen in a search, and how often.

use std::time::Duration;

use super::item::{Form, Item};

/// The length of a tick: one NOTICE, and a little less than the drift of any short TTL (TTL ×
/// 0.01 + 2 ms).
pub(super) const TICK: Duration = Duration::from_millis(2);

/// One target of a client's claim, by the number of its resource. There are up to three resources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aim {
    /// It is locked exclusively.
    Write(usize),
    /// It is shared with other readers.
    Read(usize),
}

impl Aim {
    pub(super) fn resource(self) -> usize {
        match self {
            Self::Write(resource) | Self::Read(resource) => resource,
        }
    }

    pub(super) fn is_shared(self) -> bool {
        matches!(self, Self::Read(_))
    }

    /// Whether two clients must not have both at the same time. This is defined here, independently
    /// of the code under test.
    fn conflicts(self, other: Self) -> bool {
        self.resource() == other.resource() && !(self.is_shared() && other.is_shared())
    }
}

/// The seat of a holder; `None` if none is chosen.
pub(super) fn seat_aims(seat: Option<u8>) -> &'static [Aim] {
    const SEATS: [&[Aim]; 3] = [&[Aim::Write(0)], &[Aim::Write(1)], &[Aim::Write(2)]];
    seat.and_then(|seat| SEATS.get(usize::from(seat)).copied()).unwrap_or_default()
}

/// A fault of the masters' scripts or of a caller, which a search must find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Flaw {
    /// Readers are counted and have no names: a release removes one, from any client.
    ReadersCounted,
    /// The key of sharers lives as long as the entry of the reader that came last, instead of the
    /// entry that lives longest.
    KeyEndsWithTheLastReader,
    /// An extension of a batch is granted if any of its keys is ours.
    BatchExtendedByAnyKey,
    /// Each counter of a batch is incremented separately, and the batch's number is the largest of
    /// them.
    BatchNumbersEachKey,
    /// A master that has lost its keys answers an extension like others, as soon as the key was
    /// restored.
    RestoredKeyCountsInQuarantine,
    /// A client that downgrades a lock considers it exclusive until a quorum has confirmed it.
    WritesUntilShared,
}

/// What may happen in a search, and how often. Spans are in ticks of 2 ms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// The name on the command line.
    pub name: &'static str,
    /// What it shows, in a sentence.
    pub about: &'static str,
    /// Whether there is only one client, among others that take and lose keys at any time. A client
    /// with a quorum of keys then excludes all others, however many there are.
    pub alone: bool,
    /// The claim of each client's locks. The third client does not exist if it has nothing to lock.
    pub claims: [&'static [Aim]; 3],
    /// Whether a client requests a permit. The resources that its claim names are then the seats.
    pub permits: bool,
    /// The claim after a downgrade; `None` without one.
    pub downgraded: [&'static [Aim]; 3],
    /// Whether any number of readers of the first resource come and go beside the clients, with
    /// lives of any length.
    pub crowd: bool,
    /// A fault that the search must find.
    pub flaw: Option<Flaw>,
    /// The TTL of all clients' locks.
    pub ttl: u8,
    /// How many attempts each client makes for a lock; up to four in all.
    pub attempts: [u8; 2],
    /// How many locks each client requests, one after the other. More than one is possible only
    /// with `asynchronous`.
    pub locks: [u8; 2],
    /// How long a client waits for a lock; `None` without a limit.
    pub timeout: Option<u8>,
    /// How many extensions each client requests.
    pub extensions: [u8; 2],
    /// The TTLs that an extension may have.
    pub extension_ttls: &'static [u8],
    /// For how long locks are renewed in the background.
    pub renews: Option<u8>,
    /// Whether a holder may release, and wait for the outcome.
    pub releases: bool,
    /// Whether a client may give up its lock at any time, sought or held, without waiting for
    /// anything.
    pub cancels: bool,
    /// How often connections may end or be given up; `None` for any number of times.
    pub losses: Option<u8>,
    /// Whether a silent connection may be given up, with releases written behind the unanswered
    /// acquisitions.
    pub gives_up: bool,
    /// Whether a connection may end without a message.
    pub closes: bool,
    /// Whether answers may be reported as late on a connection that is kept, and arrive after all.
    pub overdue: bool,
    /// Whether a connection that ends may have been quiet for long before, so that the attempt is
    /// repeated.
    pub stale: bool,
    /// How often a master may crash and start again.
    pub crashes: u8,
    /// Whether it has its keys when it starts again.
    pub crash_keeps_data: bool,
    /// How often a master loses a single key of a batch, while all masters have all keys of that
    /// batch. This is outside the protocol's assumptions if only a quorum has the lock, and inside
    /// if one more master has it.
    pub evictions: u8,
    /// How often a request that was left behind may be executed twice; with `asynchronous`, an
    /// acquisition doubled on its way.
    pub duplicates: u8,
    /// By how many ticks of the client's clock a master may expire a key too early.
    pub early: u8,
    /// By how many ticks a master may expire a key too late.
    pub late: u8,
    /// Whether a valid guard must have a quorum of keys: true while the assumptions hold.
    pub guards_have_keys: bool,
    /// Whether grants are numbered. This needs both clients to be examined all the time, so it
    /// excludes `alone`.
    pub fenced: bool,
    /// The largest value of any master's counter at the beginning.
    pub counted: u8,
    /// Whether nothing is assumed about time: keys vanish at any time, and only numbers are
    /// checked. See [the module's documentation](super).
    pub asynchronous: bool,
    /// Whether a lock that was extended is restored on masters without it.
    pub healing: bool,
    /// Whether a single try is repeated if its votes were split. The search ends the client at that
    /// point, because it checks only the report of the first round.
    pub settles: bool,
    /// Whether at least one client must get the lock, or may: not all of them may be told that
    /// another client holds it.
    pub one_wins: bool,
    /// Whether a master that has lost its keys refuses acquisitions until every lock granted before
    /// has run out.
    pub quarantine: bool,
    /// How much longer the longest TTL of other clients is than those of these clients.
    pub longer_ttl: u8,
}

impl Scenario {
    /// Whether a violation must be found: the masters or a caller have a flaw, or an assumption or
    /// a rule is left out.
    pub fn is_broken(&self) -> bool {
        let outside = !self.guards_have_keys && !self.asynchronous;
        self.flaw.is_some() || outside || (self.one_wins && !self.settles)
    }

    /// How many tokens a client may draw.
    pub(super) fn tokens_of(&self, client: usize) -> u8 {
        self.attempts_of(client) * self.locks.get(client).copied().unwrap_or(1)
    }

    pub(super) fn attempts_of(&self, client: usize) -> u8 {
        self.attempts.get(client).copied().unwrap_or(1)
    }

    pub(super) fn extensions_of(&self, client: usize) -> u8 {
        self.extensions.get(client).copied().unwrap_or(0)
    }

    /// For how long a master that has lost its keys refuses acquisitions: the longest life that any
    /// key was given.
    pub(super) fn quarantine_ticks(&self) -> u8 {
        let longest = self.extension_ttls.iter().fold(self.ttl, |longest, ttl| longest.max(*ttl));
        if self.quarantine { longest + self.longer_ttl } else { 0 }
    }

    /// Whether the first two clients may be exchanged.
    pub(super) fn clients_are_alike(&self) -> bool {
        let ([a, b], [c, d], [e, f]) = (self.attempts, self.extensions, self.locks);
        let ([g, h, _], [i, j, _]) = (self.claims, self.downgraded);
        a == b && c == d && e == f && g == h && i == j && !self.alone
    }

    /// How many clients there are.
    pub(super) fn clients(&self) -> usize {
        if self.claims.last().is_some_and(|third| !third.is_empty()) { 3 } else { 2 }
    }

    /// How many resources there are.
    pub(super) fn resources(&self) -> usize {
        self.claims.iter().copied().flatten().map(|aim| aim.resource() + 1).max().unwrap_or(1)
    }

    /// The targets of the client's locks.
    pub(super) fn aims_of(&self, client: usize) -> &'static [Aim] {
        self.claims.get(client).copied().unwrap_or_default()
    }

    /// The first client with the same claim. The locks of both have the same numbers in the book.
    pub(super) fn kind_of(&self, client: usize) -> usize {
        let seeks = |other: usize| (self.form_of(other, false), self.form_of(other, true));
        (0..client).find(|other| seeks(*other) == seeks(client)).unwrap_or(client)
    }

    /// The targets of a client's request.
    pub(super) fn aims_of_item(&self, client: usize, item: Item) -> &'static [Aim] {
        match item.form() {
            Form::Seat(seat) => seat_aims(Some(seat)),
            form => self.form_of(client, form == Form::Downgraded),
        }
    }

    /// Whether a request is for any of several seats.
    pub(super) fn takes_any(&self, item: Item) -> bool {
        self.permits && item.form() == Form::Sought
    }

    /// The targets of a client's locks, downgraded or not.
    pub(super) fn form_of(&self, client: usize, is_downgraded: bool) -> &'static [Aim] {
        let forms = if is_downgraded { &self.downgraded } else { &self.claims };
        forms.get(client).copied().unwrap_or_default()
    }

    /// Whether a client shares everything that it locks.
    pub(super) fn only_reads(&self, client: usize) -> bool {
        self.aims_of(client).iter().all(|aim| aim.is_shared())
    }

    /// Whether a target must not be held while the other client holds its claim.
    pub(super) fn is_contested(&self, aim: Aim, other: usize) -> bool {
        self.aims_of(other).iter().any(|theirs| aim.conflicts(*theirs))
    }

    /// Whether two clients must not hold their locks at the same time, each downgraded or not.
    pub(super) fn conflict(&self, (client, shares): (usize, bool), (other, shared): (usize, bool)) -> bool {
        let theirs = self.form_of(other, shared);
        self.form_of(client, shares).iter().any(|aim| theirs.iter().any(|other| aim.conflicts(*other)))
    }
}
