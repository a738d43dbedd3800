//! The archives of the crates, each built alone.

use super::binary::Binary;
use crate::Outcome;
use crate::process::{program, run};

/// Packages the crates. Then cargo builds each from its archive, with those of the others as a
/// registry.
pub(super) fn make(_: &Binary) -> Outcome {
    run(&mut program("python3", &[".ci/packages.py", "--build"]))
}
