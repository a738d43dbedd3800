//! Locks for smol.

mod driver;
mod socket;
mod system;

use std::sync::Arc;

pub use driver::Driver;
pub use quorlock_core::front::*;
pub use quorlock_core::*;

/// Opens a locker whose driver runs on smol's global executor.
pub fn open(config: Config) -> Locker {
    let (locker, driver) = open_with_driver(config);
    smol::spawn(driver).detach();
    locker
}

/// A locker, and the driver that must be polled for it, on whatever executor suits: sockets and timers belong to async-io, which
/// serves them all.
///
/// With the driver on the same executor as the code that locks, no answer has to change threads.
pub fn open_with_driver(config: Config) -> (Locker, Driver) {
    let (locker, port) = Port::new(config, Arc::new(system::System::new()));
    let driver = Driver::new(port, locker.config());
    (locker, driver)
}
