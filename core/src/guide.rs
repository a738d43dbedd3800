//! Pages for users, which are also files in the folder `docs` of this crate.
//!
//! | page | what it is about |
//! |---|---|
//! | [`choosing`] | TTL, number of masters, timeouts, persistence, eviction, where to put masters |
//! | [`kinds`] | nested locks |
//! | [`waiting`] | queues, notifications, fairness |
//! | [`beyond`] | fencing tokens, restart guard, healing, handing over |
//! | [`failover`] | masters with replicas: what is promised, and its price |
//! | [`masters`] | URLs, servers, permissions |
//! | [`tls`] | encrypted connections: certificates, faults, costs |
//! | [`observability`] | numbers, spans and events |
//! | [`migrating`] | moving from other clients |
//! | [`costs`] | what a lock costs |
//! | [`command`] | the command `quorlock` in scripts |
//! | [`doctor`] | which promises hold on your masters |
//! | [`simulate`] | faults in simulated time, from the command line |
//! | [`driving`] | how to write a transport |
//!
//! The examples are for a program that depends on one of the transports.

// Each page's links to other pages lead to their files. Here the first definition of a link is the
// one that counts, and it leads to the module.

#[doc = include_str!("../docs/beyond.md")]
pub mod beyond {}

#[doc = include_str!("../docs/choosing.md")]
pub mod choosing {}

/// [doctor]: doctor
/// [kinds]: kinds
/// [simulate]: simulate
#[doc = include_str!("../docs/command.md")]
pub mod command {}

#[doc = include_str!("../docs/COSTS.md")]
pub mod costs {}

#[doc = include_str!("../docs/doctor.md")]
pub mod doctor {}

/// [`Port`]: crate::front::Port
/// [`Host`]: crate::front::Host
#[doc = include_str!("../docs/driving.md")]
pub mod driving {}

/// [masters]: masters#permissions
#[doc = include_str!("../docs/failover.md")]
pub mod failover {}

/// [command]: command
#[doc = include_str!("../docs/kinds.md")]
pub mod kinds {}

/// [doctor]: doctor
/// [failover]: failover
/// [passwords]: choosing#passwords-that-change
/// [prefix]: choosing#applications-that-share-masters
/// [tls]: tls
#[doc = include_str!("../docs/masters.md")]
pub mod masters {}

/// [masters]: masters
#[doc = include_str!("../docs/migrating.md")]
pub mod migrating {}

#[doc = include_str!("../docs/observability.md")]
pub mod observability {}

#[doc = include_str!("../docs/simulate.md")]
pub mod simulate {}

#[doc = include_str!("../docs/tls.md")]
pub mod tls {}

#[doc = include_str!("../docs/waiting.md")]
pub mod waiting {}
