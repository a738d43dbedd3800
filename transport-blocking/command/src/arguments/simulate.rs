//! `quorlock simulate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::ValueHint;
use quorlock_sim::{Fault, When};

use super::faults;
use crate::duration;
use crate::simulate::Scenario;

/// Run a simulated world in which things go wrong, and draw it
///
/// Runs clients, masters, clocks and a network as values in one process, in simulated time, with
/// the same code that takes real locks. An observer that sees everything reports whether a promise
/// was broken. No server is needed, and the same options print the same on every machine.
///
/// Each scenario runs with a defence, which prevents harm. Without SCENARIO, the options describe a
/// world: each client requests one lock, holds it and releases it. If a promise is broken, the
/// world is shrunk: faults that the breach does not need are left out.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = include_str!("../help/simulate.txt"))]
pub(crate) struct SimulateArguments {
    /// The scenario to run
    #[arg(
        value_name = "SCENARIO",
        value_enum,
        hide_possible_values = true,
        conflicts_with_all = ["masters", "clients", "ttl", "fenced", "restart_guard", "faults", "random"],
    )]
    pub(crate) scenario: Option<Scenario>,
    /// Run the scenario without its defence
    #[arg(long, requires = "scenario")]
    pub(crate) without_defence: bool,
    /// List the scenarios with their defences, and end
    #[arg(long)]
    pub(crate) list: bool,
    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value = "1", value_parser = seed)]
    pub(crate) seed: u64,
    /// Print all that happened, even if no promise was broken
    #[arg(long, conflicts_with = "mermaid")]
    pub(crate) timeline: bool,
    /// Print the run as a Mermaid diagram, and nothing else
    #[arg(long)]
    pub(crate) mermaid: bool,
    /// Draw the run into this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) world: WorldOptions,
}

/// A world that the options describe.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(next_help_heading = "Options of a world")]
pub(crate) struct WorldOptions {
    /// How many masters, 9 at most
    #[arg(long, value_name = "N", default_value = "3", value_parser = up_to::<9>)]
    pub(crate) masters: usize,
    /// How many clients, 6 at most
    #[arg(long, value_name = "N", default_value = "2", value_parser = up_to::<6>)]
    pub(crate) clients: usize,
    /// The TTL of the locks, from 100ms to 60s
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration::parse)]
    pub(crate) ttl: Duration,
    /// Give each grant a fencing token
    #[arg(long)]
    pub(crate) fenced: bool,
    /// Do not let masters that lost their data vote for this time
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) restart_guard: Option<Duration>,
    /// What goes wrong; repeat the option for each fault
    #[arg(long = "fault", value_name = "FAULT", value_parser = faults::parse)]
    pub(crate) faults: Vec<(When, Fault)>,
    /// Generate all of these options from the seed
    #[arg(
        long,
        conflicts_with_all = ["masters", "clients", "ttl", "fenced", "restart_guard", "faults"],
    )]
    pub(crate) random: bool,
}

const SHORTEST_TTL: Duration = Duration::from_millis(100);
const LONGEST_TTL: Duration = Duration::from_secs(60);

fn seed(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "needs a whole number, such as 3")
}

fn up_to<const MOST: usize>(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST).contains(number));
    number.ok_or_else(|| format!("needs a number from 1 to {MOST}"))
}

impl SimulateArguments {
    pub(super) fn check(&self) -> Result<(), String> {
        let WorldOptions { masters, clients, ttl, restart_guard, faults, .. } = &self.world;
        if !(SHORTEST_TTL..=LONGEST_TTL).contains(ttl) {
            return Err("--ttl needs a duration from 100ms to 60s.".to_owned());
        }
        if restart_guard.is_some_and(|longest| longest < *ttl || longest > LONGEST_TTL) {
            return Err("--restart-guard needs a duration from the --ttl to 60s.".to_owned());
        }
        for (when, fault) in faults {
            let (client, master) = faults::named(*fault);
            if client >= *clients || master >= *masters {
                return Err(format!(
                    "{} names a client or a master that does not exist: clients are numbered 0 to {}, masters 0 to {}.",
                    faults::shown(*when, *fault),
                    clients - 1,
                    masters - 1
                ));
            }
            let is_late = matches!(when, When::At(at) if *at > LONGEST_TTL);
            if is_late || fault.span() > LONGEST_TTL {
                return Err("--fault accepts times up to 60s.".to_owned());
            }
        }
        Ok(())
    }
}
