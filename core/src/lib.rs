//! The Redlock algorithm as one pure state machine.

mod time;

pub use time::Instant;
