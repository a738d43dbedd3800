//! Tests that mostly wait for servers and for the end of keys. They are one program, so that they
//! wait at the same time.

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, unreachable_pub)]

mod chaos;
mod failover;
mod replacing;
#[path = "../../shared/votes/servers.rs"]
mod servers;
#[path = "../../shared/votes/mod.rs"]
mod votes;
mod voting;
