//! How a run ends.

use std::fmt;
use std::time::Duration;

use super::access::Kinds;
use super::timeline::Timeline;
use super::violation::Violation;

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The true time that has passed in the world.
    pub took: Duration,
    /// The number of guards that were handed out.
    pub acquisitions: u64,
    /// The same by kind.
    pub kinds: Kinds,
    /// The number of requests to acquire, extend or release a lock that the masters executed.
    pub requests: u64,
    /// The number of grants with a fencing token.
    pub numbered: u64,
    /// The number of those grants that needed a second round, because the masters' counters
    /// differed.
    pub raised: u64,
    /// The number of requests that a master granted after the client had closed the connection. The
    /// protocol must undo these.
    pub late_grants: u64,
    /// The number of events that were simulated.
    pub events: u64,
}

/// A broken promise, with everything that led to it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The seed of the world. With the same calls it gives the same run.
    pub seed: u64,
    /// The promise that was broken.
    pub violation: Violation,
    /// Everything that happened before.
    pub timeline: Timeline,
}

impl Failure {
    /// Draws the timeline as an SVG document, with the seed in its title.
    pub fn to_svg(&self) -> String {
        self.timeline.picture(format!("Simulated run, seed {}", self.seed)).to_svg()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} (seed {})", self.violation, self.seed)?;
        write!(f, "{}", self.timeline)
    }
}

impl std::error::Error for Failure {}
