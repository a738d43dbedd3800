//! Checks which packages are in the dependency trees.

use std::collections::BTreeSet;

use crate::Outcome;
use crate::process::{cargo, read};

fn tree(arguments: &[&str]) -> Outcome<String> {
    read(cargo(&["tree"]).args(arguments))
}

/// Fails, and shows the lines, if any line of the tree is one of those that must not be there.
fn refuse(tree: &str, why: &str, is_refused: impl Fn(&str) -> bool) -> Outcome {
    let refused: Vec<_> = tree.lines().filter(|line| is_refused(line)).collect();
    if refused.is_empty() { Ok(()) } else { Err(format!("{why}:\n{}", refused.join("\n")).into()) }
}

/// The beginnings of the names of packages that make system calls.
const IMPURE: [&str; 15] = [
    "tokio",
    "smol",
    "async-",
    "futures",
    "mio",
    "polling",
    "socket2",
    "rustix",
    "libc",
    "getrandom",
    "rand",
    "chrono",
    "time",
    "quanta",
    "instant",
];

pub(super) fn pure() -> Outcome {
    let tree = tree(&[
        "-p",
        "quorlock-core",
        "-p",
        "quorlock-sim",
        "--features",
        "quorlock-core/tracing,quorlock-sim/worlds",
        "-e",
        "normal",
        "--prefix",
        "none",
        "--no-dedupe",
    ])?;
    let packages: BTreeSet<_> = tree.lines().collect();
    packages.iter().for_each(|package| println!("{package}"));
    refuse(&tree, "the core and the simulator must stay pure", |line| {
        let line = line.to_lowercase();
        IMPURE.iter().any(|name| line.starts_with(name))
    })
}

pub(super) fn transports() -> Outcome {
    for package in ["quorlock-tokio", "quorlock-smol", "quorlock-blocking"] {
        let tree = tree(&["-p", package, "-e", "normal,features"])?;
        let tests = ["quorlock-sim ", "quorlock-embedded ", "quorlock-search ", "feature \"internals\""];
        refuse(&tree, &format!("{package} depends on what is for tests"), |line| {
            tests.iter().any(|word| line.contains(word))
        })?;
    }
    let tree = tree(&["-p", "quorlock-embedded", "-e", "normal,features"])?;
    if !tree.contains("quorlock-sim v") {
        return Err("quorlock-embedded does not depend on the model of a master".into());
    }
    refuse(&tree, "quorlock-embedded needs the model of a master and nothing else", |line| {
        ["quorlock-sim feature", "quorlock-search", "quorlock-blocking"]
            .iter()
            .any(|word| line.contains(word))
    })
}

pub(super) fn tokio() -> Outcome {
    // PostgreSQL's client is for tokio alone, so the tests on that server are for it, too.
    let excluded = ["--exclude", "quorlock-tokio", "--exclude", "quorlock-fencing"];
    let words = [&["--workspace"], &excluded[..], &["--no-default-features", "--prefix", "none"]].concat();
    refuse(&tree(&words)?, "tokio is in the tree without its feature", |line| {
        line.starts_with("tokio ") || line.starts_with("quorlock-tokio ")
    })
}

pub(super) fn rustls() -> Outcome {
    let words = ["--workspace", "--all-features", "--target", "all", "--prefix", "none", "--no-dedupe"];
    let tree = tree(&words)?;
    refuse(&tree, "only rustls is used", |line| {
        ["openssl v", "openssl-sys v", "native-tls v"].iter().any(|name| line.starts_with(name))
    })?;
    let versions: BTreeSet<_> = tree
        .lines()
        .filter(|line| line.starts_with("rustls v"))
        .map(|line| line.split(" (").next().unwrap_or(line))
        .collect();
    if versions.len() != 1 {
        return Err(format!("not one rustls: {versions:?}").into());
    }
    // A second provider makes `ClientConfig::builder()` of any other part of a program panic.
    for package in ["quorlock-tokio", "quorlock-smol", "quorlock-blocking"] {
        let tree = self::tree(&["-p", package, "--features", "tls", "-e", "normal", "--prefix", "none"])?;
        refuse(&tree, &format!("{package} has a provider with the feature `tls` alone"), |line| {
            ["ring v", "aws-lc-rs v"].iter().any(|name| line.starts_with(name))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_line_is_an_error_that_shows_it() {
        assert!(refuse("bytes v1\nmemchr v2", "no tokio", |line| line.starts_with("tokio ")).is_ok());
        let error = refuse("bytes v1\ntokio v1.45", "no tokio", |line| line.starts_with("tokio "));
        assert_eq!(error.unwrap_err().to_string(), "no tokio:\ntokio v1.45");
    }
}
