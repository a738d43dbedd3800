//! The models of hand-written concurrency that loom checks: every execution, within a bound on
//! preemptions. `LOOM_MAX_PREEMPTIONS` replaces the bound of every model.

use std::path::Path;
use std::process::Command;

use crate::Outcome;
use crate::process::{cargo, run, target};

/// Cargo, with the models of these packages whose names contain the filter.
pub(crate) fn models(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = cargo(&["test", "--profile", "loom", "--no-fail-fast", "--lib"]);
    command.args(arguments).args(["--", "--nocapture"]).current_dir(folder);
    command.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", target().join("loom"));
    command
}

pub(super) fn check() -> Outcome {
    run(&mut models(&crate::process::root(), &["-p", "quorlock-core", "-p", "quorlock-blocking", "loom"]))
}
