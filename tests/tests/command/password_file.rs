//! A password in a file: read at each login, and shown nowhere.

use std::fs;
use std::path::Path;

use quorlock_tests::{Calls, Cut, FaultProxy, Fleet, RedisServer, eventually};

use crate::running::{Ended, HOLD, JOB, Running, SOON, assert_free, exported, quorlock, start_over};

const PASSWORD: &str = "hunter2-of-the-masters";

/// Masters with this password, and their URLs with this file.
fn masters(file: &Path) -> (Fleet, Vec<String>) {
    let masters = Fleet::start(3, |options, _| options.password(PASSWORD));
    let url = |master: &RedisServer| format!("redis://{}?password-file={}", master.address(), file.display());
    let urls = masters.iter().map(url).collect();
    (masters, urls)
}

#[track_caller]
fn call(urls: &[String], words: &[&str]) -> Ended {
    let ended = Running::of(quorlock(words).env("QUORLOCK_MASTERS", urls.join(","))).end();
    assert!(!format!("{}{}", ended.out, ended.err).contains(PASSWORD), "{} {}", ended.out, ended.err);
    ended
}

#[test]
fn every_subcommand_logs_in_with_the_password_of_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    fs::write(&file, format!("{PASSWORD}\n")).unwrap();
    let (masters, urls) = masters(&file);
    let taken = call(&urls, &["acquire", JOB]);
    assert_eq!(taken.code, Some(0), "{}", taken.err);
    assert!(exported(&taken.out, "QUORLOCK_TOKEN").is_some());
    assert_eq!(call(&urls, &["status", "-q", JOB]).code, Some(0));
    assert_eq!(call(&urls, &["force-release", "--yes-delete-it-whoever-holds-it", JOB]).code, Some(0));
    assert_eq!((call(&urls, &["status", JOB]).code, masters.holding(JOB)), (Some(3), 0));
    assert_eq!(call(&urls, &["run", "-v", JOB, "--", "true"]).code, Some(0));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    let (_masters, urls) = masters(&file);
    let named = format!("the password file {} ", file.display());
    let says = |words: &[&str], reason: &str| {
        let ended = call(&urls, words);
        let told = format!("{}{}", ended.out, ended.err);
        assert!(told.contains(&named) && told.contains(reason), "{words:?}: {told}");
    };
    for words in [
        &["status", JOB][..],
        &["force-release", "--yes-delete-it-whoever-holds-it", JOB],
        &["run", "-n", JOB, "--", "true"],
    ] {
        says(words, "cannot be read");
    }
    fs::write(&file, "\n").unwrap();
    says(&["status", JOB], "is empty");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    says(&["status", JOB], "is not a regular file");
    says(&["doctor"], "is not a regular file");
}

#[test]
fn doctor_reads_no_password_from_a_device_without_an_end() {
    let (_masters, urls) = masters(Path::new("/dev/zero"));
    let told = call(&urls, &["doctor"]);
    assert!(told.out.contains("the password file /dev/zero is not a regular file"), "{}", told.out);
}

#[test]
fn a_run_that_holds_a_lock_goes_on_with_a_rotated_password() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    fs::write(&file, PASSWORD).unwrap();
    let (masters, _) = masters(&file);
    let proxies: Vec<_> = masters.iter().map(|master| FaultProxy::start(master.address())).collect();
    let urls = proxies.iter().map(|proxy| format!("{}?password-file={}", proxy.url(), file.display()));
    let urls: Vec<_> = urls.collect();
    let mut running = start_over(&urls, &["--ttl", "2s"], &HOLD);
    assert_eq!(running.first_line(), "runs");

    fs::write(&file, "another").unwrap();
    for (master, proxy) in masters.iter().zip(&proxies) {
        assert!(master.command(&["CONFIG", "SET", "requirepass", "another"]).is_ok());
        let extensions = || masters.iter().map(|master| master.calls(Calls::Extension)).sum::<u64>();
        let before = extensions();
        proxy.cut(Cut::Fin);
        eventually(SOON, "renewals go on", || extensions() >= before + 6);
    }

    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_free(&masters);
}
