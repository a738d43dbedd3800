//! The operations of every way, and their reports.

use std::time::{Duration, Instant};

use quorlock_tests::Summary;

use crate::figures::Figures;

/// The life of every key.
pub(crate) const TTL: Duration = Duration::from_secs(10);

/// The resource that a worker locks. Its name contains the id of this process, because keys of the
/// previous process may be left: if a process ends while masters are busy, its last releases may be
/// lost.
pub(crate) fn resource(worker: usize) -> String {
    format!("{}-{worker}", std::process::id())
}

/// A way that is connected to its masters.
pub(crate) trait Client {
    /// One caller acquires and releases one lock repeatedly.
    fn sequential(&mut self, limit: Limit) -> Sequence;

    /// `workers` workers at once, with a lock each.
    fn in_flight(&mut self, workers: usize, span: Duration) -> Tally;

    /// Tells the client that the last masters are gone. Only the floor needs to know.
    fn leave_out(&mut self, _masters: usize) {}

    /// Waits until every master votes again. Returns how long that took, if the client reports it.
    fn until_all_vote(&mut self, _within: Duration) -> Option<Duration> {
        None
    }
}

/// When a caller stops: at the first of these limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) pairs: usize,
    pub(crate) span: Duration,
}

/// The measurements of one caller.
#[derive(Default, Debug)]
pub(crate) struct Sequence {
    acquire: Vec<Duration>,
    release: Vec<Duration>,
    errors: usize,
    /// The longest time of a pair, including pairs that failed.
    longest: Duration,
}

impl Sequence {
    pub(crate) fn with_capacity(limit: Limit) -> Self {
        let pairs = limit.pairs.min(100_000);
        let (acquire, release) = (Vec::with_capacity(pairs), Vec::with_capacity(pairs));
        Self { acquire, release, errors: 0, longest: Duration::ZERO }
    }

    /// Adds a pair that began at `start` and has just ended. `granted` is the time of the grant, if
    /// there was one, and `released` says whether the release succeeded.
    pub(crate) fn add(&mut self, start: Instant, granted: Option<Instant>, released: bool) {
        let end = Instant::now();
        self.longest = self.longest.max(end - start);
        match granted {
            Some(granted) if released => {
                self.acquire.push(granted - start);
                self.release.push(end - granted);
            }
            _ => self.errors += 1,
        }
    }

    /// How many pairs the caller has tried.
    pub(crate) fn attempts(&self) -> usize {
        self.acquire.len() + self.errors
    }

    /// How much memory its durations take.
    pub(crate) fn bytes(&self) -> usize {
        (self.acquire.len() + self.release.len()) * size_of::<Duration>()
    }

    /// Adds the figures, in seconds. Percentiles are left out if nothing was granted.
    pub(crate) fn tell(&self, figures: &mut Figures) {
        figures.set("errors", self.errors as f64);
        figures.set("longest", self.longest.as_secs_f64());
        if self.acquire.is_empty() {
            return;
        }
        let pair: Vec<_> = self.acquire.iter().zip(&self.release).map(|(one, other)| *one + *other).collect();
        for (name, durations) in [("acquire", &self.acquire), ("release", &self.release), ("pair", &pair)] {
            let summary = Summary::of(durations);
            figures.set(&format!("{name}_p50"), summary.p50.as_secs_f64());
            figures.set(&format!("{name}_p99"), summary.p99.as_secs_f64());
        }
    }
}

/// The measurements of many workers.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) pairs: usize,
    pub(crate) errors: usize,
    /// From the start until the last of them had ended.
    pub(crate) took: Duration,
    /// For how long this process was busy meanwhile.
    pub(crate) busy: Duration,
}

impl Tally {
    /// Sums up these workers, each of which counted its pairs and its errors.
    pub(crate) fn of(workers: Vec<(usize, usize)>, (took, busy): (Duration, Duration)) -> Self {
        let (pairs, errors): (Vec<_>, Vec<_>) = workers.into_iter().unzip();
        Self { pairs: pairs.iter().sum(), errors: errors.iter().sum(), took, busy }
    }

    pub(crate) fn tell(&self, figures: &mut Figures) {
        figures.set("errors", self.errors as f64);
        figures.set("pairs_per_second", self.pairs as f64 / self.took.as_secs_f64());
        if self.pairs > 0 {
            figures.set("time_per_pair", self.took.as_secs_f64() / self.pairs as f64);
            figures.set("busy_per_pair", self.busy.as_secs_f64() / self.pairs as f64);
        }
    }
}
