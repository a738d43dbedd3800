//! A crate outside of this workspace tests its own code on simulated masters, as the README tells.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const EXAMPLE: &str = include_str!("../outside/job_queue.rs");
const CHECK: &str = "guard.check().is_ok()";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A package of that name with nothing but a test of that name, which resolves to the versions that the workspace has.
fn package(name: &str, test: &str) -> TempDir {
    let package = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = package.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let sim = workspace().join("core/sim");
    write(
        "Cargo.toml",
        &format!(
            "[package]\n\
             name = {name:?}\n\
             edition = \"2024\"\n\
             \n\
             [dev-dependencies]\n\
             proptest = {{ version = \"1\", default-features = false, features = [\"std\"] }}\n\
             quorlock-sim = {{ path = {sim:?}, features = [\"proptest\"] }}\n\
             \n\
             [profile.dev]\n\
             debug = false\n\
             \n\
             [profile.dev.package.quorlock-core]\n\
             opt-level = 1\n\
             [profile.dev.package.quorlock-sim]\n\
             opt-level = 1\n"
        ),
    );
    write("src/lib.rs", "");
    write(&format!("tests/{name}.rs"), test);
    fs::copy(workspace().join("Cargo.lock"), package.path().join("Cargo.lock")).unwrap();
    package
}

/// Runs the test in a package of that name, with so many cases. What it depends on is built once for all runs.
fn cargo_test(name: &str, test: &str, cases: u32) -> Output {
    let package = package(name, test);
    let cargo = |arguments: &[&str]| {
        Command::new(env!("CARGO"))
            .current_dir(package.path())
            .args(arguments)
            .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside"))
            .env("PROPTEST_CASES", cases.to_string())
            .output()
            .unwrap()
    };
    let mut output = cargo(&["test", "--offline"]);
    if String::from_utf8_lossy(&output.stderr).contains("--offline") {
        // Whoever builds only this crate has not downloaded what the other one needs.
        output = cargo(&["test"]);
    }
    // The next run has another directory and could not use it.
    cargo(&["clean", "--offline", "--package", name]);
    output
}

fn printed(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

#[test]
fn the_example_passes_in_a_crate_of_its_own() {
    let output = cargo_test("checked", EXAMPLE, 256);
    let printed = printed(&output);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("test no_job_is_done_twice ... ok"), "{printed}");
}

#[test]
fn the_example_fails_with_a_story_when_its_guard_is_not_checked() {
    assert_eq!(EXAMPLE.matches(CHECK).count(), 1);
    // One case in fifty pauses a worker at the wrong moment.
    let output = cargo_test("unchecked", &EXAMPLE.replace(CHECK, "true"), 2_048);
    let printed = printed(&output);
    assert!(!output.status.success(), "{printed}");
    assert!(printed.contains("was done twice (seed "), "{printed}");
    let made_late = ["Pause", "ClientJump"].map(|fault| format!("world               {fault} {{"));
    let is_told = made_late.iter().any(|fault| printed.contains(fault));
    assert!(is_told, "the timeline tells what made the worker late:\n{printed}");
}

#[test]
fn the_example_in_the_documentation_is_the_one_that_runs() {
    let source = fs::read_to_string(workspace().join("core/sim/src/lib.rs")).unwrap();
    let documentation: String = source
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned() + "\n")
        .collect();
    let (title, code) = EXAMPLE.split_once('\n').unwrap();
    assert!(title.starts_with("//! "), "{title}");
    assert!(documentation.contains(&format!("```no_run\n{code}```\n")), "{documentation}");
}
