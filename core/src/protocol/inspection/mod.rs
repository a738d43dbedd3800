//! The masters' answers about a lock, for a client that only asks.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::permits::{PermitsAnswer, SemaphoreInspection};
pub(crate) use self::told::Marker;
pub use self::told::{Holder, KeyState, MasterAnswer, ServerFacts, Standing};
use super::units::{ENDLESS, Span};
use super::{Cause, ConfigError, DRIVER_ENDED, FORKED, Group, Quorum, Resource, TooManyLocks};
use crate::endpoint::Endpoint;

mod permits;
mod told;

/// The masters' answers about a lock, and the resulting state: the answer of
/// [`Locker::inspect`](crate::front::Locker::inspect).
///
/// Each answer is a snapshot. By the time it is read, a free lock may be held and a held one free:
/// it is for people, for tests and for metrics. To hold the lock, take it.
///
/// It displays as one sentence, such as `held by one holder on 3 of 3 masters (quorum 2), 9.8 s
/// left` or `3 readers, the last ends in 4 s; on 3 of 3 masters (quorum 2)`. No token is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inspection {
    pub(crate) resource: Resource,
    pub(crate) masters: Arc<[Endpoint]>,
    pub(crate) quorum: Quorum,
    pub(crate) answers: Vec<Result<MasterAnswer, Cause>>,
    pub(crate) verdict: Verdict,
}

/// The resulting state, and the counts behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    pub(crate) state: LockState,
    /// How many masters gave an answer that counts.
    pub(crate) answered: usize,
    /// How many masters would grant the lock.
    pub(crate) free: usize,
    /// Each exclusive holder of a key, with the number of masters that have its key.
    pub(crate) holders: Vec<(Holder, usize)>,
    /// Each holder that shares a key, with the number of masters that have its entry.
    pub(crate) sharers: Vec<(Holder, usize)>,
    /// Each group, with the number of masters that have its key.
    pub(crate) groups: Vec<(Group, usize)>,
    /// How many masters have something at the key that is not a lock.
    pub(crate) other_type: usize,
}

impl Inspection {
    /// Returns the lock that was asked about.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Returns the lock's state according to the answers.
    pub fn state(&self) -> LockState {
        self.verdict.state
    }

    /// Returns whether the lock is held on a quorum of masters, by one holder or by several that
    /// share it.
    pub fn is_held(&self) -> bool {
        matches!(self.verdict.state, LockState::Held(_) | LockState::Shared(_))
    }

    /// Returns whether no holder has a quorum, and a quorum of masters would grant the lock.
    pub fn is_free(&self) -> bool {
        self.verdict.state == LockState::Free
    }

    /// Returns whether the lock is held on a quorum of masters with a token of ours: that of a
    /// guard of the locker, or one that was passed to the request.
    pub fn is_ours(&self) -> bool {
        match self.verdict.state {
            LockState::Held(holding) => holding.holder.is_ours,
            LockState::Shared(sharing) => sharing.ours > 0,
            _ => false,
        }
    }

    /// Returns how long the lock stays held if it is neither renewed nor released: that is, how
    /// long a quorum of masters has its key, or the entry of one of its sharers. `None` if it is
    /// not held, or never expires.
    pub fn remaining(&self) -> Option<Duration> {
        match self.verdict.state {
            LockState::Held(holding) => holding.remaining,
            LockState::Shared(sharing) => sharing.remaining,
            _ => None,
        }
    }

    /// Returns the group that shares the lock, if it is shared: [`Group::READERS`] for readers.
    pub fn group(&self) -> Option<&Group> {
        let is_shared = matches!(self.verdict.state, LockState::Shared(_));
        let largest = self.verdict.groups.iter().rev().max_by_key(|(_, on)| *on);
        largest.filter(|_| is_shared).map(|(group, _)| group)
    }

    /// Returns each exclusive holder of a key, with the number of masters that have its key, in the
    /// order in which the masters name them. A contended lock can have more than one for a moment.
    pub fn holders(&self) -> impl Iterator<Item = (Holder, usize)> {
        self.verdict.holders.iter().copied()
    }

    /// Returns each holder that shares the lock, with the number of masters that have its entry, in
    /// the order in which the masters name them: those that end last come first. A sharer on fewer
    /// masters than a quorum has just started or already ended, and does not hold the lock. A
    /// master names 1,000 at most.
    pub fn sharers(&self) -> impl Iterator<Item = (Holder, usize)> {
        self.verdict.sharers.iter().copied()
    }

    /// Returns the quorum that decides.
    pub fn quorum(&self) -> Quorum {
        self.quorum
    }

    /// Returns the number of masters whose answers count. A master that came back without its data,
    /// and has no key, does not count.
    pub fn answered(&self) -> usize {
        self.verdict.answered
    }

    /// Returns the number of masters that would grant the lock.
    pub fn free(&self) -> usize {
        self.verdict.free
    }

    /// Returns each master with its answer, or why it has no vote, in the order of the
    /// configuration.
    pub fn masters(&self) -> impl Iterator<Item = (&Endpoint, Result<&MasterAnswer, Cause>)> {
        let answers = self.answers.iter().map(|answer| answer.as_ref().map_err(|cause| *cause));
        self.masters.iter().zip(answers)
    }

    /// `ours on 1, holder b on 1, readers on 1, free on 1`.
    fn shares(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for (holder, on) in self.holders() {
            write!(f, "{between}{} on {on}", holder.called())?;
            between = ", ";
        }
        for (group, on) in &self.verdict.groups {
            write!(f, "{between}{} on {on}", Crowd(group, None))?;
            between = ", ";
        }
        let silent = self.quorum.masters().saturating_sub(self.verdict.answered);
        let free = ("free on", self.free());
        let rest = [free, ("not a lock on", self.verdict.other_type), ("no usable answer from", silent)];
        for (what, on) in rest.into_iter().filter(|(_, on)| *on > 0) {
            write!(f, "{between}{what} {on}")?;
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
            LockState::Shared(Sharing { sharers, ours, on, remaining, wanted_on }) => {
                let readers = Group::READERS;
                write!(f, "{}", Crowd(self.group().unwrap_or(&readers), sharers))?;
                let last = if sharers == Some(1) { "it" } else { "the last" };
                match (ours, sharers) {
                    (0, _) => write!(f, ", {last} ")?,
                    (1, Some(1)) => f.write_str(", which is ours, ")?,
                    (_, Some(all)) if ours == all => write!(f, ", all of them ours, {last} ")?,
                    (1, _) => write!(f, ", of which one is ours, {last} ")?,
                    _ => write!(f, ", of which {ours} are ours, {last} ")?,
                }
                match remaining {
                    Some(left) => write!(f, "ends in {}", Span(left))?,
                    None => f.write_str("never ends")?,
                }
                write!(f, "; on {on} of {all} masters (quorum {needed})")?;
                f.write_str(if wanted_on > 0 { "; a writer waits" } else { "" })
            }
            LockState::Free => {
                write!(f, "free on {} of {all} masters (quorum {needed})", self.free())?;
                let shared = self.verdict.groups.iter().map(|(_, on)| *on);
                match self.holders().map(|(_, on)| on).chain(shared).sum::<usize>() {
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
                "not known: {} of {all} masters gave a usable answer (quorum {needed})",
                self.answered()
            ),
            LockState::Unknown => {
                f.write_str("not known, it depends on masters that gave no usable answer: ")?;
                self.shares(f)?;
                write!(f, " (quorum {needed})")
            }
        }
    }
}

/// Prints the remaining life of a key.
struct Left(Option<Duration>);

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => write!(f, "never expires; {ENDLESS}"),
            Some(left) => write!(f, "{} left", Span(left)),
        }
    }
}

/// Prints the sharers of a lock: `3 readers`, `2 of group job:42`, or without a number `readers`.
struct Crowd<'a>(&'a Group, Option<usize>);

impl fmt::Display for Crowd<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(group, many) = self;
        match (*group == &Group::READERS, many) {
            (true, Some(1)) => f.write_str("1 reader"),
            (true, Some(many)) => write!(f, "{many} readers"),
            (true, None) => f.write_str("readers"),
            (false, Some(many)) => write!(f, "{many} of group {group}"),
            (false, None) => write!(f, "group {group}"),
        }
    }
}

/// A lock's state according to the masters' answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LockState {
    /// One holder has it exclusively on a quorum of masters.
    Held(Holding),
    /// Holders of one group share it, each of them on a quorum of masters. Only others of the same
    /// group can get it meanwhile.
    Shared(Sharing),
    /// No holder has it on a quorum of masters, and a quorum would grant it.
    Free,
    /// Masters disagree: no holder has a quorum, and in this state no client can get the lock
    /// exclusively.
    Split,
    /// The lock's state depends on masters that gave no usable answer.
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
    /// How long a quorum has the key, unless the lock is renewed or released; `None` if it never
    /// expires.
    pub remaining: Option<Duration>,
}

/// A lock that a group shares. Each holder has entries on a quorum of masters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Sharing {
    /// How many holders share it; `None` if fewer masters than a quorum let the connection's user
    /// read their clocks (`TIME`). A master names 1,000 at most, so larger numbers are not exact.
    pub sharers: Option<usize>,
    /// How many of them have a token of ours.
    pub ours: usize,
    /// The number of masters where the group has the key.
    pub on: usize,
    /// How long the last holder still has it, unless the lock is renewed or released; `None` if it
    /// never expires.
    pub remaining: Option<Duration>,
    /// The number of masters with the mark of a writer that is waiting, or that stopped waiting
    /// within the last second. Marks on a quorum of masters keep new readers out.
    pub wanted_on: usize,
}

/// Why masters could not be asked about a lock.
///
/// Masters that do not answer are no error: [`Inspection::masters`] has the cause for each.
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
