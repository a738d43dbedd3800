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
    /// How many attempts each client makes for a lock; up to four in all.
    pub attempts: [u8; 2],
    /// How many locks each client seeks, one after the other. More than one go with `asynchronous` only.
    pub locks: [u8; 2],
    /// How long a lock is sought; `None` for as long as it takes.
    pub timeout: Option<u8>,
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
    /// How often a request that was left behind may be executed twice; with `asynchronous`, an acquisition doubled on its way.
    pub duplicates: u8,
    /// By how many ticks a master may expire a key too early, by its client's clock.
    pub early: u8,
    /// By how many ticks a master may expire a key too late.
    pub late: u8,
    /// Whether a valid guard must have a quorum of keys: true while the assumptions hold.
    pub guards_have_keys: bool,
    /// Whether grants are numbered. It goes with clients that are both looked at all the time, so not with `alone`.
    pub fenced: bool,
    /// Up to what number any of the masters' counters may stand at the beginning.
    pub counted: u8,
    /// Whether nothing is assumed about time: keys vanish when they like, and only numbers are looked at. See [the module's
    /// documentation](super).
    pub asynchronous: bool,
    /// Whether a lock that was extended is put back on masters without it.
    pub healing: bool,
    /// Whether a single try whose votes were split is made again. The search ends such a client there: it looks at what the first round is
    /// told as.
    pub settles: bool,
    /// Whether one of the clients must get the lock, or may, where the other is told that another holds it.
    pub one_wins: bool,
    /// Whether a master that has lost its keys refuses acquisitions until every lock granted before has run out.
    pub quarantine: bool,
}

impl Scenario {
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

    /// For how long a master that has lost its keys refuses acquisitions: the longest life that any key was given.
    pub(super) fn quarantine_ticks(&self) -> u8 {
        let longest = self.extension_ttls.iter().fold(self.ttl, |longest, ttl| longest.max(*ttl));
        if self.quarantine { longest } else { 0 }
    }

    /// Whether the two clients may be exchanged.
    pub(super) fn clients_are_alike(&self) -> bool {
        let ([a, b], [c, d], [e, f]) = (self.attempts, self.extensions, self.locks);
        a == b && c == d && e == f && !self.alone
    }
}
