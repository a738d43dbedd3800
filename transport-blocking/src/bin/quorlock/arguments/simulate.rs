//! `quorlock simulate`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::Parser;
use quorlock_core::sim::{Fault, When};

use super::common::{Plain, plain};
use super::options::Collected;
use super::{Request, Subcommand, faults};
use crate::simulate::Scenario;

/// Everything that `quorlock simulate` was told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SimulateArguments {
    /// What is to run.
    pub(crate) what: Simulated,
    /// What chance begins with.
    pub(crate) seed: u64,
    /// What is printed.
    pub(crate) told: Told,
    /// Where the picture goes.
    pub(crate) svg: Option<PathBuf>,
}

/// What is to run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Simulated {
    /// Nothing: the scenarios are listed.
    List,
    /// A scenario of that name.
    Scenario {
        /// Which.
        scenario: Scenario,
        /// Whether what prevents harm is left out.
        without_defence: bool,
    },
    /// A world of one's own.
    World(WorldOptions),
}

/// A world of one's own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WorldOptions {
    /// Whether everything is made up from the seed.
    pub(crate) random: bool,
    /// How many masters.
    pub(crate) masters: usize,
    /// How many clients.
    pub(crate) clients: usize,
    /// The life of the locks.
    pub(crate) ttl: Duration,
    /// Whether grants are numbered.
    pub(crate) fenced: bool,
    /// The longest TTL, if the restart guard is on.
    pub(crate) restart_guard: Option<Duration>,
    /// What goes wrong.
    pub(crate) faults: Vec<(When, Fault)>,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// What came of it, with the timeline if a promise was broken.
    Verdict,
    /// With the timeline always.
    Timeline,
    /// The timeline as a diagram, and nothing else.
    Mermaid,
}

const MOST_MASTERS: usize = 9;
const MOST_CLIENTS: usize = 6;
const SHORTEST_TTL: Duration = Duration::from_millis(100);
const LONGEST_TTL: Duration = Duration::from_secs(60);

/// Reads what stands behind `simulate`.
pub(super) fn parse(parser: Parser) -> Result<Request, String> {
    let beyond = "simulate takes one scenario at a time; quorlock simulate --list names them.";
    let (mut read, name) = match plain(Subcommand::Simulate, parser, 1, beyond)? {
        Plain::Other(request) => return Ok(request),
        Plain::Read(read, name) => (read, name),
    };
    let told = match (read.timeline, read.mermaid) {
        (true, true) => {
            return Err("--timeline and --mermaid contradict each other: give one of them.".to_owned());
        }
        (true, false) => Told::Timeline,
        (false, true) => Told::Mermaid,
        (false, false) => Told::Verdict,
    };
    let svg = read.svg.take();
    let what = if read.list {
        Simulated::List
    } else if let Some(name) = name {
        scenario(&read, &name)?
    } else if read.without_defence {
        return Err(
            "--without-defence is for a scenario: name one; quorlock simulate --list tells which.".to_owned()
        );
    } else {
        Simulated::World(world(&mut read)?)
    };
    let seed = read.seed.unwrap_or(1);
    Ok(Request::Simulate(Box::new(SimulateArguments { what, seed, told, svg })))
}

fn scenario(read: &Collected, name: &OsString) -> Result<Simulated, String> {
    let names: Vec<_> = Scenario::ALL.iter().map(|scenario| scenario.name()).collect();
    let known = Scenario::ALL.into_iter().find(|scenario| name == scenario.name());
    let scenario =
        known.ok_or_else(|| format!("There is no such scenario; there are {}.", names.join(", ")))?;
    let is_own = read.random
        || read.fenced
        || read.masters_count.is_some()
        || read.clients.is_some()
        || read.ttl.is_some()
        || read.restart_guard.is_some()
        || !read.faults.is_empty();
    if is_own {
        return Err(format!(
            "{} is as it is: with it go --seed, --without-defence, --timeline, --mermaid and --svg only.",
            scenario.name()
        ));
    }
    Ok(Simulated::Scenario { scenario, without_defence: read.without_defence })
}

fn world(read: &mut Collected) -> Result<WorldOptions, String> {
    let faults = std::mem::take(&mut read.faults);
    let is_described = read.fenced
        || read.masters_count.is_some()
        || read.clients.is_some()
        || read.ttl.is_some()
        || read.restart_guard.is_some()
        || !faults.is_empty();
    if read.random && is_described {
        return Err("--random makes up everything: with it go --seed, --timeline, --mermaid and --svg only."
            .to_owned());
    }
    let masters = read.masters_count.unwrap_or(3);
    let clients = read.clients.unwrap_or(2);
    let ttl = read.ttl.unwrap_or(Duration::from_secs(2));
    if !(1..=MOST_MASTERS).contains(&masters) {
        return Err(format!("--masters needs a number from 1 to {MOST_MASTERS}."));
    }
    if !(1..=MOST_CLIENTS).contains(&clients) {
        return Err(format!("--clients needs a number from 1 to {MOST_CLIENTS}."));
    }
    if !(SHORTEST_TTL..=LONGEST_TTL).contains(&ttl) {
        return Err("--ttl needs a duration from 100ms to 60s.".to_owned());
    }
    if read.restart_guard.is_some_and(|longest| longest < ttl || longest > LONGEST_TTL) {
        return Err("--restart-guard needs a duration from the --ttl to 60s.".to_owned());
    }
    for (when, fault) in &faults {
        let (client, master) = faults::named(*fault);
        if client >= clients || master >= masters {
            return Err(format!(
                "{} names one that is not there: clients are numbered 0 to {}, masters 0 to {}.",
                faults::shown(*when, *fault),
                clients - 1,
                masters - 1
            ));
        }
        let is_late = matches!(when, When::At(at) if *at > LONGEST_TTL);
        if is_late || fault.span() > LONGEST_TTL {
            return Err("--fault has times up to 60s only.".to_owned());
        }
    }
    let (random, fenced, restart_guard) = (read.random, read.fenced, read.restart_guard);
    Ok(WorldOptions { random, masters, clients, ttl, fenced, restart_guard, faults })
}
