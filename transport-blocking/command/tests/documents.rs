//! Help, completions and manual pages, as the binary makes them.

use std::fs;
use std::process::{Command, Output};

const SUBCOMMANDS: [&str; 14] = [
    "run",
    "acquire",
    "extend",
    "release",
    "status",
    "doctor",
    "force-release",
    "bootstrap",
    "cluster-plan",
    "master",
    "demo",
    "simulate",
    "completions",
    "man",
];

/// Runs the binary where the environment has secrets, which it never shows.
#[track_caller]
fn quorlock(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock"));
    for variable in ["QUORLOCK_MASTERS", "QUORLOCK_PREFIX", "QUORLOCK_TOKEN", "QUORLOCK_FENCE"] {
        command.env(variable, "redis://:hunter2@a");
    }
    let made = command.args(words).output().expect("the binary runs");
    let shown = [made.stdout.as_slice(), &made.stderr].map(String::from_utf8_lossy);
    assert!(!shown.iter().any(|text| text.contains("hunter2")), "{words:?}: {shown:?}");
    made
}

#[test]
fn no_help_shows_what_the_environment_has() {
    for subcommand in SUBCOMMANDS {
        assert!(quorlock(&[subcommand, "--help"]).status.success(), "{subcommand}");
    }
    assert!(quorlock(&["--help"]).status.success());
}

#[test]
fn every_shell_gets_completions_of_all_subcommands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let made = quorlock(&["completions", shell]);
        assert!(made.status.success() && made.stderr.is_empty(), "{shell}");
        let script = String::from_utf8(made.stdout).expect("text");
        for word in SUBCOMMANDS.into_iter().chain(["conflict-exit-code"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn each_subcommand_has_a_manual_page_with_all_of_its_help() {
    let directory = tempfile::tempdir().expect("a directory");
    let made = quorlock(&["man", directory.path().to_str().expect("text")]);
    assert!(made.status.success() && made.stdout.is_empty() && made.stderr.is_empty());
    let page = |name: &str| fs::read_to_string(directory.path().join(name)).expect(name);
    assert!(page("quorlock.1").contains("quorlock\\-run(1)"));
    for subcommand in SUBCOMMANDS {
        let page = page(&format!("quorlock-{subcommand}.1"));
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "\"EXIT CODES\"", "EXAMPLES"] {
            assert!(page.contains(&format!("\n.SH {section}\n")), "{subcommand}: {section}\n{page}");
        }
        assert!(!page.contains("hunter2"), "{page}");
        assert_eq!(page.matches("\n.nf\n").count(), page.matches("\n.fi\n").count(), "{subcommand}");
    }
    assert_eq!(fs::read_dir(directory.path()).expect("read").count(), SUBCOMMANDS.len() + 1);
}

#[test]
fn pages_for_a_missing_directory_exit_with_74() {
    let directory = tempfile::tempdir().expect("a directory");
    let missing = directory.path().join("missing");
    let made = quorlock(&["man", missing.to_str().expect("text")]);
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    assert_eq!(made.status.code(), Some(74), "{said}");
    assert!(said.contains("cannot be written"), "{said}");
}
