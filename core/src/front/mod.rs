//! What users hold and what transports drive: locker, owner, request, guard, and the futures
//! between them.
//!
//! Everything here depends on [`std::task::Waker`] alone, so the same code serves every runtime. A
//! transport is an I/O loop around a [`Port`] and a [`Host`]. For async runtimes this module has
//! the loop, too: [`Driver`], over the sockets and timers of a [`Runtime`] or over the caller's own
//! [`Stream`]s.
//!
//! Rules of this room: it decides nothing about locks. A command changes the *engine*, which is the
//! machine behind its mutex. The same thread then carries out the outputs through the *outbox*,
//! unless another thread is already doing so. Demands that only the driver can meet, such as
//! opening a connection, go into the driver's *mailbox*. The mutexes are locked in this order: an
//! owner's table or the outbox's queue, then the engine, then a slot or the mailbox. The only
//! system calls under the engine's mutex read the clock and random bytes. Wakers are called and
//! dropped while no mutex of the front is held.

mod bootstrap;
mod dial;
mod driver;
#[cfg(test)]
mod errors_tests;
mod extending;
mod figures;
mod force_releasing;
mod growth;
mod guard;
mod handles;
mod host;
mod inspecting;
mod joining;
mod joint;
mod locker;
mod login;
#[cfg(all(test, loom))]
mod loom_tests;
mod mailbox;
#[cfg(feature = "tracing")]
mod observe;
#[cfg(not(feature = "tracing"))]
#[path = "unobserved.rs"]
mod observe;
mod opening;
mod outbox;
mod owner;
mod port;
mod release;
mod report;
mod request;
mod run;
mod securing;
mod semaphore;
mod shared;
mod sharing;
mod slot;
mod stream;
mod sync;

pub use bootstrap::Bootstrap;
pub use dial::{Addresses, Dial};
pub use driver::Driver;
pub use extending::Extending;
pub use force_releasing::ForceReleasing;
pub use guard::{Guard, Lost, Watch};
pub use handles::{HandOverError, Ties};
pub use host::{Host, MAX_PASSWORD_BYTES, Runtime, Socket, Timer};
pub use inspecting::Inspecting;
pub use locker::Locker;
pub use mailbox::Demand;
pub use opening::OpenError;
pub use owner::Owner;
pub use port::Port;
pub use release::{Release, ReleaseError, Released};
pub use report::{Acquisitions, Extensions, Latency, Losses, MasterReport, Refusals, Releases, Report};
pub use request::{Acquiring, Request};
pub use run::RunError;
pub use semaphore::{Permit, Permits, Semaphore};
pub use sharing::{Granted, ReadGuard, WriteGuard};
pub use stream::Stream;
