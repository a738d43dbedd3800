//! A caller's request for a lock, new or resumed, and the ids of locks and extensions.

use std::fmt;
use std::time::Duration;

use super::{FencingToken, MasterSet, Seats, Targets, Token, Ttl};

/// A request for a lock: the argument of [`Machine::acquire`](crate::Machine::acquire).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Acquire {
    /// What to lock.
    pub targets: Targets,
    /// The TTL of its keys.
    pub ttl: Ttl,
    /// How long to wait for the lock; `None` waits without a limit. Zero is a single try, the same
    /// as one attempt without a timeout. In any case a round waits for answers no longer than the
    /// configured request timeout.
    pub timeout: Option<Duration>,
    /// How many attempts to make; `None` for as many as the timeout allows. A single attempt does
    /// not wait for the current holder. A larger number limits the attempts, not the time.
    pub attempts: Option<u32>,
    /// How long the lock is renewed in the background, counted from the start of the round that won
    /// it; `None` for no renewal.
    pub renew_for: Option<Duration>,
    /// Whether the grant gets a fencing token.
    pub fenced: bool,
    /// Whether extensions restore the key on masters that do not have it.
    pub healing: bool,
    /// Whether the request waits in one queue with the fair requests of all processes. It is for an
    /// exclusive lock of one resource.
    pub fair: bool,
    /// The lock to resume, instead of a new one.
    pub resumption: Option<Resumption>,
}

impl Acquire {
    /// Creates a request with no timeout, limit of attempts, renewal, fencing token or healing.
    pub fn new(targets: impl Into<Targets>, ttl: Ttl) -> Self {
        Self {
            targets: targets.into(),
            ttl,
            timeout: None,
            attempts: None,
            renew_for: None,
            fenced: false,
            healing: false,
            fair: false,
            resumption: None,
        }
    }

    /// How long to keep trying, and how many attempts to make.
    pub(crate) fn limits(&self) -> (Option<Duration>, Option<u32>) {
        match self.timeout {
            Some(Duration::ZERO) => (None, Some(1)),
            timeout => (timeout, self.attempts),
        }
    }

    /// Whether a single attempt is made, which does not wait for others.
    pub(crate) fn is_single_try(&self) -> bool {
        self.limits().1 == Some(1)
    }
}

/// What a process needs to resume a lock that was granted to another process or locker.
///
/// It also says which masters do not count as holders of the token: for good, because the process
/// that was granted the lock may still send them a release; or until the key is restored there,
/// because they did not grant the lock. Such a master can report the token only as another one: one
/// server behind two addresses has one vote. The masters are named by their position, so both
/// processes must list the same masters in the same order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Resumption {
    /// The token that its keys hold.
    pub token: Token,
    /// Its fencing token, if it was granted one.
    pub fencing_token: Option<FencingToken>,
    /// Masters on which a release may follow the token.
    pub(crate) uncounted: MasterSet,
    /// Masters that did not grant the lock, and on which its key has not been restored.
    pub(crate) unproven: MasterSet,
    /// A digest of what it locks: zero for one resource that is locked exclusively.
    pub(crate) of: u32,
    /// Its permits, if it is of a semaphore.
    pub(crate) seats: Seats,
}

impl Resumption {
    /// Creates a resumption of which only the token is known, and the fencing token if the lock has
    /// one. Every master may be counted as a holder.
    pub const fn new(token: Token, fencing_token: Option<FencingToken>) -> Self {
        let (uncounted, unproven) = (MasterSet::EMPTY, MasterSet::EMPTY);
        Self { token, fencing_token, uncounted, unproven, of: 0, seats: Seats::NONE }
    }

    /// Returns whether every master may be counted as a holder, now or once the key is restored
    /// there.
    pub const fn counts_all(self) -> bool {
        self.uncounted.bits() == 0
    }

    /// Returns whether the lock is of one resource, exclusively.
    pub const fn is_plain(self) -> bool {
        self.of == 0
    }

    /// Returns the indexes of the lock's permits of a semaphore, counted from zero; none for other
    /// locks.
    pub fn permits(self) -> impl Iterator<Item = u32> {
        self.seats.numbers().map(u32::from)
    }

    /// Returns everything except the fencing token as text, for another process. The text is the
    /// token's 40 digits, and then up to three parts, each after a hyphen: the masters that do not
    /// count, if any, and after a point those of them that may count again; a digest of what it
    /// locks, unless that is one resource exclusively; and its permits of a semaphore. Keep the
    /// text out of logs: it contains the token.
    pub fn expose(self) -> String {
        let token = self.token.expose();
        let masters = match (self.uncounted.bits(), self.unproven.bits()) {
            (uncounted, 0) => format!("{uncounted:x}"),
            (uncounted, unproven) => format!("{uncounted:x}.{unproven:x}"),
        };
        match (&*masters, self.of, self.seats) {
            ("0", 0, Seats::NONE) => token,
            (masters, 0, Seats::NONE) => format!("{token}-{masters}"),
            (masters, of, Seats::NONE) => format!("{token}-{masters}-{of:x}"),
            (masters, of, seats) => format!("{token}-{masters}-{of:x}-{}", seats.to_text()),
        }
    }

    /// Reads what [`Resumption::expose`] wrote. Returns `None` if the text is anything else.
    pub fn from_text(text: &str, fencing_token: Option<FencingToken>) -> Option<Self> {
        let mut parts = text.split('-');
        let token = Token::from_hex(parts.next()?)?;
        let masters = |digits| u64::from_str_radix(digits, 16).ok().map(MasterSet::from_bits);
        let sets = parts.next().unwrap_or("0");
        let (uncounted, unproven) = sets.split_once('.').unwrap_or((sets, "0"));
        let (uncounted, unproven) = (masters(uncounted)?, masters(unproven)?);
        let of = parts.next().map_or(Ok(0), |digits| u32::from_str_radix(digits, 16)).ok()?;
        let seats = parts.next().map_or(Some(Seats::NONE), Seats::from_text)?;
        parts.next().is_none().then_some(Self { token, fencing_token, uncounted, unproven, of, seats })
    }
}

/// One lock of one machine, from [`Machine::acquire`](crate::Machine::acquire) until it is over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl LockId {
    /// Returns a small number that no other lock of the machine has. It is reused once the lock is
    /// over and its last event has been taken.
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// The first lock of a machine, for a search that drives a lock without one.
    #[cfg(feature = "internals")]
    pub(crate) const FIRST: Self = Self { index: 0, generation: 0 };
}

impl fmt::Debug for LockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lock{}.{}", self.index, self.generation)
    }
}

/// One extension that a caller requested.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ExtensionId(pub(crate) u64);

#[cfg(feature = "internals")]
impl ExtensionId {
    /// The extension of this number, for a search that drives a lock without a machine.
    pub(crate) const fn numbered(number: u64) -> Self {
        Self(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_resumption_says_which_masters_count_and_of_what_it_is() {
        let token = "ab".repeat(Token::BYTES);
        for (rest, counts_all, is_plain) in
            [("", true, true), ("-5", false, true), ("-0-7", true, false), ("-5.4-7", false, false)]
        {
            let text = format!("{token}{rest}");
            let resumption = Resumption::from_text(&text, None).unwrap();
            assert_eq!((resumption.counts_all(), resumption.is_plain()), (counts_all, is_plain), "{rest}");
            assert_eq!(resumption.expose(), text);
        }
    }
}
