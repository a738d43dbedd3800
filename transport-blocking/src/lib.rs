//! Distributed locks on N independent Redis or Valkey masters (Redlock) for synchronous code.
//!
//! ```
//! use quorlock_blocking::Config;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let masters = ["redis://a", "redis://b", "redis://c"];
//!     # let embedded = quorlock_embedded::Masters::start(3)?;
//!     # let masters = embedded.urls();
//!     let locker = quorlock_blocking::open(Config::new(masters)?)?;
//!     // Waits for at most 10 s; `.timeout(None)` waits for as long as it takes.
//!     let guard = locker.lock("invoice:42").wait()?;
//!     guard.release().wait()?;
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
//! A thread that waits serves the sockets itself; see [`open`]. The dependencies contain no async
//! runtime, but everything that has a `wait` is a future too, for programs with their own executor.
//!
//! [`quorlock-embedded`](https://docs.rs/quorlock-embedded) has masters inside your process, for
//! tests and examples.
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

mod calls;
mod connect;
mod lead;
#[cfg(unix)]
mod own;
mod reactor;
mod socket;
mod sync;
#[cfg(unix)]
mod through;

use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::thread;

pub use quorlock_core;
use quorlock_core::front::Port;
pub use quorlock_core::front::{
    Guard, HandOverError, Locker, OpenError, Owner, Permit, Permits, ReadGuard, ReleaseError, Released,
    Report, Request, RunError, Semaphore, Watch, WriteGuard,
};
pub use quorlock_core::{
    AcquireError, Address, BootstrapError, Config, ConfigBuilder, ConfigError, ExtendError, FencingToken,
    Group, LossCause, MasterState, Resumption, Target, Token,
};
#[cfg(feature = "tls")]
pub use quorlock_tls::{self, Tls};

use crate::calls::Connector;
use crate::lead::Lead;
use crate::reactor::Reactor;
#[cfg(unix)]
pub use crate::through::{Through, through};

/// Opens a locker. A thread that waits for it serves the sockets itself; one background thread
/// serves them while no caller waits.
///
/// # Errors
/// [`OpenError::System`] if the system has no poll or no thread left, and [`OpenError::Tls`] if TLS
/// is requested and cannot be used.
pub fn open(config: Config) -> Result<Locker, OpenError> {
    open_by(config, None)
}

/// Opens a locker, over connections of a connector if there is one.
fn open_by(config: Config, connector: Option<&Connector>) -> Result<Locker, OpenError> {
    let config = secured(config);
    OpenError::prepare_security(&config)?;
    let leading = Arc::new(Leading::default());
    let poll = mio::Poll::new()?;
    let interrupt = mio::Waker::new(poll.registry(), reactor::INTERRUPT)?;
    let system = quorlock_host::System::waiting_by(Arc::clone(&leading));
    let (locker, port) = Port::new(config, Arc::new(system));
    let reactor = Reactor::new(port, poll, locker.config(), connector, Waker::from(Arc::clone(&leading)));
    // An interrupt fails only if the poll is gone, and then no thread sleeps in it.
    let lead = Lead::new(reactor, move || drop(interrupt.wake()));
    // It is set once, here.
    let _ = leading.0.set(Arc::downgrade(&lead));
    thread::Builder::new().name("quorlock".into()).spawn(move || lead.run_in_background())?;
    Ok(locker)
}

/// The event loop, for the threads that wait and for the front, which wakes it. The loop owns the
/// other end of the locker, so this reference to it is weak.
#[derive(Default)]
struct Leading(OnceLock<Weak<Lead>>);

impl Leading {
    fn get(&self) -> Option<Arc<Lead>> {
        self.0.get().and_then(Weak::upgrade)
    }
}

impl quorlock_host::Wait for Leading {
    /// The waiting thread serves the sockets itself, unless another thread does.
    fn block_on(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        match self.get() {
            Some(lead) => lead.wait(poll),
            None => quorlock_host::park(poll),
        }
    }
}

impl std::task::Wake for Leading {
    /// The front has something for the loop to do.
    fn wake(self: Arc<Self>) {
        if let Some(lead) = self.get() {
            lead.need_attention();
        }
    }
}

/// Adds TLS for the masters whose URLs ask for it. Without the feature `tls` they have no vote, and
/// say why.
fn secured(config: Config) -> Config {
    #[cfg(feature = "tls")]
    let config = quorlock_tls::secured(config);
    config
}
