//! TLS with real servers: failures and their messages, certificates that change, and connections
//! that end.
//!
//! The scenarios show that locks work over TLS: they use TLS if `QUORLOCK_TEST_TLS` is 1.

#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "tls/certificates.rs"]
mod certificates;
#[path = "tls/connections.rs"]
mod connections;
#[path = "tls/faults.rs"]
mod faults;
