//! Redis masters inside your process, for tests of code that takes distributed locks.
//!
//! They listen on sockets of the loopback interface, so every client can use them:
//! `quorlock-tokio`, `quorlock-smol`, `quorlock-blocking`, or a program in another process. No
//! Redis server is needed. The command `quorlock master` serves the same masters from the command
//! line.
//!
//! **They are not servers for production.** Their data is in the memory of this process, they
//! listen on the loopback interface only, and they know only the commands that locks and tests of
//! locks need. Their replies are those of the model [`quorlock_sim::Master`], byte for byte as
//! Redis 7.0 answers.
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
//! A test can make masters hang ([`Master::pause`]), die and come back ([`Master::stop`],
//! [`Master::restart`]), run out of memory, become replicas, forget scripts, or answer with any
//! error ([`Master::model`]). [`Masters::like`] starts masters without the features of Redis that
//! some servers and proxies lack.
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
//! // Two of three masters are out of memory: there is no quorum, and the error names them.
//! for master in &masters[..2] {
//!     master.model(|model| model.set_out_of_memory(true));
//! }
//! let error = locker.try_lock("invoice:42").wait().unwrap_err();
//! assert!(matches!(error, AcquireError::NoQuorum(_)));
//! assert!(error.to_string().contains("out of memory"));
//!
//! // All masters restart without their keys: the next renewal notices it, and the holder is told.
//! masters.iter().for_each(|master| master.model(|model| model.set_out_of_memory(false)));
//! let guard = locker.lock("invoice:42").ttl(Duration::from_secs(1)).renew().wait()?;
//! for master in masters.iter() {
//!     master.restart(Keep::Nothing)?;
//! }
//! assert_eq!(guard.lost().wait(), LossCause::NotHeld);
//! # Ok(())
//! # }
//! ```

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
pub use quorlock_sim::{CommandKind, Dialect, Keep};

/// Several independent masters, which dereference to a slice of [`Master`]s. Dropping them stops
/// them.
#[derive(Debug)]
pub struct Masters {
    masters: Vec<Master>,
}

impl Masters {
    /// Starts `n` masters on free ports of 127.0.0.1.
    ///
    /// # Errors
    /// Returns an error if the system has no port, socket, thread or randomness left.
    pub fn start(n: usize) -> io::Result<Self> {
        Ok(Self { masters: (0..n).map(|_| Master::start()).collect::<io::Result<_>>()? })
    }

    /// Starts `n` masters without the features of Redis that this dialect lacks.
    ///
    /// # Errors
    /// As [`Masters::start`].
    pub fn like(n: usize, dialect: Dialect) -> io::Result<Self> {
        let masters = Self::start(n)?;
        masters.iter().for_each(|master| master.model(|model| model.set_dialect(dialect)));
        Ok(masters)
    }

    /// Returns the URL of each master, in order.
    pub fn urls(&self) -> Vec<String> {
        self.iter().map(Master::url).collect()
    }

    /// Returns a configuration with these masters and the default settings.
    ///
    /// For other settings pass [`Masters::urls`] to [`Config::builder`].
    ///
    /// # Errors
    /// Returns an error if there are no masters, or more than a configuration accepts.
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

/// Returns the time on the clock of all embedded masters: this machine's wall clock, since the Unix
/// epoch.
///
/// Methods of the model need it: see [`Master::model`].
pub fn now() -> Duration {
    // A clock before 1970 counts as 1970.
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
