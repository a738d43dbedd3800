//! The test world keeps its own promises: servers, proxies and fake masters do what their names
//! say.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used)]

#[path = "harness/embedded.rs"]
mod embedded;
#[path = "harness/fake_masters.rs"]
mod fake_masters;
#[path = "harness/groups.rs"]
mod groups;
#[path = "harness/proxies.rs"]
mod proxies;
#[path = "harness/servers.rs"]
mod servers;
