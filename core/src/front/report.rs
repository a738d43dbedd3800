//! What a locker has done, in numbers.

use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::machine::MasterState;
use crate::protocol::{AcquireError, LossCause};

/// What a locker and its clones have done since it was opened, and the present state: see
/// [`Locker::report`](super::Locker::report).
///
/// Counts only grow. [`Report::held`], [`Report::waiting`] and [`Report::masters`] show the present
/// moment.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Requests for locks that have ended.
    pub acquisitions: Acquisitions,
    /// Extensions that callers requested.
    pub extensions: Extensions,
    /// How holders ended their locks.
    pub releases: Releases,
    /// Held locks that were lost.
    pub losses: Losses,
    /// Renewals in the background that extended a lock.
    pub renewals: u64,
    /// Locks that are held now.
    pub held: usize,
    /// Callers that are waiting for a lock now.
    pub waiting: u64,
    /// Each master, in the order of the configuration.
    pub masters: Vec<MasterReport>,
}

/// Requests for locks that have ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Acquisitions {
    /// Requests that were granted.
    pub granted: u64,
    /// Requests of an [`Owner`](super::Owner) that got another handle of a lock which it held or
    /// acquired meanwhile.
    pub reentered: u64,
    /// Requests that ended with an error, by its kind.
    pub refused: Refusals,
    /// Requests whose future was dropped before it was ready.
    pub abandoned: u64,
    /// Attempts that were made for the requests that were granted or refused.
    pub attempts: u64,
    /// How long the granted requests took, from the first poll until the caller had the guard.
    pub latency: Latency,
}

/// Requests that ended with an [`AcquireError`], by its [kind](AcquireError::kind).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Refusals {
    /// [`AcquireError::HeldByAnother`].
    pub held_by_another: u64,
    /// [`AcquireError::NoQuorum`].
    pub no_quorum: u64,
    /// [`AcquireError::Misconfigured`].
    pub misconfigured: u64,
    /// [`AcquireError::Quarantined`].
    pub quarantined: u64,
    /// [`AcquireError::TooLate`].
    pub too_late: u64,
    /// [`AcquireError::NotHeld`].
    pub not_held: u64,
    /// [`AcquireError::Lost`].
    pub lost: u64,
    /// [`AcquireError::HeldWithout`].
    pub held_without: u64,
    /// [`AcquireError::WouldDeadlock`].
    pub would_deadlock: u64,
    /// [`AcquireError::NotExtended`].
    pub not_extended: u64,
    /// [`AcquireError::Invalid`].
    pub invalid: u64,
    /// [`AcquireError::TooManyLocks`].
    pub too_many_locks: u64,
    /// [`AcquireError::NoEntropy`].
    pub no_entropy: u64,
    /// [`AcquireError::DriverEnded`].
    pub driver_ended: u64,
}

impl Refusals {
    /// Returns each kind of error with its count. The words are those of [`AcquireError::kind`] and
    /// of the span's field `quorlock.outcome`. A forked child counts nothing, so
    /// [`AcquireError::Forked`] is not among them.
    pub fn by_kind(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("held_by_another", self.held_by_another),
            ("no_quorum", self.no_quorum),
            ("misconfigured", self.misconfigured),
            ("quarantined", self.quarantined),
            ("too_late", self.too_late),
            ("not_held", self.not_held),
            ("lost", self.lost),
            ("held_without", self.held_without),
            ("would_deadlock", self.would_deadlock),
            ("not_extended", self.not_extended),
            ("invalid", self.invalid),
            ("too_many_locks", self.too_many_locks),
            ("no_entropy", self.no_entropy),
            ("driver_ended", self.driver_ended),
        ]
        .into_iter()
    }

    /// Returns the sum of all counts.
    pub fn total(&self) -> u64 {
        self.by_kind().map(|(_, count)| count).sum()
    }

    pub(super) fn count(&mut self, error: &AcquireError) {
        *match error {
            AcquireError::HeldByAnother(_) => &mut self.held_by_another,
            AcquireError::NoQuorum(_) => &mut self.no_quorum,
            AcquireError::Misconfigured(_) => &mut self.misconfigured,
            AcquireError::Quarantined(_) => &mut self.quarantined,
            AcquireError::TooLate(_) => &mut self.too_late,
            AcquireError::NotHeld(_) => &mut self.not_held,
            AcquireError::Lost(_) => &mut self.lost,
            AcquireError::HeldWithout { .. } => &mut self.held_without,
            AcquireError::WouldDeadlock { .. } => &mut self.would_deadlock,
            AcquireError::NotExtended(_) => &mut self.not_extended,
            AcquireError::Invalid(_) => &mut self.invalid,
            AcquireError::TooManyLocks { .. } => &mut self.too_many_locks,
            AcquireError::NoEntropy => &mut self.no_entropy,
            AcquireError::Forked => return,
            AcquireError::DriverEnded => &mut self.driver_ended,
        } += 1;
    }
}

/// Extensions that callers requested ([`Guard::extend`](super::Guard::extend)).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Extensions {
    /// Extensions that a quorum granted.
    pub granted: u64,
    /// Extensions that failed.
    pub failed: u64,
}

/// How holders ended their locks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Releases {
    /// Releases for which a quorum answered that it had held the lock until then.
    pub still_ours: u64,
    /// Releases for which too many masters answered that they did not hold the lock any more.
    pub not_ours: u64,
    /// Releases to which too few masters answered.
    pub unknown: u64,
    /// Guards that were dropped. The outcome of their releases is not known.
    pub dropped: u64,
    /// Locks that were handed over.
    pub handed_over: u64,
}

impl Releases {
    /// Returns each outcome with its count. The first three words are those of the event
    /// `quorlock.released`; the second and third are also those of
    /// [`ReleaseError::kind`](super::ReleaseError::kind).
    pub fn by_outcome(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("still_ours", self.still_ours),
            ("not_ours", self.not_ours),
            ("unknown", self.unknown),
            ("dropped", self.dropped),
            ("handed_over", self.handed_over),
        ]
        .into_iter()
    }
}

/// Held locks that were lost, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Losses {
    /// Their validity ran out.
    pub expired: u64,
    /// Too few masters still held them for a quorum.
    pub not_held: u64,
    /// A master belongs to the fleet of another configuration.
    pub other_fleet: u64,
}

impl Losses {
    /// Returns each cause with its count. The words are those of [`LossCause::kind`] and of the
    /// event `quorlock.lost`.
    pub fn by_kind(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            (LossCause::Expired.kind(), self.expired),
            (LossCause::NotHeld.kind(), self.not_held),
            (LossCause::OtherFleet.kind(), self.other_fleet),
        ]
        .into_iter()
    }
}

/// A master's state and its connections.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MasterReport {
    /// Its address.
    pub endpoint: Endpoint,
    /// Its state.
    pub state: MasterState,
    /// How long the master will still not vote: because of the restart guard, according to its last
    /// answer, or because another server has taken its place
    /// ([`Warning::OtherServer`](crate::Warning::OtherServer)).
    pub quarantine: Option<Duration>,
    /// Whether it has not answered all requests, or requests wait for a connection to it that may
    /// still be opened. A process that ends before then may leave the key of a released lock there
    /// until its TTL ends.
    pub is_awaited: bool,
    /// Attempts to connect, including the first one and those that failed.
    pub connections_asked_for: u64,
    /// Connections that were opened, without the first one.
    pub reconnects: u64,
}

/// A histogram of spans of time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Latency {
    buckets: [u64; BUCKETS],
    sum: Duration,
    shortest: Option<Duration>,
    longest: Duration,
}

const BUCKETS: usize = Latency::BOUNDS.len() + 1;

impl Latency {
    /// The buckets' inclusive upper bounds. One more bucket is above the last bound.
    pub const BOUNDS: [Duration; 16] = [
        Duration::from_micros(100),
        Duration::from_micros(250),
        Duration::from_micros(500),
        Duration::from_millis(1),
        Duration::from_micros(2_500),
        Duration::from_millis(5),
        Duration::from_millis(10),
        Duration::from_millis(25),
        Duration::from_millis(50),
        Duration::from_millis(100),
        Duration::from_millis(250),
        Duration::from_millis(500),
        Duration::from_secs(1),
        Duration::from_millis(2_500),
        Duration::from_secs(5),
        Duration::from_secs(10),
    ];

    pub(super) fn record(&mut self, span: Duration) {
        if let Some(bucket) = self.buckets.get_mut(Self::BOUNDS.partition_point(|bound| *bound < span)) {
            *bucket += 1;
        }
        self.sum = self.sum.saturating_add(span);
        self.shortest = Some(self.shortest.map_or(span, |shortest| shortest.min(span)));
        self.longest = self.longest.max(span);
    }

    /// Returns each bucket's upper bound, `None` for the last one, with the number of spans in this
    /// bucket alone.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        Self::BOUNDS.into_iter().map(Some).chain([None]).zip(self.buckets)
    }

    /// Returns the number of spans.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the sum of all spans.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Returns the mean, or `None` without any span.
    pub fn mean(&self) -> Option<Duration> {
        let nanos = self.sum.as_nanos().checked_div(self.count().into())?;
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// Returns the shortest span, or `None` without any.
    pub fn shortest(&self) -> Option<Duration> {
        self.shortest
    }

    /// Returns the longest span, or `None` without any.
    pub fn longest(&self) -> Option<Duration> {
        self.shortest.map(|_| self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_counted_in_the_bucket_whose_bound_they_do_not_exceed() {
        let mut latency = Latency::default();
        assert_eq!((latency.mean(), latency.shortest(), latency.longest()), (None, None, None));
        for micros in [1, 100, 101, 10_000_000, 10_000_001] {
            latency.record(Duration::from_micros(micros));
        }
        let filled: Vec<_> = latency.buckets().filter(|(_, count)| *count > 0).collect();
        let [hundred, quarter] = [100, 250].map(|micros| Some(Duration::from_micros(micros)));
        assert_eq!(filled, [(hundred, 2), (quarter, 1), (Some(Duration::from_secs(10)), 1), (None, 1)]);
        assert_eq!((latency.count(), latency.sum()), (5, Duration::from_micros(20_000_203)));
        assert_eq!(latency.mean(), Some(Duration::from_nanos(4_000_040_600)));
        assert_eq!(latency.shortest(), Some(Duration::from_micros(1)));
        assert_eq!(latency.longest(), Some(Duration::from_micros(10_000_001)));
    }
}
