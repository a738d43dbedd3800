//! Pages for users, which are also files in the folder `docs` of this crate and the chapters of a
//! book (`mdbook build core/docs`).
//!
//! | page | what it is about |
//! |---|---|
//! | [`start`] | a first lock, the examples, the crates |
//! | [`choosing`] | TTL, number of masters, timeouts, persistence, eviction, where to put masters |
//! | [`kinds`] | several resources, readers and writers, semaphores, nested locks |
//! | [`waiting`] | queues, notifications, fairness |
//! | [`beyond`] | fencing tokens, restart guard, healing, handing over |
//! | [`fencing`] | the statement with which a database refuses late writes |
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

// In the pages' files, links lead to the files of other pages and of the repository, and pictures
// to files beside them. The definitions here replace those, because rustdoc uses the first
// definition of a link: links lead to modules or to the repository, whose address is in the
// manifest.

/// A link to a file of the repository.
macro_rules! repository_file {
    ($label:literal, $path:literal) => {
        concat!("[", $label, "]: ", env!("CARGO_PKG_REPOSITORY"), "/blob/main/", $path)
    };
}

/// A link to a picture beside the pages.
macro_rules! picture {
    ($label:literal, $file:literal) => {
        concat!("[", $label, "]: ", env!("CARGO_PKG_REPOSITORY"), "/raw/main/core/docs/", $file)
    };
}

/// [failover]: failover
/// [fencing]: fencing
#[doc = repository_file!("results", "tests/results/README.md")]
#[doc = include_str!("../docs/beyond.md")]
pub mod beyond {}

/// [doctor]: doctor#to-replace-a-dead-master
/// [failover]: failover
#[doc = repository_file!("results", "tests/results/README.md")]
#[doc = include_str!("../docs/choosing.md")]
pub mod choosing {}

/// [doctor]: doctor
/// [kinds]: kinds
/// [order]: choosing#to-replace-a-dead-master
/// [replace]: doctor#to-replace-a-dead-master
/// [simulate]: simulate
/// [waiting]: waiting
#[doc = repository_file!("compose", "transport-blocking/command/deploy/compose.yaml")]
#[doc = repository_file!("cronjob", "transport-blocking/command/deploy/nightly-report.cronjob.yaml")]
#[doc = repository_file!("image", "transport-blocking/command/deploy/report.Dockerfile")]
#[doc = repository_file!("platforms", "README.md#platforms")]
#[doc = repository_file!("service", "transport-blocking/command/deploy/nightly-report.service")]
#[doc = repository_file!("timer", "transport-blocking/command/deploy/nightly-report.timer")]
#[doc = include_str!("../docs/command.md")]
pub mod command {}

/// [failover]: failover#redis-cluster
/// [migrating]: migrating
/// [proofs]: proofs
#[doc = repository_file!("results", "tests/results/README.md")]
#[doc = include_str!("../docs/comparison.md")]
pub mod comparison {}

#[doc = repository_file!("results", "tests/results/README.md")]
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
#[doc = repository_file!("compose", "transport-blocking/command/deploy/compose.yaml")]
#[doc = include_str!("../docs/deployments.md")]
pub mod deployments {}

/// [backups]: masters#backups-under-the-restart-guard
/// [replace]: choosing#to-replace-a-dead-master
#[doc = include_str!("../docs/doctor.md")]
pub mod doctor {}

/// [deployments]: deployments
/// [tls]: tls
/// [machine]: crate#the-run-loop
/// [`Port`]: crate::front::Port
/// [`Host`]: crate::front::Host
#[doc = repository_file!("by_hand", "core/examples/by_hand.rs")]
#[doc = repository_file!("own", "transport-blocking/examples/custom_runtime.rs")]
#[doc = repository_file!("reactor", "transport-blocking/src/reactor.rs")]
#[doc = repository_file!("smol", "transport-smol/src/runtime.rs")]
#[doc = repository_file!("tests", "tests/README.md")]
#[doc = include_str!("../docs/driving.md")]
pub mod driving {}

/// [masters]: masters#permissions
/// [replace]: choosing#to-replace-a-dead-master
#[doc = repository_file!("proofs", "tests/PROOFS.md")]
#[doc = repository_file!("results", "tests/results/README.md")]
#[doc = include_str!("../docs/failover.md")]
pub mod failover {}

/// [simulate]: simulate
#[doc = repository_file!("results", "tests/results/README.md")]
#[doc = include_str!("../docs/faults.md")]
pub mod faults {}

/// [beyond]: beyond#fencing-tokens
/// [guard]: beyond#restart-guard
/// [kinds]: kinds#several-resources
/// [readers]: kinds#readers-and-writers
/// [semaphores]: kinds#semaphores
#[doc = repository_file!("postgres", "tests/fencing/examples/postgres.rs")]
#[doc = repository_file!("sqlite", "tests/fencing/examples/sqlite.rs")]
#[doc = include_str!("../docs/fencing.md")]
pub mod fencing {}

/// [command]: command
/// [fencing]: fencing
/// [waiting]: waiting
#[doc = include_str!("../docs/kinds.md")]
pub mod kinds {}

/// [connections]: choosing#connections-of-your-own
/// [doctor]: doctor
/// [failover]: failover
/// [passwords]: choosing#passwords-that-change
/// [prefix]: choosing#applications-that-share-masters
/// [tls]: tls
#[doc = repository_file!("results", "tests/results/README.md")]
#[doc = include_str!("../docs/masters.md")]
pub mod masters {}

/// [comparison]: comparison
/// [failover]: failover
/// [masters]: masters
#[doc = repository_file!("results", "tests/results/README.md")]
#[doc = include_str!("../docs/migrating.md")]
pub mod migrating {}

/// [kinds]: kinds
#[doc = repository_file!("metrics", "transport-blocking/examples/metrics.rs")]
#[doc = include_str!("../docs/observability.md")]
pub mod observability {}

/// [simulate]: simulate
#[doc = repository_file!("proofs", "tests/PROOFS.md")]
#[doc = repository_file!("results", "tests/results/README.md")]
#[doc = include_str!("../docs/proofs.md")]
pub mod proofs {}

#[doc = picture!("image", "kleppmann-pause.svg")]
#[doc = include_str!("../docs/simulate.md")]
pub mod simulate {}

/// [beyond]: beyond
/// [choosing]: choosing
/// [deployments]: deployments
/// [doctor]: doctor
/// [faults]: faults
/// [masters]: masters#permissions
#[doc = picture!("image", "demo.svg")]
#[doc = repository_file!("axum_handler", "transport-tokio/examples/axum_handler.rs")]
#[doc = repository_file!("blocking", "transport-blocking/examples/blocking.rs")]
#[doc = repository_file!("by_hand", "core/examples/by_hand.rs")]
#[doc = repository_file!("cache_refill", "transport-blocking/examples/cache_refill.rs")]
#[doc = repository_file!("cron", "transport-blocking/examples/cron.rs")]
#[doc = repository_file!("cron_sentinel", "transport-blocking/examples/cron_sentinel.rs")]
#[doc = repository_file!("custom_runtime", "transport-blocking/examples/custom_runtime.rs")]
#[doc = repository_file!("embedded", "transport-blocking/examples/embedded.rs")]
#[doc = repository_file!("fair_leader", "transport-tokio/examples/fair_leader.rs")]
#[doc = repository_file!("fenced_store", "transport-blocking/examples/fenced_store.rs")]
#[doc = repository_file!("job_queue", "transport-smol/examples/job_queue.rs")]
#[doc = repository_file!("leader", "transport-tokio/examples/leader.rs")]
#[doc = repository_file!("many_futures", "transport-blocking/examples/many_futures.rs")]
#[doc = repository_file!("metrics", "transport-blocking/examples/metrics.rs")]
#[doc = repository_file!("postgres", "tests/fencing/examples/postgres.rs")]
#[doc = repository_file!("rate_limiter", "transport-tokio/examples/rate_limiter.rs")]
#[doc = repository_file!("refreshed_token", "transport-tokio/examples/refreshed_token.rs")]
#[doc = repository_file!("smol", "transport-smol/examples/smol.rs")]
#[doc = repository_file!("sqlite", "tests/fencing/examples/sqlite.rs")]
#[doc = repository_file!("thread_pool", "transport-blocking/examples/thread_pool.rs")]
#[doc = repository_file!("tokio", "transport-tokio/examples/tokio.rs")]
#[doc = include_str!("../docs/start.md")]
pub mod start {}

/// [connections]: choosing#connections-of-your-own
/// [simulate]: simulate
#[doc = repository_file!("job_queue", "tests/outside/job_queue.rs")]
#[doc = include_str!("../docs/testing.md")]
pub mod testing {}

#[doc = repository_file!("results", "tests/results/README.md")]
#[doc = include_str!("../docs/tls.md")]
pub mod tls {}

/// [masters]: masters
#[doc = repository_file!("architecture", "ARCHITECTURE.md")]
#[doc = repository_file!("results", "tests/results/README.md")]
#[doc = include_str!("../docs/waiting.md")]
pub mod waiting {}
