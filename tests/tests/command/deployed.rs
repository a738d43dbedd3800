//! The examples of deployments in `transport-blocking/command/deploy`: their commands run on
//! masters of the test, as written there, and masters have the settings of the compose file.
//! `cargo xtask check deployments` compares the files with their schemas.

use std::fs;
use std::path::Path;
use std::process::Command;

use quorlock_tests::{Fleet, masters, write_program};

use crate::binary;
use crate::documented::root;
use crate::running::{Ended, Running, call};

// Included, so that `cargo xtask affected` knows what notices a change of one.
const SERVICE: &str = include_str!("../../../transport-blocking/command/deploy/nightly-report.service");
const CRON_JOB: &str = include_str!("../../../transport-blocking/command/deploy/nightly-report.cronjob.yaml");
const IMAGE: &str = include_str!("../../../transport-blocking/command/deploy/report.Dockerfile");
const COMPOSE: &str = include_str!("../../../transport-blocking/command/deploy/compose.yaml");
const PAGE: &str = include_str!("../../../core/docs/command.md");

const REPORT: &str = "/usr/local/bin/report.sh";
/// The masters of the compose file.
const HOSTS: [&str; 3] = ["redis://a", "redis://b", "redis://c"];
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The value of the only line that begins with this key, after spaces.
#[track_caller]
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let values: Vec<_> = text.lines().filter_map(|line| line.trim_start().strip_prefix(key)).collect();
    let [value] = values.as_slice() else { panic!("{key:?} is there {} times", values.len()) };
    value.trim()
}

/// The strings in a list such as `["run", "-n"]`.
fn strings(list: &str) -> Vec<&str> {
    list.split('"').skip(1).step_by(2).collect()
}

/// What an example starts on each machine: `quorlock` with these words, and these masters in the
/// environment.
struct Job<'a> {
    program: &'a str,
    words: Vec<&'a str>,
    masters: &'a str,
}

impl Job<'_> {
    /// Starts it on one machine, with masters and a report of the test.
    fn run(&self, masters: &Fleet, report: &Path) -> Ended {
        assert_eq!(self.program, "/usr/bin/quorlock");
        let (report_of_example, words) = self.words.split_last().unwrap();
        assert_eq!(*report_of_example, REPORT);
        let mut command = Command::new(binary::quorlock());
        command.args(words).arg(report).env("QUORLOCK_MASTERS", masters.urls().join(","));
        Running::of(&mut command).end()
    }

    /// The job runs on the first machine, and a second one that is a little late does nothing.
    fn runs_once(&self) {
        let named: Vec<_> = self.masters.split(',').collect();
        // One client without the guard would void it for all, and only be warned.
        assert!(self.words.windows(2).any(|two| two == ["--restart-guard", "1m"]), "{:?}", self.words);
        assert!(named.len() == 3 && named.iter().all(|url| url.starts_with("redis://")), "{named:?}");
        let (masters, directory) = (masters(3), tempfile::tempdir().unwrap());
        assert_eq!(call(&masters, &["bootstrap", "--restart-guard", "1m"], None).code, Some(0));
        let report = directory.path().join("report.sh");
        write_program(&report, "#!/bin/sh\necho \"$QUORLOCK_RESOURCE is reported\"\n");
        let [first, second] = [0, 1].map(|_| self.run(&masters, &report));
        assert_eq!((first.code, first.out.as_str()), (Some(0), "nightly-report is reported\n"), "{first:?}");
        assert_eq!((second.code, second.out.as_str()), (Some(0), ""), "{second:?}");
    }
}

#[test]
fn the_service_of_systemd_makes_the_report_on_one_machine() {
    let mut words: Vec<_> = value(SERVICE, "ExecStart=").split_whitespace().collect();
    let program = words.remove(0);
    Job { program, words, masters: value(SERVICE, "Environment=QUORLOCK_MASTERS=") }.runs_once();
}

#[test]
fn the_cron_job_of_kubernetes_makes_the_report_in_one_cluster() {
    let [program] = strings(value(CRON_JOB, "command: "))[..] else { panic!("{CRON_JOB}") };
    let words = strings(value(CRON_JOB, "args: "));
    Job { program, words, masters: value(CRON_JOB, "value: ") }.runs_once();
    // What it runs is what its image has.
    for file in [program, REPORT] {
        assert!(IMAGE.lines().any(|line| line.starts_with("COPY ") && line.ends_with(file)), "{file}");
    }
}

/// The words of the command of a service in the compose file.
fn service(name: &str) -> Vec<&'static str> {
    let (_, rest) = COMPOSE.split_once(&format!("\n{name}")).unwrap();
    let line = rest.lines().find(|line| line.trim_start().starts_with("command: ")).unwrap();
    strings(line)
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn all_promises_hold_on_the_masters_of_the_compose_file() {
    let server = service("x-master:");
    let (program, settings) = server.split_first().unwrap();
    assert_eq!(*program, "valkey-server");
    let masters = Fleet::start(3, |options, _| settings.iter().fold(options, |one, word| one.arg(word)));
    let urls = masters.urls();
    let of_test = |word: &'static str| match HOSTS.iter().position(|host| *host == word) {
        Some(place) => urls[place].as_str(),
        None => word,
    };
    let run = |name: &str| {
        let words = service(&format!("  {name}:")).into_iter().map(of_test);
        Running::of(Command::new(binary::quorlock()).args(words)).end()
    };
    for host in HOSTS {
        let name = host.strip_prefix("redis://").unwrap();
        assert!(COMPOSE.contains(&format!("\n  {name}:\n    <<: *master\n")), "{name}");
    }

    // They keep their data, so this holds for clients without the restart guard, too.
    let told = call(&masters, &["doctor"], None);
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""), "{}", told.out);
    assert_eq!(run("bootstrap").code, Some(0));
    let told = run("doctor");
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""), "{}", told.out);
    assert!(!told.out.contains("repl-backlog-ttl"), "{}", told.out);
}

#[test]
fn the_examples_and_the_page_name_this_version() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, rest) = manifest.split_once("\nrepository = \"https://").unwrap();
    let (_, name) = rest.split_once('"').unwrap().0.split_once('/').unwrap();
    for file in [format!("quorlock_{VERSION}-1_amd64.deb"), format!("quorlock-{VERSION}-x86_64-linux.tar.gz")]
    {
        assert!(PAGE.contains(&file), "{file}");
    }
    for (file, times) in [(COMPOSE, 2), (IMAGE, 1), (PAGE, 2)] {
        let named = [format!("{name}:{VERSION}"), format!("{name}:")].map(|part| file.matches(&part).count());
        assert_eq!(named, [times; 2], "{name} in {file}");
    }
}
