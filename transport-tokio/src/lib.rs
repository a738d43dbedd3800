//! Locks for tokio.

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
