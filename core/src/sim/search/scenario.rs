//! What may happen in a search, and how often.

use std::time::Duration;

/// The length of a tick: one NOTICE, and a little less than the drift of any short TTL (TTL × 0.01 + 2 ms).
pub(super) const TICK: Duration = Duration::from_millis(2);

/// What may happen in a search, and how often. Spans are in ticks of 2 ms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it shows, in a sentence.
    pub about: &'static str,
    /// Whether there is one client only, among others that take keys and lose them when they like. Whoever has a quorum of keys then
    /// excludes them all, however many they are.
    pub alone: bool,
    /// The TTL of both clients' locks.
    pub ttl: u8,
    /// How many attempts each client makes; up to four.
    pub attempts: [u8; 2],
    /// How long a lock is sought; `None` for as long as it takes.
    pub within: Option<u8>,
    /// How many extensions each client asks for.
    pub extensions: [u8; 2],
    /// The TTLs that an extension may have.
    pub extension_ttls: &'static [u8],
    /// For how long locks are renewed in the background.
    pub renews: Option<u8>,
    /// Whether a holder may release, and wait for the outcome.
    pub releases: bool,
    /// Whether a client may give its lock up at any time, sought or held, without waiting for anything.
    pub cancels: bool,
    /// How often connections may end or be given up; `None` for any number of times.
    pub losses: Option<u8>,
    /// Whether a silent connection may be given up, with releases written behind the unanswered acquisitions.
    pub gives_up: bool,
    /// Whether a connection may end without a word.
    pub closes: bool,
    /// Whether answers may be reported as late on a connection that is kept, and come after all.
    pub overdue: bool,
    /// Whether a connection that ends may have been quiet for long before, so that the attempt is repeated.
    pub stale: bool,
    /// How often a master may crash and start again.
    pub crashes: u8,
    /// Whether it has its keys when it starts again.
    pub crash_keeps_data: bool,
    /// How often a request that was left behind may be executed twice.
    pub duplicates: u8,
    /// By how many ticks a master may expire a key too early, by its client's clock.
    pub early: u8,
    /// By how many ticks a master may expire a key too late.
    pub late: u8,
    /// Whether a valid guard must have a quorum of keys: true while the assumptions hold.
    pub guards_have_keys: bool,
}

impl Scenario {
    /// Two clients, one attempt each, a network that neither loses nor closes anything but is as slow as it likes.
    pub const DELAY: Self = Self {
        name: "delay",
        about: "two clients, one attempt each, unbounded delay, no loss",
        alone: false,
        ttl: 4,
        attempts: [1, 1],
        within: None,
        extensions: [0, 0],
        extension_ttls: &[],
        renews: None,
        releases: true,
        cancels: false,
        losses: Some(0),
        gives_up: true,
        closes: true,
        overdue: false,
        stale: false,
        crashes: 0,
        crash_keeps_data: true,
        duplicates: 0,
        early: 1,
        late: 0,
        guards_have_keys: true,
    };

    /// The same, and connections end or are given up once.
    pub const ONE_LOSS: Self = Self {
        name: "one-loss",
        about: "two clients, one attempt each, and one connection that ends or is given up at any time",
        losses: Some(1),
        ..Self::DELAY
    };

    /// Any number of connections end or are given up, any number of times.
    pub const LOSS: Self = Self {
        name: "loss",
        about: "two clients, one attempt each, unbounded delay, and connections that end or are given up as often as they like",
        ttl: 3,
        losses: None,
        ..Self::DELAY
    };

    /// A crash of a master that keeps its keys.
    pub const CRASH: Self = Self {
        name: "crash",
        about: "two clients, one attempt each, a lost connection, and a crash of a master that keeps its keys",
        crashes: 1,
        ..Self::ONE_LOSS
    };

    /// A crash of a master that loses its keys: outside what the protocol assumes.
    pub const AMNESIA: Self = Self {
        name: "amnesia",
        about: "a crash of a master that loses its keys: outside the assumptions, and two guards are valid at once",
        crashes: 1,
        crash_keeps_data: false,
        guards_have_keys: false,
        ..Self::DELAY
    };

    /// Clocks that are further apart than the drift: outside what the protocol assumes.
    pub const DRIFT: Self = Self {
        name: "drift",
        about: "masters' clocks faster than the drift allows: outside the assumptions, and two guards are valid at once",
        early: 2,
        guards_have_keys: false,
        ..Self::DELAY
    };

    /// A request that was left behind is executed twice.
    pub const TWICE: Self = Self {
        name: "twice",
        about: "two clients, one attempt each, a lost connection, and a request left behind on it that is executed twice",
        duplicates: 1,
        ..Self::ONE_LOSS
    };

    /// Extensions, shorter and longer than the lock's own TTL, and releases.
    pub const EXTEND: Self = Self {
        name: "extend",
        about: "one client extends with a shorter or a longer TTL and releases, the other seeks the lock",
        extensions: [1, 0],
        extension_ttls: &[3, 5],
        ..Self::DELAY
    };

    /// Extensions over connections that end.
    pub const EXTEND_LOSS: Self = Self {
        name: "extend-loss",
        about: "the same, and one connection that ends or is given up at any time",
        losses: Some(1),
        ..Self::EXTEND
    };

    /// Two extensions under way at once.
    pub const EXTEND_TWICE: Self = Self {
        name: "extend-twice",
        about: "one client extends twice, shorter or longer, the other seeks the lock",
        extensions: [2, 0],
        ..Self::EXTEND
    };

    /// A second attempt behind a lost first one.
    pub const RETRY: Self = Self {
        name: "retry",
        about: "one client makes two attempts, each with its own token, the other one; unbounded delay",
        attempts: [2, 1],
        ..Self::DELAY
    };

    /// A second attempt over connections that end.
    pub const RETRY_LOSS: Self = Self {
        name: "retry-loss",
        about: "the same, and one connection that ends or is given up at any time",
        losses: Some(1),
        ..Self::RETRY
    };

    /// Callers that give up.
    pub const CANCEL: Self = Self {
        name: "cancel",
        about: "clients that give their locks up at any time, and one connection that ends or is given up",
        cancels: true,
        ..Self::ONE_LOSS
    };

    /// Answers that are reported as late and come after all, and keys that live longer than they should.
    pub const OVERDUE: Self = Self {
        name: "overdue",
        about: "answers that are reported as late and come yet, one lost connection, masters whose clocks are slow or fast",
        overdue: true,
        late: 1,
        ..Self::ONE_LOSS
    };

    /// Connections that were quiet for long: the attempt is repeated.
    pub const STALE: Self = Self {
        name: "stale",
        about: "one connection that turns out to have been dead for long, for which the attempt is repeated",
        stale: true,
        ..Self::ONE_LOSS
    };

    /// One client among any number of others.
    pub const ALONE: Self = Self {
        name: "alone",
        about: "one client among any number of others, unbounded delay and loss",
        alone: true,
        losses: None,
        ..Self::DELAY
    };

    /// One client among any number of others that extends.
    pub const ALONE_EXTEND: Self = Self {
        name: "alone-extend",
        about: "one client among any number of others: a shorter or longer extension, and a connection that ends",
        extensions: [1, 0],
        extension_ttls: &[3, 5],
        losses: Some(1),
        ..Self::ALONE
    };

    /// One client among any number of others with two extensions under way.
    pub const ALONE_TWICE: Self = Self {
        name: "alone-twice",
        about: "one client among any number of others: two extensions, shorter or longer, unbounded delay",
        extensions: [2, 0],
        losses: Some(0),
        ..Self::ALONE_EXTEND
    };

    /// One client among any number of others whose answers are reported as late.
    pub const ALONE_OVERDUE: Self = Self {
        name: "alone-overdue",
        about: "one client among any number of others: an extension, late answers that come yet, a connection that ends",
        extension_ttls: &[5],
        overdue: true,
        ..Self::ALONE_EXTEND
    };

    /// One client among any number of others on connections that were quiet for long.
    pub const ALONE_STALE: Self = Self {
        name: "alone-stale",
        about: "one client among any number of others: a connection that was long dead, for which the attempt is repeated",
        losses: Some(1),
        stale: true,
        ..Self::ALONE
    };

    /// One client among any number of others with a second attempt.
    pub const ALONE_RETRY: Self = Self {
        name: "alone-retry",
        about: "one client among any number of others: two attempts, each with its own token, and a connection that ends",
        attempts: [2, 0],
        losses: Some(1),
        ..Self::ALONE
    };

    /// One client among any number of others that is renewed in the background.
    pub const ALONE_RENEW: Self = Self {
        name: "alone-renew",
        about: "one client among any number of others: renewal in the background, unbounded delay",
        ttl: 5,
        renews: Some(8),
        losses: Some(0),
        ..Self::ALONE
    };

    /// Every scenario that has a name.
    pub const NAMED: &'static [Self] = &[
        Self::DELAY,
        Self::ONE_LOSS,
        Self::LOSS,
        Self::CRASH,
        Self::TWICE,
        Self::CANCEL,
        Self::OVERDUE,
        Self::STALE,
        Self::RETRY,
        Self::RETRY_LOSS,
        Self::EXTEND,
        Self::EXTEND_LOSS,
        Self::EXTEND_TWICE,
        Self::ALONE,
        Self::ALONE_EXTEND,
        Self::ALONE_TWICE,
        Self::ALONE_OVERDUE,
        Self::ALONE_STALE,
        Self::ALONE_RETRY,
        Self::ALONE_RENEW,
        Self::AMNESIA,
        Self::DRIFT,
    ];

    /// The scenario of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|scenario| scenario.name == name).cloned()
    }

    /// Whether the two clients may be exchanged.
    pub(super) fn clients_are_alike(&self) -> bool {
        let ([a, b], [c, d]) = (self.attempts, self.extensions);
        a == b && c == d && !self.alone
    }
}
