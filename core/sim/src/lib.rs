//! Simulated Redis masters, networks and clocks, to test code that takes Quorlock's locks without a
//! server.
//!
//! Quorlock itself is tested in these worlds, and you can test your own code in them:
//!
//! - [`World`] runs your tasks in simulated time, each on a [`Client`] with a [`Locker`]. Hours
//!   pass in milliseconds, and the same seed gives the same run.
//! - [`World::inject`] injects a [`Fault`]: masters hang and crash, connections are cut or
//!   forgotten, clients pause for longer than the TTL of their locks.
//! - An observer checks every guard, clock and key in true time. A [`Violation`] ends the run with
//!   a [`Failure`], which shows what happened as text, as a [Mermaid diagram](Timeline::to_mermaid)
//!   or as an [SVG picture](Failure::to_svg).
//! - A [`Store`] is data that clients change under their locks, with or without fencing tokens. A
//!   lost update is a violation as well.
//! - A [`Plan`] is a whole run as a value. [`Plan::random`] generates one with every fault that is
//!   within Redlock's assumptions, and [`Plan::shrink`] makes a failing plan small. In the worlds
//!   of [`Plan::random_mixed`] clients also lock several resources at once, share them as readers
//!   and as groups, downgrade, and meet plain locks of the same names. In those of
//!   [`Plan::random_secured`] they reach the masters over encrypted channels, and log in with
//!   passwords that change. In those of [`Plan::random_failovers`] each master has replicas that
//!   follow it asynchronously and are promoted, while the former primary may go on. In those of
//!   [`Plan::random_clusters`] each master is the tag of a cluster, whose slot also moves among
//!   such groups of servers. In those of [`Plan::random_rebuilds`] masters are restored from
//!   snapshots or rebuilt as copies of others, and locks have several handles and holders. In those
//!   of [`Plan::random_handovers`] locks are handed over while requests are under way, and
//!   [`Plan::random_replacement`] replaces a dead master, in the safe order or in another one.
//! - The observer also reports a request that waits although its lock is there for it.
//! - A [`Master`] is the model of one Redis master, which answers byte for byte as a server does. A
//!   test compares it with real servers on random commands.
//!
//! The state machine, the connections, the bytes and the public API are the shipped code. Sockets,
//! time, randomness and the masters are simulated.
//!
//! [`Locker`]: quorlock_core::front::Locker
//!
//! # A property test of your own code
//!
//! In this job queue with three workers, no job may be done twice, even with up to eight faults.
//! Without the call of [`check`](quorlock_core::front::Guard::check) the test fails, because a
//! worker may pause for longer than its lock is valid. The failure then shows how that happened.
//! That takes a TTL below 3 s, the longest pause of `strategies::schedules`: with the default TTL
//! of 10 s the test passes without the check, too. So remove the check from your own code once, and
//! see the test fail.
//!
//! ```no_run
//! use std::{cell::RefCell, collections::BTreeSet, rc::Rc, time::Duration};
//!
//! use proptest::prelude::*;
//! use quorlock_sim::{Client, World, strategies};
//!
//! /// The code under test: does every job that has not been done yet.
//! async fn work(client: Client, done: Rc<RefCell<BTreeSet<u32>>>) {
//!     for job in 0..5 {
//!         let name = format!("job:{job}");
//!         let Ok(guard) = client.locker().lock(&name).ttl(Duration::from_secs(1)).await else { continue };
//!         if !done.borrow().contains(&job) {
//!             client.sleep(Duration::from_millis(30)).await;
//!             if guard.check().is_ok() && !done.borrow_mut().insert(job) {
//!                 client.report(format!("{name} was done twice"));
//!             }
//!         }
//!         let _ = guard.release().await;
//!     }
//! }
//!
//! proptest! {
//!     #[test]
//!     fn no_job_is_done_twice(seed: u64, faults in strategies::schedules(8, Duration::from_millis(500))) {
//!         let (mut world, done) = (World::new(seed), Rc::default());
//!         for (when, fault) in faults {
//!             world.inject(when, fault);
//!         }
//!         for _ in 0..3 {
//!             let client = world.client();
//!             world.spawn(&client.clone(), work(client, Rc::clone(&done)));
//!         }
//!         world.run(Duration::from_secs(300)).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
//!     }
//! }
//! ```
//!
//! # What is checked after every event
//!
//! - At no instant of true time are two guards of one resource valid by their own clocks, unless
//!   they share it as one group. A quorum of masters keeps the token of a valid guard, for all of
//!   its resources, until its end.
//! - The fencing tokens of exclusive grants of a resource are distinct, and an exclusive grant has
//!   a larger token than each grant of the resource that was decided before its attempt sent
//!   anything. The token of a shared grant is not smaller than that of such an earlier exclusive
//!   one. Scripts never lower a fencing counter or make it expire. Under the restart guard no
//!   master votes too soon after it has lost its data.
//! - A guard is valid no longer than TTL − drift after the first send of its round, and never
//!   becomes valid again.
//! - Every command ends in time, and no driver is woken without need.
//! - After the last fault every client gets a lock, and no key remains of a lock that is not held
//!   ([`Plan::run`], [`World::settle`]).
//!
//! # The assumptions
//!
//! [`Fault::is_assumed`] tells which faults Redlock must withstand. Its assumptions: masters keep
//! unexpired keys, their clocks are not set, and the rates of any two clocks differ by at most 1 %
//! ("Safety arguments" on the [Redis distributed-locks
//! page](https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/)). With the
//! restart guard masters may also lose their data ([`Fault::is_assumed_with_guard`]), provided that
//! their clocks differ by no more than the longest TTL of the fleet. Where all clients declare all
//! replicas of each master as well, masters may fail over ([`Fault::is_assumed_with_replicas`]).
//!
//! After any other fault only two holders at once and wrong fencing tokens count as violations, so
//! that a test can show that the assumptions are needed.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `worlds` | yes | everything except [`Master`] and its types |
//! | `proptest` | no | the module `strategies`, for [proptest](https://docs.rs/proptest) |
//!
//! Without `worlds` this crate is only the model of a master, which `quorlock-embedded` serves on
//! sockets.

// Says in the documentation which feature or system an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod master;
#[cfg(feature = "worlds")]
pub mod picture;
#[cfg(feature = "worlds")]
mod worlds;

pub use master::{
    Changes, Command, CommandKind, Dialect, Flow, Held, Keep, Master, ProtocolError, Push, Session, Slot,
};
#[cfg(feature = "proptest")]
pub use worlds::strategies;
#[cfg(feature = "worlds")]
pub use worlds::{
    ASSUMED_DRIFT_PPM, Access, Client, ClientPlan, Failure, Fault, Kinds, Outdated, Plan, PushFate,
    RESOURCES, Reading, Refusal, Replacement, Report, Sleep, Step, Store, Timeline, Violation, When, World,
};
