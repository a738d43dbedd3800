//! No password, token or private key is in any output: of the library, with all events of `tracing`
//! and all of `Debug`, and of the command, with every option for TLS and logins. A separate process
//! carries out all operations and writes its secrets into a file; here its whole output is
//! searched. `quorlock-tests` with the feature `tracing` has these tests.

#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "command/binary.rs"]
mod binary;
#[path = "tls/certificates.rs"]
mod certificates;
#[path = "secrets/command.rs"]
mod command;
#[path = "tls/faults.rs"]
mod faults;
// Most of this module is for other tests.
#[allow(dead_code, unused_imports)]
#[path = "scenarios/kit.rs"]
mod kit;
#[path = "scenarios/logins.rs"]
mod logins;
#[path = "secrets/story.rs"]
mod story;
#[path = "secrets/subscriber.rs"]
mod subscriber;

use std::process::Command;

use quorlock_tests::secrets::{SECRETS_VARIABLE, noted, shown};

/// Runs a test of this program in a separate process. Returns its whole output, and its secrets.
fn told_by(test: &str) -> (String, Vec<Vec<u8>>) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secrets");
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--ignored", "--exact", "--nocapture", test]).env(SECRETS_VARIABLE, &file);
    let ended = program.output().unwrap();
    let told = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
    assert!(ended.status.success(), "{test}:\n{told}");
    (told, noted(&file))
}

#[track_caller]
fn assert_no_secret(told: &str, secrets: &[Vec<u8>]) {
    let shown = shown(told, secrets);
    assert!(shown.is_empty(), "{} lines show a secret, such as:\n{}", shown.len(), shown[0]);
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn nothing_that_the_library_says_shows_a_secret() {
    let (told, secrets) = told_by("story::prints_everything_that_the_library_says");
    // Checks that there were secrets, and output to search.
    let is_key = |secret: &&Vec<u8>| secret.starts_with(b"-----BEGIN ");
    let is_token = |secret: &&Vec<u8>| secret.len() == 40;
    assert!(secrets.iter().filter(is_key).count() >= 10 && secrets.iter().filter(is_token).count() >= 9);
    for part in [
        "quorlock.acquire",
        "quorlock.renewed",
        "WrongPass",
        "is not trusted here",
        "Guard {",
        "Config {",
        "TlsBuilder(",
    ] {
        assert!(told.contains(part), "{part} is not in\n{told}");
    }
    assert_no_secret(&told, &secrets);
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn nothing_that_the_command_says_shows_a_secret() {
    let (told, secrets) = told_by("command::prints_everything_that_the_command_says");
    for part in
        ["(WRONGPASS)", "is not trusted here", "masters answered", "QUORLOCK_RESOURCE='job'", "TLS 1.3"]
    {
        assert!(told.contains(part), "{part} is not in\n{told}");
    }
    assert!(secrets.len() >= 3);
    assert_no_secret(&told, &secrets);
}
