//! The machine and the front in simulated worlds: what must hold inside Redlock's assumptions, and
//! that the observer sees what breaks outside them.

mod assumed;
mod broken;
mod clusters;
mod failovers;
mod fair;
mod front;
mod handles;
mod kept;
mod kinds;
mod rebuilds;
mod replacing;
mod secured;
mod shares;
mod stores;
mod tries;
mod wake_ups;
mod worlds;

use std::fs;
use std::path::Path;

use quorlock_sim::{Plan, Report};

/// Runs a world. If a promise is broken, returns the story of the smallest world that breaks it,
/// which is also drawn into a file named after `kind`.
fn run(plan: Plan, kind: &str) -> Result<Report, String> {
    plan.run().map_err(|failure| {
        let seed = plan.seed;
        let (smaller, failure) = plan.shrink().unwrap_or((plan, failure));
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{kind}-world-{seed}.svg"));
        let drawn = fs::write(&file, failure.to_svg()).map(|()| file.display().to_string());
        format!("seed {seed}\n{smaller:#?}\n{failure}drawn: {drawn:?}")
    })
}
