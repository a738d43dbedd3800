//! The command `quorlock run`, as a process, on real masters.

// Helpers panic where a test has failed.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used)]

#[path = "command/ends.rs"]
mod ends;
#[path = "command/holds.rs"]
mod holds;
#[path = "command/loses.rs"]
mod loses;
#[path = "command/process.rs"]
mod process;
