//! The Redlock algorithm as one pure state machine.
//!
//! A lock over N independent Redis or Valkey masters, step by step:
//!
//! 1. A caller requests a [`Resource`]. If other callers of this machine are waiting for it, the
//!    request joins their queue. Then the machine draws a new [`Token`] and sends `SET resource
//!    token NX PX ttl` to all masters at once.
//! 2. As soon as a [`Quorum`] has granted, the lock is held. As soon as a quorum is out of reach,
//!    the attempt is lost. The machine does not wait for masters that the decision does not need.
//! 3. A held lock is valid for its TTL, less the time that has passed since just before its first
//!    request was sent, less an allowance for clock drift. Validity is checked when the last needed
//!    answer arrives, when the caller takes the lock, and each time the caller asks for it.
//! 4. A lost attempt is released on every master that it may have reached: the release follows the
//!    request on the same connection. On masters that refused, the client also reads which token
//!    holds the key, and for how long. The next attempt has another token. It starts when enough
//!    masters have reported a change of the key, when the key must have expired, or, without
//!    notifications, after a random pause. A further attempt asks one master before the others.
//! 5. An extension needs a quorum of all N masters, and counts only those that hold this token. It
//!    creates no key and never shortens a key's life. If too few masters confirm it, the lock's
//!    validity is unchanged. If too many say "not yours", the lock is lost, and its holder learns
//!    it at once.
//! 6. A release compares the token and deletes the key on all masters, and reports whether the lock
//!    was still ours. A deferred release (`release_after`) leaves the key in place until the
//!    minimum hold time is over.
//!
//! There is no socket, no clock, no source of randomness, no thread and no async runtime in this
//! crate: the driver supplies all of that. The same inputs give the same outputs, byte for byte.
//! The protocol follows [Distributed Locks with
//! Redis](https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/).
//!
//! # The run loop
//!
//! **Change one thing, then drain the outputs until the machine says when it wants to be woken.**
//! That is for your own driver; to take locks, use [`quorlock-tokio`], [`quorlock-smol`] or
//! [`quorlock-blocking`]. Their [`Locker::lock`](front::Locker::lock) waits for 10 s at most unless
//! a timeout is set. A request to the machine itself ([`Acquire`]) has no timeout by default.
//!
//! ```
//! use quorlock_core::{Config, Entropy, EntropyFailed, Instant, Machine, Output};
//!
//! # struct Zeros;
//! # impl Entropy for Zeros {
//! #     fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> { bytes.fill(0); Ok(()) }
//! # }
//! # let entropy = Zeros;
//! let config = Config::new(["redis://a", "redis://b", "redis://c"])?;
//! let mut machine = Machine::new(config, entropy, Instant::ORIGIN);
//! let wake = loop {
//!     match machine.poll_output() {
//!         Output::Connect { master, generation, address } => { /* open it, then `connected` or `closed` */ }
//!         Output::Write { master, generation, bytes } => { /* send them on that connection */ }
//!         Output::Close { master, generation } => { /* close it */ }
//!         Output::Event(event) => { /* tell the caller */ }
//!         Output::Wake(wake) => break wake,
//!     }
//! };
//! // Sleep until `wake`, or until bytes come in: `received`, then `time_passed`, and drain again.
//! # assert!(wake.is_some());
//! # Ok::<(), quorlock_core::ConfigError>(())
//! ```
//!
//! Locker, request and guard are shared by all drivers. On an async runtime, implement
//! [`front::Runtime`] for [`front::Driver`]. Your own event loop serves a [`front::Port`]:
//! [`guide::driving`] has the contract step by step, and a complete loop on the standard library's
//! sockets.
//!
//! # The rooms
//!
//! The lowest room comes first. A room uses itself and lower ones, never a higher one;
//! `tests/layers.rs` reads the table and every import.
//!
//! | room | what it is | what it must not know |
//! |---|---|---|
//! | `time` | instants and spans | everything else |
//! | `jitter` | a repeatable sequence that spreads pauses | everything else |
//! | `endpoint` | URLs of masters | the addresses of names |
//! | `wire` | turns commands into bytes, and bytes into replies, with limits on what a server may send; the Lua scripts | connections, locks |
//! | `protocol` | the vocabulary: resource, token, TTL, votes, configuration, requests, answers, events, errors | state over time |
//! | `connection` | one master: handshake, pipeline, timeouts, reconnects | locks |
//! | `lock` | one lock's life | connections, other locks |
//! | `waiting` | which lock of a resource asks the masters, when, and which master it asks first | connections, held locks |
//! | `bootstrap` | the first use of masters under the restart guard | connections, the state of a lock |
//! | `inspection` | what masters say of a lock, and deleting its keys without holding it | connections, the state of a lock |
//! | `machine` | many locks over N connections: routing and deadlines | how a lock or a connection decides |
//! | `front` | locker, request, guard and their futures, which depend on wakers alone; the async driver over three small traits | concrete sockets, concrete runtimes |
//! | `internals` | what the simulator and the exhaustive search need beyond the public surface | |
//! | `guide` | pages for users | |
//!
//! [`quorlock-tokio`]: https://docs.rs/quorlock-tokio
//! [`quorlock-smol`]: https://docs.rs/quorlock-smol
//! [`quorlock-blocking`]: https://docs.rs/quorlock-blocking

// Says in the documentation which feature or system an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
// The items that `internals` re-exports are `pub` in private modules. Without that feature nothing
// outside can reach them, and this lint would report them.
#![cfg_attr(not(feature = "internals"), allow(unreachable_pub))]

mod bootstrap;
mod connection;
mod endpoint;
pub mod front;
// The examples on its pages use the transports, which this crate cannot depend on. The
// workspace's tests compile them instead.
#[cfg(not(doctest))]
pub mod guide;
mod inspection;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
mod jitter;
mod lock;
mod machine;
mod protocol;
mod time;
mod waiting;
mod wire;

pub use connection::Warning;
pub use endpoint::{Address, Discovery, Endpoint, EndpointError, Failover, Login, TlsOptions};
pub use machine::{Machine, MasterState, Output, Wake, WakeReason};
pub use protocol::{
    Acquire, AcquireError, Ballot, BootstrapError, Cause, Channel, ChannelFacts, ChannelState, ClusterFault,
    Config, ConfigBuilder, ConfigError, Credentials, Decision, Deletion, Entropy, EntropyFailed, Event,
    EvictionPolicy, ExtendError, ExtensionId, FencingToken, Fleet, ForceReleaseError, ForceReleased, Group,
    Holder, Holding, InspectError, Inspection, IoFault, KeyState, LockId, LockState, LossCause, MasterAnswer,
    MasterId, Missing, Mode, PermitsAnswer, QueuePlace, Quorum, ReleaseOutcome, Resource, Resumption,
    Security, SemaphoreInspection, SentinelFault, ServerFacts, Sharing, Standing, Target, Targets, TlsFault,
    Token, TooManyLocks, Ttl, Unavailable, Vote,
};
pub use time::Instant;
pub use wire::{Code, RELEASE_SCRIPT, ServerError, WireFault};
