//! Chaos: client processes contend for locks on real servers while masters and clients are killed,
//! stopped, emptied and resynced, and a checker examines their records.
//!
//! * [`history`] has the events, as lines of text with the time of one clock.
//! * [`checker`] returns the promises that a history breaks, [`Figures`] the counts of events.
//! * [`client`] is the process that requests, holds and writes; [`Store`] refuses a fencing token
//!   that is too small.
//! * [`Run`] is a whole run: masters, clients, a store, and the faults of a seed.

// Places come from the lists that they are used in.
#![allow(clippy::indexing_slicing)]

pub mod checker;
pub mod client;
pub(crate) mod clients;
pub(crate) mod exchange;
mod figures;
mod held;
pub mod history;
mod nemesis;
mod orders;
mod process;
pub mod sought;
mod store;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

pub use figures::Figures;
pub use process::{ClientProcess, Program};
pub use store::Store;

use client::Orders;
use clients::Clients;
use history::{What, Writer};
use nemesis::Nemesis;

use crate::eventually::poll;
use crate::options::ServerOptions;
use crate::random::Random;

/// The longest TTL of the fleet in milliseconds.
const LONGEST_TTL: u64 = 1_500;
/// Far longer than the masters' quarantine, all reconnections and the TTLs together.
const RECOVERED_WITHIN: Duration = Duration::from_secs(30);

/// A run of chaos on real servers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// How long the faults last.
    pub span: Duration,
    /// The seed of the faults and of the clients' choices.
    pub seed: u64,
    /// How many masters.
    pub masters: usize,
    /// How many clients.
    pub clients: usize,
    /// Whether the restart guard is on. Without it promises are broken.
    pub guard: bool,
    /// The file that the history is appended to.
    pub history: PathBuf,
    /// The program that clients run.
    pub program: Program,
}

/// Whether the master with this index writes its data to a file.
fn keeps_data(place: usize) -> bool {
    place % 2 == 1
}

impl Run {
    /// Carries out the run, and leaves the history behind.
    ///
    /// # Errors
    /// When a client ends by itself, a replica does not sync, or no lock is granted any more
    /// although the faults are over.
    pub fn go(&self) -> io::Result<()> {
        let start = |place| {
            let options = ServerOptions::new();
            if keeps_data(place) { options.append_only().start() } else { options.start() }
        };
        let masters: Vec<_> = (0..self.masters).map(start).collect();
        let spare = ServerOptions::new().start();
        let history = Writer::open(&self.history)?;
        let store = Store::start(&self.history)?;
        let mut random = Random::new(self.seed);
        let orders = Orders {
            name: String::new(),
            seed: 0,
            transport: String::new(),
            history: self.history.clone(),
            store: Some(store.address()),
            fenced: true,
            restart_guard: self.guard.then_some(LONGEST_TTL),
            request_timeout: None,
            ttl: (400, LONGEST_TTL),
            hold: (0, 1_000),
            varied: true,
            exchange: None,
            resources: ["invoice", "report", "tenant"].map(str::to_owned).to_vec(),
            masters: masters.iter().map(|master| master.url()).collect(),
            routes: Vec::new(),
        };
        let choices = Random::new(random.number());
        let mut clients = Clients::start(self.program.clone(), orders, self.clients, choices)?;
        let works = |what: &str| {
            let before = store.accepted();
            let works = poll(RECOVERED_WITHIN, || (store.accepted() > before).then_some(()));
            works.ok_or_else(|| io::Error::other(format!("no write within {RECOVERED_WITHIN:?} {what}")))
        };
        works("before any fault")?;
        history.note(What::Began);
        Nemesis::new(&masters, &spare, &mut clients, &history, random).run(self.span)?;
        history.note(What::Over);
        works("after the last fault")
    }
}
