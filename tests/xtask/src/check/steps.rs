//! Checks that consist of one command.

use std::fs;

use super::NotRun;
use crate::Outcome;
use crate::process::{cargo, feed, program, read, root, run, target};

pub(super) fn tools() -> Outcome {
    for (name, argument) in
        [("cargo", "--version"), ("cargo-fmt", "--version"), ("cargo-clippy", "--version"), ("python3", "-V")]
    {
        let version = read(&mut program(name, &[argument]));
        print!("{}", version.map_err(|error| format!("{name} is missing: {error}"))?);
    }
    Ok(())
}

pub(super) fn format() -> Outcome {
    run(&mut cargo(&["fmt", "--all", "--check"]))
}

/// The lints have a target folder of their own: cargo's lock on it would keep tests waiting that
/// build programs.
pub(super) fn lints() -> Outcome {
    let what = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    run(cargo(&what).env("CARGO_TARGET_DIR", target().join("lints")))
}

pub(super) fn features() -> Outcome {
    run(&mut program(".ci/features", &[]))
}

pub(super) fn docs() -> Outcome {
    run(cargo(&["doc", "--workspace", "--no-deps", "--all-features"]).env("RUSTDOCFLAGS", "-D warnings"))
}

/// The exit code of `.ci/surface` if it cannot compare.
const NOT_COMPARED: i32 = 3;

pub(super) fn surface() -> Outcome {
    let status = program(".ci/surface", &["--check"]).status()?;
    match status.code() {
        Some(0) => Ok(()),
        Some(NOT_COMPARED) => Err(NotRun("the lists of the public surface were not compared".into()).into()),
        _ => Err(format!(".ci/surface --check failed: {status}").into()),
    }
}

pub(super) fn rust_version() -> Outcome {
    feed(&mut program("python3", &[".ci/msrv.py"]), &metadata()?)
}

pub(super) fn packages() -> Outcome {
    run(&mut program("python3", &[".ci/packages.py"]))
}

fn metadata() -> Outcome<String> {
    read(&mut cargo(&["metadata", "--format-version", "1", "--locked", "--all-features"]))
}

/// Builds what the test command and `seed` run.
pub(super) fn simulator() -> Outcome {
    run(&mut cargo(&["build", "--release", "-p", "quorlock-sim", "--example", "simulate"]))
}

/// Compares a digest of 40 simulated worlds: of the build with assertions, and of the release
/// build. After the tests both are already built.
pub(super) fn seed() -> Outcome {
    let digest = |build: &[&str]| {
        let mut command = cargo(&["run", "--quiet", "--example", "simulate"]);
        read(command.args(build).args(["--", "--digest", "--worlds", "40"]))
    };
    let with_assertions = digest(&["--all-features"])?;
    let release = digest(&["--release", "-p", "quorlock-sim"])?;
    print!("{release}");
    if with_assertions == release {
        Ok(())
    } else {
        Err(format!("the build with assertions says: {with_assertions}").into())
    }
}

/// Runs the test command of the README, as it is written there.
pub(super) fn tests() -> Outcome {
    let readme = fs::read_to_string(root().join("README.md"))?;
    let command = test_command(&readme).ok_or("README.md names no test command")?;
    run(&mut program("bash", &["-euo", "pipefail", "-c", command]))
}

/// The block after the marker of the test command.
fn test_command(readme: &str) -> Option<&str> {
    let (_, rest) = readme.split_once("<!-- the test command -->\n```sh\n")?;
    let (command, _) = rest.split_once("\n```")?;
    Some(command).filter(|command| !command.trim().is_empty())
}

pub(super) fn pairs() -> Outcome {
    run(&mut cargo(&["test", "--quiet", "-p", "quorlock-core", "--example", "pairs"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_a_test_command() {
        let readme = fs::read_to_string(root().join("README.md")).unwrap();
        assert!(test_command(&readme).unwrap().contains("cargo test --workspace --all-features"));
        assert_eq!(test_command("<!-- the test command -->\n```sh\n\n```"), None);
    }
}
