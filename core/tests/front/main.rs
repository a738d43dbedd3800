//! The front under a hand-written driver: sockets that take little or nothing, threads that
//! wait, and drivers that end.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, unreachable_pub)]

mod by_token;
mod connectors;
mod discovering;
mod downgrading;
mod driver;
mod dropping;
mod ending;
mod forking;
mod gathering;
mod handles;
mod inspecting;
mod joining;
mod lateness;
mod logins;
mod on_a_runtime;
mod owners;
mod owners_of_several;
mod panicking;
mod pauses;
mod port;
mod reporting;
mod secured;
mod task;
mod toy_channel;
mod turns;
mod waiting;
mod writing;
