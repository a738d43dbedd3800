//! Tests of the harness: servers, proxies and fake masters behave as documented.

// Helpers of tests may panic, like the tests themselves.
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
