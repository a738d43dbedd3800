//! Masters that fail over, with real servers: no lock has two holders if votes count only after all
//! replicas have confirmed them. Without the confirmations, the same stories show two holders.

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

#[path = "failover/clusters.rs"]
mod clusters;
#[path = "failover/scene.rs"]
mod scene;
#[path = "failover/sentinels.rs"]
mod sentinels;
#[path = "failover/stories.rs"]
mod stories;
