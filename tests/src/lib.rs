//! Servers and faults for the tests of Quorlock.
//!
//! All of it runs on 127.0.0.1, in synchronous code on std, so that it looks the same to every
//! transport under test:
//!
//! * [`RedisServer`] is one master that can be stopped, continued, killed and restarted;
//!   [`masters`] starts several. [`Servers`] tells whether they are real servers or embedded
//!   masters.
//! * [`FaultProxy`] is in front of a server, and delays, splits, coalesces, stalls or drops its
//!   bytes, or cuts its connections.
//! * [`Tunnel`] carries connections to servers whose names only the tunnel knows.
//! * [`FakeMaster`] sends any bytes that a test wants a client to survive.
//! * [`RawClient`] inspects a server from outside, without the code under test.
//! * [`Transport`] opens lockers on each of the transports under test.
//! * [`chaos`] makes client processes contend while faults of all kinds happen, and checks their
//!   records.
//! * [`groups`] are servers under sentinels, and clusters, that fail over; [`failover`] makes
//!   client processes contend on them meanwhile.
//! * [`replacing`] replaces dead masters while clients run, in the right order and in wrong ones.
//! * [`one_try`] runs the command while another client holds the lock, also on a machine that is
//!   kept busy.
//! * `supervision`, on Linux, makes a table of how the command ends what it runs.
//! * [`secrets`] checks whether any output shows a password, a token or a private key.
//! * [`eventually()`] waits for a condition, [`Summary`] describes durations that were measured.
//!
//! Everything here ends with its owner: processes, threads, ports and directories.

// A failure of the harness is a failed test, and is reported by a panic. This line documents that
// for all functions.
#![allow(clippy::panic, clippy::missing_panics_doc)]

pub mod chaos;
mod client;
mod clusters;
mod connectors;
mod embedded;
mod eventually;
pub mod failover;
mod fake_master;
mod fleet;
pub mod groups;
mod measure;
pub mod one_try;
mod options;
mod ports;
mod process;
mod programs;
mod proxy;
mod random;
pub mod replacing;
pub mod results;
pub mod secrets;
mod server;
mod spawn;
#[cfg(target_os = "linux")]
pub mod supervision;
mod tls;
mod transport;
mod tunnel;

pub use client::{RawClient, Value};
pub use clusters::is_chosen as are_nodes_of_clusters;
pub use eventually::{eventually, eventually_equals};
pub use fake_master::{FakeMaster, Peer, behaviour};
pub use fleet::{Fleet, master, masters};
pub use measure::Summary;
pub use options::ServerOptions;
pub use programs::{copy_program, write_program};
pub use proxy::{Cut, Direction, FaultProxy};
pub use random::Random;
/// The library that creates certificates for tests.
pub use rcgen;
pub use server::{Calls, RedisServer};
pub use spawn::Servers;
pub use tls::{Certificates, NAMES, is_chosen as servers_speak_tls, url_of};
pub use transport::{Pause, Transport};
pub use tunnel::Tunnel;

/// The examples of the READMEs and of the pages for users, compiled by the test run. A test of the
/// command fails if one is missing here.
#[cfg(all(doctest, feature = "tokio"))]
mod documented {
    #[doc = include_str!("../../README.md")]
    struct Readme;

    #[doc = include_str!("../../core/docs/beyond.md")]
    struct Beyond;

    #[doc = include_str!("../../core/docs/choosing.md")]
    struct Choosing;

    #[doc = include_str!("../../core/docs/driving.md")]
    struct Driving;

    #[doc = include_str!("../../core/docs/kinds.md")]
    struct Kinds;

    #[doc = include_str!("../../core/docs/observability.md")]
    struct Observability;

    #[doc = include_str!("../../core/docs/start.md")]
    struct Start;

    #[doc = include_str!("../../core/docs/testing.md")]
    struct Testing;

    #[doc = include_str!("../../core/docs/tls.md")]
    struct Tls;

    #[doc = include_str!("../../core/docs/waiting.md")]
    struct Waiting;

    #[doc = include_str!("../../core/sim/README.md")]
    struct Sim;

    #[doc = include_str!("../../core/tls/README.md")]
    struct TlsCrate;

    #[doc = include_str!("../../transport-blocking/README.md")]
    struct Blocking;

    #[doc = include_str!("../../transport-blocking/embedded/README.md")]
    struct Embedded;

    #[doc = include_str!("../../transport-smol/README.md")]
    struct Smol;

    #[doc = include_str!("../../transport-tokio/README.md")]
    struct Tokio;
}
