//! What the transports of Quorlock need from the operating system. `quorlock-core` makes no system
//! calls, so it is here: a clock that runs while the machine sleeps, random bytes, whether this
//! process is a forked child, a way for a thread to wait, the second handle of a socket and its
//! keep-alive, and files with passwords or certificates.
//!
//! A transport for another runtime hands [`System`] to the driver of `quorlock-core`:
//!
//! ```
//! use std::sync::Arc;
//!
//! use quorlock_core::Config;
//! use quorlock_core::front::Port;
//! use quorlock_host::System;
//!
//! # fn main() -> Result<(), quorlock_core::ConfigError> {
//! let config = Config::new(["redis://a", "redis://b", "redis://c"])?;
//! let (locker, port) = Port::new(config, Arc::new(System::new()));
//! # drop((locker, port));
//! # Ok(())
//! # }
//! ```
//!
//! The dependencies of this crate contain no runtime.

mod files;
mod keep_alive;
mod nonblocking;
mod sink;
mod system;
mod wait;

pub use files::read_file;
pub use keep_alive::{TCP_KEEP_ALIVE, keep_alive};
pub use nonblocking::set_nonblocking;
pub use sink::{Direct, Sink};
pub use system::System;
pub use wait::{Park, Wait, park};
