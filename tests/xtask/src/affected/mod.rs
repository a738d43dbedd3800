//! What can notice a change.

mod packages;

use std::collections::BTreeSet;

use crate::Outcome;
use crate::faults;
use crate::process::{cargo, files, program, read, run as finish};
use crate::results;

const HELP: &str = "\
Lists what can notice a change, and with --run runs it.

cargo xtask affected [--run]           the changes that are not committed
cargo xtask affected [--run] COMMIT    all changes since this commit

Tests are those of the packages that a changed file belongs to, that depend on these, or that include
the file. A known fault names the files that it changes, and what measures or proves the files that its
result depends on. What cannot be told is listed as well.";

/// A heading, and commands below it: arguments of cargo.
struct Group {
    heading: &'static str,
    commands: Vec<Vec<String>>,
}

/// Steps of `cargo xtask check` for files whose names end so.
const STEPS: [(&str, &[&str]); 9] = [
    (".rs", &["format", "words", "spelling", "lints", "docs"]),
    (".md", &["words", "spelling", "docs", "book"]),
    (".toml", &["rust-version", "deny", "packages", "lints"]),
    ("Cargo.lock", &["rust-version", "deny", "rustls"]),
    (".tsv", &["results"]),
    (".yml", &["deployments"]),
    (".yaml", &["deployments"]),
    (".service", &["deployments"]),
    (".timer", &["deployments"]),
];

pub(crate) fn run(options: &[&str]) -> Outcome {
    let (is_run, options) = match options {
        ["--run", rest @ ..] => (true, rest),
        _ => (false, options),
    };
    let commit = match options {
        [] => "HEAD",
        ["-h" | "--help"] => {
            println!("{HELP}");
            return Ok(());
        }
        [commit] if !commit.starts_with('-') => commit,
        _ => return Err("try cargo xtask affected --help".into()),
    };
    let changed = changed(commit)?;
    println!("{} changed files since {commit}", changed.len());
    let (groups, unknown) = noticed(&changed, commit)?;
    for Group { heading, commands } in &groups {
        println!("\n{heading}:");
        commands.iter().for_each(|words| println!("  cargo {}", words.join(" ")));
    }
    if !unknown.is_empty() {
        println!("\nWhat notices these cannot be told; cargo xtask check runs all steps:");
        unknown.iter().for_each(|file| println!("  {file}"));
    }
    if is_run { run_all(&groups) } else { Ok(()) }
}

/// The files that have changed since a commit, those that are new included.
fn changed(commit: &str) -> Outcome<Vec<String>> {
    let tracked = read(&mut program("git", &["diff", "--name-only", commit, "--"]))?;
    let new = read(&mut program("git", &["ls-files", "--others", "--exclude-standard"]))?;
    let all: BTreeSet<_> = tracked.lines().chain(new.lines()).map(str::to_owned).collect();
    Ok(all.into_iter().collect())
}

/// What notices changes of these files, and the files of which that cannot be told.
fn noticed(changed: &[String], commit: &str) -> Outcome<(Vec<Group>, Vec<String>)> {
    let all = packages::all(&files()?)?;
    let (mut tests, mut steps) = (BTreeSet::new(), BTreeSet::new());
    let mut unknown = Vec::new();
    for file in changed {
        let noticing = packages::noticing(&all, file);
        let checked = STEPS.iter().filter(|(end, _)| file.ends_with(end));
        let checked: Vec<_> = checked.flat_map(|(_, steps)| *steps).copied().collect();
        if noticing.is_empty() && checked.is_empty() && faults::in_file(file).is_none() {
            unknown.push(file.clone());
        }
        tests.extend(noticing);
        steps.extend(checked);
    }
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let tests = tests.into_iter().map(|package| words(&["test", "-p", package, "--all-features"])).collect();
    let only = |name: &String| words(&["xtask", "faults", "--only", name]);
    let steps: Vec<_> = steps.into_iter().collect();
    let check = [&["xtask", "check"][..], &steps].concat();
    let groups = [
        Group {
            heading: "Steps of the checks",
            commands: steps.first().map(|_| words(&check)).into_iter().collect(),
        },
        Group { heading: "Tests", commands: tests },
        Group { heading: "Known faults", commands: faults::of(changed)?.iter().map(only).collect() },
        Group { heading: "Small changes of the core", commands: changes(changed, commit) },
        Group { heading: "What measures or proves", commands: results::depending_on(changed)? },
    ];
    Ok((groups.into_iter().filter(|group| !group.commands.is_empty()).collect(), unknown))
}

/// The changes of lines of the core that have changed since a commit, and those that are written by
/// hand if their list has.
fn changes(changed: &[String], commit: &str) -> Vec<Vec<String>> {
    let is_of_the_core = |file: &String| file.starts_with("core/src/") && file.ends_with(".rs");
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let mut commands = Vec::new();
    if changed.iter().any(is_of_the_core) {
        commands.push(words(&["xtask", "changes", "--in", commit]));
    }
    if changed.iter().any(|file| file == "tests/changes/changes.txt") {
        commands.push(words(&["xtask", "changes", "--written"]));
    }
    commands
}

/// Runs all commands, also behind one that fails.
fn run_all(groups: &[Group]) -> Outcome {
    let mut failed = Vec::new();
    for words in groups.iter().flat_map(|group| &group.commands) {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        println!("\n== cargo {}", words.join(" "));
        if finish(&mut cargo(&words)).is_err() {
            failed.push(words.join(" "));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("these failed: {}", failed.join("; ")).into()) }
}
