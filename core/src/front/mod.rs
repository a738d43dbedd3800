//! What users hold and what transports drive: locker, owner, request, guard, and the futures
//! between them.
//!
//! Everything here rests on [`std::task::Waker`] alone, so it exists once for every runtime. A
//! transport is an I/O loop around a [`Port`] and a [`Host`]; for async runtimes the loop is here,
//! too, as [`Driver`] over the sockets and timers of a [`Runtime`], or over [`Stream`]s of the
//! caller's own.
//!
//! Rules of this room: it decides nothing about locks. A command changes the *engine*, which is the
//! machine behind its mutex. The thread that gave it also carries out what came of it through the
//! *outbox*, unless another thread is at it already. What only the driver can do goes into its
//! *mailbox*. The order of the mutexes is an owner's table or the outbox's queue, then the engine,
//! then slot or mailbox; under the engine's mutex no system call is made but the one for random
//! bytes, and wakers are called and dropped under none.

mod bootstrap;
mod dial;
mod driver;
mod extending;
mod figures;
mod force_releasing;
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
