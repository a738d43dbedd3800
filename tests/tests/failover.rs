//! Masters that fail over, with real servers: no lock has two holders where votes count once all
//! replicas have confirmed them, and two are seen in the same stories where that is taken away.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

#[path = "failover/clusters.rs"]
mod clusters;
#[path = "failover/scene.rs"]
mod scene;
#[path = "failover/sentinels.rs"]
mod sentinels;
#[path = "failover/stories.rs"]
mod stories;
