//! TLS with real servers: what goes wrong and how it is told, certificates that change, and
//! connections that end.
//!
//! That locks work over TLS is what the scenarios show, which run over it where `QUORLOCK_TEST_TLS`
//! is 1.

#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "tls/certificates.rs"]
mod certificates;
#[path = "tls/connections.rs"]
mod connections;
#[path = "tls/faults.rs"]
mod faults;
