//! Checks by tools that do not come with Rust. Where a tool is missing, they say that they did not
//! run.

use std::path::PathBuf;

use super::NotRun;
use super::book;
use crate::Outcome;
use crate::pip::environment;
use crate::process::{program, read, run, target};

/// The version of typos with which the words in `typos.toml` were chosen.
const TYPOS: &str = "1.52.0";
/// The version of cargo-deny for which `deny.toml` is written.
const DENY: &str = "0.20.2";
/// The version of mdBook with which the book was last read.
const MDBOOK: &str = "0.5.4";

/// Looks for misspelt words, with the `typos` on PATH, or else with one that it installs.
pub(super) fn spelling() -> Outcome {
    let typos = if version("typos").is_ok() { PathBuf::from("typos") } else { own_typos()? };
    let typos = typos.to_string_lossy();
    print!("{}", version(&typos)?);
    run(&mut program(&typos, &["--format", "brief"]))
}

fn version(name: &str) -> Outcome<String> {
    read(&mut program(name, &["--version"]))
}

/// The `typos` of a Python environment in the target folder.
fn own_typos() -> Outcome<PathBuf> {
    let folder = environment("typos", TYPOS).map_err(|error| {
        NotRun(format!("typos is not on PATH and could not be installed with pip ({error})"))
    })?;
    Ok(folder.join("bin/typos"))
}

/// Compares what the libraries depend on with the rules in `deny.toml`.
pub(super) fn deny() -> Outcome {
    let Ok(found) = version("cargo-deny") else {
        let install = format!("cargo install cargo-deny --locked --version {DENY}");
        return Err(NotRun(format!("cargo-deny is not on PATH ({install})")).into());
    };
    print!("{found}");
    run(&mut program("cargo-deny", &["--all-features", "--locked", "check", "bans", "licenses", "sources"]))
}

/// Builds the book, and follows the links of its pages.
pub(super) fn book() -> Outcome {
    let Ok(found) = version("mdbook") else {
        let install = format!("cargo install mdbook --locked --version {MDBOOK}");
        return Err(NotRun(format!("mdbook is not on PATH ({install})")).into());
    };
    print!("{found}");
    let folder = target().join("book");
    let mut build = program("mdbook", &["build", "core/docs", "--dest-dir"]);
    // Settings of `book.toml` that are derived.
    build.env("MDBOOK_OUTPUT__HTML__GIT_REPOSITORY_URL", book::REPOSITORY);
    let edit = format!("{}/edit/main/core/docs/{{path}}", book::REPOSITORY);
    build.env("MDBOOK_OUTPUT__HTML__EDIT_URL_TEMPLATE", edit);
    run(build.arg(&folder))?;
    book::lead_out(&folder)?;
    book::links(&folder)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::process::root;

    #[test]
    fn the_workflow_installs_the_same_tools() {
        let workflow = fs::read_to_string(root().join(".github/workflows/ci.yml")).unwrap();
        for install in [format!("mdbook --version {MDBOOK} "), format!("cargo-deny --version {DENY}\n")] {
            assert!(workflow.contains(&format!("install: {install}")), "{install}");
        }
    }
}
