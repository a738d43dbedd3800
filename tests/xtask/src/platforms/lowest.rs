//! A copy of what users build, with the lowest versions of dependencies that the manifests accept.

use std::fs;
use std::path::PathBuf;

use super::tools::{Rust, folder};
use crate::process::run;
use crate::{Outcome, tree};

/// Makes the copy.
pub(super) fn set_up(rust: &Rust) -> Outcome<PathBuf> {
    let place = folder().join("lowest");
    tree::copy(&place)?;
    let manifest = place.join("Cargo.toml");
    fs::write(&manifest, without_tests(&fs::read_to_string(&manifest)?))?;
    // Of indirect dependencies it takes the highest versions: their lower bounds are not ours.
    let words = ["generate-lockfile", "--quiet", "-Zdirect-minimal-versions"];
    run(rust.cargo().args(words).current_dir(&place))?;
    Ok(place)
}

/// The workspace's manifest without the packages for tests: they depend on other clients, which
/// need newer versions than ours.
fn without_tests(manifest: &str) -> String {
    manifest.lines().filter(|line| !line.starts_with("    \"tests")).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::root;

    #[test]
    fn the_copy_has_the_packages_that_are_published() {
        let manifest = without_tests(&fs::read_to_string(root().join("Cargo.toml")).unwrap());
        assert!(manifest.contains("    \"transport-blocking/command\",\n"));
        assert!(!manifest.contains("\"tests\"") && !manifest.contains("\"tests/xtask\""));
    }
}
