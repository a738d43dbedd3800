//! Problem: one of several candidates leads, and another one takes over when the leader fails.
//!
//! Candidates want one lock, and its holder leads for as long as it can be renewed. The work of a
//! leader that loses the lock is dropped at its present await point, before another candidate can
//! lead. If the leadership must rotate, see `fair_leader`.
//!
//! Run: `cargo run -p quorlock-tokio --example leader`, on embedded masters, most of which hang for
//! a while.
//!
//! Watch: while two of three masters hang, the leader stops and no other leads. After that there is
//! one leader again. There is never more than one.
#![allow(clippy::print_stdout)]

use std::convert::Infallible;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quorlock_embedded::{Master, Masters};
use quorlock_tokio::{Locker, RunError, Watch};
use tokio::time::sleep;

/// How many lead at this moment, and how many terms there have been.
#[derive(Default)]
struct Office {
    leaders: AtomicUsize,
    terms: AtomicUsize,
}

/// Counts a leader until its work has ended or was dropped.
struct Term<'a>(&'a Office);

impl<'a> Term<'a> {
    fn begin(office: &'a Office) -> Self {
        let others = office.leaders.fetch_add(1, Ordering::SeqCst);
        assert_eq!(others, 0, "there is one leader at most");
        office.terms.fetch_add(1, Ordering::SeqCst);
        Self(office)
    }
}

impl Drop for Term<'_> {
    fn drop(&mut self) {
        self.0.leaders.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn stand_for_election(name: &'static str, locker: Locker, office: Arc<Office>) {
    loop {
        // `run` renews the lock, and drops the work when it is lost. If the leader crashes, another
        // one can lead after the TTL.
        let leading = locker.lock("leader").ttl(Duration::from_secs(1));
        match leading.run(|lock| lead(name, lock, &office)).await {
            Ok(()) => println!("{name}: resigns after a full term"),
            Err(RunError::Lost(cause)) => println!("{name}: leads no longer, {cause}"),
            // The configuration's timeout is over: another candidate leads, or too few masters
            // answer.
            Err(error) => println!("{name}: {error}"),
        }
    }
}

/// The work of a leader. What it does outside of this process should still carry a fencing token,
/// as `fenced_store` of the blocking transport shows: a message that was sent is not called back.
async fn lead(name: &str, lock: Watch, office: &Office) -> Result<(), Infallible> {
    let _term = Term::begin(office);
    println!("{name}: leads");
    for _ in 0..60 {
        sleep(Duration::from_millis(50)).await;
        // On a busy machine the work may go on for a moment before it is dropped.
        if !lock.is_valid() {
            break;
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let masters = Masters::start(3)?;
    let office = Arc::new(Office::default());
    let mut candidates = Vec::new();
    for name in ["ariel", "belinda", "cordelia"] {
        let locker = quorlock_tokio::open(masters.config()?)?;
        candidates.push(tokio::spawn(stand_for_election(name, locker, Arc::clone(&office))));
    }
    sleep(Duration::from_millis(500)).await;
    println!("two of three masters hang");
    masters.iter().take(2).for_each(Master::pause);
    sleep(Duration::from_millis(1_500)).await;
    let meanwhile = office.leaders.load(Ordering::SeqCst);
    println!("{meanwhile} leading; they go on");
    masters.iter().for_each(Master::resume);
    sleep(Duration::from_millis(1_000)).await;
    let (terms, leaders) = (office.terms.load(Ordering::SeqCst), office.leaders.load(Ordering::SeqCst));
    println!("{terms} terms, {leaders} leading");
    // Dropping the work releases the lock.
    candidates.iter().for_each(tokio::task::JoinHandle::abort);
    Ok(if terms == 2 && (meanwhile, leaders) == (0, 1) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
