//! The examples of every `--help`, run as scripts of a POSIX shell.

use std::fs;
use std::process::Command;

use quorlock_tests::{masters, write_program};

use crate::binary;
use crate::documented::with_masters;
use crate::running::{Running, quorlock};
use crate::usage::SUBCOMMANDS;

/// The exit code of each call of `quorlock` in a subcommand's examples, in the order of their ends.
const CODES: [(&str, &[i32]); 14] = [
    ("run", &[0, 0, 0, 0, 0, 0, 0]),
    ("acquire", &[0, 0, 0, 0, 0]),
    ("extend", &[0, 0, 0, 0, 0, 0]),
    ("release", &[0, 0, 0, 0]),
    // Nothing is locked there.
    ("status", &[3, 3, 3, 3]),
    // These masters store nothing on disk, are new for a client with the guard, and none is off.
    ("doctor", &[1, 1, 1, 1]),
    ("force-release", &[3, 0, 0]),
    ("bootstrap", &[0, 0]),
    // These masters are not nodes of a cluster.
    ("cluster-plan", &[64, 64]),
    ("master", &[0, 0]),
    ("demo", &[0]),
    // Both show how a promise is broken.
    ("simulate", &[1, 1]),
    ("completions", &[0]),
    ("man", &[0]),
];

/// Programs that the examples run, and that do nothing.
const PROGRAMS: [&str; 8] =
    ["build", "deploy", "backup", "search", "rebuild", "ship", "train", "bin/pg_dump"];

/// Records the exit code of each call.
const WRAPPER: &str = "#!/bin/sh\n\"$QUORLOCK_UNDER_TEST\" \"$@\" & child=$!\n\
    trap 'kill -TERM $child' TERM\nwait $child; code=$?\n\
    test $code -lt 128 || { wait $child; code=$?; }\necho $code >>\"$CODES\"\nexit $code\n";

/// The scripts after `Examples:`, or nothing.
fn examples(help: &str) -> String {
    let (_, examples) = help.split_once("\nExamples:\n").unwrap_or_default();
    examples.lines().map(|line| format!("{}\n", line.strip_prefix("  ").unwrap_or(line))).collect()
}

/// Runs the examples of a help text, and checks the exit codes of the calls of `quorlock`.
#[track_caller]
fn check(help: &str, expected: &[i32]) {
    let script = examples(help);
    assert!(script.contains("quorlock "), "no example: {help}");
    // Each help text gets new masters: after a bootstrap, other clients cannot use them.
    let masters = masters(3);
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("bin")).unwrap();
    for program in PROGRAMS {
        write_program(&directory.path().join(program), "#!/bin/sh\n");
    }
    write_program(&directory.path().join("bin/jq"), "#!/bin/sh\ncat >/dev/null\n");
    write_program(&directory.path().join("bin/quorlock"), WRAPPER);
    let codes = directory.path().join("codes");
    // The test's servers have other ports than those in the examples.
    let script = format!("PATH=\"$PWD/bin:$PATH\"\n{}wait\n", script.replace(":6379", ""));
    let mut command = Command::new("sh");
    command.args(["-c", &with_masters(&script, &masters.urls())]).current_dir(directory.path());
    command.env("QUORLOCK_UNDER_TEST", binary::quorlock()).env("CODES", &codes);
    command.env("HOME", directory.path()).env("QUORLOCK_MASTERS", masters.urls().join(","));
    let ended = Running::of(&mut command).end();
    let codes = fs::read_to_string(codes).unwrap_or_default();
    let codes: Vec<i32> = codes.lines().map(|code| code.parse().unwrap()).collect();
    assert_eq!(codes, expected, "{script}{}{}", ended.out, ended.err);
    let is_wrong = codes.contains(&64) && !ended.err.contains("is not a node of a cluster");
    assert!(!is_wrong, "{script}{}{}", ended.out, ended.err);
}

#[test]
fn the_examples_of_every_help_run() {
    assert_eq!(CODES.map(|(subcommand, _)| subcommand), SUBCOMMANDS);
    for (subcommand, codes) in CODES {
        let help = Running::of(&mut quorlock(&[subcommand, "--help"])).end().out;
        check(&help, codes);
    }
    let help = Running::of(&mut quorlock(&["--help"])).end().out;
    check(&help, &[0]);
}
