//! Distributed locks on N independent Redis or Valkey masters (Redlock) for synchronous code.
//!
//! ```
//! use quorlock_blocking::Config;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     # let masters = quorlock_embedded::Masters::start(3)?;
//!     # let urls = masters.urls();
//!     // With `urls` such as ["redis://a", "redis://b", "redis://c"]:
//!     let locker = quorlock_blocking::open(Config::new(urls)?)?;
//!     let guard = locker.lock("invoice:42").wait()?;
//!     guard.release().wait()?;
//!     Ok(())
//! }
//! ```
//!
//! A [`Locker`] gives out [`Guard`]s. A guard is valid for its TTL, less the time that it took to get it, less the drift:
//! [`Guard::is_valid`] and [`Guard::check`] look at the clock, [`Guard::lost`] tells. Dropping it releases the lock without waiting, and
//! tries to write that at once, also as the last statement of `main`; what a master does not get to read any more expires with the TTL,
//! and [`Guard::release`] is the way to be sure.
//!
//! A thread that waits serves the sockets itself; see [`open`]. There is no async runtime in the tree, but
//! everything that has a `wait` is a future too, for whoever has an executor of his own.
//!
//! [`quorlock-embedded`](https://docs.rs/quorlock-embedded) has masters inside your process, for
//! tests and examples.
//!
//! [`Locker::report`] gives numbers for metrics; with the feature `tracing` acquisitions are spans, and losses and masters that come and go are
//! events (`core/docs/observability.md` names them).
//!
//! Everything else is re-exported from `quorlock-core`, so that no other crate is needed.

mod connect;
mod lead;
mod reactor;
mod socket;
mod sync;
mod system;

use std::io;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;
use std::thread;

pub use quorlock_core::front::*;
pub use quorlock_core::*;

use crate::lead::Lead;
use crate::reactor::Reactor;
use crate::system::System;

/// Opens a locker. A thread that waits for it serves the sockets itself; one thread in the background serves what nobody waits for.
///
/// # Errors
/// Where the system gives no poll or no thread.
pub fn open(config: Config) -> io::Result<Locker> {
    let system = Arc::new(System::new());
    let poll = mio::Poll::new()?;
    let interrupt = mio::Waker::new(poll.registry(), reactor::INTERRUPT)?;
    let (locker, port) = Port::new(config, Arc::clone(&system) as Arc<dyn Host>);
    let attention = Arc::new(Attention(OnceLock::new()));
    let reactor = Reactor::new(port, poll, locker.config(), Waker::from(Arc::clone(&attention)));
    // An interrupt fails only where the poll is gone, and then no thread sleeps in it.
    let lead = Lead::new(reactor, move || drop(interrupt.wake()));
    system.led_by(Arc::downgrade(&lead));
    // It is set once, here.
    let _ = attention.0.set(Arc::downgrade(&lead));
    thread::Builder::new().name("quorlock".into()).spawn(move || lead.run_in_background())?;
    Ok(locker)
}

/// The waker that the front calls when the loop has something to do.
struct Attention(OnceLock<Weak<Lead>>);

impl std::task::Wake for Attention {
    fn wake(self: Arc<Self>) {
        if let Some(lead) = self.0.get().and_then(Weak::upgrade) {
            lead.need_attention();
        }
    }
}
