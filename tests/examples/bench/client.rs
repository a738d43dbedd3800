//! The operations of every way, and their reports.

use std::time::{Duration, Instant};

use quorlock_tests::Summary;

use crate::figures::Figures;

/// The life of every key.
pub(crate) const TTL: Duration = Duration::from_secs(10);

/// What a worker locks. The name has this process in it, since keys of the one before may be left:
/// a process that ends while masters are busy may have its last releases discarded.
pub(crate) fn resource(worker: usize) -> String {
    format!("{}-{worker}", std::process::id())
}

/// A way that is connected to its masters.
pub(crate) trait Client {
    /// One caller acquires and releases one lock repeatedly.
    fn sequential(&mut self, limit: Limit) -> Sequence;

    /// `workers` workers at once, with a lock each.
    fn in_flight(&mut self, workers: usize, span: Duration) -> Tally;

    /// The last masters are gone. Only the floor must be told.
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
    /// The longest pair, also where it failed.
    longest: Duration,
}

impl Sequence {
    pub(crate) fn with_capacity(limit: Limit) -> Self {
        let pairs = limit.pairs.min(100_000);
        let (acquire, release) = (Vec::with_capacity(pairs), Vec::with_capacity(pairs));
        Self { acquire, release, errors: 0, longest: Duration::ZERO }
    }

    /// A pair that began, was granted and has been released; where it was granted, and where it was
    /// released.
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

    /// How often the caller has tried.
    pub(crate) fn attempts(&self) -> usize {
        self.acquire.len() + self.errors
    }

    /// How much memory its durations take.
    pub(crate) fn bytes(&self) -> usize {
        (self.acquire.len() + self.release.len()) * size_of::<Duration>()
    }

    /// In seconds; no percentiles where nothing was granted.
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
    /// What these workers did together, each of which counted its pairs and its errors.
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
