//! How much processor time and memory this process has used.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Measures time and processor time, from its creation on.
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

/// The size of this process's resident set in bytes; 0 if the system does not report it.
pub(crate) fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kilobytes.unwrap_or_default() * 1024
}
