//! The clock, the entropy and the fork check.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::task::{Context, Poll};
use std::time::Duration;

use quorlock_core::front::{Host, MAX_PASSWORD_BYTES};
use quorlock_core::{EntropyFailed, Instant, IoFault, Unavailable};

use crate::files::read_file;
use crate::wait::{Park, Wait};

/// The operating system as a [`Host`], with a transport's way of waiting.
pub struct System<W = Park> {
    /// Detects forks since it was created, which is when the locker is opened.
    forks: forkguard::Guard,
    wait: W,
    /// Of a clock that also runs while the machine sleeps on Windows and OpenBSD, but not on
    /// FreeBSD, which had no such clock in 2023 (commit 108de784513d).
    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    origin: std::time::Instant,
}

/// A clock that runs while the machine sleeps. `std::time::Instant` stops meanwhile on these
/// systems.
#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(target_vendor = "apple")]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

impl System {
    /// Returns a system whose waiting threads are parked.
    pub fn new() -> Self {
        Self::waiting_by(Park)
    }
}

impl Default for System {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: Wait> System<W> {
    /// Returns a system whose threads wait in this way.
    pub fn waiting_by(wait: W) -> Self {
        Self {
            forks: forkguard::new(),
            wait,
            #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
            origin: std::time::Instant::now(),
        }
    }
}

impl<W: Wait> Host for System<W> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    fn now(&self) -> Instant {
        let time = rustix::time::clock_gettime(CLOCK);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Instant::from_nanos(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0))
    }

    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    fn now(&self) -> Instant {
        Instant::ORIGIN + self.origin.elapsed()
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        getrandom::fill(bytes).map_err(|_| EntropyFailed)
    }

    /// Compares a number with one that `pthread_atfork` counts up in each child: no system call.
    fn is_forked(&self) -> bool {
        self.forks.clone().detected_fork()
    }

    fn may_wait(&self) -> bool {
        self.wait.may_wait()
    }

    /// A pipe is refused, because its contents are read only once, and each greeting needs them.
    fn read_password(&self, file: &Path) -> Result<Vec<u8>, Unavailable> {
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::FileTooLarge => Unavailable::LongFile,
            _ => Unavailable::Unreadable(IoFault::from(&error)),
        };
        if !fs::metadata(file).map_err(unreadable)?.is_file() {
            return Err(Unavailable::NotAFile);
        }
        read_file(file, MAX_PASSWORD_BYTES, Duration::ZERO).map_err(unreadable)
    }

    fn block_on(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        self.wait.block_on(poll);
    }
}

impl<W> fmt::Debug for System<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("System").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_advances_and_random_bytes_differ() {
        let system = System::new();
        let before = system.now();
        let mut tokens = [[0; 20]; 2];
        for token in &mut tokens {
            assert_eq!(system.fill_random(token), Ok(()));
        }
        assert_ne!(tokens[0], tokens[1]);
        std::thread::sleep(Duration::from_millis(2));
        assert!(system.now() > before);
        assert!(!system.is_forked() && system.may_wait());
    }
}
