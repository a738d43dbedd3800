//! What this process has used of the processor and of memory.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Runs while something is measured.
#[derive(Debug)]
pub(crate) struct Meter {
    start: Instant,
    busy: Duration,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), busy: busy() }
    }

    /// How long it took, and for how long all threads of this process were busy meanwhile.
    pub(crate) fn stop(&self) -> (Duration, Duration) {
        (self.start.elapsed(), busy().saturating_sub(self.busy))
    }
}

/// How long the threads of this process have been on a processor.
fn busy() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("this clock counts from nothing upwards")
}

/// The bytes of this process that are in memory; 0 where the system does not tell.
pub(crate) fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kilobytes.unwrap_or_default() * 1024
}
