//! Problem: leadership must rotate. Each candidate leads for a short term, and one that resigns
//! must not win the next election before the others have had their turn.
//!
//! `.fair()` makes the masters keep a queue of those who wait, in order of arrival over all
//! machines. `leader` is the example of a leadership that lasts until it is lost.
//!
//! Run: `cargo run -p quorlock-tokio --example fair_leader`, on embedded masters, or on those that
//! `QUORLOCK_MASTERS` names.
//!
//! Watch: the names of the leaders come in turn. Without `.fair()` some lead twice before another
//! one leads at all. A candidate that is killed while it waits delays the others by at most a
//! second. A candidate that pauses for a third of a second may lose its place in the queue, but
//! there is one leader at most, whatever happens to the queue.
#![allow(clippy::print_stdout)]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorlock_embedded::Masters;
use quorlock_tokio::{Config, Locker, RunError};
use tokio::time::sleep;

const TERMS: usize = 12;
const CANDIDATES: [&str; 3] = ["ariel", "belinda", "cordelia"];

/// The leaders so far, and whether one leads now.
#[derive(Default)]
struct Office {
    history: Mutex<Vec<&'static str>>,
    is_taken: AtomicBool,
}

impl Office {
    fn terms(&self) -> Vec<&'static str> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The work of a leader.
    async fn lead(&self, name: &'static str) -> Result<(), Infallible> {
        assert!(!self.is_taken.swap(true, Ordering::SeqCst), "there is one leader at most");
        let term = {
            let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
            history.push(name);
            history.len()
        };
        println!("term {term}: {name} leads");
        sleep(Duration::from_millis(60)).await;
        self.is_taken.store(false, Ordering::SeqCst);
        Ok(())
    }
}

async fn stand_for_election(
    name: &'static str,
    locker: Locker,
    office: Arc<Office>,
) -> Result<(), RunError<Infallible>> {
    while office.terms().len() < TERMS {
        // All candidates must use `.fair()`: one that does not is in no queue, and gets few turns.
        locker.lock("leader/rotating").fair().run(|_| office.lead(name)).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let embedded = Masters::start(3)?;
    let office = Arc::new(Office::default());
    let mut candidates = Vec::new();
    for name in CANDIDATES {
        let config = match env::var_os(Config::MASTERS_VARIABLE) {
            Some(_) => Config::from_env(env::var_os)?,
            None => embedded.config()?,
        };
        let locker = quorlock_tokio::open(config)?;
        candidates.push(tokio::spawn(stand_for_election(name, locker, Arc::clone(&office))));
    }
    for candidate in candidates {
        candidate.await??;
    }
    // While all candidates wait, any three terms in a row are those of three candidates. On a
    // machine that pauses its processes a candidate may lose its place, so the example only
    // requires this of most rounds.
    let terms = office.terms();
    let rounds = terms.windows(CANDIDATES.len());
    let in_turn = rounds.clone().filter(|round| round.iter().collect::<BTreeSet<_>>().len() == round.len());
    let (in_turn, all) = (in_turn.count(), rounds.count());
    println!("{in_turn} of {all} rounds had each candidate once");
    Ok(if 2 * in_turn > all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
