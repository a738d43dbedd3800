//! Crates outside this workspace: one tests its own code on simulated masters, as the README shows,
//! and each of the others depends only on one crate of this workspace.

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use quorlock_tests::{Certificates, ServerOptions};
use tempfile::TempDir;

const EXAMPLE: &str = include_str!("../outside/job_queue.rs");
const CHECK: &str = "guard.check().is_ok()";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A package of that name with these sections of a manifest and these files. It resolves to the
/// versions that the workspace has.
fn package(name: &str, sections: &str, files: &[(&str, &str)]) -> TempDir {
    let package = TempDir::new().unwrap();
    let manifest = format!("[package]\nname = {name:?}\nedition = \"2024\"\n\n{sections}");
    for (file, text) in [("Cargo.toml", manifest.as_str())].iter().chain(files) {
        let path = package.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::copy(workspace().join("Cargo.lock"), package.path().join("Cargo.lock")).unwrap();
    package
}

/// Runs a cargo command in a package of that name, with `cases` cases of its properties.
/// Dependencies are built once for all packages, most of them with the tests of this workspace.
fn cargo(package: &TempDir, name: &str, command: &str, cases: u32) -> Output {
    let cargo = |arguments: &[&str]| {
        Command::new(env!("CARGO"))
            .current_dir(package.path())
            .args(arguments)
            .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap())
            .env("PROPTEST_CASES", cases.to_string())
            .output()
            .unwrap()
    };
    let mut output = cargo(&[command, "--offline"]);
    if String::from_utf8_lossy(&output.stderr).contains("--offline") {
        // If only this crate was built, the other package's dependencies have not been downloaded
        // yet.
        output = cargo(&[command]);
    }
    // The next run has another directory, and could not use what was built.
    cargo(&["clean", "--offline", "--package", name]);
    output
}

/// Runs the test in a package of that name, with `cases` cases.
fn cargo_test(name: &str, test: &str, cases: u32) -> Output {
    let sim = workspace().join("core/sim");
    let sections = format!(
        "[dev-dependencies]\n\
         proptest = {{ version = \"1\", default-features = false, features = [\"std\"] }}\n\
         quorlock-sim = {{ path = {sim:?}, features = [\"proptest\"] }}\n\
         \n\
         [profile.dev]\n\
         debug = false\n\
         \n\
         [profile.dev.package.quorlock-core]\n\
         opt-level = 1\n\
         \n\
         [profile.dev.package.quorlock-sim]\n\
         opt-level = 1\n"
    );
    let files = [("src/lib.rs", ""), (&format!("tests/{name}.rs"), test)];
    cargo(&package(name, &sections, &files), name, "test", cases)
}

fn printed(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

#[test]
fn the_example_passes_in_its_own_crate() {
    let output = cargo_test("checked", EXAMPLE, 256);
    let printed = printed(&output);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("test no_job_is_done_twice ... ok"), "{printed}");
}

#[test]
fn the_example_fails_with_a_story_when_its_guard_is_not_checked() {
    assert_eq!(EXAMPLE.matches(CHECK).count(), 1);
    // About one case in fifty pauses a worker at the wrong moment.
    let output = cargo_test("unchecked", &EXAMPLE.replace(CHECK, "true"), 2_048);
    let printed = printed(&output);
    assert!(!output.status.success(), "{printed}");
    assert!(printed.contains("was done twice (seed "), "{printed}");
    let made_late = ["Pause", "ClientJump"].map(|fault| format!("world               {fault} {{"));
    let is_told = made_late.iter().any(|fault| printed.contains(fault));
    assert!(is_told, "the timeline tells what made the worker late:\n{printed}");
}

#[test]
fn the_example_in_the_documentation_and_on_the_page_is_the_one_that_runs() {
    let source = fs::read_to_string(workspace().join("core/sim/src/lib.rs")).unwrap();
    let documentation: String = source
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned() + "\n")
        .collect();
    let (title, code) = EXAMPLE.split_once('\n').unwrap();
    assert!(title.starts_with("//! "), "{title}");
    assert!(documentation.contains(&format!("```no_run\n{code}```\n")), "{documentation}");
    let page = fs::read_to_string(workspace().join("core/docs/testing.md")).unwrap();
    assert!(page.contains(&format!("```rust,no_run\n{code}```\n")), "{page}");
}

#[test]
fn a_program_whose_only_dependency_is_quorlock_tokio_builds_and_runs() {
    let main = "fn main() { quorlock_tokio::Config::new([\"redis://a\"]).unwrap(); }";
    runs_with_only("quorlock-tokio", "transport-tokio", main);
}

#[test]
fn a_program_whose_only_dependency_is_quorlock_embedded_builds_and_runs() {
    let main = "fn main() { quorlock_embedded::Masters::start(3).unwrap().config().unwrap(); }";
    runs_with_only("quorlock-embedded", "transport-blocking/embedded", main);
}

/// Uses rustls as any program does, with the provider that rustls' own features choose. rustls
/// panics there if two are built in.
const OTHER_PROVIDER: &str = r#"
    use quorlock_blocking::Config;
    use rustls::ClientConfig;

    fn main() {
        let open = || quorlock_blocking::open(Config::new(["MASTER"]).unwrap());

        let refused = open().unwrap_err().to_string();
        assert!(refused.contains("CryptoProvider::install_default"), "{refused}");

        drop(ClientConfig::builder());

        open().unwrap().lock("job").wait().unwrap().release().wait().unwrap();
    }
"#;

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_program_with_another_provider_of_tls_takes_a_lock_over_tls() {
    let certificates = Certificates::shared();
    let master = ServerOptions::new().tls(certificates, "no").start();
    let url = format!("rediss://{}?cacert={}", master.address(), certificates.root().display());
    let path = workspace().join("transport-blocking");
    let sections = format!(
        "[dependencies]\nquorlock-blocking = {{ path = {path:?}, features = [\"tls\"] }}\nrustls = \"0.23\"\n"
    );
    let name = "other-provider";
    let main = OTHER_PROVIDER.replace("MASTER", &url);
    let output = cargo(&package(name, &sections, &[("src/main.rs", &main)]), name, "run", 0);
    assert!(output.status.success(), "{}", printed(&output));
}

#[track_caller]
fn runs_with_only(dependency: &str, folder: &str, main: &str) {
    let name = format!("only-{dependency}");
    let path = workspace().join(folder);
    let sections = format!("[dependencies]\n{dependency} = {{ path = {path:?} }}\n");
    let output = cargo(&package(&name, &sections, &[("src/main.rs", main)]), &name, "run", 0);
    assert!(output.status.success(), "{}", printed(&output));
}
