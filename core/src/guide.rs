//! Pages for users, which are also files in the folder `docs` of this crate and the chapters of a
//! book (`mdbook build core/docs`).
//!
//! | page | what it is about |
//! |---|---|
//! | [`start`] | a lock in five minutes, the examples, the crates |
//! | [`choosing`] | TTL, number of masters, timeouts, persistence, eviction, where to put masters |
//! | [`kinds`] | several resources, readers and writers, semaphores, nested locks |
//! | [`waiting`] | queues, notifications, fairness |
//! | [`beyond`] | fencing tokens, restart guard, healing, handing over |
//! | [`deployments`] | which servers can be masters, and what is promised on them |
//! | [`masters`] | URLs, servers, permissions |
//! | [`tls`] | encrypted connections: certificates, faults, costs |
//! | [`failover`] | masters with replicas: what is promised, and its price |
//! | [`command`] | the command `quorlock` in scripts |
//! | [`doctor`] | which promises hold on your masters |
//! | [`simulate`] | faults in simulated time, from the command line |
//! | [`testing`] | tests of your own code without a server |
//! | [`faults`] | what the caller sees of each fault, and how soon |
//! | [`observability`] | metrics, tracing spans and events |
//! | [`migrating`] | moving from other clients |
//! | [`comparison`] | Quorlock beside other clients |
//! | [`proofs`] | how Quorlock is shown to keep its promises |
//! | [`costs`] | what a lock costs |
//! | [`driving`] | how to write a transport |
//!
//! The examples are for a program that depends on one of the transports.

// In the pages' files, links lead to the files of other pages, and pictures to files beside them.
// The definitions here replace those, because rustdoc uses the first definition of a link: links
// lead to modules, and pictures to the repository.

/// [failover]: failover
#[doc = include_str!("../docs/beyond.md")]
pub mod beyond {}

/// [doctor]: doctor#to-replace-a-dead-master
/// [failover]: failover
#[doc = include_str!("../docs/choosing.md")]
pub mod choosing {}

/// [doctor]: doctor
/// [kinds]: kinds
/// [order]: choosing#to-replace-a-dead-master
/// [replace]: doctor#to-replace-a-dead-master
/// [simulate]: simulate
/// [waiting]: waiting
#[doc = include_str!("../docs/command.md")]
pub mod command {}

/// [failover]: failover#redis-cluster
/// [migrating]: migrating
/// [proofs]: proofs
#[doc = include_str!("../docs/comparison.md")]
pub mod comparison {}

#[doc = include_str!("../docs/COSTS.md")]
pub mod costs {}

/// [choosing]: choosing
/// [connections]: choosing#connections-of-your-own
/// [doctor]: doctor
/// [failover]: failover
/// [masters]: masters
/// [passwords]: choosing#passwords-that-change
/// [prefix]: choosing#applications-that-share-masters
/// [tls]: tls
#[doc = include_str!("../docs/deployments.md")]
pub mod deployments {}

/// [backups]: masters#backups-under-the-restart-guard
/// [replace]: choosing#to-replace-a-dead-master
#[doc = include_str!("../docs/doctor.md")]
pub mod doctor {}

/// [`Port`]: crate::front::Port
/// [`Host`]: crate::front::Host
#[doc = include_str!("../docs/driving.md")]
pub mod driving {}

/// [masters]: masters#permissions
/// [replace]: choosing#to-replace-a-dead-master
#[doc = include_str!("../docs/failover.md")]
pub mod failover {}

/// [simulate]: simulate
#[doc = include_str!("../docs/faults.md")]
pub mod faults {}

/// [command]: command
/// [waiting]: waiting
#[doc = include_str!("../docs/kinds.md")]
pub mod kinds {}

/// [connections]: choosing#connections-of-your-own
/// [doctor]: doctor
/// [failover]: failover
/// [passwords]: choosing#passwords-that-change
/// [prefix]: choosing#applications-that-share-masters
/// [tls]: tls
#[doc = include_str!("../docs/masters.md")]
pub mod masters {}

/// [comparison]: comparison
/// [failover]: failover
/// [masters]: masters
#[doc = include_str!("../docs/migrating.md")]
pub mod migrating {}

/// [kinds]: kinds
#[doc = include_str!("../docs/observability.md")]
pub mod observability {}

/// [simulate]: simulate
#[doc = include_str!("../docs/proofs.md")]
pub mod proofs {}

/// [image]: https://raw.githubusercontent.com/quorlock/quorlock/main/core/docs/kleppmann-pause.svg
#[doc = include_str!("../docs/simulate.md")]
pub mod simulate {}

/// [beyond]: beyond
/// [choosing]: choosing
/// [deployments]: deployments
/// [doctor]: doctor
/// [faults]: faults
/// [masters]: masters#permissions
/// [image]: https://raw.githubusercontent.com/quorlock/quorlock/main/core/docs/demo.svg
#[doc = include_str!("../docs/start.md")]
pub mod start {}

/// [connections]: choosing#connections-of-your-own
/// [simulate]: simulate
#[doc = include_str!("../docs/testing.md")]
pub mod testing {}

#[doc = include_str!("../docs/tls.md")]
pub mod tls {}

/// [masters]: masters
#[doc = include_str!("../docs/waiting.md")]
pub mod waiting {}
