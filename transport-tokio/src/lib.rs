//! Distributed locks on N independent Redis or Valkey masters (Redlock) for tokio.
//!
//! ```
//! use quorlock_tokio::Config;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let masters = ["redis://a", "redis://b", "redis://c"];
//!     # let embedded = quorlock_embedded::Masters::start(3)?;
//!     # let masters = embedded.urls();
//!     let locker = quorlock_tokio::open(Config::new(masters)?)?;
//!     // Waits for at most 10 s; `.timeout(None)` waits for as long as it takes.
//!     let guard = locker.lock("invoice:42").await?;
//!     guard.release().await?;
//!     Ok(())
//! }
//! ```
//!
//! [`Locker::lock`] waits for a lock for at most 10 s, unless the request or the configuration sets
//! another timeout, and returns a [`Guard`]. A guard is valid for its TTL, less the time that it
//! took to get it, less the drift: [`Guard::is_valid`] and [`Guard::check`] look at the clock, and
//! [`Guard::lost`] resolves when the lock is lost.
//!
//! Dropping a guard releases the lock without waiting, and tries to write the release at once, also
//! as the last statement of `main`. A release that a master never reads leaves the key until its
//! TTL ends; use [`Guard::release`] to be sure.
//!
//! In code that is not async, everything that can be awaited has a `wait`. Inside async code `wait`
//! panics, as tokio's own `block_on` does, because the thread would wait for itself: use `.await`,
//! or wait in `tokio::task::spawn_blocking`.
//!
//! The driver is a task of the runtime; see [`open`] and [`open_with_driver`].
//!
//! [`Locker::report`] gives numbers for metrics. With the feature `tracing` acquisitions are spans,
//! and losses and changes of masters are events; [`quorlock_core::guide::observability`] names
//! them. [`quorlock_core::guide`] has more pages: which settings to choose, waiting, fencing tokens
//! and the restart guard, masters, migrating.
//!
//! Types that a program rarely names, such as the parts of errors and of reports, are in
//! [`quorlock_core`], which is re-exported under its own name: no other crate is needed.

// Says in the documentation which feature or system an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod runtime;
#[cfg(test)]
mod tests;
mod through;

use std::sync::Arc;

pub use quorlock_core;
pub use quorlock_core::front::{
    Driver, Guard, HandOverError, Locker, OpenError, Owner, Permit, Permits, ReadGuard, ReleaseError,
    Released, Report, Request, RunError, Semaphore, Watch, WriteGuard,
};
pub use quorlock_core::{
    AcquireError, Address, BootstrapError, Config, ConfigBuilder, ConfigError, ExtendError, FencingToken,
    Group, LossCause, MasterState, Resumption, Target, Token,
};
#[cfg(feature = "tls")]
pub use quorlock_tls::{self, Tls};

use crate::runtime::{OutsideOfAsync, Runtime};
pub use crate::through::{Through, through};

/// Opens a locker whose driver runs as a task of the present runtime.
///
/// A current-thread runtime runs it only while a thread is in the runtime's `block_on`; meanwhile
/// no request ends, not even at its timeout.
///
/// # Errors
/// [`OpenError::NoRuntime`] outside a tokio runtime, [`OpenError::IncompleteRuntime`] if the
/// runtime was built without IO or timers, and [`OpenError::Tls`] if TLS is requested and cannot be
/// used.
pub fn open(config: Config) -> Result<Locker, OpenError> {
    let runtime = runtime::present()?;
    runtime::check_sockets()?;
    spawned(&runtime, config, open_with_driver)
}

/// Returns a locker whose driver runs as a task of the runtime.
fn spawned(
    runtime: &tokio::runtime::Handle,
    config: Config,
    open_with_driver: impl FnOnce(Config) -> (Locker, Driver),
) -> Result<Locker, OpenError> {
    let config = secured(config);
    OpenError::prepare_security(&config)?;
    let (locker, driver) = open_with_driver(config);
    runtime.spawn(driver);
    Ok(locker)
}

/// Returns a locker and its driver, which must be polled, on any task or runtime.
///
/// If the driver is on the same single-threaded executor as the code that locks, answers stay on
/// one thread. While nobody polls the driver, no request ends, not even at its timeout. So `wait`
/// needs a driver that another thread polls.
pub fn open_with_driver(config: Config) -> (Locker, Driver) {
    let system = quorlock_host::System::waiting_by(OutsideOfAsync);
    Driver::open(secured(config), Arc::new(system), Runtime)
}

/// Adds TLS for the masters whose URLs ask for it. Without the feature `tls` they have no vote, and
/// say why.
fn secured(config: Config) -> Config {
    #[cfg(feature = "tls")]
    let config = quorlock_tls::secured(config);
    config
}
