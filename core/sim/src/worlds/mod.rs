//! Whole worlds: clients, masters, a network and clocks, in simulated time, with an observer that
//! sees everything.

mod access;
mod channel;
mod client;
mod clock;
mod ending;
mod event;
mod failing;
mod fault;
mod following;
mod groups;
mod inject;
mod invent;
mod keeping;
mod kept;
mod ledger;
mod leftover;
mod link;
mod locked;
mod mix;
mod network;
mod observer;
mod outage;
mod permits;
mod plan;
mod process;
mod program;
mod pushes;
mod random;
mod reading;
mod securing;
mod sharding;
mod sleep;
mod slots;
mod state;
mod store;
#[cfg(feature = "proptest")]
pub mod strategies;
mod timeline;
mod violation;
mod waits;
mod when;
mod world;

pub use access::{Access, Kinds, RESOURCES};
pub use client::Client;
pub use fault::{ASSUMED_DRIFT_PPM, Fault, PushFate, Refusal};
pub use plan::{ClientPlan, Plan};
pub use program::Step;
pub use sleep::Sleep;
pub use store::{Outdated, Reading, Store};
pub use timeline::Timeline;
pub use violation::Violation;
pub use when::When;
pub use world::{Failure, Report, World};
