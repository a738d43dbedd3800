//! Redis masters, a network and clocks as values, to test code that takes Quorlock's locks without a server.
//!
//! Quorlock itself is tested in these worlds. You can test your own code in them as well:
//!
//! - [`World`] runs tasks of yours, each on a [`Client`] with a [`Locker`](quorlock_core::front::Locker), in simulated time: hours pass in
//!   milliseconds, and the same seed gives the same run.
//! - [`Fault`]s come about when you [`inject`](World::inject) them: masters hang and crash, connections are cut or forgotten, clients stand
//!   still for longer than their locks live.
//! - An observer in true time sees every guard, every clock and every key. A [`Violation`] ends the run with a [`Failure`] that tells
//!   what happened: as text, as a [Mermaid diagram](Timeline::to_mermaid), or as an [SVG picture](Failure::to_svg).
//! - A [`Store`] is what clients change under their locks, with or without fencing tokens; a lost change is a violation, too.
//! - [`Plan`] is a whole run as a value. [`Plan::random`] makes one up with every fault that lies inside Redlock's assumptions, and
//!   [`Plan::shrink`] makes a failing one small.
//! - [`Master`] is one Redis master as a value, which answers byte for byte as a server does; random commands are compared with real servers.
//!
//! What is real: the machine, the connections, the bytes and what users hold. What is simulated: sockets, time, randomness, and the
//! masters.
//!
//! # A property of your own code
//!
//! A job queue, three workers, up to eight faults: no job is done twice. Without the [`check`](quorlock_core::front::Guard::check) the run fails,
//! because a worker may stand still for longer than its lock lives, and the failure tells the story.
//!
//! ```no_run
//! use std::{cell::RefCell, collections::BTreeSet, rc::Rc, time::Duration};
//!
//! use proptest::prelude::*;
//! use quorlock_sim::{Client, World, strategies};
//!
//! /// The code under test: does every job that nobody has done yet.
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
//! # What is checked at every step
//!
//! - No two guards' own clocks call them valid at one instant of true time, and a quorum of masters keeps the token of a valid guard
//!   until its end.
//! - Numbers of a resource are distinct, and a grant that was decided before another attempt sent anything has the smaller one. Scripts never
//!   lower a fencing counter nor give it an end. Under the restart guard no master votes too soon after it has lost its data.
//! - A guard is never valid beyond the first send of its round + TTL − drift, and never again once it was not.
//! - Commands end in time; nobody is woken in vain.
//! - After the last fault every client gets a lock, and no key of a lock that nobody holds is left ([`Plan::run`], [`World::settle`]).
//!
//! # The assumptions
//!
//! [`Fault::is_assumed`] tells which faults Redlock must stand: masters keep unexpired keys, their clocks are not set, and the rates of
//! any two clocks differ by at most a hundredth ("Safety arguments" on the
//! [Redis distributed-locks page](https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/)). With the restart guard on
//! masters may also lose their data ([`Fault::is_assumed_with_guard`]), as long as their clocks differ by no more than the fleet's longest TTL.
//! Once another fault has come about, only two holders at once and wrong numbers count as violations: the observer must be able to show that the assumptions are needed.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `worlds` | yes | everything but [`Master`] and what belongs to it |
//! | `proptest` | no | the module `strategies` |
//!
//! Without `worlds` this crate is the model of a master alone. `quorlock-embedded` serves that on sockets.

mod master;
#[cfg(feature = "worlds")]
pub mod picture;
#[cfg(feature = "worlds")]
mod worlds;

pub use master::{Command, CommandKind, Flow, Held, Keep, Master, ProtocolError, Push, Session};
#[cfg(feature = "proptest")]
pub use worlds::strategies;
#[cfg(feature = "worlds")]
pub use worlds::{
    ASSUMED_DRIFT_PPM, Client, ClientPlan, Failure, Fault, Outdated, Plan, PushFate, Reading, Refusal,
    Report, Sleep, Step, Store, Timeline, Violation, When, World,
};
