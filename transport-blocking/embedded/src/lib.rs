//! Redis masters inside your process, on sockets of the loopback.
//!
//! They are for tests, doctests, examples and demonstrations of code that locks, on a machine without a Redis server.
//!
//! **They are no servers for production.** What they hold is in this process's memory and ends with it, they listen on the loopback only,
//! and they know only the commands that locks need and those that a test wants around them ([`quorlock_sim::Master`]
//! is what answers, byte for byte as Redis 7.0 does).
//!
//! ```
//! use quorlock_embedded::Masters;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let masters = Masters::start(3)?;
//! let locker = quorlock_blocking::open(masters.config()?)?;
//!
//! masters[0].pause();
//! let guard = locker.lock("invoice:42").wait()?;
//! assert!(guard.is_valid(), "a minority that hangs costs nothing");
//! guard.release().wait()?;
//! # Ok(())
//! # }
//! ```
//!
//! Whatever a test wants to go wrong goes wrong on demand: masters hang ([`Master::pause`]), die and come back ([`Master::stop`],
//! [`Master::restart`]), run out of memory, become replicas, forget scripts, or answer any error ([`Master::model`]).
//!
//! ```
//! use std::time::Duration;
//!
//! use quorlock_embedded::{Keep, Masters};
//! use quorlock_blocking::{AcquireError, LossCause};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let masters = Masters::start(3)?;
//! let locker = quorlock_blocking::open(masters.config()?)?;
//!
//! // Two of three are out of memory: no quorum, and the error names them.
//! for master in &masters[..2] {
//!     master.model(|model| model.set_out_of_memory(true));
//! }
//! let error = locker.try_lock("invoice:42").wait().unwrap_err();
//! assert!(matches!(error, AcquireError::NoQuorum(_)));
//! assert!(error.to_string().contains("out of memory"));
//!
//! // Restarted masters that have forgotten a lock: the next renewal finds that out, and the holder is told.
//! masters.iter().for_each(|master| master.model(|model| model.set_out_of_memory(false)));
//! let guard = locker.lock("invoice:42").ttl(Duration::from_secs(1)).renew().wait()?;
//! for master in masters.iter() {
//!     master.restart(Keep::Nothing)?;
//! }
//! assert_eq!(guard.lost().wait(), LossCause::NotHeld);
//! # Ok(())
//! # }
//! ```
//!
//! They speak to every client over TCP, so the locker may as well be one of `quorlock-tokio` or `quorlock-smol`, or a program in another
//! process; `quorlock master` serves them from the command line.

mod client;
mod master;
mod server;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::Deref;
use std::time::{Duration, SystemTime};

use quorlock_core::{Config, ConfigError};

pub use master::Master;
pub use quorlock_sim::{CommandKind, Keep};

/// Several independent masters; a slice of [`Master`]s. Dropping them ends them.
#[derive(Debug)]
pub struct Masters {
    masters: Vec<Master>,
}

impl Masters {
    /// Starts `n` masters on free ports of 127.0.0.1.
    ///
    /// # Errors
    /// Where the system has no port, socket, thread or randomness left.
    pub fn start(n: usize) -> io::Result<Self> {
        Ok(Self { masters: (0..n).map(|_| Master::start()).collect::<io::Result<_>>()? })
    }

    /// The URL of each master, in order.
    pub fn urls(&self) -> Vec<String> {
        self.iter().map(Master::url).collect()
    }

    /// A configuration with these masters and the defaults in all else. For anything else, give [`Masters::urls`] to
    /// [`Config::builder`].
    ///
    /// # Errors
    /// When there are no masters, or more than a configuration takes.
    pub fn config(&self) -> Result<Config, ConfigError> {
        Config::new(self.urls())
    }
}

impl Deref for Masters {
    type Target = [Master];

    fn deref(&self) -> &[Master] {
        &self.masters
    }
}

/// The clock of all embedded masters, for what of the model wants to know the time: this machine's wall clock, since the Unix epoch.
pub fn now() -> Duration {
    // Before 1970 it is 1970.
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
