//! What masters say of a lock to somebody who only asks.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::units::Span;
use super::{Cause, ConfigError, DRIVER_ENDED, FORKED, Quorum, Resource, TooManyLocks};
use crate::endpoint::Endpoint;

/// What the masters say of a lock, and what that amounts to: the answer of
/// [`Locker::inspect`](crate::front::Locker::inspect).
///
/// It is of the moment in which each master answered. By the time that anybody reads it, a free
/// lock may be held and a held one free: it is for people, for tests and for metrics. To hold the
/// lock, take it.
///
/// It displays as one sentence, such as `held by one holder on 3 of 3 masters (quorum 2), 9.8 s
/// left`. No token is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inspection {
    pub(crate) resource: Resource,
    pub(crate) masters: Arc<[Endpoint]>,
    pub(crate) quorum: Quorum,
    pub(crate) answers: Vec<Result<MasterAnswer, Cause>>,
    pub(crate) verdict: Verdict,
}

/// What the answers amount to, and the counts behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    pub(crate) state: LockState,
    /// How many masters told what counts.
    pub(crate) answered: usize,
    /// How many of them would grant the lock.
    pub(crate) free: usize,
    /// Each holder, with the number of masters that have its key.
    pub(crate) holders: Vec<(Holder, usize)>,
    /// How many have something else at the key.
    pub(crate) other_type: usize,
}

impl Inspection {
    /// Returns the lock that was asked about.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Returns what the answers amount to.
    pub fn state(&self) -> LockState {
        self.verdict.state
    }

    /// Returns whether one holder has the lock on a quorum of masters.
    pub fn is_held(&self) -> bool {
        matches!(self.verdict.state, LockState::Held(_))
    }

    /// Returns whether no holder has a quorum, and a quorum of masters would grant the lock.
    pub fn is_free(&self) -> bool {
        self.verdict.state == LockState::Free
    }

    /// Returns whether the lock is held on a quorum of masters with a token of ours: one that a
    /// guard of the locker has, or one that was named to the request.
    pub fn is_ours(&self) -> bool {
        matches!(self.verdict.state, LockState::Held(holding) if holding.holder.is_ours)
    }

    /// Returns how long the lock stays held if it is neither renewed nor released: as long as a
    /// quorum of masters has its key. `None` if it is not held, or never expires.
    pub fn remaining(&self) -> Option<Duration> {
        match self.verdict.state {
            LockState::Held(holding) => holding.remaining,
            _ => None,
        }
    }

    /// Returns each holder of a key, with the number of masters that have it, in the order in which
    /// the masters name them. More than one is what a contended lock looks like for a moment.
    pub fn holders(&self) -> impl Iterator<Item = (Holder, usize)> {
        self.verdict.holders.iter().copied()
    }

    /// Returns the quorum that decides.
    pub fn quorum(&self) -> Quorum {
        self.quorum
    }

    /// Returns the number of masters that told what counts. A master that came back without its
    /// data, and has no key, does not count.
    pub fn answered(&self) -> usize {
        self.verdict.answered
    }

    /// Returns the number of masters that would grant the lock.
    pub fn free(&self) -> usize {
        self.verdict.free
    }

    /// Returns each master with what it said, or why it has no vote, in the order of the
    /// configuration.
    pub fn masters(&self) -> impl Iterator<Item = (&Endpoint, Result<&MasterAnswer, Cause>)> {
        let answers = self.answers.iter().map(|answer| answer.as_ref().map_err(|cause| *cause));
        self.masters.iter().zip(answers)
    }

    /// `ours on 1, holder b on 1, free on 1`.
    fn shares(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for (holder, on) in self.holders() {
            write!(f, "{between}{} on {on}", holder.called())?;
            between = ", ";
        }
        let silent = self.quorum.masters().saturating_sub(self.verdict.answered);
        let rest = [("free", self.free()), ("not a lock", self.verdict.other_type), ("not told", silent)];
        for (what, on) in rest.into_iter().filter(|(_, on)| *on > 0) {
            write!(f, "{between}{what} on {on}")?;
            between = ", ";
        }
        Ok(())
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, needed) = (self.quorum.masters(), self.quorum.needed());
        match self.verdict.state {
            LockState::Held(Holding { holder, on, remaining }) => {
                let held = if holder.is_ours { "ours" } else { "held by one holder" };
                write!(f, "{held} on {on} of {all} masters (quorum {needed}), {}", Left(remaining))
            }
            LockState::Free => {
                write!(f, "free on {} of {all} masters (quorum {needed})", self.free())?;
                match self.holders().map(|(_, on)| on).sum::<usize>() {
                    0 => Ok(()),
                    1 => f.write_str("; 1 still has a key"),
                    keys => write!(f, "; {keys} still have a key"),
                }
            }
            LockState::Split => {
                write!(f, "no quorum ({needed} of {all} needed), split: ")?;
                self.shares(f)
            }
            LockState::Unknown if self.answered() < needed => write!(
                f,
                "not known, too few masters answered: {} of {all} (quorum {needed})",
                self.answered()
            ),
            LockState::Unknown => {
                f.write_str("not known, it depends on masters that did not tell: ")?;
                self.shares(f)?;
                write!(f, " (quorum {needed})")
            }
        }
    }
}

/// Prints how long a key lives.
struct Left(Option<Duration>);

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("never expires"),
            Some(left) => write!(f, "{} left", Span(left)),
        }
    }
}

/// What the masters' answers about a lock amount to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LockState {
    /// One holder has it on a quorum of masters.
    Held(Holding),
    /// No holder has it on a quorum of masters, and a quorum would grant it.
    Free,
    /// Masters disagree: no holder has a quorum, and as they are none can get one.
    Split,
    /// It depends on masters that did not answer.
    Unknown,
}

/// A lock that one holder has on a quorum of masters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Holding {
    /// The holder.
    pub holder: Holder,
    /// The number of masters that have its key.
    pub on: usize,
    /// How long a quorum has the key, unless it is renewed or released; `None` if it never expires.
    pub remaining: Option<Duration>,
}

/// A holder, told apart from the others of one inspection without its token. It displays as a
/// letter: `a` for the first holder that the masters name, `b` for the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Holder {
    pub(crate) number: usize,
    pub(crate) fingerprint: u64,
    pub(crate) is_ours: bool,
}

impl Holder {
    /// Returns its number among the holders of the inspection, from zero.
    pub fn number(self) -> usize {
        self.number
    }

    /// Returns the first eight bytes of the SHA-1 of the key's value, as
    /// [`Vote::HeldByAnother`](crate::Vote::HeldByAnother) has it. Equal fingerprints are one
    /// holder, also in two inspections. The token cannot be told from it.
    pub fn fingerprint(self) -> u64 {
        self.fingerprint
    }

    /// Returns whether the key has a token of ours.
    pub fn is_ours(self) -> bool {
        self.is_ours
    }

    /// What it is called in a sentence.
    fn called(self) -> String {
        if self.is_ours { "ours".to_owned() } else { format!("holder {self}") }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u8::try_from(self.number).ok().filter(|number| *number < 26) {
            Some(number) => write!(f, "{}", char::from(b'a' + number)),
            None => write!(f, "a{}", self.number),
        }
    }
}

/// What one master said of a lock and of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MasterAnswer {
    /// What it has at the lock's key.
    pub key: KeyState,
    /// Whether it votes.
    pub standing: Standing,
    /// What it says of itself.
    pub server: ServerFacts,
    pub(crate) marker: Marker,
}

/// What a master has at a lock's key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum KeyState {
    /// No key.
    Free,
    /// A holder's token.
    Held {
        /// Which holder's.
        holder: Holder,
        /// How long the key lives; `None` if it never expires.
        remaining: Option<Duration>,
    },
    /// Something that is no string, and so no lock.
    OtherType,
}

/// Whether a master votes, as far as its marker of the restart guard tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Standing {
    /// It votes, or no restart guard is in use.
    Votes,
    /// It is under the restart guard and does not vote yet.
    Quarantined {
        /// How long it will not vote.
        remaining: Duration,
    },
    /// It has lost its data, and no request under the restart guard has reached it since. The next
    /// one begins its quarantine.
    Unnoticed {
        /// How long it will not vote from then on.
        quarantine: Duration,
    },
}

/// What a server says of itself. What the connection's user may not ask for is `None`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct ServerFacts {
    /// The kind of server, such as `redis` or `valkey`.
    pub kind: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// `master`, or its role.
    pub role: Option<String>,
    /// The number of connected replicas.
    pub replicas: Option<u64>,
    /// Whole seconds since its start.
    pub uptime: Option<Duration>,
    /// Its clock, since 1970.
    pub clock: Option<Duration>,
}

impl MasterAnswer {
    /// Returns whether it has replicas although clients use the restart guard, which does not cover
    /// their promotion.
    pub fn has_undeclared_replicas(&self) -> bool {
        matches!(self.marker, Marker::Present { .. }) && self.server.replicas.is_some_and(|many| many > 0)
    }
}

/// The restart guard's marker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Marker {
    /// There is none, or it may not be read.
    Absent,
    /// The server does not tell what it takes to judge it.
    Unknown,
    Present {
        /// Whether it was written in this life of the server.
        is_own: bool,
        /// For how long the master does not vote yet.
        left: Duration,
        /// The longest TTL of the clients under the guard.
        longest: Duration,
    },
}

/// Why masters could not be asked about a lock.
///
/// That masters do not answer is no error: [`Inspection::masters`] has the cause for each.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum InspectError {
    /// The resource is invalid. Nothing was sent.
    Invalid(ConfigError),
    /// As many locks are held or waited for as the configuration allows. Nothing was sent.
    TooManyLocks {
        /// The limit.
        limit: usize,
    },
    /// This process is a forked child of the one that opened the locker, and must open its own.
    /// Nothing was sent.
    Forked,
    /// The transport's I/O loop has ended, so no answer can arrive.
    DriverEnded,
}

impl InspectError {
    /// Returns a word for this kind of error, for the labels of metrics. It is the same in every
    /// version.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::TooManyLocks { .. } => "too_many_locks",
            Self::Forked => "forked",
            Self::DriverEnded => "driver_ended",
        }
    }
}

impl fmt::Display for InspectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => write!(f, "{error}"),
            Self::TooManyLocks { limit } => write!(f, "{}", TooManyLocks { limit: *limit }),
            Self::Forked => f.write_str(FORKED),
            Self::DriverEnded => f.write_str(DRIVER_ENDED),
        }
    }
}

impl Error for InspectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Invalid(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ConfigError> for InspectError {
    fn from(error: ConfigError) -> Self {
        Self::Invalid(error)
    }
}

impl From<TooManyLocks> for InspectError {
    fn from(TooManyLocks { limit }: TooManyLocks) -> Self {
        Self::TooManyLocks { limit }
    }
}
