//! Every command in the READMEs and in the pages of `core/docs`, run as written there, and compared
//! with the exit code that the page gives.
//!
//! A block of a page is one of these, by its language:
//!
//! * `text` that begins with `$ quorlock …`: that command, with `  # exit code N` after it unless
//!   that is 0. The lines after it are its output, which is compared if it is the same each time:
//!   `quorlock simulate`.
//! * `sh` with a line that begins with `quorlock` or takes its output: the whole block, as a script
//!   of a POSIX shell that ends at the first failure.
//! * `crontab`: each line after its five fields, with the variables above it.
//!
//! The hosts `a`, `b` and `c` are masters that the test starts for each page. The ports that a page
//! names are free ones in a block that starts masters on them, and those masters in other blocks.
//! Commands that cannot be run are in [`LEFT_OUT`].

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use quorlock_tests::{Fleet, masters, write_program};

use crate::binary;
use crate::running::{Ended, Running};

/// Commands of pages that are not run here, and why.
const LEFT_OUT: [(&str, &str); 8] = [
    ("sudo quorlock run nightly-report -- ./report.sh", "a test must not need sudo"),
    (
        "sudo quorlock run nightly-report -- setpriv --reuid=report --regid=report --init-groups ./report.sh",
        "the same, and there is no user of that name",
    ),
    ("quorlock status nightly-report", "its lock is held at another moment; the tests of status have that"),
    (
        "quorlock doctor --prefix app: --cacert ca.pem redis://a redis://b rediss://c redis://worker:secret@d redis://e",
        "it is about five servers of other versions; doctor_page.rs has that",
    ),
    (
        "quorlock doctor --replacing b:6379=d:6379 redis://a redis://b redis://c",
        "one of its masters is off; replacing.rs has that",
    ),
    ("quorlock cluster-plan --masters 3 redis://h1:7000", "it is about a cluster; clusters.rs has that"),
    (
        "quorlock master --port 7001 --port 7002 --port 7003",
        "it serves until it is ended; the page about testing runs it in the background",
    ),
    ("cargo demo", "it builds; what it runs, quorlock demo, has its own tests"),
];

/// Programs that pages run under a lock.
const PROGRAMS: [&str; 1] = ["report.sh"];

/// The hosts that pages name.
const HOSTS: [&str; 3] = ["a", "b", "c"];

/// A host that help texts name, and that does not answer.
const ABSENT: &str = "redis://d";

/// The ports that pages name.
const PORTS: [&str; 3] = ["7001", "7002", "7003"];

/// The folders of published crates, each of which has a README.
const CRATES: [&str; 9] = [
    "core",
    "core/sim",
    "core/tls",
    "transport-blocking",
    "transport-blocking/command",
    "transport-blocking/embedded",
    "transport-blocking/host",
    "transport-smol",
    "transport-tokio",
];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The READMEs and all pages, each with its path from the root of the repository.
pub(crate) fn pages() -> Vec<(String, String)> {
    let mut files: Vec<_> =
        fs::read_dir(root().join("core/docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    files.push(root().join("README.md"));
    files.extend(CRATES.map(|folder| root().join(folder).join("README.md")));
    files.sort();
    let name = |file: &Path| file.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
    files.iter().map(|file| (name(file), fs::read_to_string(file).unwrap())).collect()
}

/// The fenced blocks of a page: their language, and their text.
pub(crate) fn blocks(page: &str) -> Vec<(String, String)> {
    let (mut blocks, mut open) = (Vec::new(), None);
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((language.to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block has no end");
    blocks
}

fn is_command(line: &str) -> bool {
    line.starts_with("quorlock ") || line.contains("$(quorlock ")
}

fn is_left_out(line: &str) -> bool {
    LEFT_OUT.iter().any(|(left, _)| *left == line)
}

/// A part of a page to run: a script, the exit code that the page gives, and its output if that is
/// known.
struct Step {
    script: String,
    code: i32,
    printed: Option<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for (language, text) in blocks(page) {
        match language.as_str() {
            "text" => {
                let Some((line, printed)) = text.strip_prefix("$ ").and_then(|text| text.split_once('\n'))
                else {
                    continue;
                };
                let (command, code) = line.split_once("  # exit code ").unwrap_or((line, "0"));
                if is_left_out(command) {
                    continue;
                }
                let is_same = command.starts_with("quorlock simulate ");
                steps.push(Step {
                    script: command.to_owned(),
                    code: code.parse().unwrap(),
                    printed: is_same.then(|| printed.to_owned()),
                });
            }
            "sh" if text.lines().any(is_command) => {
                let lines: Vec<_> = text.lines().filter(|line| !is_left_out(line)).collect();
                steps.push(Step { script: lines.join("\n"), code: 0, printed: None });
            }
            "crontab" => {
                let mut script = String::new();
                for line in text.lines().filter(|line| !line.starts_with('#')) {
                    if line.split_whitespace().next().is_some_and(|word| word.contains('=')) {
                        script += &format!("export {line}\n");
                    } else {
                        let command =
                            (0..5).fold(line, |rest, _| rest.split_once(' ').unwrap().1.trim_start());
                        steps.push(Step { script: format!("{script}{command}"), code: 0, printed: None });
                    }
                }
            }
            _ => {}
        }
    }
    steps
}

/// The script with real masters in place of the hosts and ports that a page names. If it starts
/// masters itself, it gets free ports for them.
pub(crate) fn with_masters(script: &str, urls: &[String]) -> String {
    let mut script = script.to_owned();
    if !script.contains("quorlock master ") {
        for (port, url) in PORTS.iter().zip(urls) {
            script = script.replace(&format!("redis://127.0.0.1:{port}"), url);
        }
    }
    let listeners: Vec<_> = PORTS.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    for (port, listener) in PORTS.iter().zip(&listeners) {
        let free = listener.local_addr().unwrap().port();
        for before in [":", " "] {
            script = script.replace(&format!("{before}{port}"), &format!("{before}{free}"));
        }
    }
    for (host, url) in HOSTS.iter().zip(urls) {
        for end in [" ", ",", "=", "\n"] {
            script = script.replace(&format!("redis://{host}{end}"), &format!("{url}{end}"));
        }
    }
    script.replace(&format!("{ABSENT}\n"), "redis://127.0.0.1:1\n")
}

/// Runs a script in the directory of the page's programs.
#[track_caller]
fn run(script: &str, masters: &Fleet, directory: &Path) -> Ended {
    let script = with_masters(&format!("{script}\n"), &masters.urls());
    // If a script fails, its background processes end with it.
    let begin =
        "set -e\nPATH=\"$PWD/bin:$PATH\"\ntrap 'test -z \"$!\" || kill \"$!\" 2>/dev/null || true' EXIT\n";
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{begin}{script}")]).current_dir(directory);
    command.env("QUORLOCK_MASTERS", masters.urls().join(","));
    Running::of(&mut command).end()
}

fn run_page(name: &str) -> usize {
    let (_, page) = pages().into_iter().find(|(page, _)| page == name).unwrap();
    let (masters, directory) = (masters(HOSTS.len()), tempfile::tempdir().unwrap());
    // The scripts find the binary itself on PATH, not a function of the shell. So a script that
    // kills what it has started in the background kills the binary.
    fs::create_dir(directory.path().join("bin")).unwrap();
    symlink(binary::quorlock(), directory.path().join("bin/quorlock")).unwrap();
    for program in PROGRAMS {
        let text = "#!/bin/sh\necho \"$QUORLOCK_RESOURCE is reported\"\n";
        write_program(&directory.path().join(program), text);
    }
    let steps = steps(&page);
    for Step { script, code, printed } in &steps {
        let ended = run(script, &masters, directory.path());
        assert_eq!(ended.code, Some(*code), "{name}: {script}\n{}{}", ended.out, ended.err);
        if let Some(printed) = printed {
            assert!(ended.out.starts_with(printed), "{script} prints\n{}and not\n{printed}", ended.out);
        }
        // A picture that is the same each time must be equal to the one in the page.
        if let Some((_, picture)) =
            script.split_once("quorlock simulate ").and_then(|(_, rest)| rest.split_once("--svg "))
        {
            let picture = picture.split_whitespace().next().unwrap();
            let drawn = fs::read_to_string(directory.path().join(picture)).unwrap();
            let kept = fs::read_to_string(root().join("core/docs").join(picture)).unwrap();
            assert!(drawn == kept, "{picture} is not what its command in {name} draws now");
        }
    }
    steps.len()
}

#[test]
fn the_commands_of_the_readme_do_what_it_says() {
    assert!(run_page("README.md") >= 1);
}

#[test]
fn the_commands_of_the_pages_do_what_they_say() {
    let mut commands = 0;
    for (name, _) in pages().iter().filter(|(name, _)| name != "README.md") {
        commands += run_page(name);
    }
    assert!(commands >= 18, "{commands} commands");
}

#[test]
fn every_line_with_a_command_is_in_a_block_that_is_run_or_left_out_with_a_reason() {
    for (name, page) in pages() {
        let run: Vec<_> = steps(&page).into_iter().map(|step| step.script).collect();
        let (mut language, mut is_open) = ("", false);
        for line in page.lines() {
            if let Some(begun) = line.strip_prefix("```") {
                is_open = !is_open;
                language = if is_open { begun } else { "" };
                continue;
            }
            let command = line.strip_prefix("$ ").unwrap_or(line);
            let command = command.split_once("  # exit code ").map_or(command, |(command, _)| command);
            let is_crontab = language == "crontab" && command.contains(" quorlock ");
            if !is_open || !(is_command(command) || is_crontab) || is_left_out(command) {
                continue;
            }
            let is_run = run.iter().any(|script| {
                script.lines().any(|line| line == command || is_crontab && command.ends_with(line))
            });
            assert!(is_run, "{name}: nothing runs {line:?}");
        }
    }
    let all: String = pages().into_iter().map(|(_, page)| page).collect();
    for (line, why) in LEFT_OUT {
        assert!(all.contains(line), "{line} is left out ({why}), and nowhere");
    }
}

/// A page with Rust is compiled if the tests crate includes it for its doc tests. The page about
/// fencing shows parts of examples, and their crate compares them.
#[test]
fn every_page_with_rust_is_compiled() {
    let files = ["tests/src/lib.rs", "tests/fencing/src/page.rs"];
    let sources = files.map(|file| fs::read_to_string(root().join(file)).unwrap());
    for (name, page) in pages() {
        let languages: BTreeSet<_> = blocks(&page).into_iter().map(|(language, _)| language).collect();
        if languages.iter().any(|language| language.starts_with("rust")) {
            let include = format!("../../{name}\")");
            let is_included = sources.iter().any(|source| source.contains(&include));
            assert!(is_included, "none of {files:?} includes {name}");
        }
        for language in languages {
            let language = language.split(',').next().unwrap().to_owned();
            let known = ["rust", "sql", "toml", "text", "sh", "crontab", "mermaid"];
            assert!(known.contains(&language.as_str()), "{name}: nothing looks into blocks of {language:?}");
        }
    }
}

/// Each published crate has a README, and a manifest with everything that a registry shows.
#[test]
fn every_published_crate_has_a_readme_and_a_complete_manifest() {
    for folder in CRATES {
        let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        for key in ["description", "documentation", "readme", "repository", "keywords", "categories"] {
            let is_set = manifest.lines().any(|line| line.starts_with(key));
            assert!(is_set, "{folder}/Cargo.toml has no {key}");
        }
        assert!(manifest.contains("[package.metadata.docs.rs]\nall-features = true\n"), "{folder}");
        let lines = fs::read_to_string(root().join(folder).join("README.md")).unwrap().lines().count();
        assert!((15..=40).contains(&lines), "{folder}/README.md has {lines} lines");
    }
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
    for member in members.split('"').skip(1).step_by(2).filter(|member| !member.starts_with("tests")) {
        assert!(CRATES.contains(&member), "{member} is not looked at here");
    }
}
