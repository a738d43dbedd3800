//! Masters that fail over: what clients rely on there, and what they say that they held.

mod account;
mod trust;

pub use account::{Account, Holding};
pub use trust::Trust;
