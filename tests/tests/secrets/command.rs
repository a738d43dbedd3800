//! Every subcommand with secrets of every kind, at the highest verbosity.

use std::fs;
use std::process::{Command, Stdio};

use quorlock_tests::secrets::note;
use quorlock_tests::{Certificates, Fleet, NAMES};

use crate::binary;

const PASSWORD: &str = "hunter2-of-the-masters";

/// Runs the command, and prints its output. The output of `acquire` is only for a shell, so the
/// token in its two variables is removed.
fn say(words: &[&str], environment: &[(&str, &str)]) -> Option<String> {
    let mut command = Command::new(binary::quorlock());
    command.args(words).envs(environment.iter().copied()).stdin(Stdio::null());
    let ended = command.output().unwrap();
    let mut out = String::from_utf8_lossy(&ended.stdout).into_owned();
    let token = out.split_once("QUORLOCK_TOKEN=").map(|(_, rest)| rest[..40].to_owned());
    if let Some(token) = &token {
        assert!(words.contains(&"acquire"));
        note(token);
        for variable in ["QUORLOCK_TOKEN", "QUORLOCK_TOKEN_job"] {
            out = out.replacen(&format!("{variable}={token}"), variable, 1);
        }
    }
    println!("{} {:?}\n{out}\n{}", words[0], ended.status.code(), String::from_utf8_lossy(&ended.stderr));
    token
}

/// Runs all subcommands that ask masters, over these masters.
fn say_all(masters: &str, options: &[&str]) {
    let masters = ("QUORLOCK_MASTERS", masters);
    for loud in [&["-vvv"][..], &["-vvv", "--json"], &["-q"]] {
        let call = |words: &[&str], environment: &[(&str, &str)]| {
            say(&[words, options].concat(), &[&[masters], environment].concat())
        };
        let token = call(&[&["acquire", "job", "-w", "0s"], loud].concat(), &[]);
        let token = token.unwrap_or_else(|| "0".repeat(40));
        let held = [("QUORLOCK_TOKEN", token.as_str())];
        call(&[&["acquire", "job", "-n"], loud].concat(), &[]);
        call(&[&["extend", "job"], loud].concat(), &held);
        call(&["status", "job"], &held);
        call(&["status", "--json", "job"], &held);
        call(&[&["release", "job"], loud].concat(), &held);
        call(&["force-release", "--yes-delete-it-whoever-holds-it", "job"], &[]);
        call(&["doctor"], &[]);
        call(&["doctor", "--json"], &[]);
        call(&["bootstrap", "--restart-guard", "1m"], &[]);
        let run = [&["run", "job", "-w", "0s"], loud, options, &["--", "true"]].concat();
        say(&run, &[masters]);
    }
}

#[test]
#[ignore = "what it says is looked through by another test"]
fn prints_everything_that_the_command_says() {
    note("hunter2");
    let own = Certificates::own(NAMES, |_| {});
    let other = Certificates::own(NAMES, |_| {});
    let masters = Fleet::start(3, |options, _| options.password(PASSWORD).tls(&own, "yes"));
    let urls = |login: &str, parameters: &str| {
        let urls = masters.iter().map(|master| format!("rediss://{login}{}{parameters}", master.address()));
        urls.collect::<Vec<_>>().join(",")
    };
    let files = [own.root(), own.certificate(), own.key(), other.root(), other.key()];
    let files = files.each_ref().map(|file| file.to_str().unwrap());
    let [root, certificate, key, other_root, other_key] = files;
    let right = format!(":{PASSWORD}@");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    fs::write(&file, PASSWORD).unwrap();

    let pair = ["--cacert", root, "--cert", certificate, "--key", key];
    say_all(&urls(&right, ""), &pair);
    say_all(&urls("", &format!("?password-file={}", file.display())), &pair);
    say_all(&urls(&right, &format!("?cacert={root}&cert={certificate}&key={key}&sni=localhost")), &[]);
    say_all(&urls(":hunter2-too@", ""), &pair);
    let insecure = [&pair[2..], &["--sni", "localhost", "--tls-insecure"]].concat();
    say_all(&urls(&right, ""), &insecure);
    for options in [
        &["--cacert", other_root][..],
        &["--cacert", root],
        &["--cacert", key],
        &["--cacert", root, "--cert", certificate, "--key", other_key],
        &["--cacert", root, "--cert", key, "--key", certificate],
        &["--cacert", root, "--cert", certificate],
        &["--cacert", root, "--sni", "not a name"],
    ] {
        say_all(&urls(&right, ""), options);
    }
    let named = [("QUORLOCK_CACERT", root), ("QUORLOCK_CERT", certificate), ("QUORLOCK_KEY", key)];
    let all = urls(&right, "");
    say(&["run", "job", "-vvv", "--", "true"], &[&named[..], &[("QUORLOCK_MASTERS", all.as_str())]].concat());
    let wrong =
        [("QUORLOCK_KEY", other_key), ("QUORLOCK_CERT", certificate), ("QUORLOCK_MASTERS", all.as_str())];
    say(&["run", "job", "-vvv", "--", "true"], &wrong);
    for url in ["rediss://:hunter2@host:port", "rediss://:hunter2?x@host", "rediss://a#insecure"] {
        say(&["status", "-m", url, "job"], &[]);
    }
}
