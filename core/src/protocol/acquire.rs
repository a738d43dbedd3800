//! What a caller requests: a new lock, or one to resume.

use std::time::Duration;

use super::{FencingToken, MasterSet, Resource, Token, Ttl};

/// A request for a lock: the argument of [`Machine::acquire`](crate::Machine::acquire).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Acquire {
    /// What to lock.
    pub resource: Resource,
    /// The life of its keys.
    pub ttl: Ttl,
    /// How long to go on trying; `None` for as long as it takes. One round's answers are awaited in any case no
    /// longer than the configured time-outs. Zero is a single try: the same as one attempt and no limit of time.
    pub timeout: Option<Duration>,
    /// How many rounds to make; `None` for as many as fit. With one it is not waited for at all; with more that limits no time.
    pub attempts: Option<u32>,
    /// How long after the grant renewal goes on in the background; `None` for not at all.
    pub renew_for: Option<Duration>,
    /// Whether the grant is to have a fencing token.
    pub fenced: bool,
    /// Whether extensions put the key back on masters that do not have it.
    pub healing: bool,
    /// The lock to go on with, instead of a new one.
    pub resumption: Option<Resumption>,
}

impl Acquire {
    /// This lock, with attempts for as long as it takes, and nothing else.
    pub const fn new(resource: Resource, ttl: Ttl) -> Self {
        Self {
            resource,
            ttl,
            timeout: None,
            attempts: None,
            renew_for: None,
            fenced: false,
            healing: false,
            resumption: None,
        }
    }

    /// How long to go on, and how many attempts to make.
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

/// A lock that was granted to somebody else, and handed over.
///
/// It also says which masters must not be counted as holders of the token, because whoever was granted the lock may yet write a release to
/// them: it names them by their place, so that both sides must list the same masters in the same order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Resumption {
    /// What its keys hold.
    pub token: Token,
    /// Its fencing token, if it was granted one.
    pub fencing_token: Option<FencingToken>,
    pub(crate) uncounted: MasterSet,
}

impl Resumption {
    /// A lock of which nothing is known but its token, and its number if it has one.
    pub const fn new(token: Token, fencing_token: Option<FencingToken>) -> Self {
        Self { token, fencing_token, uncounted: MasterSet::EMPTY }
    }

    /// Whether every master may be counted.
    pub const fn counts_all(self) -> bool {
        self.uncounted.bits() == 0
    }

    /// All but the number as text, for handing it to another process: the token's 40 digits, and behind a hyphen which masters must not be
    /// counted, if any. Keep it out of logs.
    pub fn expose(self) -> String {
        let token = self.token.expose();
        if self.uncounted.is_empty() { token } else { format!("{token}-{:x}", self.uncounted.bits()) }
    }

    /// What [`Resumption::expose`] wrote, or `None` if this is anything else.
    pub fn from_text(text: &str, fencing_token: Option<FencingToken>) -> Option<Self> {
        let (token, uncounted) = match text.split_once('-') {
            Some((token, bits)) => (token, MasterSet::from_bits(u64::from_str_radix(bits, 16).ok()?)),
            None => (text, MasterSet::EMPTY),
        };
        Some(Self { token: Token::from_hex(token)?, fencing_token, uncounted })
    }
}
