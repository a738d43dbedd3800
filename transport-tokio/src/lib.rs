//! Distributed locks on N independent Redis or Valkey masters (Redlock) for tokio.
//!
//! ```
//! use quorlock_tokio::Config;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     # let masters = quorlock_embedded::Masters::start(3)?;
//!     # let urls = masters.urls();
//!     // With `urls` such as ["redis://a", "redis://b", "redis://c"]:
//!     let locker = quorlock_tokio::open(Config::new(urls)?)?;
//!     let guard = locker.lock("invoice:42").await?;
//!     guard.release().await?;
//!     Ok(())
//! }
//! ```
//!
//! A [`Locker`] gives out [`Guard`]s. A guard is valid for its TTL, less the time that it took to get it, less the drift:
//! [`Guard::is_valid`] and [`Guard::check`] look at the clock, [`Guard::lost`] tells. Dropping it releases the lock without waiting, and
//! tries to write that at once, also as the last statement of `main`; what a master does not get to read any more expires with the TTL,
//! and [`Guard::release`] is the way to be sure.
//!
//! In code that is not async, everything that can be awaited has a `wait`. Inside of async code `wait` panics, as tokio's own `block_on`
//! does, because the thread would wait for itself: use `.await`, or wait in `tokio::task::spawn_blocking`.
//!
//! The driver is a task of the runtime; see [`open`] and [`open_with_driver`].
//!
//! [`Locker::report`] gives numbers for metrics; with the feature `tracing` acquisitions are spans, and losses and masters that come and go are
//! events (`core/docs/observability.md` names them).
//!
//! Everything else is re-exported from `quorlock-core`, so that no other crate is needed.

mod driver;
mod socket;
mod system;

use std::error::Error;
use std::fmt;
use std::sync::Arc;

pub use driver::Driver;
pub use quorlock_core::front::*;
pub use quorlock_core::*;

/// Opens a locker whose driver runs as a task of the present runtime.
///
/// # Errors
/// [`NoRuntime`] outside a tokio runtime.
pub fn open(config: Config) -> Result<Locker, NoRuntime> {
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| NoRuntime)?;
    let (locker, driver) = open_with_driver(config);
    runtime.spawn(driver);
    Ok(locker)
}

/// A locker, and the driver that must be polled for it, on whatever task or runtime suits.
///
/// With the driver on the same single-threaded executor as the code that locks, no answer has to change threads.
pub fn open_with_driver(config: Config) -> (Locker, Driver) {
    let (locker, port) = Port::new(config, Arc::new(system::System::new()));
    let driver = Driver::new(port, locker.config());
    (locker, driver)
}

/// There is no tokio runtime to spawn the driver on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRuntime;

impl fmt::Display for NoRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no tokio runtime here; call `open` inside one, or use `open_with_driver`")
    }
}

impl Error for NoRuntime {}
